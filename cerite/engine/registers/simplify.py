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
from cerite.predicate import expression as ex
from cerite.predicate.evaluate import value_of
from cerite.predicate.functions import EPOCH, TEXT, utc

NULL_VALUE = ex.Literal(float("nan"))  # a part that is always NULL, such as `1 / 0`


def simplified(condition: ex.Expression, types: ColumnTypes) -> ex.Expression:
    """The condition in terms of comparisons, each text in which is that of one event."""
    return ex.transform(ex.transform(condition, _comparisons), partial(_spread, types))


def _comparisons(node: ex.Expression) -> ex.Expression:
    """IN and ranges as comparisons, constants computed, so that fewer kinds of node are left."""
    match node:
        case ex.InRange(operand=operand, low=low, high=high):
            return ex.And((ex.Comparison(">=", operand, low), ex.Comparison("<=", operand, high)))
        case ex.In(operand=operand, items=items) if source_of(operand) is None:
            each = tuple(
                ex.And((ex.Comparison(">=", operand, item.low), ex.Comparison("<=", operand, item.high)))
                if isinstance(item, ex.Interval)
                else ex.Comparison("=", operand, item)
                for item in items
            )
            return each[0] if len(each) == 1 else ex.Or(each)
        case ex.Call(function="coalesce", arguments=arguments):
            known = tuple(each for each in arguments if each is not NULL_VALUE)
            return ex.Call("coalesce", known) if len(known) > 1 else known[0] if known else NULL_VALUE
        case ex.Negative() | ex.Arithmetic() | ex.Call() if ex.is_constant(node):
            value = value_of(node, {})
            return NULL_VALUE if value is None else ex.Literal(value)
        case ex.Negative() | ex.Arithmetic() | ex.Call() if any(each is NULL_VALUE for each in node.children):
            return NULL_VALUE
    return node


def _spread(types: ColumnTypes, node: ex.Expression) -> ex.Expression:
    """Split a text chosen among several events into cases where it is compared: programs only hold numbers of texts.

    `coalesce(a, x.b) = c` is `a IS NOT NULL AND a = c OR a IS NULL AND x.b = c`, both NULL where a and x.b are.
    """
    if isinstance(node, (ex.Comparison, ex.Like, ex.IsNull)):
        sides = (node.left, node.right) if isinstance(node, ex.Comparison) else (node.operand,)
        for number, side in enumerate(sides):
            if isinstance(side, ex.Call) and side.function == "coalesce" and _is_text(types, side):
                return _apart(types, node, number, side)
    if isinstance(node, ex.Call) and node.function in TEXT and isinstance(node.arguments[0], ex.Call):
        inner = node.arguments[0]
        if inner.function == "coalesce" and source_of(inner) is None:
            return ex.Call("coalesce", tuple(ex.Call(node.function, (each,)) for each in inner.arguments))
    return node


def _is_text(types: ColumnTypes, node: ex.Call) -> bool:
    return source_of(node) is None and "string" in {types.kind(ex.transform(a, as_attribute)) for a in node.arguments}


def _apart(types: ColumnTypes, node: ex.Comparison | ex.Like | ex.IsNull, number: int, side: ex.Call) -> ex.Expression:
    field_name = "operand" if not isinstance(node, ex.Comparison) else ("left", "right")[number]
    cases: list[ex.Expression] = []
    null = [_spread(types, ex.IsNull(each)) for each in side.arguments]
    for at, argument in enumerate(side.arguments):
        # if all are NULL, the last one decides: its test is NULL as well, which NOT must not turn into true
        there = [ex.Not(null[at])] if at + 1 < len(side.arguments) else []
        changed: dict[str, Any] = {field_name: argument}
        test = _spread(types, replace(node, **changed))
        cases.append(ex.And((*null[:at], *there, test)))
    return ex.Or(tuple(cases))


def since_1970(node: ex.Expression) -> ex.Expression:
    """A written time as the duration since 1970, the form in which instants are stored."""
    if not isinstance(node, ex.Literal) or not isinstance(node.value, str):
        return node
    return ex.Literal(utc(datetime.fromisoformat(node.value)) - EPOCH, span=node.span)


def source_of(node: ex.Expression) -> str | None:
    """The only event that a part reads: '' for the event at hand, else a register's name; None for several or none."""
    if ex.aggregates(node):
        return None
    sources = {each.variable if isinstance(each, ex.Reference) else "" for each in ex.walk(node)
             if isinstance(each, (ex.Attribute, ex.Reference))}  # fmt: skip
    return sources.pop() if len(sources) == 1 else None


def as_attribute(node: ex.Expression) -> ex.Expression:
    """A reference as the attribute that it is on its own event; to be used with `transform`."""
    return ex.Attribute(node.name) if isinstance(node, ex.Reference) else node
