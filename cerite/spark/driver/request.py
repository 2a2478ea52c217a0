"""A query and the DataFrame that it is about, checked against each other before anything runs.

Whatever is wrong with names, kinds, order or result columns is reported here, on the driver. Invariant: a task may
still refuse only what depends on the data's values: ties, missing times, positions that do not rise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn
from pyspark.sql import types as ty
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema

from cerite.api.inputs import refuse_hidden_types
from cerite.api.query import AnyQuery, query
from cerite.api.shown import Selection
from cerite.automaton.guards import Guard, Test
from cerite.core.errors import CeriteError, Hint, Setting, StreamError, warn
from cerite.core.rejected import Rejected
from cerite.core.schema import Kind
from cerite.data.files.source import SAMPLE
from cerite.data.source import numbers_as_text, ordered_text
from cerite.engine.events.keys import time_of
from cerite.engine.events.order import positions_not_whole
from cerite.engine.events.rows import TimeUnit, checked_unit
from cerite.engine.plan import Plan, Semantics
from cerite.engine.results.match_ids import FILE, ROW
from cerite.engine.results.measures import Measures
from cerite.engine.results.shape import Shown
from cerite.language.queries import SchemaLike, declared
from cerite.pattern.check import check, check_type_column, declared_kinds
from cerite.pattern.check_kinds import ordered_attributes
from cerite.pattern.nodes import Size, of_floats
from cerite.pattern.query import QuerySpec
from cerite.spark.driver.condition_columns import Conditions
from cerite.spark.driver.frame import Frame, ticks, ticks_per_second
from cerite.spark.driver.named_frames import streams_of, union_streams
from cerite.spark.driver.row_filter import RowFilter, row_filter
from cerite.spark.texts import is_text, sights
from cerite.spark.worker.footers import Footers, footers, foreign_type, scan_obstacle
from cerite.spark.worker.job import attributes_across, windows


@dataclass(frozen=True)
class Options:
    """How rows of a DataFrame are events, and when two matches differ: what `match`, `count` and `explain` all take."""

    time: str | None = None
    type: str | None = None
    order_by: str | Sequence[str] = ()
    position: str | None = None
    semantics: Semantics = "valuations"
    schema: SchemaLike | None = None
    time_unit: TimeUnit = "ms"


@dataclass(frozen=True)
class Request:
    """A query about a frame; `type`, `time`, `order_by` and `position` name columns of the frame.

    `unit` is what a time column of plain numbers counts. `sources` are the DataFrames that the frame consists of,
    `carried` are columns that travel although neither the query nor the result needs them.

    Where matches are only counted, nothing of them is shown.
    """

    frame: Frame
    query: QuerySpec
    plan: Plan
    type: str | None
    time: str | None
    order_by: tuple[str, ...]
    position: str | None
    unit: TimeUnit
    counting: bool
    sources: tuple[DataFrame, ...]
    carried: tuple[str, ...] = ()

    @property
    def live(self) -> bool:
        """Whether the rows are a stream that goes on."""
        return self.frame.original.isStreaming

    @cached_property
    def conditions(self) -> Conditions:
        """The query's conditions over the frame."""
        return Conditions(self.frame, self.type)

    @cached_property
    def relevance(self) -> RowFilter:
        """Which rows can matter."""
        return row_filter(self.plan, self.conditions)

    @cached_property
    def ranked(self) -> bool:
        """Whether some window counts events."""
        return any(size.unit == "events" for size in windows(self.plan))

    @property
    def all_rows_counted(self) -> bool:
        """Whether rows that do not matter still have to be seen by Spark, because neighbours or ranks are needed."""
        return self.ranked or (self.relevance.gaps and not self.relevance.every_row)

    @cached_property
    def order(self) -> dict[str, Column]:
        """What orders the events, by name: time, the order columns, the position, else file and row index."""
        named = [name for name in (self.time, *self.order_by, self.position) if name is not None]
        columns = {name: self.frame.column(name) for name in named}
        if not self.order_by and self.position is None and self.frame.row_index is not None:
            file, row = self.frame.row_index
            return columns | {FILE: file, ROW: row}
        if not columns:
            raise StreamError(
                "nothing says in which order the events are",
                hint=Hint("name the columns: ", Setting("time"), ", ", Setting("order_by"), ", ", Setting("position")),
            )
        return columns

    @property
    def clock(self) -> str | None:
        """The column whose values chunks are cut by."""
        window = self.plan.window
        if window is not None and window.attribute is not None:
            return window.attribute
        return self.time if self.time is not None or self.order_by else self.position

    @cached_property
    def footers(self) -> Footers | Rejected:
        """What the footers of the Parquet files say about the clock, or why they cannot be read for it."""
        if self.clock is None:
            return Rejected("no column says when events happen")
        known = scan_obstacle(self.frame.original) or footers(self.frame.original.inputFiles(), self.clock)
        if isinstance(known, Rejected):
            return known
        return foreign_type(known, self.clock, self.frame.types[self.clock]) or known

    @property
    def tick(self) -> Column:
        """The clock as a number."""
        assert self.clock is not None
        return ticks(self.frame.column(self.clock), self.frame.types[self.clock], self.clock)

    @property
    def per_millisecond(self) -> Fraction:
        """How many steps of the time column make a millisecond."""
        return Fraction(ticks_per_second(self.frame.types[self.time], self.unit) if self.time else 1_000, 1_000)

    def width(self, size: Size) -> Fraction:
        """A time or attribute window's width in steps of its column's ticks."""
        name = self.time if size.is_time else size.attribute
        spark = None if name is None else self.frame.types[name]
        width = size.width * (self.per_millisecond if size.is_time else 1)
        if isinstance(spark, ty.DecimalType):
            return Fraction(width * 10**spark.scale)
        return Fraction(of_floats(width)) if isinstance(spark, (ty.FloatType, ty.DoubleType)) else width

    @cached_property
    def in_a_partition(self) -> Column | None:
        """Where no partition value is NULL (or NaN)."""
        every: Column | None = None
        for name in self.plan.partition:
            column = self.frame.column(name)
            known = column.isNotNull()
            if isinstance(self.frame.types[name], (ty.FloatType, ty.DoubleType)):
                known = known & ~fn.isnan(column)
            every = known if every is None else every & known
        return every

    @cached_property
    def selection(self) -> Selection:
        """What SELECT asks for; nothing where matches are only counted."""
        return Selection((), None, ()) if self.counting else Selection.of(self.query)

    @cached_property
    def shown(self) -> tuple[Shown, ...]:
        """The result's columns of events."""
        if self.counting:
            return ()
        shown = self.selection.columns(self.plan, self.frame.top)
        for name in dict.fromkeys(name for each in shown for name in each.attributes):
            self.frame.known(name)
            self.frame.shippable(name)
        return shown

    @cached_property
    def shipped(self) -> tuple[str, ...]:
        """The columns that travel to Python, besides bits and Cerite's own."""
        window = {size.attribute for size in windows(self.plan)} - {None}
        shown = {name for each in self.shown for name in each.attributes}
        across = attributes_across(self.plan)
        named = {
            *self.measures.attributes,
            *window,
            *shown,
            *across,
            *self.plan.partition,
            *self.carried,
            *(name for name in self.order if name in self.frame.names),
        }
        if any(size.is_time for size in windows(self.plan)) and self.time is not None:
            named.add(self.time)
        return tuple(name for name in self.frame.names if name in named)

    @cached_property
    def schema(self) -> ty.StructType:
        """The columns of the result."""
        types = self.frame.types
        fields = [ty.StructField("match", ty.StringType(), False)]
        if self.time is not None:
            fields += [ty.StructField(name, types[self.time], False) for name in ("start_time", "end_time")]
        if self.position is not None:
            fields += [ty.StructField(name, ty.LongType(), False) for name in ("start", "end")]
        fields += [ty.StructField(name, types[name], False) for name in self.plan.partition]
        for each in self.shown:
            event = ty.StructType([ty.StructField(name, types[name]) for name in each.attributes])
            fields.append(ty.StructField(each.column, ty.ArrayType(event, False), False))
        return ty.StructType([*fields, *self._measured])

    @cached_property
    def measures(self) -> Measures:
        """What is computed of every match."""
        return Measures(self.selection.measures, self.plan.automaton.labels, self.time)

    @property
    def _measured(self) -> list[ty.StructField]:
        """The columns of measures, of the types that they have on the events as Spark ships them."""
        if not self.selection.measures:
            return []
        types = self.frame.types
        for name in self.measures.attributes:
            self.frame.known(name)
            self.frame.shippable(name)
        events = ty.StructType([ty.StructField(name, types[name]) for name in self.measures.attributes])
        measured = self.measures.schema(to_arrow_schema(events, timezone="UTC"))
        return [ty.StructField(each.name, from_arrow_type(each.type, prefer_timestamp_ntz=True)) for each in measured]


