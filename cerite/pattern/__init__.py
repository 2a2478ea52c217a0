"""The algebra that every language becomes, with its checks and rewrites."""

from cerite.pattern.nodes import (
    Complement,
    Concat,
    Empty,
    Event,
    Filter,
    Having,
    Intersection,
    Iteration,
    Named,
    Nothing,
    On,
    Pattern,
    Permute,
    Project,
    Select,
    Sequence,
    Size,
    SkipAny,
    SkipNext,
    Strategy,
    Union,
    Window,
    transform,
    walk,
)
from cerite.pattern.query import Consume, Item, Measure, QuerySpec, Suppress

__all__ = [
    "Complement", "Concat", "Consume", "Empty", "Event", "Filter", "Having", "Intersection", "Item", "Iteration",
    "Measure", "Named", "Nothing", "On", "Pattern", "Permute", "Project", "QuerySpec", "Select", "Sequence", "Size",
    "SkipAny", "SkipNext", "Strategy", "Suppress", "Union", "Window", "transform", "walk",
]  # fmt: skip
