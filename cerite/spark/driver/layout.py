"""How rows are spread over tasks: by key, by chunks of time, hot keys by both, or all in one task.

Invariant: rows of one group (partition value, chunk) are in one task.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from cerite.core.rejected import Rejected
from cerite.spark.driver.choose import Choice
from cerite.spark.driver.cuts import chunk_count, count_cuts, time_cuts
from cerite.spark.driver.placement import packed
from cerite.spark.driver.request import Request
from cerite.spark.driver.survey import BUCKETS, POINTS, Hot, Survey, bins, hot_buckets, survey
from cerite.spark.worker.job import Cut


@dataclass(frozen=True)
class Layout:
    """How rows are spread: over how many tasks, cut where, and which task each unit goes to."""

    tasks: int
    cuts: tuple[Cut, ...] = ()
    hot: Hot | None = None
    sequence: bool = False  # one task in stream order: partitions, if there are any, lie mixed in it

    @property
    def chunked(self) -> bool:
        """Whether rows belong to chunks."""
        return bool(self.cuts) or bool(self.hot and self.hot.cuts)


def laid_out(request: Request, choice: Choice, tasks: int, *, forced: bool) -> tuple[Choice, Layout]:
    """The layout for a choice, after a look at the data if need be; `forced` if the user set the number of tasks."""
    if choice.operator == "sequence":
        return choice, Layout(1, sequence=True)
    window = request.plan.window
    if choice.operator == "partitions":
        if not choice.cut or window is None:
            return choice, Layout(tasks)
        keys = [request.frame.column(name) for name in request.plan.partition]
        least = 1 if forced else 100_000
        by_rank = window.unit == "events"
        width = window.width - 1 if by_rank else request.width(window)
        seen = None if by_rank else _known(request)
        if seen is not None:  # chunks of time with all keys inside are even whatever the keys: no look at the data
            count = tasks if forced else chunk_count(seen.rows, tasks)
            cuts = time_cuts(seen.quantiles, count, width, spaced=not forced)
            if len(cuts) + 1 == count:
                return choice, Layout(count, cuts)
        hot = hot_buckets(candidates(request), keys, None if by_rank else request.tick, width, tasks, least=least)
        return choice, Layout(tasks, hot=hot if hot.cuts and not hot.missing else None)
    assert window is not None
    seen = (_known(request) if window.unit != "events" else None) or survey(candidates(request), request.tick)
    if seen.missing:
        why = f"{choice.why}, but {seen.missing:,} events have no `{request.clock}` to cut by"
        return replace(choice, operator="sequence", why=why), Layout(1, sequence=True)
    count = tasks if forced else chunk_count(seen.rows, tasks)
    if window.unit == "events":
        edges = sorted(set(seen.quantiles))
        sizes = bins(candidates(request), request.tick, edges) if edges else ()
        cuts = count_cuts(edges, sizes, count, int(window.amount)) if edges else ()
    else:
        cuts = time_cuts(seen.quantiles, count, request.width(window), spaced=not forced)
    return choice, Layout(len(cuts) + 1, cuts)


def _known(request: Request) -> Survey | None:
    """What footers say about the data, if they say everything; for floats, they do not say whether some are NaN."""
    if isinstance(request.footers, Rejected) or not all(
        isinstance(group.least, int) for group in request.footers.groups
    ):
        return None
    return Survey(request.footers.rows, 0, request.footers.quantiles(POINTS))


def candidates(request: Request) -> DataFrame:
    """The rows that a task may have to see: in a partition, and relevant unless neighbours or ranks count."""
    rows = request.frame.df
    if request.in_a_partition is not None:
        rows = rows.filter(request.in_a_partition)
    if not request.all_rows_counted and not request.relevance.every_row:
        rows = rows.filter(request.conditions.column(request.relevance.formula))
    return rows


def by_rank(request: Request, layout: Layout) -> bool:
    """Whether hot keys are cut by their events' ranks, because the window counts events."""
    return layout.hot is not None and request.plan.window is not None and request.plan.window.unit == "events"


def hot_units(hot: Hot, tasks: int) -> tuple[dict[int, int], tuple[int, ...]]:
    """The number of every hot bucket's first chunk, other buckets keeping their own; and the task of each number."""
    sizes, first = list(hot.sizes), dict[int, int]()
    for index, cuts in hot.cuts.items():
        share = sizes[index] // (len(cuts) + 1)
        first[index] = len(sizes)
        sizes += [share] * (len(cuts) + 1)
        sizes[index] = 0
    assert len(hot.sizes) == BUCKETS
    return first, packed(sizes, tasks)
