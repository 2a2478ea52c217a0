"""What a condition means on one event: definition 13 of the SRT report, with NULLs.

Three-valued logic as in SQL: a comparison with NULL is unknown, NOT unknown is unknown, and a condition holds only
when it is true. A condition that reads a variable with no event is false as a whole (docs/semantics.md, *References*).
Integers are 64-bit: a result that does not fit is NULL, like a division by zero and NaN. Numbers of different kinds
compare by their exact values, so that 2^53 + 1 is not 2^53 as a float, and 0.1 as a float is not 0.1 as a decimal. Next
to a decimal, a constant counts as it is written. Sums, differences, products and remainders of decimals are exact as
long as their digits fit 64 bits, and NULL beyond; `/` gives a float, and so does arithmetic with a float.

An aggregate ranges over events in stream order and skips NULLs, as in SQL: without values COUNT is 0, COLLECT is an
empty list and the others are NULL. SUM is exact, except that floats are added from left to right; an exact sum that
does not fit 64 bits is refused. AVG is SUM / COUNT as `/` computes it.

This is the reference for every vectorised form; it works on one event at a time.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache, reduce
from typing import Any

from cerite.core.errors import StreamError, sum_too_large
from cerite.predicate import expression as ex
from cerite.predicate.functions import TIMES, call, time_arithmetic, utc

Event = Mapping[str, Any]
Lookup = Callable[[ex.Reference], "Event | None"]
Gather = Callable[[ex.Aggregate], Sequence[Event]]

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_INT_MIN, _INT_MAX = -(2**63), 2**63 - 1


def nothing_bound(_: ex.Reference) -> Event | None:
    """A lookup for which no variable has an event."""
    return None


def nothing_gathered(_: ex.Aggregate) -> Sequence[Event]:
    """A gather function for which no variable has any events."""
    return ()


@dataclass(frozen=True, slots=True)
class _Scope:
    """What an expression reads: the event being checked, another variable's event, all events of a variable."""

    event: Event
    lookup: Lookup
    gather: Gather


def holds(
    condition: ex.Expression | None, event: Event, lookup: Lookup = nothing_bound, gather: Gather = nothing_gathered
) -> bool:
    """Whether the event satisfies the condition; `lookup` finds the events of references, `gather` those of aggregates.

    >>> from cerite.language.ceql import parse_condition
    >>> holds(parse_condition("price > 10 OR name IS NULL"), {"price": None, "name": None})
    True
    >>> holds(parse_condition("NOT (price > 10)"), {"price": None})
    False
    """
    if condition is None:
        return True
    if any(lookup(each) is None for each in ex.references(condition)):
        return False
    return value_of(condition, event, lookup, gather) is True


def value_of(
    node: ex.Expression, event: Event, lookup: Lookup = nothing_bound, gather: Gather = nothing_gathered
) -> Any:
    """The value of an expression; None is NULL (or unknown)."""
    return _value(node, _Scope(event, lookup, gather))


def _value(node: ex.Expression, scope: _Scope) -> Any:
    match node:
        case ex.Literal(value=value):
            return _known(value)
        case ex.Attribute(name=name):
            return _known(scope.event.get(name))
        case ex.Reference(name=name):
            other = scope.lookup(node)
            return None if other is None else _known(other.get(name))
        case ex.Aggregate():
            return aggregate(node, scope.gather(node))
        case ex.Negative(operand=operand):
            value = _value(operand, scope)
            return -value if isinstance(value, timedelta) else _arithmetic("-", 0, value, node)
        case ex.Arithmetic(op=op, left=left, right=right):
            return _arithmetic(op, *_sides(left, right, scope), node)
        case ex.Call(function=function, arguments=arguments):
            return _called(function, [_value(each, scope) for each in arguments], node)
        case ex.Comparison(op=op, left=left, right=right):
            return compare(op, *_sides(left, right, scope), node)
        case ex.And(operands=operands):
            return _all(_truth(_value(each, scope), each) for each in operands)
        case ex.Or(operands=operands):
            return _not(_all(_not(_truth(_value(each, scope), each)) for each in operands))
        case ex.Not(operand=operand):
            return _not(_truth(_value(operand, scope), operand))
        case ex.IsNull(operand=operand):
            return _value(operand, scope) is None
        case ex.IsTrue(operand=operand):
            return _truth(_value(operand, scope), operand) is True
        case _:
            return _membership(node, scope)


def _membership(node: ex.Expression, scope: _Scope) -> bool | None:
    match node:
        case ex.In(operand=operand, items=items):
            value = _value(operand, scope)
            return _not(_all(_not(_is_item(value, item, node)) for item in items)) if value is not None else None
        case ex.InRange(operand=operand, low=low, high=high):
            above = compare(">=", *_sides(operand, low, scope), node)
            return _all((above, compare("<=", *_sides(operand, high, scope), node)))
        case ex.Like(operand=operand, pattern=pattern):
            value = _value(operand, scope)
            if value is None:
                return None
            if not isinstance(value, str):
                raise _clash("LIKE needs a string", value, pattern, node)
            return like_regex(pattern).fullmatch(value) is not None
    raise TypeError(f"not an expression: {node!r}")


