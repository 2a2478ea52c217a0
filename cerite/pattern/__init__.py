"""The algebra that every language becomes, its checks and rewrites, and `semantics`, the judge."""

from cerite.pattern.alternatives import Intersection, Permute, Union
from cerite.pattern.atoms import Empty, Event, Nothing
from cerite.pattern.base import Pattern, transform, walk
from cerite.pattern.complement import Complement
from cerite.pattern.filtering import Filter, On
from cerite.pattern.iteration import Iteration
from cerite.pattern.naming import Named, Project
from cerite.pattern.query import Consume, Item, Query
from cerite.pattern.selection import Select, Strategy
from cerite.pattern.sequence import Concat, Sequence
from cerite.pattern.skipping import SkipAny, SkipNext
from cerite.pattern.window import Size, Window

__all__ = [
    "Complement", "Concat", "Consume", "Empty", "Event", "Filter", "Intersection", "Item", "Iteration", "Named",
    "Nothing", "On", "Pattern", "Permute", "Project", "Query", "Select", "Sequence", "Size", "SkipAny", "SkipNext",
    "Strategy", "Union", "Window", "transform", "walk",
]  # fmt: skip
