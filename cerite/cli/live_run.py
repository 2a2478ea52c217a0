"""`cerite stream`: a query on a live stream from a source to a sink, with its numbers on the terminal.

The stream continues from its checkpoint. `--once` reads what is there and ends; `--final` says that nothing more will
come: what is there is read first, then the stream is declared over, and one more micro-batch decides the rest.
"""

from __future__ import annotations

import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from cerite.cli.chatter import Sieve, without_chatter
from cerite.cli.live_ends import Place, format_of, stream_of, write_batch, writer_to
from cerite.cli.spark_run import settings
from cerite.core.errors import CeriteError
from cerite.core.extras import load
from cerite.core.schema import Kind
from cerite.data.reading import Reading
from cerite.pattern.query import QuerySpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

NEXT = "remove the cause and run the same command again; if something cannot be read any more, name a new --checkpoint"
PAUSE = 0.5  # seconds between two looks at a stream
FINAL = "cerite-final"  # a folder in the checkpoint: a file in it says that the stream is over


class Stopped(KeyboardInterrupt):
    """Raised for Ctrl-C after the stream has come to rest; the text says where it stands."""


@dataclass(frozen=True)
class Ends:
    """The places of a stream."""

    source: Place
    sink: Place
    late: Place | None
    checkpoint: str

    @staticmethod
    def read(source: str, sink: str, late: str | None, checkpoint: str) -> Ends:
        """The places as written, checked against each other."""
        ends = Ends(
            Place.read(source, "source"), Place.read(sink, "sink"),
            None if late is None else Place.read(late, "sink"), checkpoint,
        )  # fmt: skip
        folders = {"--source": ends.source, "--sink": ends.sink, "--late": ends.late}
        paths = {name: place.where for name, place in folders.items() if place is not None and place.form == "files"}
        for name in paths.keys() - {"--source"}:
            format_of(paths[name])
        named = [*paths.items(), ("--checkpoint", checkpoint)]
        for at, (name, path) in enumerate(named):
            for other, inside in named[at + 1 :]:
                if _overlap(path, inside):
                    raise CeriteError(
                        f"{other} `{inside}` and {name} `{path}` overlap", hint="give each its own folder"
                    )
        return ends


def stream_on_spark(
    query: QuerySpec,
    ends: Ends,
    options: dict[str, Any],
    reading: Reading,
    columns: dict[str, Kind],
    *,
    master: str | None,
    conf: Sequence[str],
    files: int | None,
    trigger: str | None,
    once: bool,
    final: bool,
    progress: bool,
    err: Console,
) -> None:
    """Run until Ctrl-C, an error, or the end of what is there; `options` are those of `cerite.spark.match`."""
    from cerite import spark

    following = load("cerite.spark.following")
    with without_chatter() as sieve:
        session = spark.session(master, conf=settings(conf, progress=False))
    events = stream_of(session, ends.source, reading, _with_own(columns, options), files)
    over = f"{ends.checkpoint.rstrip('/')}/{FINAL}"
    whole = options | {"final": over, "late": "count" if ends.late is None else "side"}
    matches = _matched(spark, events, query, whole, err)
    totals = following.Totals()
    meter = Meter(session, sieve, following, totals, err, shown=progress)
    meter.follow(_started(matches, ends, trigger, once=once or final))
    if final:
        spark.finish(session, over)
        meter.follow(_started(_matched(spark, events, query, whole, err), ends, trigger, once=True))
    err.print(summary(totals))


def _with_own(columns: dict[str, Kind], options: dict[str, Any]) -> dict[str, Kind]:
    """The declared columns, with those of type and time, which declarations of event types leave out."""
    own: dict[str, Kind] = {options["type"] or "type": "string", options["time"]: "timestamp"}
    return own | columns if columns else {}


def _matched(spark: Any, events: DataFrame, query: QuerySpec, options: dict[str, Any], err: Console) -> DataFrame:
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always", spark.OneTaskWarning)
        matches: DataFrame = spark.match(events, query, **options)
    for each in noted:
        if issubclass(each.category, spark.OneTaskWarning):
            err.print(Text("warning: ", style="bold yellow").append(str(each.message), style="default"))
    return matches


