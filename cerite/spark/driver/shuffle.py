"""The plans that shuffle: relevant rows, hashed to tasks, sorted there, and handed to Python as Arrow.

S&P of the paper is the sort; what follows is R-CER per key or T-CER per chunk. Invariant: rows of one group (partition
value, chunk) are in one task, next to each other and in stream order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as fn

from cerite.engine.match_ids import FILE
from cerite.spark.driver.choose import Choice
from cerite.spark.driver.cuts import chunk_count, count_cuts, step, time_cuts
from cerite.spark.driver.placement import packed, placement
from cerite.spark.driver.request import Request
from cerite.spark.driver.survey import BUCKETS, POINTS, Hot, Survey, bins, bucket, hot_buckets, survey
from cerite.spark.worker.footers import Rejected
from cerite.spark.worker.job import (
    BITS,
    CHUNK,
    GROUP,
    OWNED,
    RANK,
    WORD,
    Cut,
    Job,
    Number,
    task_plan,
    unary_tests,
)
from cerite.spark.worker.task import COUNTS, counting_task, mapped, task

_TICK, _OWN, _LAST, _BUCKET, _PLACE = ("cerite_tick", "cerite_own", "cerite_last", "cerite_bucket", "cerite_place")
_CHUNK, _RELEVANT = "cerite_chunk", "cerite_relevant"


@dataclass(frozen=True)
class Layout:
    """How rows are spread: over how many tasks, cut where, and which tasks the units go to."""

    tasks: int
    cuts: tuple[Cut, ...] = ()
    hot: Hot | None = None
    sequence: bool = False  # one task in stream order: partitions, if there are any, lie mixed in it

    @property
    def chunked(self) -> bool:
        """Whether rows belong to chunks."""
        return bool(self.cuts) or bool(self.hot and self.hot.cuts)


def laid_out(request: Request, choice: Choice, tasks: int, *, forced: bool) -> tuple[Choice, Layout]:
    """The layout for a choice, after a look at the data where that decides it; `forced` is a number the user named."""
    if choice.operator == "sequence":
        return choice, Layout(1, sequence=True)
    rows = _candidates(request)
    window = request.plan.window
    if choice.operator == "partitions":
        if not choice.cut or window is None:
            return choice, Layout(tasks)
        keys = [request.frame.column(name) for name in request.plan.partition]
        least = 1 if forced else 100_000
        by_rank = window.unit == "events"
        width = window.width - 1 if by_rank else request.width(window)
        hot = hot_buckets(rows, keys, None if by_rank else request.tick, width, tasks, least=least)
        return choice, Layout(tasks, hot=hot if hot.cuts and not hot.missing else None)
    assert window is not None
    seen = (_known(request) if window.unit != "events" else None) or survey(rows, request.tick)
    if seen.missing:
        why = f"{choice.why}, but {seen.missing:,} events have no `{request.clock}` to cut by"
        return replace(choice, operator="sequence", why=why), Layout(1, sequence=True)
    count = tasks if forced else chunk_count(seen.rows, tasks)
    if window.unit == "events":
        edges = sorted(set(seen.quantiles))
        cuts = count_cuts(edges, bins(rows, request.tick, edges), count, int(window.amount)) if edges else ()
    else:
        cuts = time_cuts(seen.quantiles, count, request.width(window), spaced=not forced)
    return choice, Layout(len(cuts) + 1, cuts)


def _known(request: Request) -> Survey | None:
    """What footers tell of the data, if they tell all: of floats they do not say whether some are NaN."""
    if isinstance(request.footers, Rejected) or not all(
        isinstance(group.least, int) for group in request.footers.groups
    ):
        return None
    return Survey(request.footers.rows, 0, request.footers.quantiles(POINTS))


def shuffled(request: Request, layout: Layout) -> DataFrame:
    """The matches."""
    job = job_of(request, layout)
    return mapped(prepared(request, layout, job), task(job), request.schema)


def shuffled_count(request: Request, layout: Layout) -> DataFrame:
    """The numbers of matches, task by task."""
    job = job_of(request, layout)
    return mapped(prepared(request, layout, job), counting_task(job), COUNTS)


def job_of(request: Request, layout: Layout) -> Job:
    """What the tasks have to know."""
    tests = unary_tests(request.plan)
    keys = request.plan.partition
    unit = () if layout.sequence else (*keys, CHUNK) if layout.chunked else keys
    plan = task_plan(request.plan, request.time, request.per_millisecond)
    if not layout.sequence:
        plan = replace(plan, partition=(GROUP,) if unit else ())
    own = (*((CHUNK, OWNED) if layout.chunked else ()), *((RANK,) if request.ranked else ()))
    words = tuple(f"{BITS}{word}" for word in range(-(-len(tests) // WORD)))
    tied = tuple(name for name in request.order if name not in request.frame.names)
    window = plan.window
    return Job(
        plan=plan, columns=(*request.shipped, *tied, *words, *own), tests=len(tests), unit=unit,
        order=tuple(request.order), keys=keys, time=request.time, position=request.position, shown=request.shown,
        window=None if window is None or window.attribute is None else (window.attribute, window),
        owned=layout.chunked, files=request.frame.files if FILE in request.order else (),
        root=request.frame.root if FILE in request.order else "", measures=request.selection.measures,
    )  # fmt: skip


def prepared(request: Request, layout: Layout, job: Job) -> DataFrame:
    """The rows that travel to Python, in the tasks and the order in which they do."""
    rows = _selected(request, layout)
    keys = [fn.col(inner_name(request, name)) for name in request.plan.partition]
    unit = [*keys, fn.col(_CHUNK)] if layout.chunked else keys
    order = [fn.asc_nulls_last(inner_name(request, name)) for name in request.order]
    alone = layout.sequence or (layout.hot is None and layout.chunked)  # one unit in a task: a sort by time first
    sorting = [] if alone else [fn.asc_nulls_last(column) for column in unit]
    if _by_rank(request, layout):  # ranks first: they say where a hot key is cut
        rows = _counted(request, rows, Window.partitionBy(*keys).orderBy(*order))
        rows = rows.withColumn(_TICK, fn.col(inner_name(request, RANK)))
    rows = _placed(request, layout, rows)
    counts = request.all_rows_counted and not _by_rank(request, layout)
    if counts:
        place = [fn.col(_PLACE)] if layout.chunked else []  # the rows are where the window wants them: no more shuffle
        rows = _counted(request, rows, Window.partitionBy(*place, *unit).orderBy(*order))
    if layout.sequence or not counts:  # else Spark has sorted them for the window
        rows = rows.sortWithinPartitions(*sorting, *order)
    own = [fn.col(inner_name(request, name)) for name in job.columns if name not in (CHUNK, OWNED, RANK)]
    if layout.chunked:
        own += [fn.col(_CHUNK), (fn.col(_CHUNK) == fn.col(_OWN)).alias(_OWN)]
    return rows.select(*own, *([fn.col(inner_name(request, RANK))] if request.ranked else []))


def _by_rank(request: Request, layout: Layout) -> bool:
    """Whether hot keys are cut by their events' ranks, because the window counts events."""
    return layout.hot is not None and request.plan.window is not None and request.plan.window.unit == "events"


