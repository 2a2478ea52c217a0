"""Conditions in Python: `attr.price > var.x.price`, `attr.name.isin("MSFT", "AMAT")`.

A `Term` wraps an expression of `cerite.predicate`; Python's operators make new terms, so comparing two terms gives a
term, not a truth value.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from math import isfinite, isinf
from typing import Any, NoReturn, cast

import numpy as np

from cerite.core.errors import ArgumentError
from cerite.predicate import expression as ex

_DIGITS = 400  # of a number in the text of a query, too
_PARENTHESES = "put each comparison in parentheses: `(attr.x > 3) & (attr.y == 'FR')`"


class Term:
    """One expression under construction.

    >>> attr.price + 1 > var.x.price
    Term(price + 1 > x.price)
    >>> (attr.name == "MSFT") & ~attr.price.between(1, 5)
    Term(name = 'MSFT' AND NOT (price IN RANGE(1, 5)))
    >>> (attr.at - var.x.at < timedelta(seconds=5)) & (abs(attr.price - var.x.price) > 1) & (attr.at.hour() >= 9)
    Term(at - x.at < 5 seconds AND abs(price - x.price) > 1 AND hour(at) >= 9)
    """

    __slots__ = ("expression",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, expression: ex.Expression) -> None:
        self.expression = expression

    def __repr__(self) -> str:
        return f"Term({self.expression})"

    def __bool__(self) -> NoReturn:
        raise ArgumentError(
            "a condition is not true or false by itself",
            hint="join conditions with & and |, not `and` and `or`; write `~c`, not `not c`; `attr.x.isin(1, 2)`, not "
            "`attr.x in …`; `attr.x.between(1, 3)`, not `1 < attr.x < 3`; `functions.max(var.y.x)`, not `max(…)`",
        )

    def __contains__(self, item: object) -> NoReturn:
        raise ArgumentError(f"`in` does not look into `{self.expression}`", hint="write `attr.x.like('%FR%')`")

    def __eq__(self, other: object) -> Term:  # type: ignore[override]
        return self._compared("=", other)

    def __ne__(self, other: object) -> Term:  # type: ignore[override]
        return self._compared("!=", other)

    def __lt__(self, other: Any) -> Term:
        return self._compared("<", other)

    def __le__(self, other: Any) -> Term:
        return self._compared("<=", other)

    def __gt__(self, other: Any) -> Term:
        return self._compared(">", other)

    def __ge__(self, other: Any) -> Term:
        return self._compared(">=", other)

    def __add__(self, other: Any) -> Term:
        return self._computed("+", other)

    def __sub__(self, other: Any) -> Term:
        return self._computed("-", other)

    def __mul__(self, other: Any) -> Term:
        return self._computed("*", other)

    def __truediv__(self, other: Any) -> Term:
        return self._computed("/", other)

    def __mod__(self, other: Any) -> Term:
        return self._computed("%", other)

    def __radd__(self, other: Any) -> Term:
        return Term(expression_of(other))._computed("+", self)

    def __rsub__(self, other: Any) -> Term:
        return Term(expression_of(other))._computed("-", self)

    def __rmul__(self, other: Any) -> Term:
        return Term(expression_of(other))._computed("*", self)

    def __rtruediv__(self, other: Any) -> Term:
        return Term(expression_of(other))._computed("/", self)

    def __rmod__(self, other: Any) -> Term:
        return Term(expression_of(other))._computed("%", self)

    def __neg__(self) -> Term:
        return Term(ex.Negative(self.expression))

    def __abs__(self) -> Term:
        return self._called("abs")

    def __round__(self) -> Term:
        return self._called("round")

    def __floor__(self) -> Term:
        return self._called("floor")

    def __ceil__(self) -> Term:
        return self._called("ceil")

    def __and__(self, other: Any) -> Term:
        return _joined("&", self, other)

    def __or__(self, other: Any) -> Term:
        return _joined("|", self, other)

    def __rand__(self, other: Any) -> Term:
        return _joined("&", other, self)

    def __ror__(self, other: Any) -> Term:
        return _joined("|", other, self)

    def __invert__(self) -> Term:
        return Term(ex.Not(self.expression))

    def isin(self, *items: Any) -> Term:
        """`IN {…}`: values, and ranges as pairs: `attr.id.isin(1, 3, (5, 9))`; or one list of them."""
        listed = tuple(items[0]) if len(items) == 1 and isinstance(items[0], (list, set, frozenset)) else items
        if not listed:
            raise ValueError("an empty list holds nothing: `isin` needs a value")
        return Term(ex.In(self.expression, tuple(map(_item, listed))))

    def between(self, low: Any, high: Any) -> Term:
        """`IN RANGE(low, high)`; both ends belong to it."""
        return Term(ex.InRange(self.expression, expression_of(low), expression_of(high)))

    def like(self, pattern: str) -> Term:
        """`LIKE 'A%'`."""
        return Term(ex.Like(self.expression, pattern))

    def is_null(self) -> Term:
        """`IS NULL`."""
        return Term(ex.IsNull(self.expression))

    def is_true(self) -> Term:
        """`IS TRUE`: unknown counts as false."""
        return Term(ex.IsTrue(self.expression))

    def abs(self) -> Term:
        """`abs(…)`, as Python's own `abs` makes it: of a number or a duration."""
        return self._called("abs")

    def round(self) -> Term:
        """`round(…)`: halves away from zero."""
        return self._called("round")

    def floor(self) -> Term:
        """`floor(…)`."""
        return self._called("floor")

    def ceil(self) -> Term:
        """`ceil(…)`."""
        return self._called("ceil")

    def lower(self) -> Term:
        """`lower(…)`."""
        return self._called("lower")

    def upper(self) -> Term:
        """`upper(…)`."""
        return self._called("upper")

    def length(self) -> Term:
        """`length(…)`: the number of characters."""
        return self._called("length")

    def coalesce(self, *others: Any) -> Term:
        """`coalesce(…)`: the first value that is not NULL."""
        if not others:
            raise TypeError("coalesce needs a value to take instead of NULL")
        return Term(ex.Call("coalesce", (self.expression, *map(expression_of, others))))

    def year(self) -> Term:
        """`year(…)` of a timestamp, in UTC like all its parts."""
        return self._called("year")

    def month(self) -> Term:
        """`month(…)`: 1 to 12."""
        return self._called("month")

    def day(self) -> Term:
        """`day(…)`: 1 to 31."""
        return self._called("day")

    def hour(self) -> Term:
        """`hour(…)`: 0 to 23."""
        return self._called("hour")

    def minute(self) -> Term:
        """`minute(…)`: 0 to 59."""
        return self._called("minute")

    def second(self) -> Term:
        """`second(…)`: 0 to 59, without fractions."""
        return self._called("second")

    def weekday(self) -> Term:
        """`weekday(…)`: 1 for Monday to 7 for Sunday."""
        return self._called("weekday")

    def _called(self, function: str) -> Term:
        return Term(ex.Call(function, (self.expression,)))

    def _compared(self, op: str, other: object) -> Term:
        if other is None:
            raise TypeError("nothing equals NULL; write .is_null()")
        return Term(ex.Comparison(cast(ex.ComparisonOp, op), self.expression, expression_of(other)))

    def _computed(self, op: str, other: object) -> Term:
        return Term(ex.Arithmetic(cast(ex.ArithmeticOp, op), self.expression, expression_of(other)))


