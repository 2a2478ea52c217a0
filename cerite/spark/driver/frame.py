"""A DataFrame as recognition sees it: columns by position, kinds by name.

Columns are renamed to `c0`, `c1`, … at once, so that names of any spelling (dots, back-quotes, two that differ only in
case) mean exactly what they mean to the local engine. Invariant: an attribute's kind is the one `Schema.of_arrow`
gives for the Arrow type that Spark ships the column as.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from os.path import commonprefix

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn
from pyspark.sql import types as ty

from cerite.core.errors import StreamError, repeated_column, unknown_column
from cerite.core.schema import Kind, Schema
from cerite.data.columns import refuse_ambiguous
from cerite.engine.events.keys import not_numbers
from cerite.engine.events.rows import TimeUnit

RESERVED = "cerite."
MOST_NUMBERED = 500  # files that get numbers; of more, the names travel
_INTEGERS = (ty.ByteType, ty.ShortType, ty.IntegerType, ty.LongType)
_FLOATS = (ty.FloatType, ty.DoubleType, ty.DecimalType)
_TIMES = (ty.TimestampType, ty.TimestampNTZType, ty.DateType)
_ARROW = (
    *_INTEGERS, *_FLOATS, *_TIMES, ty.StringType, ty.CharType, ty.VarcharType, ty.BooleanType, ty.BinaryType,
    ty.NullType, ty.DayTimeIntervalType,
)  # fmt: skip


@dataclass(frozen=True)
class Frame:
    """A DataFrame whose columns are looked up by the names that the user gave them."""

    original: DataFrame

    @cached_property
    def df(self) -> DataFrame:
        """The same rows, columns called c0, c1, …"""
        rows = self.original
        if len(self.names) > len(self.top):
            inner = [fn.col(".".join(map(_quoted, path))) for path in self._members]
            rows = rows.select(*(fn.col(_quoted(name)) for name in self.top), *inner)
        return rows.toDF(*(f"c{index}" for index in range(len(self.names))))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the columns and of the members of structs, as in `ctx.ip`."""
        members = [".".join(path) for path in self._members]
        refuse_ambiguous(self.top, members, "the DataFrame")
        return (*self.top, *members)

    @cached_property
    def _members(self) -> list[tuple[str, ...]]:
        """The paths of the members of structs, to any depth."""
        return [path for path, _ in _leaves(self.original.schema)]

    @cached_property
    def top(self) -> tuple[str, ...]:
        """The columns' own names."""
        names = tuple(self.original.columns)
        for name in names:
            if names.count(name) > 1:
                raise repeated_column(name, "the DataFrame", StreamError)
            if name.startswith(RESERVED):
                raise StreamError(f"the column name `{name}` is reserved by Cerite", hint="rename the column")
        return names

    @cached_property
    def types(self) -> dict[str, ty.DataType]:
        """Every column's Spark type."""
        own = (field.dataType for field in self.original.schema.fields)
        return dict(zip(self.names, (*own, *(kind for _, kind in _leaves(self.original.schema))), strict=True))

    @cached_property
    def kinds(self) -> dict[str, Kind]:
        """The kinds of the columns that conditions can read."""
        every = {name: kind_of(spark) for name, spark in self.types.items()}
        return {name: kind for name, kind in every.items() if kind is not None}

    @property
    def schema(self) -> Schema:
        """What the query is checked against."""
        return Schema(columns=self.kinds)

    def column(self, name: str) -> Column:
        """A column of `df`, whatever it was called; strings compare byte by byte, whatever their collation."""
        self.known(name)
        plain = fn.col(f"c{self.names.index(name)}")
        return fn.collate(plain, "UTF8_BINARY") if _collated(self.types[name]) else plain

    def known(self, name: str) -> None:
        """Refuse a name that is no column's."""
        if name not in self.names:
            raise unknown_column(name, self.names)

    def shippable(self, name: str) -> None:
        """Refuse a column that cannot travel to Python as Arrow."""
        if not _travels(self.types[name]):
            raise StreamError(
                f"column `{name}` is {self.types[name].simpleString()}, which does not travel as Arrow",
                hint=f"leave it out: df.drop({name!r}), or name the attributes to report: SELECT x[…]",
            )

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """The files behind the rows, by name, as `_metadata` spells them."""
        return tuple(sorted(re.sub("^file:/+", "file:/", name) for name in self.original.inputFiles()))

    @property
    def files(self) -> tuple[str, ...]:
        """The files that are known by their number in the order of events; none if there are too many."""
        return self.paths if len(self.paths) <= MOST_NUMBERED else ()

    @property
    def root(self) -> str:
        """The folder that all files are in: the ids of matches should not depend on where it lies."""
        shared = commonprefix(self.paths)  # noqa: RUF071  (of characters, and then of folders)
        return shared[: shared.rfind("/") + 1]

    @cached_property
    def row_index(self) -> tuple[Column, Column] | None:
        """File and row index of every row, where the source exposes them (Parquet)."""
        file, row = fn.col("_metadata.file_path"), fn.col("_metadata.row_index")
        talkative = logging.getLogger("DataFrameQueryContextLogger")  # would print the error, which is an answer here
        before, talkative.disabled = talkative.disabled, True
        try:
            _ = self.df.select(file, row).schema
        except AnalysisException:
            return None
        finally:
            talkative.disabled = before
        return _number(file, self.files) if self.files else file, row


