"""The timed enumerable compact set of CORE: nodes and union-lists, compaction, enumeration, selection."""
