"""What a running live stream reports: `progress` its numbers, `watch` the same in a terminal, `split` its late events.

The numbers are Spark's observed metrics of every micro-batch, so that a listener, a dashboard and this module see the
same ones.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, fields
from datetime import datetime, timezone
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as fn
from pyspark.sql.streaming.query import StreamingQuery
from rich.console import Console
from rich.live import Live
from rich.table import Table

from cerite.core.errors import StreamError
from cerite.spark.driver.live import LATE_COLUMN
from cerite.spark.worker.failures import refusals


@dataclass(frozen=True)
class Progress:
    """One micro-batch: what it brought, and what is left after it.

    Of the `events` read, the `relevant` ones travelled to the shards; those that were `late`, `untimed` or `duplicates`
    took no part in recognition. `pending` events wait for the `watermark` (in milliseconds; None before there is one),
    `kept` ones may still be part of a match, and `live` entries hold partial matches.
    """

    batch: int
    events: int
    relevant: int
    matches: int
    late: int
    untimed: int
    duplicates: int
    pending: int
    kept: int
    live: int
    state_bytes: int
    largest_state_bytes: int
    watermark: int | None
    seconds: float

    @property
    def events_per_second(self) -> float:
        """How fast the micro-batch was."""
        return self.events / self.seconds if self.seconds else 0.0


def progress(source: Any, metrics: str = "cerite") -> Progress | None:
    """The last micro-batch of a query, or the one in a listener's `event.progress`; None before the first.

    `metrics` is the name that was passed to `match`.
    """
    one = source.lastProgress if hasattr(source, "lastProgress") else source
    if one is None:
        return None
    observed = one["observedMetrics"]
    if metrics not in observed:
        return None
    numbers = {"events": 0, **_numbers(observed[metrics]), **_numbers(observed.get(f"{metrics} events"))}
    names = {field.name for field in fields(Progress)}
    seconds = one["durationMs"].get("triggerExecution", 0) / 1_000
    return Progress(batch=one["batchId"], seconds=seconds, **{name: numbers[name] for name in names & numbers.keys()})


def _numbers(observed: Row | None) -> dict[str, Any]:
    """Observed numbers by name; Spark Connect hands over the row as its parts, values and schema."""
    row = {} if observed is None else observed.asDict()
    if row.keys() == {"values", "schema"}:
        return dict(zip((field["name"] for field in row["schema"]["fields"]), row["values"], strict=True))
    return row


def split(batch: DataFrame) -> tuple[DataFrame, DataFrame]:
    """The matches and the late events of a result with `late="side"`: of a micro-batch in `foreachBatch`, or of all.

    Both are read from the batch, which is persisted for that: call `batch.unpersist()` when both are written.
    """
    if LATE_COLUMN not in batch.columns:
        raise StreamError("these rows have no late events among them", hint='ask for them: match(…, late="side")')
    if not batch.isStreaming:
        batch.persist()
    late = fn.col(LATE_COLUMN)
    return batch.filter(late.isNull()).drop(LATE_COLUMN), batch.filter(late.isNotNull()).select(f"{LATE_COLUMN}.*")


def watch(query: StreamingQuery, metrics: str = "cerite") -> None:
    """Show a query's progress in the terminal until it ends; Ctrl-C stops the query after its micro-batch."""
    totals = Totals()
    with Live(console=Console(stderr=True), auto_refresh=False, transient=False) as live, refusals():
        try:
            while query.isActive:
                for each in query.recentProgress:
                    totals.add(progress(each, metrics))
                live.update(totals.table(), refresh=True)
                query.awaitTermination(1)
        except KeyboardInterrupt:
            query.stop()
        for each in query.recentProgress:
            totals.add(progress(each, metrics))
        live.update(totals.table(), refresh=True)
        failure = query.exception()
        if failure is not None:
            raise failure


class Totals:
    """What all micro-batches together have brought so far."""

    _SUMMED = ("events", "relevant", "matches", "late", "untimed", "duplicates")

    def __init__(self) -> None:
        self.last: Progress | None = None
        self.counts = dict.fromkeys(self._SUMMED, 0)
        self.seconds = 0.0
        self._begun = time.monotonic()

    def add(self, one: Progress | None) -> None:
        """Count a micro-batch, if it was not counted before."""
        if one is None or (self.last is not None and one.batch <= self.last.batch):
            return
        self.last = one
        self.seconds += one.seconds
        for name in self.counts:
            self.counts[name] += getattr(one, name)

    def table(self) -> Table:
        """The numbers for a terminal."""
        table = Table(box=None, show_header=False, pad_edge=False)
        table.add_column(style="bold")
        table.add_column(justify="right")
        table.add_column(style="dim")
        last, counts = self.last, self.counts
        rate = "" if last is None else f"{last.events_per_second:,.0f} a second in the last micro-batch"
        table.add_row("events", f"{counts['events']:,}", rate)
        table.add_row("relevant", f"{counts['relevant']:,}")
        table.add_row("matches", f"{counts['matches']:,}", "" if last is None else f"{last.matches:,} in the last")
        table.add_row("late", f"{counts['late'] + counts['untimed']:,}", f"duplicates {counts['duplicates']:,}")
        if last is not None:
            table.add_row("pending", f"{last.pending:,}", f"watermark {_instant(last.watermark)}")
            table.add_row("live", f"{last.live:,}", f"{last.kept:,} events kept")
            table.add_row(
                "state", f"{last.state_bytes / 1e6:,.1f} MB", f"micro-batch {last.batch:,}, {last.seconds:.1f} s"
            )
        return table


def _instant(milliseconds: int | None) -> str:
    if milliseconds is None:
        return "none yet"
    try:
        return datetime.fromtimestamp(milliseconds / 1_000, timezone.utc).isoformat(" ", "seconds")
    except (OverflowError, OSError, ValueError):
        return f"{milliseconds:,} ms"
