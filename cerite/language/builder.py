"""Patterns in Python: `event("SELL").as_("x") >> event("BUY").plus() >> event("SELL", attr.price < var.x.price)`.

| text (CEQL)     | Python                                  | text (SREMO) | Python                     |
| `a ; b`         | `a >> b`                                | `a . b`      | `a * b`  (CEQL's `a : b`)  |
| `a ; NOT b ; c` | `a >> absent(b) >> c`                   | `!a`         | `~a`                       |
| `a OR b`        | `a \\| b`                                | `a & b`      | `a & b`                    |
| `a+  a*  a?`    | `a.plus() a.star() a.optional()`        | `a*`         | `a.star(contiguous=True)`  |
| `a AS x`        | `a.as_("x")`                            | `A^x>r`      | `skip("A", store="r")`     |

Invariant: a built pattern equals the one its text parses to.
"""

from __future__ import annotations

from typing import overload

from cerite.language.terms import Term, expression_of
from cerite.pattern.alternatives import Intersection, Permute, Union
from cerite.pattern.atoms import Empty, Event, Nothing
from cerite.pattern.base import Pattern
from cerite.pattern.complement import Complement
from cerite.pattern.filtering import Filter, On
from cerite.pattern.iteration import Iteration
from cerite.pattern.naming import Named, Project
from cerite.pattern.selection import Select, Strategy
from cerite.pattern.sequence import Concat, Sequence
from cerite.pattern.skipping import SkipAny, SkipNext
from cerite.pattern.window import UNITS, Size, Window


class Builder:
    """A pattern under construction; immutable, every method gives a new one.

    >>> event("A").as_("x") >> absent(event("B")) >> event("C").plus()
    A AS x ; NOT B ; C+
    """

    __slots__ = ("pattern",)

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern

    def __repr__(self) -> str:
        return str(self.pattern)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Builder) and self.pattern == other.pattern

    def __hash__(self) -> int:
        return hash(self.pattern)

    @overload
    def __rshift__(self, other: Builder) -> Builder: ...

    @overload
    def __rshift__(self, other: Absent) -> Waiting: ...

    def __rshift__(self, other: Builder | Absent) -> Builder | Waiting:
        """`self ; other`."""
        if isinstance(other, Absent):
            return Waiting(self, other.patterns)
        return self.then(other)

    def then(self, other: Builder, *, without: Builder | None = None) -> Builder:
        """`self ; NOT without ; other`."""
        return self.after_gap(() if without is None else (without.pattern,), other)

    def after_gap(self, negated: tuple[Pattern, ...], other: Builder) -> Builder:
        """`self ; other` with patterns that must not occur in between."""
        left = self.pattern
        parts, absent = (left.parts, left.absent) if isinstance(left, Sequence) else ((left,), ())
        return Builder(Sequence((*parts, other.pattern), (*absent, negated)))

    def __mul__(self, other: Builder) -> Builder:
        """`self : other`, SREMO's concatenation."""
        left = self.pattern
        return Builder(Concat((*(left.parts if isinstance(left, Concat) else (left,)), other.pattern)))

    def __or__(self, other: Builder) -> Builder:
        left = self.pattern
        return Builder(Union((*(left.parts if isinstance(left, Union) else (left,)), other.pattern)))

    def __and__(self, other: Builder) -> Builder:
        left = self.pattern
        return Builder(Intersection((*(left.parts if isinstance(left, Intersection) else (left,)), other.pattern)))

    def __invert__(self) -> Builder:
        """SREMO's complement `!self`."""
        return Builder(Complement(self.pattern))

    def as_(self, variable: str) -> Builder:
        """`self AS variable`."""
        return Builder(Named(self.pattern, variable))

    def repeat(self, least: int, most: int | None = None, *, contiguous: bool = False) -> Builder:
        """`self{least,most}`; `most` None is without bound."""
        if least < 0 or (most is not None and (most < least or most == 0)):
            raise ValueError(f"an iteration from {least} to {most} times cannot happen")
        return Builder(Iteration(self.pattern, least, most, contiguous))

    def plus(self, *, contiguous: bool = False) -> Builder:
        """`self+`, or `self:+`."""
        return self.repeat(1, contiguous=contiguous)

    def star(self, *, contiguous: bool = False) -> Builder:
        """`self*`, or `self:*` (SREMO's star)."""
        return self.repeat(0, contiguous=contiguous)

    def optional(self) -> Builder:
        """`self?`."""
        return self.repeat(0, 1)

    def filter(self, **conditions: Term) -> Builder:
        """`self FILTER x[…] AND y[…]`: one keyword a variable.

        >>> from cerite.language.terms import attr, var
        >>> (event("A").as_("x") >> event("B").as_("y")).filter(x=attr.id > 0, y=attr.id == var.x.id)
        A AS x ; B AS y FILTER x[id > 0] AND y[id = x.id]
        """
        made = tuple(On(variable, expression_of(condition)) for variable, condition in conditions.items())
        return Builder(Filter(self.pattern, made)) if made else self

    def within(self, amount: int | float, unit: str | None = None, *, attribute: str | None = None) -> Builder:
        """`(self WITHIN amount unit)`: a time unit, "events", or `attribute=`."""
        return Builder(Window(self.pattern, size(amount, unit, attribute=attribute)))

    def project(self, *variables: str) -> Builder:
        """`PROJECT{x, y}(self)`."""
        return Builder(Project(self.pattern, variables))

    def select(self, strategy: str | Strategy) -> Builder:
        """`NEXT(self)` and its sisters."""
        chosen = strategy if isinstance(strategy, Strategy) else Strategy(strategy.upper())
        return Builder(Select(chosen, self.pattern))


