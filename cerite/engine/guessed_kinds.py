"""Kinds of attributes that neither data nor declarations tell, guessed from what the query compares them with.

They serve `cerite explain`, which has no data, and columns without a single value, which any kind fits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

import pyarrow as pa

from cerite.automaton.absences import is_own
from cerite.automaton.guards import Reach, distinct_tests
from cerite.core.schema import Kind, Schema
from cerite.engine.plan import Plan
from cerite.predicate import expression as ex

TIME = "cerite.time"  # stands for the time column, which the data names
_ARROW = {
    "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_(), "string": pa.string(),
    "timestamp": pa.timestamp("ms"),
}  # fmt: skip


def columns_of(plan: Plan, schema: Schema | None) -> tuple[pa.Schema, list[str]]:
    """Columns for everything that a plan reads, and the names of those whose kind is only guessed from conditions.

    >>> from cerite.language.ceql import parse_query
    >>> from cerite.engine.plan import plan
    >>> reading = plan(parse_query("SELECT * FROM S WHERE A AS x ; B AS y FILTER y[name = 'a' AND name = x.town]"))
    >>> columns, guessed = columns_of(reading, None)
    >>> columns.field("town").type, guessed
    (DataType(string), ['name', 'town'])
    """
    guards = plan.every_guard
    known: dict[str, Kind] = {} if schema is None else dict(schema.attributes(None))
    conditions = [test.condition for test in distinct_tests(guards) if test.condition is not None]
    nodes = [node for condition in conditions for node in ex.walk(condition)]
    read = frozenset().union(*map(ex.attributes, conditions))
    names = sorted(name for name in read - known.keys() if not is_own(name))
    guessed = _guessed(nodes, known)
    kinds = known | {name: guessed.get(name, "float") for name in names}
    inner = (test.size for guard in guards for test in guard.tests | guard.negated if isinstance(test, Reach))
    sizes = (plan.window, *inner, *(each.size for each in plan.automaton.preceding))
    measured = [size.attribute for size in sizes if size is not None and size.attribute is not None]
    others = {name: pa.float64() for name in (*measured, *plan.partition)} | {TIME: pa.timestamp("us")}
    return pa.schema(others | {name: _ARROW[kind] for name, kind in kinds.items()}), names


def _guessed(nodes: list[ex.Expression], known: dict[str, Kind]) -> dict[str, Kind]:
    """Kinds guessed from constants, and passed on between attributes that are compared with each other."""
    kinds = dict(known)
    for node in nodes:
        if isinstance(node, ex.Aggregate) and (node.function in ("SUM", "AVG") or node.of is not None):
            for name in sorted(node.attributes):
                kinds.setdefault(name, "float")
    pairs = [pair for node in nodes for pair in _compared(node)]
    changed = True
    while changed:
        changed = False
        for one, other in pairs:
            if _has_the_kind(one) and one.name not in kinds:
                kind = _kind(other, kinds)
                if kind is not None:
                    kinds[one.name], changed = kind, True
    return kinds


def _has_the_kind(node: ex.Expression) -> TypeGuard[ex.Attribute | ex.Reference]:
    """Whether a value has the kind of its attribute, so that what it is compared with tells that kind."""
    read = isinstance(node, ex.Aggregate) and node.of is None and node.function in ("MIN", "MAX", "FIRST", "LAST")
    return read or isinstance(node, (ex.Attribute, ex.Reference))


def _compared(node: ex.Expression) -> Iterator[tuple[ex.Expression, ex.Expression]]:
    match node:
        case ex.Comparison(left=left, right=right):
            yield left, right
            yield right, left
        case ex.In(operand=operand, items=items):
            yield from ((operand, item.low if isinstance(item, ex.Interval) else item) for item in items)
        case ex.InRange(operand=operand, low=low):
            yield operand, low
        case ex.Like(operand=operand):
            yield operand, ex.Literal("")


def _kind(node: ex.Expression, kinds: dict[str, Kind]) -> Kind | None:
    match node:
        case ex.Literal(value=bool()):
            return "bool"
        case ex.Literal(value=str()):
            return "string"
        case ex.Literal():
            return "float"
        case ex.Attribute(name=name) | ex.Reference(name=name):
            return kinds.get(name)
        case ex.Aggregate(function=function, name=name):
            return "float" if name is None or function in ("COUNT", "SUM", "AVG") else kinds.get(name)
    return None
