"""Kinds of attributes that neither data nor declarations tell, guessed from what the query compares them with.

They serve `cerite explain`, which has no data, and columns without a single value, which any kind fits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from itertools import permutations
from typing import TypeGuard

import pyarrow as pa

from cerite.automaton.absences import is_own
from cerite.automaton.guards import Reach, distinct_tests
from cerite.core.schema import Kind, Schema
from cerite.engine.plan import Plan
from cerite.predicate import expression as ex
from cerite.predicate.functions import PARTS, TEXT

TIME = "cerite.time"  # stands for the time column, which the data names
_ARROW = {
    "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_(), "string": pa.string(),
    "timestamp": pa.timestamp("ms"),
}  # fmt: skip


def columns_of(
    plan: Plan, schema: Schema | None, measures: Iterable[ex.Expression] = ()
) -> tuple[pa.Schema, list[str]]:
    """Columns for everything that a plan and some measures read, and the names of those whose kind is only guessed.

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
    expressions = [*conditions, *measures]
    nodes = [node for expression in expressions for node in ex.walk(expression)]
    read = frozenset().union(*map(ex.attributes, expressions))
    names = sorted(name for name in read - known.keys() if not is_own(name))
    guessed = _guessed(nodes, known)
    kinds = known | {name: guessed.get(name, "float") for name in names}
    inner = (test.size for guard in guards for test in guard.tests | guard.negated if isinstance(test, Reach))
    sizes = (plan.window, *inner, *(each.size for each in plan.automaton.preceding))
    measured = [size.attribute for size in sizes if size is not None and size.attribute is not None]
    others = {name: pa.float64() for name in (*measured, *plan.partition)} | {TIME: pa.timestamp("us")}
    return pa.schema(others | {name: _ARROW[kind] for name, kind in kinds.items()}), names


def _guessed(nodes: list[ex.Expression], known: dict[str, Kind]) -> dict[str, Kind]:
    """Kinds guessed from constants and functions, and passed on between attributes that are compared."""
    kinds = dict(known)
    for node in nodes:
        for name, told in _told(node):
            kinds.setdefault(name, told)
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


def _told(node: ex.Expression) -> Iterator[tuple[str, Kind]]:
    """Attributes whose kind a node tells by itself."""
    match node:
        case ex.Aggregate(function=function) if function in ("SUM", "AVG") or node.of is not None:
            yield from ((name, "float") for name in sorted(node.attributes))
        case ex.Call(function=function, arguments=(ex.Attribute(name=name) | ex.Reference(name=name),)):
            if function in (*TEXT, *PARTS):
                yield name, "string" if function in TEXT else "timestamp"
        case ex.Arithmetic(op="+" | "-", left=left, right=right):
            yield from _moments((left, right))
        case ex.Comparison(left=left, right=right):
            for one, other in ((left, right), (right, left)):
                if isinstance(one, ex.Arithmetic) and one.op == "-" and _is_duration(other):
                    yield from _moments((one.left, one.right, other))


def _moments(sides: tuple[ex.Expression, ...]) -> Iterator[tuple[str, Kind]]:
    """The attributes among these that are timestamps, as one of these is a duration."""
    if any(map(_is_duration, sides)):
        yield from ((each.name, "timestamp") for each in sides if isinstance(each, (ex.Attribute, ex.Reference)))


def _is_duration(node: ex.Expression) -> bool:
    return isinstance(node, ex.Literal) and isinstance(node.value, timedelta)


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
        case ex.Call(function="coalesce", arguments=arguments):
            yield from permutations(arguments, 2)


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
