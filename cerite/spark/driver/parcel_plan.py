"""The plan in which rows travel in parcels: packed in Python for the tasks they go to, moved by Spark, sorted there.

S&P of the paper is what the tasks do with their parcels; what follows is R-CER per key or T-CER per chunk. A row is
turned into Arrow once, as narrow as Spark can make it, and never sorted by Spark. Invariant: rows of one group are in
one task, which gets all its parcels.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql import types as ty

from cerite.core.rejected import Rejected
from cerite.engine.results.match_ids import FILE
from cerite.spark.driver.layout import Layout, candidates, hot_units
from cerite.spark.driver.placement import placement
from cerite.spark.driver.request import Request
from cerite.spark.driver.shipped_columns import bit_words, inner_name
from cerite.spark.driver.survey import bucket
from cerite.spark.worker.job import Job
from cerite.spark.worker.parcels import PARCELS, Addresses, sender
from cerite.spark.worker.task import mapped

_BUCKET = "cerite_bucket"
_LIMIT = "spark.sql.execution.arrow.maxBytesPerBatch"
MOST_AT_ONCE = 1 << 28  # bytes of parcels that Spark may hand to Python together
_SORTED = (ty.NumericType, ty.DatetimeType, ty.StringType, ty.BinaryType, ty.BooleanType, ty.DayTimeIntervalType)


def obstacle(request: Request) -> Rejected | None:
    """Why rows cannot travel in parcels."""
    if request.all_rows_counted:
        return Rejected("rows that do not travel are counted")
    for name in (*request.plan.partition, *request.order):
        if name in request.frame.names and not isinstance(request.frame.types[name], _SORTED):
            return Rejected(f"`{name}` is {request.frame.types[name].simpleString()}, which only Spark sorts")
    limited = 0 < _limit(request.frame.original.sparkSession) <= MOST_AT_ONCE
    return None if limited else Rejected(f"`{_LIMIT}` does not limit the bytes that Python gets at once")


def _limit(session: SparkSession) -> int:
    """How many bytes Spark hands to Python at once; 0 if it does not know such a limit."""
    try:
        text = session.conf.get(_LIMIT) or ""
    except PySparkException:
        return 0
    size = re.fullmatch(r"(\d+)([kmgt]?)b?", text.lower())
    return int(size[1]) << 10 * " kmgt".index(size[2] or " ") if size else 0


def travelling(request: Request, layout: Layout) -> DataFrame:
    """The rows as Python first gets them."""
    columns = {name: fn.col(inner_name(request, name)) for name in request.shipped}
    columns |= {name: column for name, column in request.order.items() if name not in request.frame.names}
    if len(request.frame.files) == 1:
        columns.pop(FILE, None)  # its number is 0
    columns |= dict(zip(*bit_words(request), strict=True))
    keys = [request.frame.column(name) for name in request.plan.partition]
    if layout.hot is not None:
        columns[_BUCKET] = bucket(keys).cast("short")
    elif keys and not layout.sequence and not layout.cuts and layout.tasks > 1:
        columns[_BUCKET] = fn.pmod(fn.hash(*keys), fn.lit(layout.tasks))
    return candidates(request).select(*(column.alias(inner_name(request, name)) for name, column in columns.items()))


def addresses(request: Request, layout: Layout, columns: Sequence[str]) -> Addresses:
    """Where rows with these columns go."""
    by = _BUCKET if _BUCKET in columns else None
    if layout.hot is not None:
        cuts, (first, tasks) = layout.hot.cuts, hot_units(layout.hot, layout.tasks)
    else:
        cuts, first, tasks = ({0: layout.cuts} if layout.cuts else {}), {0: 0}, tuple(range(layout.tasks))
    return Addresses(tuple(columns), by, request.clock, cuts, first, tasks, placement(layout.tasks))


def parcelled(request: Request, layout: Layout, job: Job) -> DataFrame:
    """The parcels, each with the task that it goes to."""
    rows = travelling(request, layout)
    names = {inner_name(request, name): name for name in (*job.columns, _BUCKET)}
    where = addresses(request, layout, [names[name] for name in rows.columns])
    return exchanged(mapped(rows, sender(job, where), PARCELS), layout)


def exchanged(parcels: DataFrame, layout: Layout) -> DataFrame:
    """The parcels, each moved to its task."""
    return parcels.repartition(layout.tasks, "placement").select("parcel")
