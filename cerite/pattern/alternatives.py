"""One, all, or any order of several patterns: union, intersection, permutation."""

from __future__ import annotations

from dataclasses import dataclass

from cerite.pattern.base import Pattern


@dataclass(frozen=True, slots=True)
class Union(Pattern):
    """`φ OR ψ`; SREMO's `+`."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Intersection(Pattern):
    """`φ AND ψ`: the same interval and positions match both (SRT report, theorem 34); variables of both are bound."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Permute(Pattern):
    """`PERMUTE(φ, ψ, …)`: each occurs, one after the other, in any order."""

    parts: tuple[Pattern, ...]
