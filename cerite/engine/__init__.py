"""The engine: event classes, on-the-fly determinisation, counting, the tECS, enumeration and selection.

`Counter` counts matches exactly without enumerating them; `Recogniser` finds them. Both read a stream in batches of
condition bits, keep their state between batches, and can be snapshotted to bytes and restored.
"""

from cerite.core.errors import SnapshotError
from cerite.engine.counting.counter import Count, Counter
from cerite.engine.output import MatchChunk
from cerite.engine.subset.recogniser import STRATEGIES, Recogniser

__all__ = ["STRATEGIES", "Count", "Counter", "MatchChunk", "Recogniser", "SnapshotError"]
