"""The plan in which the tasks read Parquet themselves, in whatever order it lies, and send on what matters in parcels.

Used where the DataFrame is nothing but a scan of Parquet, its footers are known, and rows are spread by time or all go
to one task: then Spark neither decodes rows nor hashes them. Invariant: the parcels are those that Spark's own rows
would give.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame

from cerite.core.rejected import Rejected
from cerite.engine.results.match_ids import FILE, ROW
from cerite.spark.driver.condition_columns import BitConditions
from cerite.spark.driver.cuts import chunk_count
from cerite.spark.driver.layout import Layout
from cerite.spark.driver.ordered_parquet import columns_read, foreign_column
from cerite.spark.driver.parcel_plan import addresses, exchanged
from cerite.spark.driver.parcel_plan import obstacle as parcel_obstacle
from cerite.spark.driver.request import Request
from cerite.spark.driver.row_filter import row_filter
from cerite.spark.worker.footers import Footers
from cerite.spark.worker.job import Job, unary_tests
from cerite.spark.worker.parcels import PARCELS
from cerite.spark.worker.task import mapped
from cerite.spark.worker.unordered_parquet import Shares, reader


def obstacle(request: Request, layout: Layout) -> Rejected | None:
    """Why the tasks cannot read for themselves."""
    why = parcel_obstacle(request)
    if why is not None:
        return why
    if isinstance(request.footers, Rejected):
        return request.footers
    if layout.hot is not None or not (layout.cuts or layout.tasks == 1):
        return Rejected("rows are spread by key")
    return foreign_column(request, request.footers)


def read_parcels(request: Request, layout: Layout, job: Job, tasks: int) -> DataFrame:
    """The parcels, each in its task; the row groups are shared out among the reading tasks."""
    known = request.footers
    assert isinstance(known, Footers)
    shares = _shares(known, tasks)
    tied = tuple(name for name in (FILE, ROW) if name in request.order)
    numbered = request.counting and ROW in request.order
    where = replace(addresses(request, layout, (*request.shipped, *tied, *job.words)), numbered=numbered)
    matter = row_filter(request.plan, BitConditions(request.plan)).formula
    what = Shares(job, where, known, shares, columns_read(request), unary_tests(request.plan), request.type, matter)
    numbers = request.frame.original.sparkSession.range(0, len(shares), 1, len(shares))
    return exchanged(mapped(numbers, reader(what), PARCELS), layout)


def _shares(footers: Footers, tasks: int) -> tuple[tuple[int, ...], ...]:
    """The row groups in even shares, in the order of files and rows: rows of one share lie before those of the next."""
    groups = footers.groups
    places = sorted(range(len(groups)), key=lambda place: (groups[place].file, groups[place].index))
    count = max(1, min(len(groups), chunk_count(footers.rows, tasks)))
    shares: list[list[int]] = [[] for _ in range(count)]
    before = 0
    for place in places:
        middle = before + groups[place].rows / 2
        shares[min(int(middle * count / footers.rows), count - 1)].append(place)
        before += groups[place].rows
    return tuple(tuple(share) for share in shares if share) or ((),)
