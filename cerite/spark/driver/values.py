"""Numbers, strings and instants as Spark Columns, with the arithmetic and the comparisons of `predicate.evaluate`.

Integers are exact in 64 bits and NULL beyond, and so are decimals by their digits; numbers of different kinds compare
by their exact values, where Spark would round (constants are converted to the column's type); NaN counts as NULL, which
is taken care of where a value is compared or tested for NULL; instants compare in microseconds UTC.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as fn
from pyspark.sql import types as ty

from cerite.core.errors import ALIKE, StreamError
from cerite.predicate import expression as ex
from cerite.predicate.evaluate import exactly, scale_of, written
from cerite.predicate.expression import Value as Constant
from cerite.predicate.functions import EARLIEST, LATEST, MICROSECOND, PARTS, ROUNDING, UNITS
from cerite.spark.driver.frame import Frame, ticks

_COMPARE: dict[str, Callable[[Any, Any], Column]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_EXACT = {"+": fn.try_add, "-": fn.try_subtract, "*": fn.try_multiply, "%": fn.try_mod}
_FLOAT: dict[str, Callable[[Column, Column], Column]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": fn.try_divide, "%": fn.try_mod,
}  # fmt: skip
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
MOST_PLACES = 18
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True)
class Value:
    """A Column with its kind; `nan` if it may hold NaN, `constant` if it is one, `digits` if a computed decimal."""

    column: Column
    kind: str
    spark: ty.DataType | None = None
    nan: bool = False
    constant: Constant | None = None
    digits: Column | None = None

    @property
    def null(self) -> Column:
        """Where the value is NULL (or NaN)."""
        return self.column.isNull() | fn.isnan(self.column) if self.nan else self.column.isNull()

    @property
    def as_float(self) -> Column:
        """A number as a double."""
        return self.column if self.kind == "float" and not self.is_decimal else self.column.cast("double")

    @property
    def is_decimal(self) -> bool:
        """Whether it is exact, with places behind the decimal point."""
        return isinstance(self.spark, ty.DecimalType)

    @property
    def places(self) -> int | None:
        """The scale of what can be exact: a decimal, a whole number, a constant as it is written; None for a float."""
        if isinstance(self.spark, ty.DecimalType):
            return self.spark.scale
        if isinstance(self.constant, float):
            return scale_of(written(self.constant)) if math.isfinite(self.constant) else None
        return 0 if self.kind == "int" else None

    @property
    def exact(self) -> Fraction:
        """A constant's value, to be compared with decimals."""
        assert isinstance(self.constant, (int, float))
        return exactly(self.constant, beside_decimals=True)

    @property
    def huge(self) -> bool:
        """A constant that 64 bits do not hold."""
        return isinstance(self.constant, int) and not -(2**63) <= self.constant < 2**63