def _started(matches: DataFrame, ends: Ends, trigger: str | None, *, once: bool) -> StreamingQuery:
    """The running query."""
    writer = writer_to(ends.sink, matches) if ends.late is None else None
    if writer is None:
        writer = matches.writeStream.foreachBatch(_batches(ends))
    writer = writer.option("checkpointLocation", ends.checkpoint)
    if once:
        writer = writer.trigger(availableNow=True)
    elif trigger is not None:
        writer = writer.trigger(processingTime=trigger)
    try:
        query: StreamingQuery = writer.start()
        return query
    except Exception as error:  # of Spark's analysis, or of Java where it cannot read the checkpoint
        lines = [line.strip(": ") for line in str(error).splitlines() if "An error occurred while calling" not in line]
        raise CeriteError(f"the stream cannot be started: {lines[0] if lines else error!r}", hint=NEXT) from None


def _batches(ends: Ends) -> Callable[[DataFrame, int], None]:
    """Writes a micro-batch: the matches, and late events where they are wanted."""
    from cerite.spark import split

    def write(batch: DataFrame, number: int) -> None:
        if ends.late is None:
            write_batch(ends.sink, batch, number)
            return
        matches, late = split(batch)
        try:
            write_batch(ends.sink, matches, number)
            write_batch(ends.late, late, number)
        finally:
            batch.unpersist()

    return write


class Meter:
    """Follows queries to their end; shows the numbers of all of them together, if wanted."""

    def __init__(
        self, session: SparkSession, sieve: Sieve, following: Any, totals: Any, console: Console, *, shown: bool
    ) -> None:
        self._session = session
        self._sieve = sieve
        self._following = following
        self._totals = totals
        self._console = console
        self._shown = shown

    def follow(self, query: StreamingQuery) -> None:
        """Wait until the query ends; Ctrl-C stops it, and a micro-batch that had begun is done again next time."""
        with Live(console=self._console, auto_refresh=False, transient=True) as live, _interrupts() as interrupted:
            while query.isActive and not interrupted.wait(PAUSE):
                self._tell(query, live)
            if interrupted.is_set():
                self._stop(query)
            self._tell(query, live)
        failure = query.exception()
        if interrupted.is_set():
            raise Stopped(f"stopped: {summary(self._totals)}; the same command continues from there")
        if failure is not None:
            raise _failed(failure)

    def _stop(self, query: StreamingQuery) -> None:
        """Stop it in mid-batch; the user need not see what Java's threads print when they are interrupted."""
        self._sieve.closed = True
        context = getattr(self._session, "sparkContext", None)
        if context is not None:
            context.setLogLevel("OFF")
        query.stop()

    def _tell(self, query: StreamingQuery, live: Live) -> None:
        for each in query.recentProgress:
            self._totals.add(self._following.progress(each))
        if self._shown:
            live.update(self._totals.table(), refresh=True)


@contextmanager
def _interrupts() -> Iterator[threading.Event]:
    """Notes Ctrl-C instead of raising KeyboardInterrupt, which would break the connection during a call to Java."""
    noted = threading.Event()
    if threading.current_thread() is not threading.main_thread():  # where signals are not handled
        yield noted
        return
    before = signal.signal(signal.SIGINT, lambda *_: noted.set())
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, before)


def _failed(failure: BaseException) -> CeriteError:
    """What ended a stream: the error of Cerite behind it, or what Spark says, without its plan."""
    from cerite.spark import task_error

    own = task_error(failure)
    if own is not None:
        return own
    text = str(failure).partition("=== Streaming Query ===")[0].strip()
    return CeriteError(f"the stream failed: {text}", hint=NEXT)


def summary(totals: Any) -> str:
    """One line about a stream.

    >>> from types import SimpleNamespace as Some
    >>> counts = {"events": 1200, "matches": 1, "late": 2, "untimed": 0, "duplicates": 0}
    >>> summary(Some(counts=counts, last=Some(pending=7), seconds=2.0))
    '1,200 events, 1 match, 2 late, 7 pending'
    """
    counts, last = totals.counts, totals.last
    late, matches = counts["late"] + counts["untimed"], counts["matches"]
    parts = [f"{counts['events']:,} events", f"{matches:,} match{'' if matches == 1 else 'es'}", f"{late:,} late"]
    parts += [f"{counts['duplicates']:,} duplicates"] if counts["duplicates"] else []
    return ", ".join([*parts, f"{0 if last is None else last.pending:,} pending"])


def _overlap(one: str, other: str) -> bool:
    """Whether one path is the other, or inside it; patterns count as the folder before them."""
    if "://" in one or "://" in other:
        return one.rstrip("/") == other.rstrip("/")
    first, second = (Path(os.path.realpath(os.path.expanduser(each.partition("*")[0]))) for each in (one, other))
    return first == second or first in second.parents or second in first.parents
