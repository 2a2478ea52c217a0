"""Patterns in Python: `event("SELL").as_("x") >> event("BUY").plus() >> event("SELL", attr.price < var.x.price)`.

| text (CEQL)     | Python                                  | text (SREMO) | Python                     |
| `a ; b`         | `a >> b`                                | `a . b`      | `a * b`  (CEQL's `a : b`)  |
| `a ; NOT b ; c` | `a >> absent(b) >> c`                   | `!a`         | `~a`                       |
| `a ; NOT b`     | `a >> absent(b)`                        | `NOT a ; b`  | `absent(a) >> b`  (CEQL)   |
| `a OR b`        | `a \\| b`                                | `a & b`      | `a & b`                    |
| `a+  a*  a?`    | `a.plus() a.star() a.optional()`        | `a*`         | `a.star(contiguous=True)`  |
| `… FILTER x[P]` | `….filter(x=P)`                         | `COUNT(y)>2` | `.filter(count(var.y) > 2)`|
| `a AS x`        | `a.as_("x")`                            | `A^x>r`      | `skip("A", store="r")`     |

Invariant: a built pattern equals the one its text parses to.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from math import inf
from typing import overload

from cerite.core.errors import ArgumentError, CeriteError, Hint, Setting
from cerite.language.ceql import parse_condition, parse_window
from cerite.language.terms import Term, expression_of
from cerite.pattern import nodes
from cerite.pattern.nodes import UNITS, Pattern, unit_named
from cerite.predicate.expression import Expression


class Builder:
    """A pattern under construction; it is immutable, and every method returns a new one.

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

    def __rshift__(self, other: Builder | Absent) -> Builder:
        """`self ; other`; what was absent at the end of `self` is absent between the two."""
        if not isinstance(other, Absent):
            return self.then(other)
        left = _sequence(self.pattern)
        return Builder(replace(left, after=left.after + other.patterns))

    def then(self, other: Builder, *, without: Builder | None = None) -> Builder:
        """`self ; NOT without ; other`."""
        left = _sequence(self.pattern)
        gap = left.after if without is None else (*left.after, without.pattern)
        return Builder(nodes.Sequence((*left.parts, _pattern(other)), (*left.absent, gap), left.before))

    def __mul__(self, other: Builder) -> Builder:
        """`self : other`, SREMO's concatenation."""
        left = self.pattern
        return Builder(nodes.Concat((*(left.parts if isinstance(left, nodes.Concat) else (left,)), _pattern(other))))

    def __or__(self, other: Builder) -> Builder:
        left = self.pattern
        return Builder(nodes.Union((*(left.parts if isinstance(left, nodes.Union) else (left,)), _pattern(other))))

    def __and__(self, other: Builder) -> Builder:
        left = self.pattern
        return Builder(
            nodes.Intersection((*(left.parts if isinstance(left, nodes.Intersection) else (left,)), _pattern(other)))
        )

    def __invert__(self) -> Builder:
        """SREMO's complement `!self`."""
        return Builder(nodes.Complement(self.pattern))

    def as_(self, variable: str) -> Builder:
        """`self AS variable`."""
        if not isinstance(variable, str) or not variable:
            raise ArgumentError(f"a variable has a name, not {variable!r}", hint="write .as_('x')")
        return Builder(nodes.Named(self.pattern, variable))

    def repeat(self, least: int, most: int | None = None, *, contiguous: bool = False) -> Builder:
        """`self{least,most}`; without `most` there is no upper bound."""
        whole = isinstance(least, int) and isinstance(most, int | None)
        if not whole or least < 0 or (most is not None and (most < least or most == 0)):
            raise ArgumentError(f"an iteration from {least} to {most} times cannot happen")
        return Builder(nodes.Iteration(self.pattern, least, most, contiguous))

    def plus(self, *, contiguous: bool = False) -> Builder:
        """`self+`, or `self:+`."""
        return self.repeat(1, contiguous=contiguous)

    def star(self, *, contiguous: bool = False) -> Builder:
        """`self*`, or `self:*` (SREMO's star)."""
        return self.repeat(0, contiguous=contiguous)

    def optional(self, *, contiguous: bool = False) -> Builder:
        """`self?`, or `self:?`."""
        return self.repeat(0, 1, contiguous=contiguous)

    def filter(self, *wholes: Term | str, **conditions: Term | str) -> Builder:
        """`self FILTER x[…] AND y[…]`: a keyword per variable; positional ones are about the whole; all may be text.

        >>> from cerite.functions import count
        >>> from cerite.language.terms import attr, var
        >>> (event("A").as_("x") >> event("B").as_("y")).filter(x=attr.id > 0, y=attr.id == var.x.id)
        A AS x ; B AS y FILTER x[id > 0] AND y[id = x.id]
        >>> event("A").as_("x").plus().filter(count(var.x) >= 5)
        (A AS x)+ FILTER COUNT(x) >= 5
        """
        filters = tuple(nodes.On(variable, _condition(condition)) for variable, condition in conditions.items())
        filtered = nodes.Filter(self.pattern, filters) if filters else self.pattern
        return Builder(nodes.Having(filtered, tuple(map(_condition, wholes))) if wholes else filtered)

    def within(self, amount: int | float | Width, unit: str | None = None, *, attribute: str | None = None) -> Builder:
        """`(self WITHIN amount unit)`: a time unit, "events", or `attribute=`; or one argument as `width` takes it.

        >>> event("A").within(5, "seconds"), event("A").within("5 seconds"), event("A").within(timedelta(seconds=5))
        ((A WITHIN 5 seconds), (A WITHIN 5 seconds), (A WITHIN 5 seconds))
        """
        if isinstance(amount, (str, timedelta, nodes.Size)):
            return Builder(nodes.Window(self.pattern, width(amount)))
        return Builder(nodes.Window(self.pattern, size(amount, unit, attribute=attribute)))

    def project(self, *variables: str) -> Builder:
        """`PROJECT{x, y}(self)`."""
        return Builder(nodes.Project(self.pattern, variables))

    def select(self, strategy: str | nodes.Strategy) -> Builder:
        """`NEXT(self)`, or any of the other strategies."""
        chosen = strategy if isinstance(strategy, nodes.Strategy) else nodes.Strategy.named(strategy)
        return Builder(nodes.Select(chosen, self.pattern))


