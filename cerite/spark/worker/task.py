"""What runs inside a Spark task: rows in, as Arrow batches in stream order; matches out.

This is where the Spark route meets the local engine: it runs through `BatchMatches`, as every query does, on a source
that gives the prepared rows of the task.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator
from functools import lru_cache

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql.types import StringType, StructField, StructType

from cerite.api.query import BatchMatches
from cerite.data import open_events
from cerite.engine.intake.intake import Columns
from cerite.spark.worker.failures import refusal_first
from cerite.spark.worker.feed import Packs, Run
from cerite.spark.worker.job import Job
from cerite.spark.worker.output import Output

Batches = Iterator[pa.RecordBatch]
COUNTS = StructType([StructField("count", StringType(), False)])


def task(job: Job) -> Callable[[Batches], Batches]:
    """The function for `mapInArrow`."""

    def recognise(batches: Batches) -> Batches:
        yield from recognised(job, batches)

    return recognise


def counting_task(job: Job) -> Callable[[Batches], Batches]:
    """The function for `mapInArrow` that only counts."""

    def count(batches: Batches) -> Batches:
        yield from counted(job, batches)

    return count


def mapped(rows: DataFrame, function: Callable[[Batches], Batches], schema: StructType) -> DataFrame:
    """`mapInArrow`, without what PySpark says about versions of pandas, which is not used here."""

    def settled(batches: Batches) -> Batches:
        yield from refusal_first(function)(batches)
        settle()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return rows.mapInArrow(settled, schema)


@lru_cache(maxsize=1)
def settle() -> None:
    """Once in a worker, after its first task: what is loaded now, Numba above all, is not looked at for garbage again.

    PySpark collects garbage after every task, which otherwise takes longer than a small task.
    """
    if TaskContext.get() is not None:
        gc.freeze()


def recognised(job: Job, batches: Batches) -> Batches:
    """The matches of all groups of a task."""
    packs, output = Packs(job, batches), Output(job)
    while not (run := Run(job, packs)).empty:
        for chunk in BatchMatches(job.plan, run, Columns(), None, None).chunks():
            base, rows = run.kept.whole
            yield from output.batches(chunk, base, rows)


def counted(job: Job, batches: Batches) -> Batches:
    """The number of matches of all groups of a task, as text: it may have any number of digits."""
    packs = Packs(job, batches)
    total = 0
    while not (run := Run(job, packs)).empty:
        total += BatchMatches(job.plan, run, Columns(), None, None).count()
        total -= _before(job, run)
    yield count_batch(total)


def _before(job: Job, run: Run) -> int:
    """The matches that end in what the groups of a run read but do not own: another chunk counts them."""
    overlap = pa.Table.from_batches(run.overlap) if job.owned and run.overlap else None
    if overlap is None:
        return 0
    return BatchMatches(job.plan, open_events(overlap), Columns(), None, None).count()


def count_batch(total: int) -> pa.RecordBatch:
    """A number as a row of a result."""
    return pa.record_batch({"count": [str(total)]})
