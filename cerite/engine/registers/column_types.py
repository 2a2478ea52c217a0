"""The kinds of a stream's columns, and the kinds of value that expressions over them have.

Where decimals are computed or compared, programs work on their digits: `scale` and `places` say how many of these are
behind the decimal point.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import cast

import pyarrow as pa

from cerite.core.schema import Kind, Schema
from cerite.predicate import expression as ex
from cerite.predicate.evaluate import scale_of, value_of, written
from cerite.predicate.functions import PARTS, TIMES
from cerite.predicate.kinds import ANY, Kinds, ValueKind


@dataclass(frozen=True)
class ColumnTypes:
    """The kinds of a stream's columns, and what else of their types matters to programs."""

    kinds: Mapping[str, Kind]
    decimals: Mapping[str, tuple[int, int]]  # digits and, of them, places behind the point
    unsigned: frozenset[str]  # of 64 bits
    finest: int  # nanoseconds of the unit in which instants and durations are stored

    @classmethod
    def of_arrow(cls, schema: pa.Schema) -> ColumnTypes:
        """The types of the columns of an Arrow schema; a dictionary counts as its values."""
        coded = pa.types.is_dictionary
        types = {each.name: each.type.value_type if coded(each.type) else each.type for each in schema}
        decimals = {
            name: (kind.precision - min(0, kind.scale), max(0, kind.scale))
            for name, kind in types.items()
            if pa.types.is_decimal(kind)
        }
        units = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
        used = [units[kind.unit] for kind in types.values() if pa.types.is_timestamp(kind)]
        return cls(
            dict(Schema.of_arrow(schema).columns or {}),
            decimals,
            frozenset(name for name, kind in types.items() if pa.types.is_uint64(kind)),
            min([*used, 10**3]),  # durations are whole microseconds
        )

    def possible(self, node: ex.Attribute | ex.Reference) -> Kinds:
        """The kinds that an attribute may have."""
        kind = self.kinds.get(node.name)
        return ANY if kind is None else frozenset((kind,))

    def scale(self, node: ex.Expression) -> int | None:
        """The places behind the point of a decimal; None if it is not a decimal."""
        match node:
            case ex.Attribute(name=name):
                return self.decimals[name][1] if name in self.decimals else None
            case ex.Aggregate(function=function) if function not in ("COUNT", "AVG") and node.taken is not None:
                return self.scale(node.taken)
            case ex.Negative(operand=operand):
                return self.scale(operand)
            case ex.Arithmetic(op=op, left=left, right=right) if op != "/":
                if self.scale(left) is None and self.scale(right) is None:
                    return None
                one, other = self.places(left), self.places(right)
                return None if one is None or other is None else one + other if op == "*" else max(one, other)
        return None

    def places(self, node: ex.Expression) -> int | None:
        """The scale of what can be exact: a decimal, a whole number, a constant as it is written; None for a float."""
        if ex.is_constant(node):
            value = value_of(node, {})
            if isinstance(value, float):
                return scale_of(written(value)) if math.isfinite(value) else None
            return 0
        return 0 if self.kind(node) == "int" else self.scale(node)

    def width(self, node: ex.Expression) -> int:
        """The digits that a decimal column may have; other numbers are checked when they come."""
        return self.decimals[node.name][0] if isinstance(node, ex.Attribute) and node.name in self.decimals else 0

    def kind(self, node: ex.Expression) -> ValueKind | None:
        """The kind of an expression's value; None if that is always NULL."""
        match node:
            case ex.Literal(value=value):
                return "bool" if isinstance(value, bool) else "string" if isinstance(value, str) else (
                    "duration" if isinstance(value, timedelta) else "int" if isinstance(value, int) else "float"
                )  # fmt: skip
            case ex.Attribute(name=name):
                return self.kinds.get(name)
            case ex.Aggregate(function="COUNT"):
                return "int"
            case ex.Aggregate(function=function):
                taken = None if node.taken is None else self.kind(node.taken)
                return "float" if taken is not None and function == "AVG" else taken
            case ex.Negative(operand=operand):
                return self.kind(operand)
            case ex.Arithmetic(op=op, left=left, right=right):
                one, other = self.kind(left), self.kind(right)
                if one is None or other is None:
                    return None
                if {one, other} & {"timestamp", "duration"}:
                    return cast(ValueKind, TIMES[one, op, other])
                return "float" if op == "/" or "float" in (one, other) else "int"
            case ex.Call(function="coalesce", arguments=arguments):
                kinds = {self.kind(each) for each in arguments} - {None}
                return "float" if "float" in kinds else next(iter(kinds), None)
            case ex.Call(function=function, arguments=(argument,)):
                own = self.kind(argument)
                whole = function in PARTS or function == "length"
                return None if own is None else "int" if whole else own
        return "bool"
