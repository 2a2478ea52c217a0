"""A live stream as a plan of Spark: watermark, conditions as bits, packing, shards, and what they report.

    rows ─ withWatermark ─ filter, bits ─ mapInArrow: pack ─ transformWithState: one LiveRun a shard ─ mapInArrow: rows

The operators are those of data at rest: R-CER per key under PARTITION BY, T-CER over chunks of time for a window
without partition, one shard otherwise. Irrelevant rows are filtered out behind the watermark, so that they still move
time; where neighbours or ranks count nothing is filtered.

Invariant: names, ids and values of the result are those of data at rest, whatever the number of shards and the cut into
micro-batches. What fixes the meaning of the state is in `LiveJob.identity`, and is compared when a checkpoint is read.
"""

from __future__ import annotations

import math
import os
import re
import warnings
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, reduce
from typing import Literal

from pyspark.sql import Column, DataFrame, GroupedData, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql import types as ty

from cerite.api.stream import one_of
from cerite.core.errors import ArgumentError, Hint, Setting, StreamError
from cerite.core.extras import load
from cerite.language.builder import Width, duration
from cerite.spark.driver.choose import Choice, choose_live
from cerite.spark.driver.frame import Frame, ticks
from cerite.spark.driver.placement import parallelism, placement
from cerite.spark.driver.request import Request
from cerite.spark.driver.shipped_columns import bit_words, inner_name
from cerite.spark.worker.live_job import (
    COUNTS,
    FINAL,
    GAUGES,
    PACKED,
    PLACEMENT,
    REPORTS,
    SHARD,
    SOURCE,
    Chunking,
    LiveJob,
    ShardColumns,
)
from cerite.spark.worker.packing import packer, unpacker
from cerite.spark.worker.task import mapped

Late = Literal["count", "side"]
LATE_COLUMN = "late"
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_DELAY = "spark.watermarkDelayMs"  # how Spark marks a column that has a watermark
_CLOCK = "cerite_clock"


@dataclass(frozen=True)
class LiveOptions:
    """The options of `match` that are for live streams only; `match` describes them."""

    watermark: Width | None = None
    shards: int | None = None
    late: Late = "count"
    deduplicate: tuple[str, ...] = ()
    final: str | None = None
    metrics: str = "cerite"

    def refuse_at_rest(self) -> None:
        """Refuse what has no effect on data at rest."""
        for name, value in vars(LiveOptions()).items():
            if getattr(self, name) != value:
                raise ArgumentError(
                    f"`{name}` is for live streams, and this DataFrame is data at rest",
                    hint="leave it out" if name != "deduplicate" else "drop duplicates first: df.dropDuplicates([…])",
                )