class Absent:
    """`NOT b` on its way into `a ; NOT b ; c`."""

    def __init__(self, patterns: tuple[Pattern, ...]) -> None:
        self.patterns = patterns


class Waiting:
    """`a ; NOT b ;` waiting for what comes after."""

    def __init__(self, left: Builder, negated: tuple[Pattern, ...]) -> None:
        self._left = left
        self._negated = negated

    @overload
    def __rshift__(self, other: Builder) -> Builder: ...

    @overload
    def __rshift__(self, other: Absent) -> Waiting: ...

    def __rshift__(self, other: Builder | Absent) -> Builder | Waiting:
        if isinstance(other, Absent):
            return Waiting(self._left, self._negated + other.patterns)
        return self._left.after_gap(self._negated, other)


def event(type: str | None = None, condition: Term | None = None, *, store: str | None = None) -> Builder:
    """One event of a type (None: any), perhaps with a condition; `store` is SREMO's register.

    >>> from cerite.language.terms import attr
    >>> event("BUY", attr.price > 100)
    BUY[price > 100]
    """
    return Builder(Event(type, None if condition is None else expression_of(condition), True, store))


def skip(type: str | None = None, condition: Term | None = None, *, store: str | None = None) -> Builder:
    """One event that is consumed but not marked: SREMO's ⊗."""
    return Builder(Event(type, None if condition is None else expression_of(condition), False, store))


def absent(pattern: Builder) -> Absent:
    """`NOT pattern`, between two others: `a >> absent(b) >> c`."""
    return Absent((pattern.pattern,))


def permute(*parts: Builder) -> Builder:
    """`PERMUTE(…)`: each, in any order."""
    return Builder(Permute(tuple(part.pattern for part in parts)))


def skip_any(*parts: Builder) -> Builder:
    """SREMO's ⟲: any events between the parts."""
    return Builder(SkipAny(tuple(part.pattern for part in parts)))


def skip_next(*parts: Builder) -> Builder:
    """SREMO's @: each time the next occurrence."""
    return Builder(SkipNext(tuple(part.pattern for part in parts)))


def empty() -> Builder:
    """ε."""
    return Builder(Empty())


def nothing() -> Builder:
    """∅."""
    return Builder(Nothing())


def size(amount: int | float, unit: str | None = None, *, attribute: str | None = None) -> Size:
    """A window size: `size(30, "seconds")`, `size(500, "events")`, `size(10000, attribute="stock_time")`."""
    if amount < 0 or (unit == "events" and amount < 1):
        raise ValueError(f"a window cannot be {amount} long")
    if (unit is None) == (attribute is None):
        raise ValueError("a window has a unit (a time unit or 'events') or an attribute")
    if attribute is not None:
        return Size(amount, "attribute", attribute)
    if unit not in UNITS and unit != "events":
        raise ValueError(f"unknown unit {unit!r}: one of {', '.join(UNITS)}, events")
    return Size(amount, unit or "events")