class Values:
    """Builds the values of expressions over one DataFrame."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    def of(self, node: ex.Expression) -> Value:
        """The value of an expression without conditions in it."""
        match node:
            case ex.Literal(value=value):
                return self.constant(value)
            case ex.Attribute(name=name):
                return self.attribute(name)
            case ex.Negative(operand=operand):
                inner = self.of(operand)
                if inner.kind == "duration":
                    return Value(-inner.column, "duration")
                return _arithmetic("-", self.constant(0), inner)
            case ex.Arithmetic(op=op, left=left, right=right):
                return _arithmetic(op, self.of(left), self.of(right))
            case ex.Call(function=function, arguments=arguments):
                return _called(function, [self.of(each) for each in arguments])
        raise TypeError(f"not a value: {node!r}")

    def attribute(self, name: str) -> Value:
        """A column's value; 32-bit floats become doubles."""
        column, spark, kind = self._frame.column(name), self._frame.types[name], self._frame.kinds[name]
        if isinstance(spark, ty.FloatType):
            column = column.cast("double")
        return Value(column, kind, spark, nan=kind == "float" and not isinstance(spark, ty.DecimalType))

    def constant(self, value: Constant) -> Value:
        """A constant as it is written; what 64 bits do not hold is a decimal."""
        if isinstance(value, timedelta):
            return Value(fn.lit(value // MICROSECOND).cast("bigint"), "duration")
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
    if left.kind in ("string", "duration"):
        return _COMPARE[op](left.column, right.column)
    if left.kind == right.kind == "int":
        return _beyond(op, left) if right.huge else _COMPARE[op](left.column, right.column)
    if left.is_decimal or right.is_decimal:
        return _decimals(op, left, right)
    if left.kind == "int" and isinstance(right.constant, float):
        return _at_scale(op, left, exactly(right.constant), 0)
    if left.kind != right.kind and right.constant is None and _long(left if left.kind == "int" else right):
        return _mixed(op, left, right) if left.kind == "int" else _mixed(_FLIPPED.get(op, op), right, left)
    if isinstance(right.constant, int) and float(right.constant) != right.constant:
        return _between(op, left, right.constant)
    truth = _COMPARE[op](left.as_float, right.as_float)
    sides = [side for side in (left, right) if side.nan]
    if len(sides) == 1 and right.constant is not None and op in ("=", "<", "<="):
        return truth  # NaN is above every constant
    for side in sides:
        truth = truth & ~fn.isnan(side.column)
    return truth


def _at_scale(op: str, left: Value, constant: Fraction, scale: int) -> Column:
    """A whole number or decimal against a constant, which becomes one of the column's own steps or lies between two."""
    whole, rest = divmod(constant * 10**scale, 1)
    if rest and op in ("=", "!="):
        return left.column.isNotNull() if op == "!=" else fn.lit(False)
    whole += rest > 0 and op in ("<", ">=")
    if not (abs(whole) < 10**38 if left.is_decimal else -(2**63) <= whole < 2**63):
        above = op in (("<", "<=") if whole > 0 else (">", ">="))
        return left.column.isNotNull() if op == "!=" or above else fn.lit(False)
    if not left.is_decimal:
        return _COMPARE[op](left.column, fn.lit(whole))
    digits = Decimal((int(whole < 0), tuple(map(int, str(abs(whole)))), -scale))
    return _COMPARE[op](left.column, fn.lit(str(digits)).cast(f"decimal(38,{scale})"))


def _decimals(op: str, left: Value, right: Value) -> Column:
    """Where `left op right` is true, at least one of which is a decimal."""
    if right.constant is not None and left.places is not None:
        return _at_scale(op, left, right.exact, left.places)
    if left.places is None or right.places is None:
        raise StreamError("a decimal is compared with a float, which Spark cannot compare exactly", hint=ALIKE)
    types = [_decimal_type(side) for side in (left, right)]
    scale = max(each.scale for each in types)
    digits = scale + max(each.precision - each.scale for each in types)
    if digits > 38:
        raise StreamError(
            f"{types[0].simpleString()} and {types[1].simpleString()} have too many digits for Spark to compare",
            hint="cast one of the columns to the other's type",
        )
    one, other = (side.column.cast(f"decimal({digits},{scale})") for side in (left, right))
    return _COMPARE[op](one, other)


def _decimal_type(value: Value) -> ty.DecimalType:
    if isinstance(value.spark, ty.DecimalType):
        return value.spark
    small = isinstance(value.spark, (ty.ByteType, ty.ShortType, ty.IntegerType))
    return ty.DecimalType(10 if small else 19, 0)


def _long(value: Value) -> bool:
    return not isinstance(value.spark, (ty.ByteType, ty.ShortType, ty.IntegerType))


def _mixed(op: str, whole: Value, real: Value) -> Column:
    """A whole number of 64 bits against a float, without rounding it to a float."""
    number, value = whole.column.cast("bigint"), real.column
    below = fn.floor(value).cast("bigint")
    sign = (
        fn.when(number.isNull() | real.null, None)
        .when(value >= fn.lit(2.0**63), -1)
        .when(value < fn.lit(-(2.0**63)), 1)
        .when(number < below, -1)
        .when(number > below, 1)
        .when(value > below.cast("double"), -1)
        .otherwise(0)
    )
    return _COMPARE[op](sign, fn.lit(0))


def _between(op: str, left: Value, constant: int) -> Column:
    """Floats against a whole number that lies between two of them."""
    if op in ("=", "!="):
        return ~left.null if op == "!=" else fn.lit(False)
    above = float(constant) if float(constant) > constant else math.nextafter(float(constant), math.inf)
    truth = _COMPARE[{"<=": "<", ">": ">="}.get(op, op)](left.column, fn.lit(above))
    return truth if op in ("<", "<=") else truth & ~fn.isnan(left.column)


def _beyond(op: str, left: Value) -> Column:
    """An integer against one above all of them."""
    return left.column.isNotNull() if op in ("<", "<=", "!=") else fn.lit(False)


def _arithmetic(op: str, left: Value, right: Value) -> Value:
    if {left.kind, right.kind} & {"timestamp", "duration"}:
        return _times(op, left, right)
    if op != "/" and left.kind == right.kind == "int":
        if left.huge or right.huge:
            wide = _EXACT[op](left.column.cast("decimal(38,0)"), right.column.cast("decimal(38,0)"))
            return Value(wide.try_cast("bigint"), "int")
        return Value(_EXACT[op](left.column.cast("bigint"), right.column.cast("bigint")), "int")
    if op != "/" and (left.is_decimal or right.is_decimal) and left.places is not None and right.places is not None:
        return _exact_decimals(op, left, right)
    return Value(_FLOAT[op](left.as_float, right.as_float), "float", nan=True)


def _exact_decimals(op: str, left: Value, right: Value) -> Value:
    """Decimals by their digits in 64 bits, as `evaluate` does it."""
    places = (left.places or 0, right.places or 0)
    common = sum(places) if op == "*" else max(places)
    if common > MOST_PLACES:
        raise StreamError(
            f"`{op}` would have {common} decimal places; on Spark at most {MOST_PLACES} are exact",
            hint="cast the columns to decimals of fewer places, or to floats",
        )
    scales = places if op == "*" else (common, common)
    one, other = (_digits(side, scale) for side, scale in zip((left, right), scales, strict=True))
    digits = _EXACT[op](one, other)
    kind = ty.DecimalType(20 + common, common)
    exact = digits.cast("decimal(19,0)")
    exact = exact * fn.lit(Decimal((0, (1,), -common))) if common else exact
    return Value(exact.cast(kind), "float", kind, digits=digits)


def _digits(value: Value, scale: int) -> Column:
    """The digits at a scale, NULL where 64 bits are too few; a column's own digits must not be too many."""
    if value.constant is not None:
        whole = int(value.exact * 10**scale)
        return fn.lit(whole if -(2**63) <= whole < 2**63 else None).cast("bigint")
    digits, own = value.digits, value.places or 0
    if digits is None and isinstance(value.spark, ty.DecimalType):
        short = value.column
        if value.spark.precision > 18:
            short = value.column.try_cast(f"decimal(18,{own})")
            why = fn.lit("a decimal has more digits than Cerite calculates with; cast the column to decimal(18, …)")
            wide = fn.raise_error(why).cast(f"decimal(18,{own})")
            short = fn.when(short.isNull() & value.column.isNotNull(), wide).otherwise(short)
        digits = (short * fn.lit(Decimal(10**own))).cast("bigint")
    digits = value.column.cast("bigint") if digits is None else digits
    return fn.try_multiply(digits, fn.lit(10 ** (scale - own)).cast("bigint"))


def _times(op: str, left: Value, right: Value) -> Value:
    """Timestamps and durations, in microseconds."""
    one, other = (_micros_of(side) if side.kind == "timestamp" else side.column for side in (left, right))
    if op == "/":
        return Value(fn.try_divide(one.cast("double"), other.cast("double")), "float", nan=True)
    result = _EXACT[op](one, other)
    if left.kind == right.kind:
        return Value(result, "duration")
    return Value(fn.when(result.between(EARLIEST, LATEST), result), "timestamp", ty.LongType())


def _called(name: str, values: list[Value]) -> Value:
    """A function, as `predicate.functions` computes it for one value."""
    value = values[0]
    if name == "coalesce":
        return _coalesced(values)
    if name in PARTS:
        return Value(_part(name, _micros_of(value)), "int")
    if name == "length":
        return Value(fn.length(value.column).cast("bigint"), "int")
    if name in ("lower", "upper"):
        return Value((fn.lower if name == "lower" else fn.upper)(value.column), "string")
    if name in ROUNDING:
        return value if value.kind == "int" else Value(_rounded(name, value.as_float), "float", nan=True)
    if value.kind == "float":
        return Value(fn.abs(value.as_float), "float", nan=True)
    whole = value.column.cast("bigint")
    return Value(fn.when(whole != fn.lit(-(2**63)), fn.abs(whole)), value.kind)


def _rounded(name: str, column: Column) -> Column:
    """As a double: Spark's own floor and ceil are 64-bit integers, and from 2^53 on every double is whole."""
    if name == "round":
        return fn.round(column)
    small = fn.abs(column) < fn.lit(2.0**53)
    return fn.when(small, (fn.floor if name == "floor" else fn.ceil)(column).cast("double")).otherwise(column)


def _part(name: str, micros: Column) -> Column:
    """A part in UTC; Spark's own functions of timestamps are about the session's zone, those of dates are not."""
    day = fn.lit(UNITS["days"])
    in_day = fn.pmod(micros, day)
    days = ((micros - in_day) / day).cast("int")  # whole, and a multiple of 2^14: exact as a double
    if name in ("hour", "minute", "second"):
        part = fn.floor(in_day / fn.lit(UNITS[f"{name}s"]))
        return part if name == "hour" else fn.pmod(part, fn.lit(60))
    if name == "weekday":
        return (fn.pmod(days + 3, fn.lit(7)) + 1).cast("bigint")
    date = fn.date_add(fn.to_date(fn.lit("1970-01-01")), days)
    return {"year": fn.year, "month": fn.month, "day": fn.dayofmonth}[name](date).cast("bigint")


def _coalesced(values: list[Value]) -> Value:
    kinds = {value.kind for value in values}
    if "timestamp" in kinds:
        return Value(fn.coalesce(*map(_micros_of, values)), "timestamp", ty.LongType())
    if "float" in kinds:
        floats = [fn.nanvl(value.as_float, fn.lit(None).cast("double")) for value in values]
        return Value(fn.coalesce(*floats), "float")
    columns = [value.column.cast("bigint") if value.kind == "int" else value.column for value in values]
    return Value(fn.coalesce(*columns), values[0].kind)


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
    if isinstance(value.spark, ty.LongType):  # computed
        return value.column
    micros = ticks(value.column, value.spark, "")
    return micros * 1_000 if isinstance(value.spark, ty.DateType) else micros


def _micros(text: str) -> int:
    instant = datetime.fromisoformat(text)
    return ((instant if instant.tzinfo else instant.replace(tzinfo=timezone.utc)) - _EPOCH) // timedelta(microseconds=1)