def _candidates(request: Request) -> DataFrame:
    """The rows that a task may have to see: in a partition, and relevant unless neighbours or ranks count."""
    rows = request.frame.df
    if request.in_a_partition is not None:
        rows = rows.filter(request.in_a_partition)
    if not request.all_rows_counted and not request.relevance.every_row:
        rows = rows.filter(request.conditions.column(request.relevance.formula))
    return rows


def inner_name(request: Request, name: str) -> str:
    """What a shipped column is called inside Spark: names of any spelling are Python's business."""
    if name in request.frame.names:
        return f"c{request.frame.names.index(name)}"
    return name.replace(".", "_")


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
    if layout.chunked and not _by_rank(request, layout):
        columns.append(request.tick.alias(_TICK))
    if layout.hot is not None:
        columns.append(bucket([request.frame.column(name) for name in request.plan.partition]).alias(_BUCKET))
    return _candidates(request).select(*columns)


def bit_words(request: Request) -> tuple[tuple[str, ...], list[Column]]:
    """Every condition on one event as a bit, packed into words: their names and the words themselves."""
    tests = [request.conditions.column(request.conditions.test(test)) for test in unary_tests(request.plan)]
    packed_words: list[Column] = []
    for begin in range(0, len(tests), WORD):
        bits = [
            fn.when(test, fn.lit(1 << place)).otherwise(fn.lit(0))
            for place, test in enumerate(tests[begin : begin + WORD])
        ]
        packed_words.append(reduce(Column.bitwiseOR, bits).cast("bigint"))
    return tuple(f"{BITS}{word}" for word in range(len(packed_words))), packed_words


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
        unit, places = _CHUNK, list(range(layout.tasks))
    else:
        own, last = (_by_bucket(layout.hot, which) for which in ("own", "read"))
        unit, places = _hot_units(layout.hot, layout.tasks)
    seat = placement(layout.tasks)
    array = f"array({', '.join(str(seat[place]) for place in places)})"
    rows = rows.withColumns({_OWN: fn.expr(own), _LAST: fn.expr(last)})
    rows = rows.withColumn(_CHUNK, fn.explode(fn.sequence(fn.col(_OWN), fn.col(_LAST))))
    return rows.withColumn(_PLACE, fn.expr(f"{array}[{unit}]")).repartition(layout.tasks, fn.col(_PLACE))


def _end(cut: Cut, which: str) -> Number:
    return cut.own if which == "own" else cut.read


def _by_bucket(hot: Hot, which: str) -> str:
    cases = (f"WHEN {index} THEN {step(_TICK, [_end(cut, which) for cut in cuts])}" for index, cuts in hot.cuts.items())
    return f"CASE {_BUCKET} {' '.join(cases)} ELSE 0 END"


def _hot_units(hot: Hot, tasks: int) -> tuple[str, list[int]]:
    """A number for every bucket, and for every further chunk of a hot one; and the task of each."""
    sizes, cases = list(hot.sizes), list[str]()
    for index, cuts in hot.cuts.items():
        share = sizes[index] // (len(cuts) + 1)
        cases.append(f"WHEN {index} THEN {len(sizes)} + {_CHUNK}")
        sizes += [share] * (len(cuts) + 1)
        sizes[index] = 0
    assert len(hot.sizes) == BUCKETS
    return f"CASE {_BUCKET} {' '.join(cases)} ELSE {_BUCKET} END", list(packed(sizes, tasks))


def _counted(request: Request, rows: DataFrame, window: WindowSpec) -> DataFrame:
    """Ranks among all rows, then the relevant rows, and where gaps count the first row after each."""
    needed = fn.col(_RELEVANT)
    if request.ranked:
        rows = rows.withColumn(inner_name(request, RANK), fn.row_number().over(window).cast("bigint"))
    if request.relevance.gaps:
        before = fn.lag(_RELEVANT, 1, False).over(window)
        rows = rows.withColumn("cerite_needed", needed | before)
        needed = fn.col("cerite_needed")
    return rows.filter(needed)