def expression_of(value: object) -> ex.Expression:
    """The expression of a term, an expression or a constant."""
    if isinstance(value, Term):
        return value.expression
    if isinstance(value, ex.Expression):
        return value
    return _constant(value)


def _constant(value: object) -> ex.Literal:
    """A constant as text can write it: NumPy's scalars become Python's, a timestamp its ISO text."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, datetime):
        return ex.Literal(plain.isoformat())
    if isinstance(plain, (bool, str)):
        return ex.Literal(plain)
    if isinstance(plain, Decimal):
        return ex.Literal(_number(plain))
    if isinstance(plain, timedelta):
        if not -(2**63) <= plain // timedelta(microseconds=1) < 2**63:
            raise ValueError(f"{plain} does not fit 64 bits of microseconds")
        return ex.Literal(plain)
    if not isinstance(plain, (int, float)):
        raise ArgumentError(
            f"not a condition or constant: {value!r}",
            hint="for several values, write `attr.x.isin(1, 2)`" if isinstance(plain, (list, tuple, set)) else None,
        )
    if isinstance(plain, float) and not isfinite(plain):
        raise ValueError(f"{plain} cannot be compared with" + ("; write .is_null()" if plain != plain else ""))
    if isinstance(plain, int) and not -(2**63) <= plain < 2**63:
        raise ValueError(f"{plain} does not fit 64 bits")
    return ex.Literal(plain)


def _number(value: Decimal) -> int | float:
    """A decimal as CEQL reads its text: all of its digits count."""
    if not value.is_finite():
        raise ArgumentError(f"{value} cannot be compared with", hint="write .is_null()" if value.is_nan() else None)
    text = str(value)
    if len(text) > _DIGITS:
        raise ArgumentError(f"a number of {len(text)} characters is too long", hint=f"{_DIGITS} are read")
    number = int(text) if value.as_tuple().exponent == 0 else ex.written_float(text)
    if isinstance(number, float) and isinf(number):
        raise ArgumentError(f"{text} does not fit 64 bits")
    return number


def _joined(op: str, left: object, right: object) -> Term:
    """`left & right` or `left | right`, whose sides are conditions: Python reads `a > 3 & b` as `a > (3 & b)`."""
    for side in (left, right):
        plain = side.item() if isinstance(side, np.generic) else side
        if not isinstance(plain, (Term, ex.Expression, bool)):
            raise ArgumentError(f"`{op}` joins conditions, and {side!r} is none", hint=_PARENTHESES)
    kind = ex.And if op == "&" else ex.Or
    return Term(kind(_flat(kind, expression_of(left)) + _flat(kind, expression_of(right))))


def _item(item: object) -> ex.Literal | ex.Interval:
    if not isinstance(item, tuple):
        return _constant(item)
    low, high = map(_constant, item)
    if low.value > high.value:  # type: ignore[operator]
        raise ValueError(f"the range from {low} to {high} is empty")
    return ex.Interval(low, high)


def _flat(kind: type[ex.And] | type[ex.Or], expression: ex.Expression) -> tuple[ex.Expression, ...]:
    return expression.operands if isinstance(expression, kind) else (expression,)


class _Attributes:
    """`attr.price` or `attr["stock time"]`: an attribute of the event being checked."""

    def __getattr__(self, name: str) -> Term:
        if name.startswith("__"):
            raise AttributeError(name)
        return Term(ex.Attribute(name))

    def __getitem__(self, name: str) -> Term:
        return Term(ex.Attribute(name))


class Variable:
    """`var.x`, and `var.x.price`: an attribute of the event most recently bound to x."""

    def __init__(self, variable: str) -> None:
        self._variable = variable

    def __getattr__(self, name: str) -> Term:
        if name.startswith("__"):
            raise AttributeError(name)
        return Term(ex.Reference(self._variable, name))

    def __getitem__(self, name: str) -> Term:
        return Term(ex.Reference(self._variable, name))


def variable_of(variable: Variable) -> str:
    """The name behind `var.x`, whose attributes stand for those of its event."""
    return variable._variable


class _Variables:
    """`var.x` or `var["my x"]`."""

    def __getattr__(self, name: str) -> Variable:
        if name.startswith("__"):
            raise AttributeError(name)
        return Variable(name)

    def __getitem__(self, name: str) -> Variable:
        return Variable(name)


attr = _Attributes()
var = _Variables()