@dataclass(frozen=True)
class LivePlan:
    """How a live stream is read."""

    request: Request
    options: LiveOptions

    @cached_property
    def choice(self) -> Choice:
        """The operator."""
        return choose_live(self.request.plan, self.request.clock, self.request.time)

    @cached_property
    def shards(self) -> int:
        """How many shards there are."""
        given = self.options.shards
        if self.choice.operator == "sequence":
            if given not in (None, 1):
                raise ArgumentError(f"this query runs in one shard: {self.choice.why}", hint="leave out `shards`")
            return 1
        if given is not None and not (type(given) is int and 0 < given <= 10_000):
            raise ArgumentError(f"`shards` is a number from 1 to 10,000, not {given!r}")
        return given or parallelism(self.session)

    @property
    def session(self) -> SparkSession:
        """The stream's session."""
        return self.request.frame.original.sparkSession

    @cached_property
    def delay(self) -> Fraction:
        """How far an event may lie behind the greatest time seen, in milliseconds."""
        request, given = self.request, self.options.watermark
        assert request.time is not None
        if given is None:
            marked = request.frame.original.schema.fields
            known = {field.name: field.metadata.get(_DELAY) for field in marked}.get(request.time)
            if known is None:
                raise StreamError(
                    "a live stream needs a watermark: how far an event may lie behind the latest one",
                    hint=Hint("name it: ", Setting("watermark", "10 seconds")),
                )
            return Fraction(known)
        return duration(given, "watermark").width

    @cached_property
    def delay_ticks(self) -> Fraction:
        """The same in steps of the time column."""
        return self.delay * self._per_millisecond

    @cached_property
    def _per_millisecond(self) -> Fraction:
        spark = self.request.frame.types[str(self.request.time)]
        scale = 10**spark.scale if isinstance(spark, ty.DecimalType) else 1
        return self.request.per_millisecond * scale

    @cached_property
    def chunking(self) -> Chunking | None:
        """T-CER's chunks: some windows long, so that reading the overlap costs a quarter at most."""
        window = self.request.plan.window
        if self.choice.operator != "chunks" or window is None:
            return None
        second = math.ceil(1_000 * self._per_millisecond)
        return Chunking.of(math.ceil(self.request.width(window)), math.ceil(self.delay_ticks), second)

    @cached_property
    def live_job(self) -> LiveJob:
        """What the workers have to know."""
        request = self.request
        words, _ = bit_words(request)
        shards = ShardColumns(
            columns=request.shipped,
            order=tuple(request.order),
            time=str(request.time),
            position=request.position,
            shown=request.shown,
            measures=request.selection.measures,
        )
        return LiveJob.of(
            request.plan, self.choice.operator, self.chunking, shards,
            arriving=(*request.shipped, *words, SOURCE, PLACEMENT, FINAL), placement=placement(self.shards),
            sources=len(request.sources), delay=self.delay_ticks, per_millisecond=self._per_millisecond,
            unit=request.unit, deduplicate=self.options.deduplicate,
            side=self.options.late == "side", identity=self._identity,
            types={name: request.frame.types[name].simpleString() for name in request.shipped},
        )  # fmt: skip

    @property
    def _identity(self) -> dict[str, str]:
        request, query = self.request, self.request.query
        return {
            "pattern": str(query.where), "SELECT": ", ".join(request.plan.variables),
            "selection strategy": request.plan.strategy, "window": str(request.plan.window or ""),
            "PARTITION BY": ", ".join(request.plan.partition), "CONSUME BY": request.plan.consume,
            "SUPPRESS": str(request.plan.suppress or ""),
            "semantics": request.plan.semantics, "time column": request.time or "", "type column": request.type or "",
            "position column": request.position or "", "time unit": request.unit,
            "order of events": ", ".join(request.order), "watermark": f"{self.delay} milliseconds",
            "`deduplicate`": ", ".join(self.options.deduplicate),
            "number of streams": str(len(request.sources)), "division of time": str(self.chunking or ""),
            "number of shards": str(self.shards),
        }  # fmt: skip

    @cached_property
    def schema(self) -> ty.StructType:
        """The columns of the result; if it has late events as well as matches, a row has the columns of one of them."""
        schema = self.request.schema
        if self.options.late != "side":
            return schema
        fields = [ty.StructField(each.name, each.dataType) for each in schema.fields]
        types = self.request.frame.types
        event = ty.StructType([ty.StructField(name, types[name]) for name in self.request.frame.top])
        late_by = _difference(types[str(self.request.time)])
        late = ty.StructType().add("event", event).add("reason", ty.StringType()).add("late_by", late_by)
        return ty.StructType([*fields, ty.StructField(LATE_COLUMN, late)])

    # ------------------------------------------------------------ the pipeline
    def matches(self) -> DataFrame:
        """The result."""
        live = self.live_job
        packed = mapped(self.prepared(), packer(live), PACKED)
        reports = _shards(packed, live)
        sums = [fn.coalesce(fn.sum(name), fn.lit(0)).alias(name) for name in (*COUNTS, *GAUGES)]
        largest = fn.coalesce(fn.max("state_bytes"), fn.lit(0)).alias("largest_state_bytes")
        reports = reports.observe(self.options.metrics, *sums, largest, fn.min("watermark").alias("watermark"))
        reports = reports.filter(fn.col("kind") != SHARD).select("kind", "payload")
        return mapped(reports, unpacker(self.schema, list(self.request.frame.top), side=live.side), self.schema)

    def prepared(self) -> DataFrame:
        """The rows that travel to Python: relevant ones, with bits, source and shard."""
        request = self.request
        rows = reduce(DataFrame.union, [self._watched(number, each) for number, each in enumerate(self._aligned())])
        rows = rows.observe(f"{self.options.metrics} events", fn.count(fn.lit(1)).alias("events"))
        if request.in_a_partition is not None:
            rows = rows.filter(request.in_a_partition)
        if not request.all_rows_counted and not request.relevance.every_row:
            rows = rows.filter(request.conditions.column(request.relevance.formula))
        columns = [fn.col(inner_name(request, name)) for name in request.shipped]
        words, bits = bit_words(request)
        columns += [column.alias(inner_name(request, name)) for name, column in zip(words, bits, strict=True)]
        placed = self._placement().alias("cerite_placement")
        rows = rows.select(*columns, fn.col("cerite_source"), placed, fn.lit(False).alias("cerite_final"))
        return rows if self.options.final is None else rows.union(self._closing(rows.schema))

    def _aligned(self) -> list[DataFrame]:
        """The sources, each with all columns of all of them."""
        whole = self.request.frame.original.schema
        if len(self.request.sources) == 1:
            return list(self.request.sources)
        aligned = []
        for source in self.request.sources:
            known = set(source.columns)
            columns = [fn.col(_quoted(each.name)) if each.name in known else fn.lit(None) for each in whole.fields]
            typed = zip(columns, whole.fields, strict=True)
            aligned.append(source.select(*(column.cast(each.dataType).alias(each.name) for column, each in typed)))
        return aligned

    def _watched(self, number: int, source: DataFrame) -> DataFrame:
        """A source under its watermark; the time of any type as Spark's watermark wants it, in microseconds."""
        request = self.request
        assert request.time is not None
        spark, column = request.frame.types[request.time], request.frame.column(request.time)
        if not isinstance(spark, ty.TimestampType):
            column = _instant(ticks(column, spark, request.time), self._per_millisecond)
        rows = Frame(source).df.withColumns({_CLOCK: column, "cerite_source": fn.lit(number)})
        return rows.withWatermark(_CLOCK, f"{math.ceil(self.delay)} milliseconds")

    def _placement(self) -> Column:
        """The number that stands for the row's shard; under T-CER the packer finds it."""
        numbers = self.live_job.placement
        if self.choice.operator != "partitions" or self.shards == 1:
            return fn.lit(numbers[0])
        keys = [_plain_zero(self.request, name) for name in self.request.plan.partition]
        shard = fn.pmod(fn.hash(*keys), fn.lit(self.shards))
        return fn.element_at(fn.array(*(fn.lit(number) for number in numbers)), shard + 1)

    def _closing(self, schema: ty.StructType) -> DataFrame:
        """A row as soon as there is a file in the folder, which says that the stream is over."""
        assert self.options.final is not None
        ready(self.session, self.options.final)
        nothing = [fn.lit(None).cast(each.dataType).alias(each.name) for each in schema.fields[:-1]]
        return self.session.readStream.text(self.options.final).select(*nothing, fn.lit(True).alias("cerite_final"))