class Absent:
    """`NOT b` on its way into `a ; NOT b ; c`, `a ; NOT b` or `NOT b ; c`."""

    def __init__(self, patterns: tuple[Pattern, ...]) -> None:
        self.patterns = patterns

    def __repr__(self) -> str:
        return " ; ".join(f"NOT {each}" for each in self.patterns) + " (beside nothing yet)"

    @overload
    def __rshift__(self, other: Builder) -> Builder: ...

    @overload
    def __rshift__(self, other: Absent) -> Absent: ...

    def __rshift__(self, other: Builder | Absent) -> Builder | Absent:
        if isinstance(other, Absent):
            return Absent(self.patterns + other.patterns)
        right = _sequence(_pattern(other))
        return Builder(replace(right, before=self.patterns + right.before))


def _sequence(pattern: Pattern) -> nodes.Sequence:
    return pattern if isinstance(pattern, nodes.Sequence) else nodes.Sequence((pattern,))


def event(type: str | None = None, condition: Term | str | None = None, *, store: str | None = None) -> Builder:
    """One event of a type (None: any), perhaps with a condition (a term or text); `store` is SREMO's register.

    >>> from cerite.language.terms import attr
    >>> event("BUY", attr.price > 100), event("BUY", "price > 100")
    (BUY[price > 100], BUY[price > 100])
    """
    return _event(type, condition, store, marked=True)


def skip(type: str | None = None, condition: Term | str | None = None, *, store: str | None = None) -> Builder:
    """One event that is consumed but not marked: SREMO's ⊗."""
    return _event(type, condition, store, marked=False)


def _event(type: str | None, condition: Term | str | None, store: str | None, *, marked: bool) -> Builder:
    if not isinstance(type, str | None):
        raise ArgumentError(
            f"an event type is a name, not {type!r}", hint="write event('BUY'), or event() for any type"
        )
    if type == nodes.ANY_TYPE:
        raise ArgumentError("`_` is no event type", hint="write event() for any type")
    return Builder(nodes.Event(type, None if condition is None else _condition(condition), marked, store))


