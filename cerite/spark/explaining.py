"""`cerite.spark.explain`: which operator, which chunks, what is filtered where, what travels, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from io import StringIO
from re import search

from pyspark.sql import DataFrame

from cerite.api.query import AnyQuery
from cerite.core.rejected import Rejected
from cerite.engine.events.rows import TimeUnit
from cerite.engine.plan import Semantics
from cerite.language.builder import Width
from cerite.language.queries import SchemaLike
from cerite.predicate.formula import All, Formula, Negated, Some
from cerite.spark.api import Reading, Route, live_route, routed
from cerite.spark.driver.layout import Layout
from cerite.spark.driver.live import LiveOptions, LivePlan
from cerite.spark.driver.ordered_parquet import ParquetPlan, columns_read, stretches
from cerite.spark.driver.request import Options, Request, make_request
from cerite.spark.driver.shipped_columns import job_of
from cerite.spark.worker.job import Cut, unary_tests

NAMES = {"partitions": "S&P, then R-CER per key", "chunks": "S&P, then T-CER", "sequence": "S&P, then R-CER, one task"}


def explain(
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
) -> str:
    """How `match` would run, line by line; `explain` looks at the data as `match` does before the first task.

    For a live stream it says how the state is divided, and does not look at the data.
    """
    how = Options(time, type, order_by, position, semantics, schema, time_unit)
    request = make_request(df, query, how)
    options = LiveOptions(watermark, shards)
    if request.live:
        return _live(live_route(request, options, partitions, read))
    options.refuse_at_rest()
    route = routed(request, partitions, read)
    lines = [f"operator: {_operator(route)}", f"  why: {route.choice.why}"]
    lines += _ordered(route, route.ordered) if isinstance(route.ordered, ParquetPlan) else _shuffled(route)
    tests = ", ".join(map(str, unary_tests(request.plan)))
    inside = isinstance(route.ordered, ParquetPlan)
    whose = "by the tasks that read" if route.shuffle is not None and route.shuffle.read_by_tasks else "by Spark"
    where = "by the engine, in the task" if inside else f"{whose}; they travel as bits"
    lines.append(f"conditions on one event: {tests or 'none'}")
    lines.append(f"  evaluated {where}")
    lines.append(f"order: {', '.join(_order(request))}")
    return "\n".join(lines)


def _live(plan: LivePlan) -> str:
    request, chunking = plan.request, plan.chunking
    operator = NAMES[plan.choice.operator].replace("one task", "one shard")
    lines = [f"operator: {operator}, live", f"  why: {plan.choice.why}"]
    lines.append(f"shards: {plan.shards:,}, fixed in the checkpoint")
    if chunking is not None:
        lines.append(f"chunks: {chunking.size:,} ticks of `{request.time}` each, and the {chunking.reach:,} before it")
    lines.append(f"watermark: the latest `{request.time}` less {float(plan.delay):,g} milliseconds")
    lines.append(f"order: {', '.join(_order(request))}")
    filtered = "all: neighbours or ranks count" if request.all_rows_counted else _rows_kept(request)
    lines.append(f"rows kept: {filtered}")
    lines.append(f"columns shipped to Python: {', '.join(request.shipped)}")
    tests = ", ".join(map(str, unary_tests(request.plan)))
    lines += [f"conditions on one event: {tests or 'none'}", "  evaluated by Spark; they travel as bits"]
    return "\n".join(lines)


def _operator(route: Route) -> str:
    chunked = route.shuffle is None or bool(route.shuffle.layout.cuts)
    inside = chunked and route.choice.operator == "partitions"
    return "S&P, then T-CER, with all partitions inside each chunk" if inside else NAMES[route.choice.operator]


def _ordered(route: Route, plan: ParquetPlan) -> list[str]:
    groups, files = _several(len(plan.footers.groups), "row group"), _several(len(plan.footers.files), "Parquet file")
    columns = stretches(route.request, plan).job.columns
    return [
        f"read: by the tasks themselves, no shuffle: the footers of {files} show {groups} "
        f"in order of `{route.request.time}`",
        *_chunks(plan.cuts),
        f"columns read: {', '.join(columns)}",
    ]


def _shuffled(route: Route) -> list[str]:
    request, shuffle = route.request, route.shuffle
    assert shuffle is not None
    assert isinstance(route.ordered, Rejected)
    layout = shuffle.layout
    reader = "by the tasks themselves" if shuffle.read_by_tasks else "by Spark"
    lines = [f"read: {reader}, then a shuffle into {layout.tasks} tasks", f"  why: {route.ordered.reason}"]
    if shuffle.unread is not None and shuffle.unread != route.ordered:
        lines.append(f"  why by Spark: {shuffle.unread.reason}")
    alone = None if shuffle.unpacked is None else f"one by one, sorted by Spark: {shuffle.unpacked.reason}"
    lines.append(f"rows travel: {alone or 'in parcels, sorted by the tasks'}")
    lines += _hot(layout) if layout.hot is not None else _chunks(layout.cuts)
    lines.append(f"rows kept: {_rows_kept(request)}")
    if shuffle.read_by_tasks:
        lines.append(f"columns read: {', '.join(columns_read(request))}")
    else:
        lines.append(f"pushed into the source: {pushed_filters(shuffle.rows(request))}")
    lines.append(f"columns shipped to Python: {', '.join(job_of(request, layout).columns)}")
    return lines


def _several(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _chunks(cuts: tuple[Cut, ...]) -> list[str]:
    if not cuts:
        return ["chunks: one"]
    first = cuts[0]
    overlap = f"each reads the window before its own part as well; the second owns from {first.own}, reads from "
    return [f"chunks: {len(cuts) + 1}, cut by quantiles of the data", f"  {overlap}{first.read}"]


def _hot(layout: Layout) -> list[str]:
    assert layout.hot is not None
    pieces = sum(len(cuts) + 1 for cuts in layout.hot.cuts.values())
    return [f"hot keys: {len(layout.hot.cuts)} buckets of keys are cut into {pieces} chunks that overlap by the window"]


def _rows_kept(request: Request) -> str:
    relevance = request.relevance
    if relevance.every_row:
        return "all: some step takes any event"
    text = f"where {formula_text(relevance.formula)}"
    if relevance.gaps:
        text += ", and each first row after those (contiguity)"
    return text + ("; ranks are counted by Spark over all rows" if request.ranked else "")


def _order(request: Request) -> list[str]:
    return ["file and row index" if name == "cerite.file" else name for name in request.order if name != "cerite.row"]


def pushed_filters(df: DataFrame) -> str:
    """What Spark says it pushes into the source."""
    shown = StringIO()
    with redirect_stdout(shown):
        df.explain()
    filters = search(r"PushedFilters: \[(.*?)\](?:, ReadSchema|\n|$)", shown.getvalue())
    return filters[1] if filters and filters[1] else "nothing"


def formula_text(formula: Formula) -> str:
    """A formula for people.

    >>> formula_text(Negated(Some((True, False))))
    'NOT (TRUE OR FALSE)'
    """
    if isinstance(formula, bool):
        return str(formula).upper()
    if isinstance(formula, (All, Some)):
        joint = " AND " if isinstance(formula, All) else " OR "
        return joint.join(_inner(part) for part in formula.parts)
    return f"NOT {_inner(formula.part)}" if isinstance(formula, Negated) else str(formula)


def _inner(formula: Formula) -> str:
    text = formula_text(formula)
    return f"({text})" if isinstance(formula, (All, Some)) else text