def live_plan_of(request: Request, options: LiveOptions) -> LivePlan:
    """A checked plan."""
    _check_spark(request.frame.original.sparkSession)
    if request.time is None:
        raise StreamError("a live stream needs a time column", hint=Hint("name it: ", Setting("time")))
    one_of("late", options.late, ("count", "side"))
    side = request.frame.top if options.late == "side" else ()
    for name in (*options.deduplicate, *side):
        request.frame.known(name)
        request.frame.shippable(name)
    plan = LivePlan(replace(request, carried=(*options.deduplicate, *side)), options)
    if options.late == "side" and LATE_COLUMN in {name.lower() for name in request.schema.names}:
        raise StreamError("the result has a column `late` already", hint="rename the variable: … AS other")
    _ = plan.delay, plan.shards
    return plan


def _check_spark(session: SparkSession) -> None:
    """Refuse a Spark that cannot hold state for Python, and choose the state store that can."""
    if not hasattr(GroupedData, "transformWithState"):
        raise StreamError("live streams need PySpark 4.1 or later", hint="pip install --upgrade 'cerite[spark]'")
    load("google.protobuf")
    if session.conf.get(_PROVIDER, "") != _ROCKS:
        try:
            session.conf.set(_PROVIDER, _ROCKS)
        except Exception as error:
            raise StreamError(
                "live streams keep their state in RocksDB, and this session does not let its setting change",
                hint=f"start the session with {_PROVIDER}={_ROCKS}",
            ) from error


def _shards(packed: DataFrame, live: LiveJob) -> DataFrame:
    from cerite.spark.worker.shard import ShardProcessor

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about versions of pandas, which is not used here
        return packed.groupBy("placement").transformWithState(ShardProcessor(live), REPORTS, "Append", "EventTime")


def ready(session: SparkSession, folder: str) -> None:
    """Make the folder, so that it can be watched."""
    if re.match(r"\w+:", folder) is None:
        os.makedirs(folder, exist_ok=True)
    else:
        session.range(0).selectExpr("CAST(id AS string)").write.mode("append").text(folder)


def finish(session: SparkSession, folder: str) -> None:
    """Declare streams that watch the folder to be over: the next micro-batch of each decides all that is pending."""
    session.range(1).selectExpr("'the stream is over'").coalesce(1).write.mode("append").text(folder)


def _instant(tick: Column, per_millisecond: Fraction) -> Column:
    """A number of ticks as a timestamp; NULL, which does not move the watermark, beyond what timestamps hold."""
    micros = Fraction(1_000) / per_millisecond
    value = fn.floor(tick.cast("decimal(38,6)") * fn.lit(micros.numerator) / fn.lit(micros.denominator))
    small = fn.when(value.between(fn.lit(-(10**17)), fn.lit(10**17)), value.cast("bigint"))
    return fn.timestamp_micros(small)


def _plain_zero(request: Request, name: str) -> Column:
    """A key column as it is hashed: -0.0 becomes 0.0."""
    column = request.frame.column(name)
    return column + fn.lit(0.0) if isinstance(request.frame.types[name], (ty.FloatType, ty.DoubleType)) else column


def _difference(spark: ty.DataType) -> ty.DataType:
    """The type of a difference of times."""
    if isinstance(spark, (ty.TimestampType, ty.TimestampNTZType, ty.DateType)):
        return ty.DayTimeIntervalType()
    return ty.DoubleType() if isinstance(spark, (ty.FloatType, ty.DoubleType, ty.DecimalType)) else ty.LongType()


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
