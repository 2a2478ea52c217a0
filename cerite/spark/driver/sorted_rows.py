"""The plan in which Spark sorts: rows are hashed to tasks one by one, sorted there, and handed to Python as Arrow.

It is for queries in which rows that Python never sees count as neighbours or for ranks: Spark's windows need them in
order. Rows of all other queries travel in parcels (`parcel_plan.py`). Invariant: rows of a group are in one task, next
to each other, in stream order.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window, WindowSpec
from pyspark.sql import functions as fn

from cerite.spark.driver.cuts import step
from cerite.spark.driver.layout import Layout, by_rank, candidates, hot_units
from cerite.spark.driver.placement import placement
from cerite.spark.driver.request import Request
from cerite.spark.driver.shipped_columns import bit_words, inner_name
from cerite.spark.driver.survey import Hot, bucket
from cerite.spark.worker.job import CHUNK, OWNED, RANK, Cut, Job, Number

_TICK, _OWN, _LAST, _BUCKET, _PLACE = ("cerite_tick", "cerite_own", "cerite_last", "cerite_bucket", "cerite_place")
_CHUNK, _RELEVANT = "cerite_chunk", "cerite_relevant"


def prepared(request: Request, layout: Layout, job: Job) -> DataFrame:
    """The rows that travel to Python, in the tasks and the order in which they do."""
    rows = _selected(request, layout)
    keys = [fn.col(inner_name(request, name)) for name in request.plan.partition]
    unit = [*keys, fn.col(_CHUNK)] if layout.chunked else keys
    order = [fn.asc_nulls_last(inner_name(request, name)) for name in request.order]
    alone = layout.sequence or (layout.chunked and not keys)  # one unit in a task: a sort by time first
    sorting = [] if alone else [fn.asc_nulls_last(column) for column in unit]
    if by_rank(request, layout):  # ranks first: they say where a hot key is cut
        rows = _counted(request, rows, Window.partitionBy(*keys).orderBy(*order))
        rows = rows.withColumn(_TICK, fn.col(inner_name(request, RANK)))
    rows = _placed(request, layout, rows)
    counts = request.all_rows_counted and not by_rank(request, layout)
    if counts:
        place = [fn.col(_PLACE)] if layout.chunked else []  # rows are where the window needs them: no more shuffle
        rows = _counted(request, rows, Window.partitionBy(*place, *unit).orderBy(*order))
    if layout.sequence or not counts:  # else Spark has sorted them for the window
        rows = rows.sortWithinPartitions(*sorting, *order)
    own = [fn.col(inner_name(request, name)) for name in job.columns if name not in (CHUNK, OWNED, RANK)]
    if layout.chunked:
        own += [fn.col(_CHUNK), (fn.col(_CHUNK) == fn.col(_OWN)).alias(_OWN)]
    return rows.select(*own, *([fn.col(inner_name(request, RANK))] if request.ranked else []))


def _selected(request: Request, layout: Layout) -> DataFrame:
    """The columns that travel, the packed bits, and what places the rows."""
    columns = [fn.col(inner_name(request, name)) for name in request.shipped]
    tied = {name: column for name, column in request.order.items() if name not in request.frame.names}
    words, bits = bit_words(request)
    columns += [
        column.alias(inner_name(request, name)) for name, column in (*tied.items(), *zip(words, bits, strict=True))
    ]
    if request.all_rows_counted:
        relevant = request.conditions.column(request.relevance.formula)
        columns.append(fn.coalesce(relevant, fn.lit(False)).alias(_RELEVANT))
    if layout.chunked and not by_rank(request, layout):
        columns.append(request.tick.alias(_TICK))
    if layout.hot is not None:
        columns.append(bucket([request.frame.column(name) for name in request.plan.partition]).alias(_BUCKET))
    return candidates(request).select(*columns)


def _placed(request: Request, layout: Layout, rows: DataFrame) -> DataFrame:
    if not layout.chunked:
        keys = [fn.col(inner_name(request, name)) for name in request.plan.partition]
        return (
            rows.repartition(layout.tasks, *keys)
            if keys and not layout.sequence and layout.tasks > 1
            else rows.repartition(1)
        )
    if layout.hot is None:
        own, last = (step(_TICK, [_end(cut, which) for cut in layout.cuts]) for which in ("own", "read"))
        unit, places = _CHUNK, tuple(range(layout.tasks))
    else:
        own, last = (_by_bucket(layout.hot, which) for which in ("own", "read"))
        first, places = hot_units(layout.hot, layout.tasks)
        cases = (f"WHEN {index} THEN {begin} + {_CHUNK}" for index, begin in first.items())
        unit = f"CASE {_BUCKET} {' '.join(cases)} ELSE {_BUCKET} END"
    numbers = placement(layout.tasks)
    array = f"array({', '.join(str(numbers[place]) for place in places)})"
    rows = rows.withColumns({_OWN: fn.expr(own), _LAST: fn.expr(last)})
    rows = rows.withColumn(_CHUNK, fn.explode(fn.sequence(fn.col(_OWN), fn.col(_LAST))))
    return rows.withColumn(_PLACE, fn.expr(f"{array}[{unit}]")).repartition(layout.tasks, fn.col(_PLACE))


def _end(cut: Cut, which: str) -> Number:
    return cut.own if which == "own" else cut.read


def _by_bucket(hot: Hot, which: str) -> str:
    cases = (f"WHEN {index} THEN {step(_TICK, [_end(cut, which) for cut in cuts])}" for index, cuts in hot.cuts.items())
    return f"CASE {_BUCKET} {' '.join(cases)} ELSE 0 END"


def _counted(request: Request, rows: DataFrame, window: WindowSpec) -> DataFrame:
    """Ranks among all rows; then only the relevant rows and, if gaps count, the first row after each."""
    needed = fn.col(_RELEVANT)
    if request.ranked:
        rows = rows.withColumn(inner_name(request, RANK), fn.row_number().over(window).cast("bigint"))
    if request.relevance.gaps:
        before = fn.lag(_RELEVANT, 1, False).over(window)
        rows = rows.withColumn("cerite_needed", needed | before)
        needed = fn.col("cerite_needed")
    return rows.filter(needed)
