"""Filters: `φ FILTER x[P] AND y[Q]`, every event of x satisfies P and every event of y satisfies Q.

With a condition that reads other variables (`z[price > x.price]`) the filter is correlated: ICDT's `FILTER P(x, z)`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from cerite.errors import Span
from cerite.pattern.base import Pattern
from cerite.predicate.expression import Expression, variables


@dataclass(frozen=True, slots=True)
class On:
    """`x[P]`: the condition P on every event of the variable x."""

    variable: str
    condition: Expression
    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)

    @property
    def reads(self) -> frozenset[str]:
        """The variables the condition reads; empty for a unary one."""
        return variables(self.condition)


@dataclass(frozen=True, slots=True)
class Filter(Pattern):
    """The matches of `operand` that satisfy all `conditions`."""

    operand: Pattern
    conditions: tuple[On, ...]