def _is_item(value: Any, item: ex.Literal | ex.Interval, node: ex.Expression) -> bool | None:
    if isinstance(item, ex.Literal):
        return compare("=", value, _met(item.value, value), node)
    low, high = _met(item.low.value, value), _met(item.high.value, value)
    return _all((compare(">=", value, low, node), compare("<=", value, high, node)))


def _sides(left: ex.Expression, right: ex.Expression, scope: _Scope) -> tuple[Any, Any]:
    """The values of both sides; next to a decimal, a constant counts as it is written."""
    one, other = _value(left, scope), _value(right, scope)
    if isinstance(one, Decimal) != isinstance(other, Decimal):
        return (_met(one, other) if ex.is_constant(left) else one), (
            _met(other, one) if ex.is_constant(right) else other
        )
    return one, other


def aggregate(node: ex.Aggregate, events: Sequence[Event]) -> Any:
    """The value of an aggregate over these events, which come in stream order.

    >>> events = [{"a": 3}, {"a": None}, {"a": 4}]
    >>> [aggregate(ex.Aggregate(name, "y", "a"), events) for name in ("COUNT", "SUM", "AVG", "MAX", "LAST", "COLLECT")]
    [2, 7, 3.5, 4, 4, [3, 4]]
    >>> aggregate(ex.Aggregate("COUNT", "y"), events), aggregate(ex.Aggregate("SUM", "y", "a"), events[1:2])
    (3, None)
    """
    taken = node.taken
    if taken is None:
        return len(events)
    values = [value for each in events if (value := value_of(taken, each)) is not None]
    if node.function == "COUNT":
        return len(_distinct(values)) if node.distinct else len(values)
    if node.function == "COLLECT":
        return values
    if not values:
        return None
    if node.function in ("FIRST", "LAST"):
        return values[0 if node.function == "FIRST" else -1]
    if node.function in ("MIN", "MAX"):
        return reduce(lambda one, other: other if compare(_EDGE[node.function], other, one, node) else one, values)
    for value in values:
        if _kind(value) != "number":
            raise StreamError(f"`{node}` needs numbers: {value!r} is a {_kind(value)}", span=node.span)
    total = reduce(lambda one, other: _sum(one, other, node), values)
    if node.function == "SUM":
        return _known(total)
    return _arithmetic("/", _known(total), len(values), node)


_EDGE = {"MIN": "<", "MAX": ">"}


def _distinct(values: list[Any]) -> set[Any]:
    """The values that differ according to `!=`: 1 is 1.0, and an instant is the same in any zone."""
    return {utc(value) if isinstance(value, datetime) else (_kind(value), value) for value in values}


def _sum(one: Any, other: Any, node: ex.Aggregate) -> Any:
    """The sum of two numbers; NaN, which infinities of opposite signs give, is kept."""
    if isinstance(one, float) or isinstance(other, float):
        return float(one) + float(other)
    total = _arithmetic("+", one, other, node)
    if total is None:
        raise sum_too_large(f"`{node}`", node.span)
    return total


def _met(constant: Any, other: Any) -> Any:
    exact = isinstance(other, Decimal) and isinstance(constant, float) and math.isfinite(constant)
    return written(constant) if exact else constant


def exactly(constant: float, *, beside_decimals: bool = False) -> Fraction:
    """A constant's exact value, or its value as written among decimals; infinity exceeds any number of any column."""
    if isinstance(constant, float) and math.isinf(constant):
        return Fraction(10**400 if constant > 0 else -(10**400))
    return Fraction(written(constant) if beside_decimals and isinstance(constant, float) else constant)


def written(constant: float) -> Decimal:
    """A constant exactly as it is written: 0.35, not the nearest float.

    >>> written(0.35), Decimal(0.35) == written(0.35)
    (Decimal('0.35'), False)
    """
    return Decimal(repr(constant))


@lru_cache(maxsize=512)
def like_regex(pattern: str) -> re.Pattern[str]:
    """A LIKE pattern as a regular expression.

    >>> bool(like_regex("A_%").fullmatch("AMAT")), bool(like_regex(r"100\\%").fullmatch("1000"))
    (True, False)
    >>> bool(like_regex("%a" * 50 + "%b").fullmatch("a" * 1000))
    False
    """
    pieces = [""]  # the text between the %
    characters = iter(pattern)
    for character in characters:
        if character == "%":
            pieces.append("")
        elif character == "\\":
            pieces[-1] += re.escape(next(characters, "\\"))
        else:
            pieces[-1] += "." if character == "_" else re.escape(character)
    if len(pieces) == 1:
        return re.compile(pieces[0], re.DOTALL)
    first, *middle, last = pieces
    # a piece matches where it first occurs and is never tried elsewhere, so that no text takes long (as in fnmatch)
    searched = "".join(f"(?=(?P<g{i}>.*?{piece}))(?P=g{i})" for i, piece in enumerate(middle) if piece)
    return re.compile(f"{first}{searched}.*{last}", re.DOTALL)


