"""What runs inside a Spark task: rows in, as Arrow batches in stream order; matches out.

This is where the Spark route meets the local engine: a plan is bound to the prepared rows of the task and run over
them.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable
from functools import lru_cache

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql.types import StringType, StructField, StructType

from cerite.engine.bind import bind
from cerite.engine.events.rows import Columns
from cerite.engine.run import count, find
from cerite.spark.worker import Batches
from cerite.spark.worker.arrivals import arrived
from cerite.spark.worker.failures import refusal_first
from cerite.spark.worker.feed import Packs, TaskRows
from cerite.spark.worker.job import Job
from cerite.spark.worker.owned_matches import Output

COUNTS = StructType([StructField("count", StringType(), False)])


def task(job: Job, *, parcels: bool = False) -> Callable[[Batches], Batches]:
    """The function for `mapInArrow`; what comes in are parcels, or rows in order."""

    def recognise(batches: Batches) -> Batches:
        yield from recognised(job, arrived(job, batches) if parcels else batches)

    return recognise


def counting_task(job: Job, *, parcels: bool = False) -> Callable[[Batches], Batches]:
    """The function for `mapInArrow` that only counts."""

    def count(batches: Batches) -> Batches:
        yield from counted(job, arrived(job, batches) if parcels else batches)

    return count


def mapped(rows: DataFrame, function: Callable[[Batches], Batches], schema: StructType | str) -> DataFrame:
    """`mapInArrow`, without PySpark's warnings about versions of pandas, which is not used here."""

    def settled(batches: Batches) -> Batches:
        yield from refusal_first(function)(batches)
        settle()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return rows.mapInArrow(settled, schema)


@lru_cache(maxsize=1)
def settle() -> None:
    """Once per worker, after its first task: exempt what is loaded by now, Numba above all, from garbage collection.

    PySpark collects garbage after every task, which would otherwise take longer than a small task.
    """
    if TaskContext.get() is not None:
        gc.freeze()


def clock(job: Job) -> Columns:
    """The columns, with the time if one task has the whole stream: then any event, not just a group's, ends windows."""
    window = job.plan.deciding
    whole = job.plan.late and not job.unit and window is not None and window.attribute == job.time
    return Columns(time=job.time) if whole else Columns()


def recognised(job: Job, batches: Batches) -> Batches:
    """The matches of all groups of a task."""
    packs, output = Packs(job, batches), Output(job)
    while not (rows := TaskRows(job, packs)).empty:
        for chunk in find(bind(job.plan, rows.schema, clock(job)), rows.batches()):
            yield from output.batches(chunk, *rows.buffer.whole)


def counted(job: Job, batches: Batches) -> Batches:
    """The number of matches of all groups of a task, as text: it may have any number of digits."""
    packs = Packs(job, batches)
    total = 0
    while not (rows := TaskRows(job, packs)).empty:
        total += count(bind(job.plan, rows.schema, clock(job)), rows.batches())
        total -= _before(job, rows)
    yield count_batch(total)


def _before(job: Job, rows: TaskRows) -> int:
    """The matches that end in what the groups of a run read but do not own: another chunk counts them."""
    overlap = pa.Table.from_batches(rows.overlap) if job.owned and rows.overlap else None
    if overlap is None:
        return 0
    return count(bind(job.plan, overlap.schema, Columns()), overlap.to_batches())


def count_batch(total: int) -> pa.RecordBatch:
    """A number as a row of a result."""
    return pa.record_batch({"count": [str(total)]})
