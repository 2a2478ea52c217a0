"""Recognition on Parquet that is in time order: no shuffle, no sort, no scan by Spark.

Each task reads the row groups of its own chunk, plus the window before it, with PyArrow, and hands them to the local
engine as they lie in the file: T-CER with Spark as the scheduler. Partitions need no shuffle either, because a chunk
has all events of its stretch of time. Used where the DataFrame is nothing but a scan of Parquet files whose footers
show them in order, and where a match is decided inside a window, or everything runs in one task anyway.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pyspark.sql import DataFrame

from cerite.core.rejected import Rejected
from cerite.engine.events.rows import Columns
from cerite.engine.results.match_ids import FILE
from cerite.predicate.formula import attributes
from cerite.spark.driver.choose import Choice
from cerite.spark.driver.cuts import SPAN, chunk_count, reach
from cerite.spark.driver.request import Request
from cerite.spark.worker.footers import Footers, foreign_type
from cerite.spark.worker.job import Cut, Job, unary_tests
from cerite.spark.worker.ordered_parquet import OrderedParquet, counting_task, stretch_task
from cerite.spark.worker.task import COUNTS, mapped


@dataclass(frozen=True)
class ParquetPlan:
    """Footers in order, and the chunks that tasks read."""

    footers: Footers
    cuts: tuple[Cut, ...]


def parquet_plan(request: Request, choice: Choice, tasks: int, *, forced: bool) -> ParquetPlan | Rejected:
    """The plan without a shuffle, or why there is none."""
    if request.time is None or request.clock != request.time:
        return Rejected("the order of events is not that of one time column")
    counted = request.plan.window is not None and request.plan.window.unit == "events"
    if choice.operator == "partitions" and (counted or not choice.cut):
        return Rejected("partitions without a window over time are gathered by key")
    footers = request.footers
    if isinstance(footers, Rejected):
        return footers
    why = footers.disorder or foreign_column(request, footers)
    if why is not None:
        return why
    if choice.operator == "sequence":
        return ParquetPlan(footers, ())
    count = tasks if forced else chunk_count(footers.rows, tasks)
    return ParquetPlan(footers, _cuts(request, footers, count, spaced=not forced))


def scanned(request: Request, plan: ParquetPlan) -> DataFrame:
    """The matches."""
    return mapped(_chunks(request, plan), stretch_task(stretches(request, plan)), request.schema)


def scanned_count(request: Request, plan: ParquetPlan) -> DataFrame:
    """The numbers of matches, chunk by chunk."""
    return mapped(_chunks(request, plan), counting_task(stretches(request, plan)), COUNTS)


def _chunks(request: Request, plan: ParquetPlan) -> DataFrame:
    chunks = len(plan.cuts) + 1
    return request.frame.original.sparkSession.range(0, chunks, 1, chunks).toDF("chunk")


def stretches(request: Request, plan: ParquetPlan) -> OrderedParquet:
    """What the tasks have to know."""
    window = request.plan.window
    timed = window is not None and window.unit != "events"
    ids = () if request.counting else tuple(request.order)
    sort = () if FILE in request.order else tuple(request.order)
    job = Job(
        plan=request.plan, columns=columns_read(request), tests=0, unit=(), order=sort or ids,
        keys=request.plan.partition, time=request.time, position=request.position, shown=request.shown,
        window=(request.time or "", window) if window is not None and timed else None, owned=True,
        files=request.frame.paths, root=request.frame.root, measures=request.selection.measures,
    )  # fmt: skip
    return OrderedParquet(job, Columns(request.type, request.time, unit=request.unit), plan.footers, plan.cuts, sort)


def foreign_column(request: Request, footers: Footers) -> Rejected | None:
    """A needed column that Spark reads as another type than the files have."""
    types = request.frame.types
    return next((why for name in columns_read(request) if (why := foreign_type(footers, name, types[name]))), None)


def columns_read(request: Request) -> tuple[str, ...]:
    """The columns that are read: those that would travel, and those that conditions look at."""
    tests = [attributes(request.conditions.test(test)) for test in unary_tests(request.plan)]
    named = {request.type, *request.shipped, *(name for each in tests for name in each)}
    return tuple(name for name in request.frame.names if name in named)


def _cuts(request: Request, footers: Footers, count: int, *, spaced: bool) -> tuple[Cut, ...]:
    """Even chunks: cut at row groups where there are many, else inside them."""
    window = request.plan.window
    assert window is not None
    least = np.array([group.least for group in footers.groups])
    before = np.concatenate([[0], np.cumsum([group.rows for group in footers.groups])])
    cuts: list[Cut] = []
    last = footers.groups[0].least if footers.groups else 0
    for k in range(1, count if footers.groups else 0):
        place = k * before[-1] / count
        index = int(np.searchsorted(before, place, side="right")) - 1
        group = footers.groups[index]
        own = group.least
        if len(footers.groups) < 4 * count:
            share = (place - before[index]) / group.rows
            own = type(own)(group.least + (group.greatest - group.least) * share)
        if own <= last:
            continue
        if window.unit == "events":
            ahead = int(np.searchsorted(least, own))  # groups that begin before: the last may reach over the cut
            enough = [j for j in range(ahead) if before[ahead - 1] - before[j] >= window.amount - 1]
            read = footers.groups[enough[-1] if enough else 0].least
        else:
            width = request.width(window)
            if spaced and own - last < SPAN * width:
                continue
            read = reach(own, width)
        cuts.append(Cut(own, read))
        last = own
    return tuple(cuts)