def make_request(
    data: DataFrame | Mapping[str, DataFrame], source: AnyQuery, options: Options, *, counting: bool = False
) -> Request:
    """A checked request."""
    subject = query(source)
    spec = subject.query
    kinds = declared_kinds(spec, subject.schema, None if options.schema is None else declared(options.schema))
    sources = streams_of(spec, data)
    frame = Frame(union_streams(sources))
    kind = "type" if options.type is None and "type" in frame.names else options.type
    order = (options.order_by,) if isinstance(options.order_by, str) else tuple(options.order_by)
    if frame.original.isStreaming and not order and options.position is None:
        order = ties_of(frame, options.time)
    request = Request(
        frame, spec, subject.plan(options.semantics), kind, options.time, order, options.position,
        checked_unit(options.time_unit), counting, tuple(sources),
    )  # fmt: skip
    try:
        _check_declared(frame, kinds)
        _check(request)
        _refuse_guesses(request, kinds)
    except CeriteError as error:
        raise error.at(spec.source) from None
    return request


def ties_of(frame: Frame, time: str | None) -> tuple[str, ...]:
    """What breaks ties in a live stream where nothing is named: the columns of Kafka's source."""
    if {"partition", "offset"} <= set(frame.names):
        return (*(("topic",) if "topic" in frame.names else ()), "partition", "offset")
    alone = (
        () if time is None else ("; if no two events of a partition have the same time, ", Setting("order_by", time))
    )
    raise StreamError(
        "nothing says which of two events of the same time comes first, and a live stream may be replayed in another "
        "order",
        hint=Hint(
            "name columns that do: ", Setting("order_by"), ", or ", Setting("position"), *alone,
            "; from Kafka, keep the columns `partition` and `offset`",
        ),
    )  # fmt: skip


