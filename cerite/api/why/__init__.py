"""Why events are a match, and why others are none: `query.why` and `query.why_not`."""