def compare(op: str, left: Any, right: Any, node: ex.Expression | None = None) -> bool | None:
    """A comparison in three-valued logic; numbers compare by their exact values, timestamps by instant."""
    if left is None or right is None:
        return None
    kinds = {_kind(left), _kind(right)}
    if kinds == {"number"}:
        pass
    elif "timestamp" in kinds and kinds <= {"timestamp", "string"}:
        left, right = _instant(left, node), _instant(right, node)
    elif len(kinds) > 1:
        raise _clash(f"cannot compare with `{op}`", left, right, node)
    elif kinds == {"boolean"} and op not in ("=", "!="):
        raise _clash(f"booleans have no order for `{op}`", left, right, node)
    return _COMPARE[op](left, right)


def _called(name: str, values: list[Any], node: ex.Expression) -> Any:
    values = [float(value) if isinstance(value, Decimal) else value for value in values]  # functions take floats
    if name == "coalesce":
        return next((value for value in values if value is not None), None)
    if None in values:
        return None
    try:
        result = call(name, values)
    except (TypeError, AttributeError):
        raise _clash(f"`{node}` has no value", values[0], values[-1], node) from None
    return None if name == "abs" and result == -_INT_MIN and values[0] < 0 else result


def _arithmetic(op: str, left: Any, right: Any, node: ex.Expression) -> Any:
    if left is None or right is None:
        return None
    if (_kind(left), op, _kind(right)) in TIMES:
        return time_arithmetic(op, left, right)
    if {_kind(left), _kind(right)} != {"number"}:
        raise _clash(f"`{op}` needs numbers", left, right, node)
    if op in ("/", "%") and right == 0:
        return None
    if op != "/" and isinstance(left, (int, Decimal)) and isinstance(right, (int, Decimal)):
        if isinstance(left, Decimal) or isinstance(right, Decimal):
            return _decimal(op, Decimal(left), Decimal(right))
    else:
        left, right = (float(side) if isinstance(side, Decimal) else side for side in (left, right))
    result: int | float
    try:
        if op == "/":
            result = float(left) / float(right)
        elif op == "%":
            whole = isinstance(left, int) and isinstance(right, int)
            result = (abs(left) % abs(right)) * (-1 if left < 0 else 1) if whole else math.fmod(left, right)
        else:
            result = {"+": operator.add, "-": operator.sub, "*": operator.mul}[op](left, right)
    except (OverflowError, ValueError):  # math.fmod(inf, 1)
        return None
    return None if isinstance(result, int) and not _fits(result) else _known(result)


def _decimal(op: str, left: Decimal, right: Decimal) -> Decimal | None:
    """`left op right` of decimals, as whole numbers of a common scale in 64 bits."""
    scales = scale_of(left), scale_of(right)
    common = sum(scales) if op == "*" else max(scales)
    one, other = (_digits(*side) for side in zip((left, right), scales if op == "*" else (common,) * 2, strict=True))
    if not (_fits(one) and _fits(other)):
        return None
    if op == "%":
        result = (abs(one) % abs(other)) * (-1 if one < 0 else 1)
    else:
        result = {"+": operator.add, "-": operator.sub, "*": operator.mul}[op](one, other)
    return Decimal((int(result < 0), tuple(map(int, str(abs(result)))), -common)) if _fits(result) else None


def scale_of(value: Decimal) -> int:
    """How many digits are after the decimal point."""
    exponent = value.as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _digits(value: Decimal, scale: int) -> int:
    return int(Fraction(value) * 10**scale)


def _fits(value: int) -> bool:
    return _INT_MIN <= value <= _INT_MAX


def _known(value: Any) -> Any:
    """A value as conditions see it: NaN is NULL, a date is its first instant."""
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    return None if isinstance(value, (float, Decimal)) and value != value else value


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float, Decimal)):
        return "number"
    if isinstance(value, (datetime, timedelta)):
        return "timestamp" if isinstance(value, datetime) else "duration"
    return "string" if isinstance(value, str) else type(value).__name__


def _instant(value: datetime | str, node: ex.Expression | None) -> datetime:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise StreamError(
                f"`{value}` is not a timestamp", span=node.span if node else None, hint="write '2024-05-01T12:30:00'"
            ) from None
    return utc(value)


def _truth(value: Any, node: ex.Expression) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    raise StreamError(f"`{node}` is {value!r}, not a truth value", span=node.span)


def _all(values: Any) -> bool | None:
    unknown = False
    for value in values:
        if value is False:
            return False
        unknown |= value is None
    return None if unknown else True


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


def _clash(what: str, left: Any, right: Any, node: ex.Expression | None) -> StreamError:
    return StreamError(
        f"{what}: {left!r} is a {_kind(left)}, {right!r} a {_kind(right)}", span=node.span if node else None
    )
