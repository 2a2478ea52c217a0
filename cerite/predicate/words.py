"""A condition and the values that it looked at, in words: "`amount > 500` was 480.0".

The values are those that `evaluate` computes, so that the text shows what decided.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from cerite.core.names import quoted
from cerite.predicate import expression as ex
from cerite.predicate.evaluate import Event, Gather, Lookup, nothing_bound, nothing_gathered, value_of
from cerite.predicate.printing import literal


def conjuncts(condition: ex.Expression | None) -> tuple[ex.Expression, ...]:
    """The parts that must all hold, each of which can be explained by itself.

    >>> from cerite.language.ceql import parse_condition
    >>> [str(each) for each in conjuncts(parse_condition("a > 1 AND (b = 2 AND c < 3 OR d IS NULL)"))]
    ['a > 1', 'b = 2 AND c < 3 OR d IS NULL']
    """
    if condition is None:
        return ()
    if isinstance(condition, ex.And):
        return tuple(part for each in condition.operands for part in conjuncts(each))
    return (condition,)


def explained(
    condition: ex.Expression,
    event: Event,
    lookup: Lookup = nothing_bound,
    gather: Gather = nothing_gathered,
    *,
    holds: bool,
) -> str:
    """The condition and the values that it compared.

    >>> from cerite.language.ceql import parse_condition
    >>> explained(parse_condition("amount > 500"), {"amount": 480.0}, holds=False)
    '`amount > 500` was 480.0'
    >>> explained(parse_condition("a + b > 3 * a"), {"a": 1, "b": 3}, holds=True)
    '`a + b > 3 * a`: 4 > 3'
    >>> explained(parse_condition("a = 1 OR b IS NULL"), {"a": 2, "b": None}, holds=True)
    '`a = 1 OR b IS NULL`: a = 2, b = NULL'
    >>> explained(parse_condition("price > x.price"), {"price": 2}, holds=False)
    '`price > x.price` was not met: `x` has no event to read'
    """
    values = _compared(condition, event, lookup, gather)
    unbound = next((each.variable for each in ex.references(condition) if lookup(each) is None), None)
    if unbound is not None:
        return f"`{condition}` was not met: `{quoted(unbound)}` has no event to read"
    if not values:
        return f"`{condition}`" + ("" if holds else " is never met")
    return f"`{condition}`: {values}" if holds else f"`{condition}` was {values}"


def shown(value: Any) -> str:
    """A value as a query would write it.

    >>> shown(None), shown("it's"), shown(True), shown(2.50)
    ('NULL', "'it''s'", 'TRUE', '2.5')
    """
    if value is None:
        return "NULL"
    if isinstance(value, (bool, str, timedelta)):
        return literal(value)
    return value.isoformat() if isinstance(value, date) else str(value)


def _compared(condition: ex.Expression, event: Event, lookup: Lookup, gather: Gather) -> str:
    def value(node: ex.Expression) -> str:
        return shown(value_of(node, event, lookup, gather))

    read = dict.fromkeys(
        node for node in ex.walk(condition) if isinstance(node, (ex.Attribute, ex.Reference, ex.Aggregate))
    )
    if isinstance(condition, ex.Comparison):
        sides = [side for side in (condition.left, condition.right) if not ex.is_constant(side)]
        if len(sides) == 1 and sides[0] in read:
            return value(sides[0])
        if sides:
            return f"{value(condition.left)} {condition.op} {value(condition.right)}"
    if len(read) == 1:
        return value(next(iter(read)))
    return ", ".join(f"{node} = {value(node)}" for node in read)
