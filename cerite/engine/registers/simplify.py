"""Conditions across events in the few forms that programs are built from.

IN and ranges become comparisons and constants are computed. A text chosen among several events (`coalesce`) is split
into cases where it is compared: programs hold only the numbers of texts.

Invariant: what is simplified is true, false and NULL exactly where the condition is.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from cerite.engine.registers.column_types import ColumnTypes
from cerite.predicate.evaluate import value_of
from cerite.predicate.expression import (
    And,
    Arithmetic,
    Attribute,
    Call,
    Comparison,
    Expression,
    In,
    InRange,
    Interval,
    IsNull,
    Like,
    Literal,
    Negative,
    Not,
    Or,
    Reference,
    aggregates,
    is_constant,
    transform,
    walk,
)
from cerite.predicate.functions import EPOCH, TEXT, utc

NULL_VALUE = Literal(float("nan"))  # a part that is always NULL, such as `1 / 0`


def simplified(condition: Expression, types: ColumnTypes) -> Expression:
    """The condition in terms of comparisons, each text in which is that of one event."""
    return transform(transform(condition, _comparisons), partial(_spread, types))


def _comparisons(node: Expression) -> Expression:
    """IN and ranges as comparisons, constants computed, so that fewer kinds of node are left."""
    match node:
        case InRange(operand=operand, low=low, high=high):
            return And((Comparison(">=", operand, low), Comparison("<=", operand, high)))
        case In(operand=operand, items=items) if source_of(operand) is None:
            each = tuple(
                And((Comparison(">=", operand, item.low), Comparison("<=", operand, item.high)))
                if isinstance(item, Interval)
                else Comparison("=", operand, item)
                for item in items
            )
            return each[0] if len(each) == 1 else Or(each)
        case Call(function="coalesce", arguments=arguments):
            known = tuple(each for each in arguments if each is not NULL_VALUE)
            return Call("coalesce", known) if len(known) > 1 else known[0] if known else NULL_VALUE
        case Negative() | Arithmetic() | Call() if is_constant(node):
            value = value_of(node, {})
            return NULL_VALUE if value is None else Literal(value)
        case Negative() | Arithmetic() | Call() if any(each is NULL_VALUE for each in node.children):
            return NULL_VALUE
    return node


def _spread(types: ColumnTypes, node: Expression) -> Expression:
    """Split a text chosen among several events into cases where it is compared: programs only hold numbers of texts.

    `coalesce(a, x.b) = c` is `a IS NOT NULL AND a = c OR a IS NULL AND x.b = c`, both NULL where a and x.b are.
    """
    if isinstance(node, (Comparison, Like, IsNull)):
        sides = (node.left, node.right) if isinstance(node, Comparison) else (node.operand,)
        for number, side in enumerate(sides):
            if isinstance(side, Call) and side.function == "coalesce" and _is_text(types, side):
                return _apart(types, node, number, side)
    if isinstance(node, Call) and node.function in TEXT and isinstance(node.arguments[0], Call):
        inner = node.arguments[0]
        if inner.function == "coalesce" and source_of(inner) is None:
            return Call("coalesce", tuple(Call(node.function, (each,)) for each in inner.arguments))
    return node


def _is_text(types: ColumnTypes, node: Call) -> bool:
    return source_of(node) is None and "string" in {types.kind(transform(a, as_attribute)) for a in node.arguments}


def _apart(types: ColumnTypes, node: Comparison | Like | IsNull, number: int, side: Call) -> Expression:
    field_name = "operand" if not isinstance(node, Comparison) else ("left", "right")[number]
    cases: list[Expression] = []
    null = [_spread(types, IsNull(each)) for each in side.arguments]
    for at, argument in enumerate(side.arguments):
        # if all are NULL, the last one decides: its test is NULL as well, which NOT must not turn into true
        there = [Not(null[at])] if at + 1 < len(side.arguments) else []
        changed: dict[str, Any] = {field_name: argument}
        test = _spread(types, replace(node, **changed))
        cases.append(And((*null[:at], *there, test)))
    return Or(tuple(cases))


def since_1970(node: Expression) -> Expression:
    """A written time as the duration since 1970, the form in which instants are stored."""
    if not isinstance(node, Literal) or not isinstance(node.value, str):
        return node
    return Literal(utc(datetime.fromisoformat(node.value)) - EPOCH, span=node.span)


def source_of(node: Expression) -> str | None:
    """The only event that a part reads: '' for the event at hand, else a register's name; None for several or none."""
    if aggregates(node):
        return None
    sources = {each.variable if isinstance(each, Reference) else "" for each in walk(node)
             if isinstance(each, (Attribute, Reference))}  # fmt: skip
    return sources.pop() if len(sources) == 1 else None


def as_attribute(node: Expression) -> Expression:
    """A reference as the attribute that it is on its own event; to be used with `transform`."""
    return Attribute(node.name) if isinstance(node, Reference) else node
