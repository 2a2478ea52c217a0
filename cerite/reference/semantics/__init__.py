"""The judge: what every pattern and query means, evaluated from the definitions on short streams.

Slow and obviously right. Every engine, language and Spark route is tested against it.
"""

from cerite.reference.semantics.clauses import matches, occurrences, string_matches
from cerite.reference.semantics.measures import measures
from cerite.reference.semantics.short_stream import Stream, StreamEvent

__all__ = ["Stream", "StreamEvent", "matches", "measures", "occurrences", "string_matches"]
