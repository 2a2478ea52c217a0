"""SREMO's selection operators: skip-till-any ⟲ and skip-till-next @ (SRT report, definitions 44 and 45).

Both mean what `cerite.pattern.rewrite.skips` rewrites them to.
"""

from __future__ import annotations

from dataclasses import dataclass

from cerite.pattern.base import Pattern


@dataclass(frozen=True, slots=True)
class SkipAny(Pattern):
    """`⟲(e1, …, en)`: any events may lie between the parts."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class SkipNext(Pattern):
    """`@(e1, …, en)`: between two parts no occurrence of the second one may lie."""

    parts: tuple[Pattern, ...]
