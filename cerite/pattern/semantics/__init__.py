"""The judge: what every pattern and query means, evaluated from the definitions on short streams.

Slow and obviously right. Every engine, language and Spark route is tested against it.
"""

from cerite.pattern.semantics.clauses import matches
from cerite.pattern.semantics.stream import Stream, StreamEvent
from cerite.pattern.semantics.strings import string_matches

__all__ = ["Stream", "StreamEvent", "matches", "string_matches"]
