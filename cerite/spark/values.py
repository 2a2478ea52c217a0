"""Numbers, strings and instants as Spark Columns, with the arithmetic and the comparisons of `predicate.evaluate`.

Integers are exact in 64 bits and NULL beyond; an integer meets a float as a float; NaN is NULL, which is put right
where a value is compared or asked for NULL; instants compare in microseconds UTC.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as fn
from pyspark.sql import types as ty

from cerite.predicate.expression import Arithmetic, Attribute, Expression, Literal, Negative
from cerite.predicate.expression import Value as Constant
from cerite.spark.frame import Frame, ticks

_COMPARE: dict[str, Callable[[Any, Any], Column]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_EXACT = {"+": fn.try_add, "-": fn.try_subtract, "*": fn.try_multiply, "%": fn.try_mod}
_FLOAT: dict[str, Callable[[Column, Column], Column]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": fn.try_divide, "%": fn.try_mod,
}  # fmt: skip
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True)
class Value:
    """A Column with its kind; `nan` if it may hold NaN, `constant` if it is one."""

    column: Column
    kind: str
    spark: ty.DataType | None = None
    nan: bool = False
    constant: Constant | None = None

    @property
    def null(self) -> Column:
        """Where the value is NULL (or NaN)."""
        return self.column.isNull() | fn.isnan(self.column) if self.nan else self.column.isNull()

    @property
    def as_float(self) -> Column:
        """A number as a double."""
        return self.column if self.kind == "float" else self.column.cast("double")

    @property
    def huge(self) -> bool:
        """A constant that 64 bits do not hold."""
        return isinstance(self.constant, int) and not -(2**63) <= self.constant < 2**63


class Values:
    """Makes the values of expressions over one DataFrame."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    def of(self, node: Expression) -> Value:
        """The value of an expression without conditions in it."""
        match node:
            case Literal(value=value):
                return self.constant(value)
            case Attribute(name=name):
                return self.attribute(name)
            case Negative(operand=operand):
                return _arithmetic("-", self.constant(0), self.of(operand))
            case Arithmetic(op=op, left=left, right=right):
                return _arithmetic(op, self.of(left), self.of(right))
        raise TypeError(f"not a value: {node!r}")

    def attribute(self, name: str) -> Value:
        """A column's value; decimals and short floats are doubles."""
        column, spark, kind = self._frame.column(name), self._frame.types[name], self._frame.kinds[name]
        if kind == "float" and not isinstance(spark, ty.DoubleType):
            column = column.cast("double")
        return Value(column, kind, spark, nan=kind == "float" and not isinstance(spark, ty.DecimalType))

    def constant(self, value: Constant) -> Value:
        """A constant as it is written; what 64 bits do not hold is a decimal."""
        if isinstance(value, bool) or not isinstance(value, int):
            kind = "bool" if isinstance(value, bool) else "string" if isinstance(value, str) else "float"
            return Value(fn.lit(value), kind, constant=value)
        small = -(2**63) <= value < 2**63
        column = fn.lit(value) if small else fn.lit(str(value)).cast("decimal(38,0)")
        return Value(column, "int", constant=value)


def compared(op: str, left: Value, right: Value) -> Column:
    """Where `left op right` is true; `left` is no constant."""
    if left.kind == "timestamp":
        return _instants(op, left, right)
    if left.kind == "string":
        return _COMPARE[op](left.column, right.column)
    if left.kind == right.kind == "int":
        return _beyond(op, left, right) if right.huge else _COMPARE[op](left.column, right.column)
    found = _COMPARE[op](left.as_float, right.as_float)
    sides = [side for side in (left, right) if side.nan]
    if len(sides) == 1 and right.constant is not None and op in ("=", "<", "<="):
        return found  # NaN is above every constant
    for side in sides:
        found = found & ~fn.isnan(side.column)
    return found


def _beyond(op: str, left: Value, right: Value) -> Column:
    """An integer against one above all of them."""
    return left.column.isNotNull() if op in ("<", "<=", "!=") else fn.lit(False)


def _arithmetic(op: str, left: Value, right: Value) -> Value:
    if op != "/" and left.kind == right.kind == "int":
        if left.huge or right.huge:
            wide = _EXACT[op](left.column.cast("decimal(38,0)"), right.column.cast("decimal(38,0)"))
            return Value(wide.try_cast("bigint"), "int")
        return Value(_EXACT[op](left.column.cast("bigint"), right.column.cast("bigint")), "int")
    return Value(_FLOAT[op](left.as_float, right.as_float), "float", nan=True)


def _instants(op: str, left: Value, right: Value) -> Column:
    if isinstance(right.constant, str):
        micros = _micros(right.constant)
        if isinstance(left.spark, ty.TimestampType):
            return _COMPARE[op](left.column, fn.timestamp_micros(fn.lit(micros)))
        if isinstance(left.spark, ty.TimestampNTZType):
            plain = (_EPOCH + timedelta(microseconds=micros)).replace(tzinfo=None)
            return _COMPARE[op](left.column, fn.lit(plain.isoformat(" ")).cast("timestamp_ntz"))
        return _COMPARE[op](_micros_of(left), fn.lit(micros))
    if type(left.spark) is type(right.spark):
        return _COMPARE[op](left.column, right.column)
    return _COMPARE[op](_micros_of(left), _micros_of(right))


def _micros_of(value: Value) -> Column:
    assert value.spark is not None
    found = ticks(value.column, value.spark, "")
    return found * 1_000 if isinstance(value.spark, ty.DateType) else found


def _micros(text: str) -> int:
    found = datetime.fromisoformat(text)
    return ((found if found.tzinfo else found.replace(tzinfo=timezone.utc)) - _EPOCH) // timedelta(microseconds=1)