def _leaves(struct: ty.StructType) -> Iterator[tuple[tuple[str, ...], ty.DataType]]:
    for field in struct.fields:
        if isinstance(field.dataType, ty.StructType):
            for inner in field.dataType.fields:
                if not isinstance(inner.dataType, ty.StructType):
                    yield (field.name, inner.name), inner.dataType
            for path, kind in _leaves(field.dataType):
                yield (field.name, *path), kind


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _number(name: Column, names: Sequence[str]) -> Column:
    """The place of a name among all names; a name that is not among them fails the job."""
    if len(names) == 1:
        place = fn.lit(0).cast("long")
        unknown = fn.raise_error(fn.concat(fn.lit("Cerite does not know the file "), name))
        return fn.when(name == names[0], place).otherwise(unknown.cast("long"))
    middle = len(names) // 2
    lower = fn.when(name < names[middle], _number(name, names[:middle]))
    return lower.otherwise(_number(name, names[middle:]) + middle)


def kind_of(spark: ty.DataType) -> Kind | None:
    """The kind of a column's values, None if conditions cannot read it.

    >>> kind_of(ty.ShortType()), kind_of(ty.DecimalType(5, 2)), kind_of(ty.ArrayType(ty.LongType()))
    ('int', 'float', None)
    """
    if isinstance(spark, _INTEGERS):
        return "int"
    if isinstance(spark, _FLOATS):
        return "float"
    if isinstance(spark, _TIMES):
        return "timestamp"
    if isinstance(spark, ty.BooleanType):
        return "bool"
    return "string" if isinstance(spark, (ty.StringType, ty.CharType, ty.VarcharType)) else None


def ticks(column: Column, spark: ty.DataType, name: str) -> Column:
    """A time or window attribute as the number the engine compares: `keys.numbers`, computed by Spark."""
    if isinstance(spark, ty.TimestampType):
        return fn.unix_micros(column)
    if isinstance(spark, ty.TimestampNTZType):  # as if its clock were UTC, whatever the session's zone
        days = fn.unix_date(column.cast("date")).cast("bigint")
        seconds = (fn.hour(column) * 3600 + fn.minute(column) * 60).cast("bigint")
        micros = fn.date_part(fn.lit("SECOND"), column).cast("decimal(20,6)") * 1_000_000
        return days * fn.lit(86_400_000_000) + seconds * fn.lit(1_000_000) + micros.cast("bigint")
    if isinstance(spark, ty.DateType):
        return fn.unix_date(column).cast("bigint") * fn.lit(86_400_000)
    if isinstance(spark, _INTEGERS):
        return column.cast("bigint")
    if isinstance(spark, ty.DecimalType):  # its digits; NULL where they may be too many for 64 bits
        scaled = column.try_cast(f"decimal(18,{spark.scale})") if spark.precision > 18 else column
        return (scaled * fn.lit(Decimal(10**spark.scale))).cast("bigint")
    if isinstance(spark, _FLOATS):
        return fn.nullif(column.cast("double"), fn.lit(float("nan")))
    hint = f"convert it: df.withColumn({name!r}, to_timestamp({name!r}))" if kind_of(spark) == "string" else None
    raise not_numbers(name, spark.simpleString(), hint)


def ticks_per_second(spark: ty.DataType, unit: TimeUnit = "ms") -> int:
    """How many steps of a time column make a second; plain numbers count `unit`, days are in milliseconds."""
    if isinstance(spark, (ty.TimestampType, ty.TimestampNTZType)):
        return 1_000_000
    return 1_000 if isinstance(spark, ty.DateType) else {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 10**9}[unit]


def _collated(spark: ty.DataType) -> bool:
    return isinstance(spark, ty.StringType) and getattr(spark, "collation", "UTF8_BINARY") != "UTF8_BINARY"


def _travels(spark: ty.DataType) -> bool:
    if isinstance(spark, ty.ArrayType):
        return _travels(spark.elementType)
    if isinstance(spark, ty.MapType):
        return _travels(spark.keyType) and _travels(spark.valueType)
    if isinstance(spark, ty.StructType):
        return all(_travels(field.dataType) for field in spark.fields)
    return isinstance(spark, _ARROW)
