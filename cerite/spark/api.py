"""The matches of a query in a DataFrame: as a DataFrame (`match`), their number (`count`), the first ones (`table`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import DataFrame
from rich.table import Table

from cerite.api.query import AnyQuery
from cerite.api.views import view
from cerite.core.errors import ArgumentError, CeriteWarning, Hint, Setting, StreamError, warn
from cerite.core.rejected import Rejected
from cerite.engine.events.rows import TimeUnit
from cerite.engine.plan import Semantics
from cerite.language.builder import Width
from cerite.language.queries import SchemaLike
from cerite.spark.driver.choose import Choice, choose
from cerite.spark.driver.layout import laid_out
from cerite.spark.driver.live import Late, LiveOptions, LivePlan, live_plan_of
from cerite.spark.driver.ordered_parquet import ParquetPlan, parquet_plan, scanned, scanned_count
from cerite.spark.driver.placement import parallelism
from cerite.spark.driver.request import Options, Request, make_request
from cerite.spark.driver.shuffle import BY_SPARK, Shuffle, shuffle_of
from cerite.spark.worker.failures import refusals

Reading = Literal["auto", "spark"]
_MANY = 8  # a warning is due if there are this many times as many state stores as shards


@dataclass(frozen=True)
class Route:
    """How a request about data at rest is carried out: the operator, and ordered Parquet or else a shuffle."""

    request: Request
    choice: Choice
    ordered: ParquetPlan | Rejected
    shuffle: Shuffle | None

    def matches(self) -> DataFrame:
        """The result."""
        if isinstance(self.ordered, ParquetPlan):
            return scanned(self.request, self.ordered)
        assert self.shuffle is not None
        return self.shuffle.matches(self.request)

    def counts(self) -> DataFrame:
        """The numbers of matches of all tasks, as text."""
        if isinstance(self.ordered, ParquetPlan):
            return scanned_count(self.request, self.ordered)
        assert self.shuffle is not None
        return self.shuffle.counts(self.request)


def routed(request: Request, partitions: int | None, read: Reading) -> Route:
    """The route of a request; looks at footers, and at the data where that decides."""
    choice = choose(request.plan, request.clock)
    tasks = partitions or parallelism(request.frame.original.sparkSession)
    forced = partitions is not None
    ordered = parquet_plan(request, choice, tasks, forced=forced) if read == "auto" else BY_SPARK
    if isinstance(ordered, ParquetPlan):
        return Route(request, choice, ordered, None)
    choice, layout = laid_out(request, choice, tasks, forced=forced)
    return Route(request, choice, ordered, shuffle_of(request, layout, tasks, by_spark=read != "auto"))


class OneTaskWarning(UserWarning):
    """The query runs in one ordered task, whatever the size of the cluster."""


def _warn_of_one_task(choice: Choice) -> None:
    """Warn if everything runs in one task."""
    if choice.operator == "sequence":
        warn(OneTaskWarning(f"one ordered task recognises everything: {choice.why}"))


def match(
    df: DataFrame | Mapping[str, DataFrame],
    query: AnyQuery,
    *,
    time: str | None = None,
    type: str | None = None,
    order_by: str | Sequence[str] = (),
    position: str | None = None,
    semantics: Semantics = "valuations",
    partitions: int | None = None,
    read: Reading = "auto",
    schema: SchemaLike | None = None,
    time_unit: TimeUnit = "ms",
    watermark: Width | None = None,
    shards: int | None = None,
    late: Late = "count",
    deduplicate: str | Sequence[str] = (),
    final: str | None = None,
    metrics: str = "cerite",
) -> DataFrame:
    """The matches of a query in the rows of a DataFrame, one row per match; for a live stream, a stream of matches.

    `query` is CEQL text, a query or a built pattern. `time`, `type`, `order_by` and `position` name columns as in
    `query.run`; rows need not be in any order. A mapping from stream names to DataFrames supplies the streams that FROM
    names. Ties in time are broken by `order_by` and `position`, else by file and row index where the source has them
    (Parquet); ties that remain are an error when the result is read.

    The result has `match` (an id), `start_time` and `end_time` if there is a time, `start` and `end` if there is a
    position, the partition's columns, a column per variable with its events as structs, and the measures that SELECT
    names, which are computed inside the tasks. `partitions` is the number of tasks; by default it follows the session
    and the data. Parquet files in time order are read by the tasks themselves, without a shuffle; `read="spark"` leaves
    reading to Spark. `schema` declares the kinds that columns of the DataFrame must have; `time_unit` is what numbers
    in the time column count.

    A streaming DataFrame needs `watermark`, how far an event may lie behind the latest one ("10 seconds"), and columns
    that break ties. A match is reported when the watermark has passed its last event; an event that comes behind the
    watermark is late: it is counted, and with `late="side"` also reported in a column `late`, which `split` separates
    from the matches. Of events that are equal in the columns `deduplicate` only the first counts. The state is divided
    into `shards`, by default as many as run at once; the checkpoint fixes their number. Once there is a file in the
    folder `final` (`finish` writes one), the stream is over and all that is pending is decided. `metrics` is the name
    under which `progress` finds the numbers.
    """
    how = Options(time, type, order_by, position, semantics, schema, time_unit)
    request = make_request(df, query, how)
    ids = (deduplicate,) if isinstance(deduplicate, str) else tuple(deduplicate)
    options = LiveOptions(watermark, shards, late, ids, final, metrics)
    if request.live:
        live = live_route(request, options, partitions, read)
        _warn_of_one_task(live.choice)
        return live.matches()
    options.refuse_at_rest()
    route = routed(request, partitions, read)
    _warn_of_one_task(route.choice)
    return route.matches()


def live_route(request: Request, options: LiveOptions, partitions: int | None, read: Reading) -> LivePlan:
    """The route of a request about a live stream."""
    for name, given in (("partitions", partitions is not None), ("read", read != "auto")):
        if given:
            raise ArgumentError(
                f"`{name}` is for data at rest, and this DataFrame is a live stream",
                hint=Hint("write ", Setting("shards")) if name == "partitions" else "leave it out",
            )
    plan = live_plan_of(request, options)
    stores = int(plan.session.conf.get("spark.sql.shuffle.partitions") or 0)
    if stores > _MANY * plan.shards:
        text = (
            f"every micro-batch opens {stores} state stores (spark.sql.shuffle.partitions) for {plan.shards} shards; "
            f"set it to {plan.shards} before the query starts for the first time: a checkpoint fixes it"
        )
        warn(CeriteWarning(text))
    return plan


def count(
    df: DataFrame | Mapping[str, DataFrame],
    query: AnyQuery,
    *,
    time: str | None = None,
    type: str | None = None,
    order_by: str | Sequence[str] = (),
    position: str | None = None,
    semantics: Semantics = "valuations",
    partitions: int | None = None,
    read: Reading = "auto",
    schema: SchemaLike | None = None,
    time_unit: TimeUnit = "ms",
) -> int:
    """The exact number of matches that `match` would give, however large; nothing is enumerated if the query allows."""
    how = Options(time, type, order_by, position, semantics, schema, time_unit)
    request = make_request(df, query, how, counting=True)
    if request.live:
        raise StreamError(
            "a live stream does not end, so its matches cannot be counted",
            hint="take match(…) and count its rows: .groupBy().count(), or batch.count() in foreachBatch; "
            "cerite.spark.progress(query) reports the matches of every micro-batch",
        )
    route = routed(request, partitions, read)
    _warn_of_one_task(route.choice)
    with refusals():
        return sum(int(row[0]) for row in route.counts().collect())


def table(matches: DataFrame, n: int = 10, *, time: str | None = None, type: str = "type") -> Table:
    """The first n rows of what `match` gave as a Rich table, with their times and the values of their events.

    `time` and `type` name the columns of the events as in `match`: a value that the match itself shows, and the type of
    events that all have the same one, are not repeated for every event.
    """
    rows = [row.asDict(recursive=True) for row in matches.limit(n).collect()]
    return view(rows, matches.columns, time=time, type=type).rich()
