"""Which variables a match shows: naming (`AS`) and projection (π)."""

from __future__ import annotations

from dataclasses import dataclass

from cerite.pattern.base import Pattern


@dataclass(frozen=True, slots=True)
class Named(Pattern):
    """`φ AS x`: every position of φ is also bound to x (CORE, Figure 2)."""

    operand: Pattern
    variable: str


@dataclass(frozen=True, slots=True)
class Project(Pattern):
    """`π{x, y}(φ)`: other variables are emptied, the interval stays that of the whole match."""

    operand: Pattern
    variables: tuple[str, ...]
