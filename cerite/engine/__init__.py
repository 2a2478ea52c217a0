"""The engine: event classes, on-the-fly determinisation, counting, the tECS, enumeration and selection.

`Counter` counts matches exactly without enumerating them; `Recogniser` finds them. Both read a stream in batches of
condition bits, keep their state between batches, and can be snapshotted to bytes and restored.
"""

from cerite.engine.count import Count, Counter
from cerite.engine.matches import Matches
from cerite.engine.recogniser import STRATEGIES, Recogniser
from cerite.errors import SnapshotError

__all__ = ["STRATEGIES", "Count", "Counter", "Matches", "Recogniser", "SnapshotError"]
