"""The plans that shuffle: rows in parcels, read by tasks or by Spark; or sorted by Spark, if rows left behind count.

`Shuffle` says who reads and how rows travel, and why not in the ways that would be better.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from cerite.core.rejected import Rejected
from cerite.engine.results.match_ids import FILE
from cerite.spark.driver import parcel_plan, unordered_parquet
from cerite.spark.driver.layout import Layout
from cerite.spark.driver.request import Request
from cerite.spark.driver.shipped_columns import job_of
from cerite.spark.driver.sorted_rows import prepared
from cerite.spark.worker.job import Job
from cerite.spark.worker.task import COUNTS, counting_task, mapped, task

BY_SPARK = Rejected('read="spark" was set')


@dataclass(frozen=True)
class Shuffle:
    """A layout, and how rows get there: why they are not read by the tasks, why not in parcels; None if they are."""

    layout: Layout
    tasks: int
    unread: Rejected | None
    unpacked: Rejected | None

    @property
    def read_by_tasks(self) -> bool:
        """Whether Spark does not read at all."""
        return self.unread is None

    def rows(self, request: Request) -> DataFrame:
        """The rows as Spark first hands them to Python, where it reads."""
        if self.unpacked is not None:
            return prepared(request, self.layout, job_of(request, self.layout))
        return parcel_plan.travelling(request, self.layout)

    def job(self, request: Request) -> Job:
        """What the recognising tasks have to know."""
        job = job_of(request, self.layout)
        numbered = self.read_by_tasks and FILE in request.order  # files have numbers then, however many there are
        return replace(job, files=request.frame.paths) if numbered else job

    def matches(self, request: Request) -> DataFrame:
        """The matches."""
        job = self.job(request)
        return mapped(self._arriving(request, job), task(job, parcels=self.unpacked is None), request.schema)

    def counts(self, request: Request) -> DataFrame:
        """The numbers of matches, task by task."""
        job = self.job(request)
        return mapped(self._arriving(request, job), counting_task(job, parcels=self.unpacked is None), COUNTS)

    def _arriving(self, request: Request, job: Job) -> DataFrame:
        """What the recognising tasks get: parcels, or rows in order."""
        if self.unpacked is not None:
            return prepared(request, self.layout, job)
        if self.read_by_tasks:
            return unordered_parquet.read_parcels(request, self.layout, job, self.tasks)
        return parcel_plan.parcelled(request, self.layout, job)


def shuffle_of(request: Request, layout: Layout, tasks: int, *, by_spark: bool) -> Shuffle:
    """How the rows of a layout travel."""
    unread = BY_SPARK if by_spark else unordered_parquet.obstacle(request, layout)
    return Shuffle(layout, tasks, unread, parcel_plan.obstacle(request))