def _condition(written: Term | str) -> Expression:
    return parse_condition(written) if isinstance(written, str) else expression_of(written)


def _pattern(other: object) -> Pattern:
    if not isinstance(other, Builder):
        raise ArgumentError(f"not a pattern: {other!r}; one event is event('BUY')")
    return other.pattern


def _several(parts: tuple[Builder, ...]) -> tuple[Pattern, ...]:
    if not parts:
        raise ArgumentError("at least one pattern is needed")
    return tuple(map(_pattern, parts))


def absent(pattern: Builder) -> Absent:
    """`NOT pattern`, between two others (`a >> absent(b) >> c`) or at an end of a windowed pattern.

    >>> absent(event("A")) >> event("B").as_("x") >> absent(event("C"))
    NOT A ; B AS x ; NOT C
    """
    return Absent((_pattern(pattern),))


def permute(*parts: Builder) -> Builder:
    """`PERMUTE(…)`: all parts, in any order."""
    return Builder(nodes.Permute(_several(parts)))


def skip_any(*parts: Builder) -> Builder:
    """SREMO's ⟲: any events between the parts."""
    return Builder(nodes.SkipAny(_several(parts)))


def skip_next(*parts: Builder) -> Builder:
    """SREMO's @: of each part, the next occurrence."""
    return Builder(nodes.SkipNext(_several(parts)))


def empty() -> Builder:
    """ε."""
    return Builder(nodes.Empty())


def nothing() -> Builder:
    """∅."""
    return Builder(nodes.Nothing())


def size(amount: int | float, unit: str | None = None, *, attribute: str | None = None) -> nodes.Size:
    """A window size: `size(30, "seconds")`, `size(500, "events")`, `size(10000, attribute="stock_time")`."""
    if (unit is None) == (attribute is None):
        raise ArgumentError(
            "a window has a unit (a time unit or 'events') or an attribute",
            hint=f"write ({amount!r}, 'seconds'), ({amount!r}, 'events') or ({amount!r}, attribute='price')",
        )
    named = "attribute" if unit is None else unit_named(unit)
    if named is None:
        raise ArgumentError(f"unknown unit {unit!r}: one of {', '.join(UNITS)}, events")
    if not 0 <= amount < inf or (named == "events" and (amount < 1 or amount != int(amount))):
        raise ArgumentError(f"a window cannot be {amount} long")
    return nodes.Size(int(amount) if named == "events" else amount, named, attribute)


Width = nodes.Size | str | timedelta


def width(given: Width, name: str = "within") -> nodes.Size:
    """The size of a window, or of what else `name` says, as CEQL writes it or as Python measures time.

    >>> [str(width(each)) for each in ("30 seconds", "500 EVENTS", "0.5 [price]", timedelta(minutes=2, seconds=1))]
    ['30 seconds', '500 EVENTS', '0.5 [price]', '121 seconds']
    """
    if isinstance(given, nodes.Size):
        return given
    if isinstance(given, timedelta):
        if given < timedelta(0):
            raise ArgumentError(f"`{name}` is negative: {given!r}", hint=Hint("write ", Setting(name, "30 seconds")))
        microseconds = given // timedelta(microseconds=1)
        seconds_, rest = divmod(microseconds, 1_000_000)
        return size(microseconds, "microseconds") if rest else size(seconds_, "seconds")
    if not isinstance(given, str):
        raise ArgumentError(f"`{name}` is text (`30 seconds`), a timedelta or a Size, not {given!r}")
    return parse_window(given)


def duration(given: Width, name: str) -> nodes.Size:
    """A length of time, for the setting of this name.

    >>> str(duration("10 seconds", "watermark"))
    '10 seconds'
    """
    hint = Hint("write ", Setting(name, "10 seconds"))
    try:
        size = width(given, name)
    except ArgumentError:
        raise
    except CeriteError as error:
        raise ArgumentError(f"`{name}` is a length of time, and {given!r} is none", hint=hint) from error
    if not size.is_time:
        raise ArgumentError(f"`{name}` is a length of time, not {size}", hint=hint)
    return size


def seconds(amount: int | float) -> nodes.Size:
    """A window of this many seconds: `within=seconds(30)`."""
    return size(amount, "seconds")