def _check(request: Request) -> None:
    frame = request.frame
    check_type_column(request.query, request.type, Hint("name it: ", Setting("type")))
    if request.type is None:
        refuse_hidden_types(request.query, frame.names)
    sizes = windows(request.plan)
    measured = [time_of(size, request.time) for size in sizes if size.unit != "events"]
    named = (request.type, request.time, request.position, *request.order_by, *measured, *request.plan.partition)
    for name in filter(None, named):
        frame.known(name)
    check(request.query, frame.schema)
    for name in filter(None, (request.time, *(size.attribute for size in sizes))):
        ticks(frame.column(name), frame.types[name], name)
    if request.position is not None and frame.kinds.get(request.position) != "int":
        raise positions_not_whole(request.position)
    if request.type is not None:
        request.conditions.guard(Guard(frozenset((Test("", None),))))
    _check_names(request)


def _check_declared(frame: Frame, declared: Mapping[str, Kind]) -> None:
    """Refuse columns whose kind is not the declared one."""
    for name, kind in declared.items():
        actual = frame.kinds.get(name)
        if name not in frame.names or isinstance(frame.types[name], ty.NullType) or actual == kind:
            continue
        if (kind, actual) != ("float", "int"):
            raise StreamError(
                f"the DataFrame, column `{name}` holds {frame.types[name].simpleString()}, but it is declared {kind}",
                hint=f"cast the column, or declare it {actual}" if actual else "cast the column",
            )


def _refuse_guesses(request: Request, declared: Mapping[str, Kind]) -> None:
    """Refuse to order text of a text file, where a reader left a column as text because it could not parse it."""
    frame = request.frame
    spans = {
        name: span
        for name, span in (dict.fromkeys(request.order_by) | ordered_attributes(request.query)).items()
        if frame.kinds.get(name) == "string" and name not in declared
    }
    if not spans or request.live:
        return
    if not is_text(frame.original):
        _warn_of_numbers(frame, list(spans))
        return
    for name, odd in sights(frame.df, {name: frame.column(name) for name in spans}).items():
        if odd and odd.keys() != {"text"}:
            hint = (
                f'cast the column, e.g. df.withColumn({name!r}, expr("try_cast({name} AS double)")), or declare it: '
                f"schema={{{name!r}: 'string'}}"
            )
            raise ordered_text(name, odd, spans[name], hint)


def _warn_of_numbers(frame: Frame, names: Sequence[str]) -> None:
    """Warn of columns that others made text, that are compared by order, and that begin with numbers."""
    some = frame.df.limit(SAMPLE)
    for name, odd in sights(some, {name: frame.column(name) for name in names}).items():
        if "number" in odd:
            warn(numbers_as_text(name, replace(odd["number"], where="the DataFrame")))


def _check_names(request: Request) -> None:
    """Refuse a result with two columns that have the same name for Spark."""
    sensitive = request.frame.original.sparkSession.conf.get("spark.sql.caseSensitive", "false") == "true"
    seen: dict[str, str] = {}
    for name in request.schema.names:
        key = name if sensitive else name.lower()
        if key in seen:
            raise StreamError(
                f"the result would have two columns that Spark calls the same: `{seen[key]}` and `{name}`",
                hint="rename the column that PARTITION BY names, or the variable with AS; or list those you want: "
                "SELECT x, y …",
            )
        seen[key] = name
