"""A run over a stream that does not end: events in any order within a watermark, matches with their events, snapshots.

    batch ──► Sorter ──► Run ──► matches          what is ready is read, what is late is set aside
                 │         │
              pending    EventBuffer              what a match may still contain

The same run serves `query.stream` and every shard of a stream on Spark. Positions are ranks in the order in which
events become ready: the sorted stream without those that were late.

Invariants: the matches of a stream are those of the sorted events that were not late, wherever batches are cut, in
whatever order events arrive within the watermark, and however often the run is restored. A push that is refused changes
nothing; one that breaks off half-way (no memory, an interrupt) leaves a run that refuses to go on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from cerite.core.arrays import Arrays, Longs, under
from cerite.core.errors import Hint, OrderError, Setting, SnapshotError, StreamError, in_plain_words
from cerite.engine.bind import Program
from cerite.engine.events.batches import joined
from cerite.engine.events.clock import Clock
from cerite.engine.events.keys import LEAST, Measure
from cerite.engine.events.rows import Rows
from cerite.engine.live.identity import check_identity, identity
from cerite.engine.live.sorter import Aside, Offer, Ordering, Sorter
from cerite.engine.results.event_buffer import EventBuffer, Placed
from cerite.engine.results.output import MatchChunk
from cerite.engine.results.ties import Ties
from cerite.engine.run import Run
from cerite.engine.state.snapshot import pack, unpack

Treatment = Literal["refuse", "aside"]  # refuse the push, or set the event aside
COUNTERS = ("events", "relevant", "matches", "suppressed", "occurrences", "late", "untimed", "duplicates")
LATE, UNTIMED = "late", "no time"
MOST_BEHIND = 1_000  # events that one push sets aside because a column other than time puts them behind
BEHIND_HINT = (
    "the event waited for the watermark; restore a snapshot into a stream with late='side', which sets it aside"
)
Behind = tuple[pa.RecordBatch, str]  # an event, and the column in which it is behind


@dataclass(frozen=True)
class LiveMetrics:
    """What a live run has seen so far and holds now.

    `events` were pushed: of them, `late`, `untimed` and `duplicates` were not read, `pending` are not read yet, and
    `read` are; `relevant` ones could be part of a match. At `occurrences` events a match ended; `matches` were counted
    or given out, `suppressed` ones were only counted (None: they are not counted).
    `kept_rows` are held for matches to come, `ids` to recognise duplicates, and `active` states hold partial matches.
    `watermark` and `seen` are time keys, None before the first event.
    """

    events: int
    read: int
    relevant: int
    occurrences: int
    matches: int
    suppressed: int | None
    late: int
    untimed: int
    duplicates: int
    pending: int
    kept_rows: int
    ids: int
    active: int
    watermark: int | None
    seen: int | None


class Released:
    """What a push completes: read it before the run goes on."""

    def __init__(
        self, chunks: Iterator[MatchChunk], buffer: EventBuffer, late: pa.RecordBatch | None, count: int | None,
        suppressed: int | None = None,
    ) -> None:  # fmt: skip
        self.chunks = chunks
        self.suppressed = suppressed  # how many matches SUPPRESS left out, in a run that counts
        self.late = late  # events that were not read: their columns, `late_by` and `reason`
        self.twice: pa.RecordBatch | None = None  # events that were not read because their id had come before
        self.count = count  # how many matches there are, in a run that counts
        self._buffer = buffer

    def rows(self, positions: Longs) -> pa.RecordBatch | None:
        """The events at these rising positions, of matches that end in this push; None if there are no positions."""
        return self._buffer.take(positions)

    def with_rows(self, chunk: MatchChunk) -> Placed:
        """The matches with their events."""
        return self._buffer.placed(chunk)

    def marks(self, positions: Longs) -> Longs:
        """The marks, in ids, of the events at these rising positions."""
        return self._buffer.marks(positions)


class LiveRun:
    """One program over one stream.

    >>> from fractions import Fraction
    >>> from cerite.engine.bind import bind
    >>> from cerite.engine.events.rows import Columns
    >>> from cerite.engine.plan import plan
    >>> from cerite.language.ceql import parse_query
    >>> schema = pa.schema({"type": pa.string(), "t": pa.int64()})
    >>> program = bind(plan(parse_query("SELECT * FROM S WHERE A ; B")), schema, Columns("type", "t"))
    >>> run = LiveRun(program, Ordering("t", delay=Fraction(5)))
    >>> released = run.push(pa.record_batch({"type": ["B", "A"], "t": [2, 1]}))
    >>> [len(chunk) for chunk in released.chunks], run.metrics.pending
    ([], 2)
    >>> [chunk.positions.tolist() for chunk in run.advance(3).chunks]
    [[0, 1]]
    >>> run.push(pa.record_batch({"type": ["A"], "t": [2]})).late.to_pylist()
    [{'type': 'A', 't': 2, 'late_by': 1, 'reason': 'late'}]
    """

    def __init__(
        self,
        program: Program,
        ordering: Ordering,
        *,
        counting: bool = False,
        late: Treatment = "aside",
        untimed: Treatment = "refuse",
    ) -> None:
        self.program = program
        self.ordering = ordering
        self.counting = counting and program.plan.everything.counts_without_enumerating
        time = ordering.time
        self.clock = None if time is None else Clock(time, program.schema.field(time).type)
        self.sorter = None if ordering.delay is None or self.clock is None else Sorter(ordering, self.clock)
        self._late, self._untimed = late, untimed
        self._run = Run(program)
        self._buffer = EventBuffer(None if ordering.strict else Ties(self.order, program.plan.partition))
        self._counters = dict.fromkeys(COUNTERS, 0)
        self._floor = LEAST  # without a sorter: the time that was passed to `advance`
        self._width, self._tick = (_width(program, each, time) for each in (program.measured, program.ticking))
        self._unread: Iterator[MatchChunk] | None = None
        self._schema: pa.Schema | None = None  # of what is pushed: the program's columns and perhaps more
        self._closed = self._broken = False

    # ------------------------------------------------------------ events
    def push(self, batch: pa.RecordBatch, seen: int | None = None) -> Released:
        """Take events, and read those that the watermark has passed by then.

        `seen` is a time key that is known from elsewhere to have been seen. Columns that the program does not have are
        carried along.
        """
        self._ready(batch)
        if self.sorter is None:
            self._check_floor(batch)
            return self._release(Offer(self._floor, LEAST, batch, [], 0), batch)
        self._run.intake.check(batch)  # while the batch can still be refused: pending events are read later
        offer = self.sorter.offer(batch, seen)
        if offer.aside is not None:
            try:
                self._check_aside(offer.aside, self.sorter)
            except StreamError:
                self.sorter.withdraw(offer)
                raise
        released = self._release(offer, batch)
        released.twice = offer.twice
        return released

    def advance(self, watermark: int) -> Released:
        """Nothing before this time will come any more: read the pending events before it."""
        self._ready()
        if self.sorter is None:
            self._floor = max(self._floor, watermark)
            self._let_time_pass(self._floor)
            return self._decided()
        return self._release(self.sorter.advanced(watermark))

    def close(self) -> Released:
        """Nothing more will come: read all pending events, and end every window."""
        self._ready()
        self._closed = True
        try:
            return self._decided() if self.sorter is None else self._release(self.sorter.closed())
        except BaseException:
            self._closed = False
            raise

    def finish(self) -> None:
        """Finish the last push; its matches that were not read can no longer be read."""
        self._check_whole()
        if self._unread is not None:
            self._run.recogniser.discard(self._unread)
            self._unread = None
            self._counters["occurrences"] = self._run.recogniser.occurrences

    # ------------------------------------------------------------ state
    @property
    def order(self) -> tuple[str, ...]:
        """The columns that order the events."""
        named = (self.ordering.time, *self.ordering.ties, self.program.columns.position)
        return tuple(dict.fromkeys(name for name in named if name is not None))

    @property
    def events(self) -> int:
        """How many events were pushed."""
        return self._counters["events"]

    @property
    def closed(self) -> bool:
        """Whether nothing more can be pushed."""
        return self._closed

    @property
    def metrics(self) -> LiveMetrics:
        """What was seen so far and what the state holds now."""
        sorter = self.sorter
        watermark = self._floor if sorter is None else sorter.watermark
        seen = LEAST if sorter is None else sorter.seen
        counted = self.counting and self._run.suppressor is not None
        counters: dict[str, Any] = self._counters | {"occurrences": self._run.recogniser.occurrences}
        counters["suppressed"] = self._counters["suppressed"] if counted else None
        return LiveMetrics(
            **counters, read=self._run.intake.rows, pending=0 if sorter is None else sorter.pending,
            kept_rows=len(self._buffer), ids=0 if sorter is None else sorter.ids, active=self._run.recogniser.active,
            watermark=None if watermark == LEAST else watermark, seen=None if seen == LEAST else seen,
        )  # fmt: skip

    def snapshot(self) -> bytes:
        """The whole state, which a run of the same program and ordering can restore."""
        self.finish()
        with self._breaking():
            run = self._run.state(counting=self.counting)  # recycled: the engine holds just what it must
            self._buffer.prune(self._run.recogniser.still_needed())
        arrays: Arrays = {
            "counters": np.array([*self._counters.values(), self._floor, self._closed]),
            **_prefixed("run.", run),
            **_prefixed("kept.", self._buffer.state()),
        }
        if self.sorter is not None:
            arrays |= _prefixed("sorter.", self.sorter.state())
        if self._schema is not None:
            arrays["schema"] = np.frombuffer(self._schema.serialize(), np.uint8)
        return pack("live", identity(self.program, self.ordering), arrays)

    def restore(self, data: bytes) -> None:
        """Continue, in a fresh run, where a snapshot was taken; one that cannot be restored changes nothing."""
        if self._run.intake.rows or self._counters["events"]:
            raise StreamError("events were pushed already", hint="restore into a fresh stream: query.stream(schema)")
        meta, arrays = unpack(bytes(data), "live")
        check_identity(meta, identity(self.program, self.ordering))
        if self.counting and "run.counter" not in arrays:
            raise SnapshotError(
                "the snapshot was taken of a stream that does not count", hint="open the stream without counting=True"
            )
        fresh = LiveRun(self.program, self.ordering, counting=self.counting, late=self._late, untimed=self._untimed)
        fresh._take(arrays)
        self.__dict__.update(fresh.__dict__)

    def _take(self, arrays: Arrays) -> None:
        run = under("run.", arrays)
        if not self.counting:
            run.pop("counter", None)
        self._run.restore(run)
        self._buffer.restore(under("kept.", arrays))
        if self.sorter is not None:
            self.sorter.restore(under("sorter.", arrays))
        if "schema" in arrays:
            self._schema = pa.ipc.read_schema(pa.py_buffer(arrays["schema"].tobytes()))
        *counters, self._floor, closed = arrays["counters"].tolist()
        self._counters, self._closed = dict(zip(COUNTERS, counters, strict=True)), bool(closed)

    def late_schema(self, schema: pa.Schema) -> pa.Schema:
        """The columns of late events if events of this schema are pushed."""
        kind = pa.null() if self.clock is None else self.clock.lateness(pa.array([], self.clock.kind), 0).type
        late_by, reason = (_free(name, schema.names) for name in ("late_by", "reason"))
        return pa.schema([*schema, (late_by, kind), (reason, pa.string())])

    def check_open(self) -> None:
        """Refuse to go on if nothing more can be pushed."""
        self._check_whole()
        if self._closed:
            raise StreamError("the stream is closed", hint="open another: query.stream(schema)")

    # ------------------------------------------------------------ inside
    def _ready(self, batch: pa.RecordBatch | None = None) -> None:
        self.check_open()
        self.finish()
        if batch is None:
            return
        if self._schema is not None and not batch.schema.equals(self._schema):
            raise StreamError(
                f"a batch has other columns than those before it: {_columns(batch.schema)}",
                hint=f"they had {_columns(self._schema)}",
            )

    def _check_floor(self, batch: pa.RecordBatch) -> None:
        if self.clock is None or self._floor == LEAST:
            return
        keys, _ = self.clock.keys(batch.column(self.clock.name))
        if keys.size and int(keys.min()) < self._floor:
            early, floor = self.clock.text(int(keys.min())), self.clock.text(self._floor)
            raise StreamError(f"an event at {early} comes after advance({floor}), which said that there is none")

    def _check_aside(self, aside: Aside, sorter: Sorter) -> None:
        if self._untimed == "refuse" and aside.untimed.any():
            raise StreamError(
                f"{aside.untimed.size - aside.late} of the pushed events have no time in `{self.ordering.time}`",
                hint="filter such rows out, or fill them in",
            )
        if self._late == "refuse" and aside.late:
            first = sorter.clock.text(int(aside.keys[~aside.untimed].min()))
            raise StreamError(
                f"{aside.late} of the pushed events are late: one is of {first}, "
                f"but the watermark is at {sorter.clock.text(sorter.watermark)}",
                hint=Hint("allow more disorder: ", Setting("watermark"), "; or take what is late: late='side'"),
            )

    def _release(self, offer: Offer, batch: pa.RecordBatch | None = None) -> Released:
        """Read what is ready, and go on as the offer says; if the events are refused, everything is as it was."""
        if self._buffer.full:
            self._clear_up()
        else:
            with self._breaking():
                self._run.recycle()
        try:
            if offer.ready is not None and self.sorter is not None:
                self.sorter.check_ties(offer.ready)
            rows, behind = self._read(offer.ready)
        except BaseException:
            if self.sorter is not None:
                self.sorter.withdraw(offer)
            raise
        late = self._account(offer, batch, behind)
        if rows is None:
            return self._decided(late)
        with self._breaking():
            count = self._run.counter.read(rows).matches + self._count_rest() if self.counting else None
            recogniser = self._run.recogniser
            chunks = self._run.read(rows)
            relevant = recogniser.relevant
            self._counters["relevant"] += relevant.size
            self._buffer.add_some(rows.position, rows.batch, relevant)
        if self._run.suppressor is not None:
            return self._reported(self._then_rest(chunks), late, count)
        if count is not None:
            self._counters["matches"] += count
        return self._released(self._reading(self._then_rest(chunks)), late, count)

    def _decided(self, late: pa.RecordBatch | None = None) -> Released:
        """What is decided by time alone."""
        if not self.program.plan.late:
            return self._released(iter(()), late)
        with self._breaking():
            count = self._count_rest() if self.counting else None
        if self._run.suppressor is not None:
            return self._reported(self._then_rest(iter(())), late, count)
        if count is not None:
            self._counters["matches"] += count
        return self._released(self._reading(self._then_rest(iter(()))), late, count)

    def _then_rest(self, chunks: Iterator[MatchChunk]) -> Iterator[MatchChunk]:
        """These chunks, then the matches whose windows are over: by what was read, by the watermark, or at the end."""
        yield from chunks
        if self._closed or self.program.shared_clock:
            yield from self._run.rest(None if self._closed else self._run.intake.decided)

    def _count_rest(self) -> int:
        if not (self._closed or self.program.shared_clock):
            return 0
        return self._run.count_all_rest(None if self._closed else self._run.intake.decided)

    def _reported(self, chunks: Iterator[MatchChunk], late: pa.RecordBatch | None, count: int | None) -> Released:
        """Under SUPPRESS an event reports at most one match, so all matches of a push are read and counted at once."""
        with self._breaking():
            matches = list(chunks)
        reported = sum(map(len, matches))
        suppressed = None if count is None else count - reported
        self._counters["matches"] += reported
        self._counters["suppressed"] += suppressed or 0
        return self._released(iter(matches), late, reported, suppressed)

    def _read(self, ready: pa.RecordBatch | None) -> tuple[Rows | None, list[Behind]]:
        """What is ready, as the engine reads it, and events that a column other than time puts behind what was read.

        Which events these are is known only now; every later push would be refused because of them, so they are set
        aside if events without a time are.
        """
        behind: list[Behind] = []
        while ready is not None and ready.num_rows:
            try:
                return self._run.intake.take(ready), behind
            except OrderError as error:
                if self.sorter is None or self._untimed == "refuse" or len(behind) == MOST_BEHIND:
                    error.hint = error.hint if self.sorter is None else BEHIND_HINT
                    raise
                behind.append((ready.slice(error.row, 1), error.name))
                ready = joined([ready.slice(0, error.row), ready.slice(error.row + 1)])
        return None, behind

    def _account(self, offer: Offer, batch: pa.RecordBatch | None, behind: list[Behind]) -> pa.RecordBatch | None:
        """Go on as the offer says; returns the late events, with how far each was behind the watermark it met."""
        late = []
        if offer.aside is not None and self.sorter is not None:
            late.append(self._with_lateness(offer.aside, self.sorter.watermark))
            self._counters["late"] += offer.aside.late
            self._counters["untimed"] += offer.aside.untimed.size - offer.aside.late
        for row, name in behind:
            schema = self.late_schema(row.schema)
            more = [pa.nulls(1, schema.types[-2]), pa.array([f"behind in `{name}`"])]
            late.append(pa.RecordBatch.from_arrays([*row.columns, *more], schema=schema))
        self._counters["late"] += len(behind)
        if self.sorter is not None:
            self.sorter.accept(offer)
            self._let_time_pass(self.sorter.watermark)
        if batch is not None:
            self._schema = batch.schema
            self._counters["events"] += batch.num_rows
            self._counters["duplicates"] += 0 if offer.twice is None else offer.twice.num_rows
        return joined(late) if late else None

    def _let_time_pass(self, watermark: int) -> None:
        """Let the watermark close windows of time: what is over is forgotten even if no event comes any more."""
        if self.clock is None or watermark == LEAST:
            return
        intake = self._run.intake
        if self._width is not None:
            intake.low = max(intake.low, self.clock.before(watermark, self._width))
        if self._tick is not None:
            intake.ticked = max(intake.ticked, self.clock.before(watermark, self._tick))

    def _with_lateness(self, aside: Aside, watermark: int) -> pa.RecordBatch:
        assert self.clock is not None
        rows = aside.rows
        late_by = self.clock.lateness(rows.column(self.clock.name), watermark)
        reasons = pa.array(np.where(aside.untimed, UNTIMED, LATE), pa.string())
        return pa.RecordBatch.from_arrays([*rows.columns, late_by, reasons], schema=self.late_schema(rows.schema))

    def _released(
        self, chunks: Iterator[MatchChunk], late: pa.RecordBatch | None = None, count: int | None = None,
        suppressed: int | None = None,
    ) -> Released:  # fmt: skip
        self._unread = chunks
        if self.counting and count is None:  # nothing was read
            count = suppressed = 0
        return Released(chunks, self._buffer, late, count, suppressed)

    def _reading(self, chunks: Iterator[MatchChunk]) -> Iterator[MatchChunk]:
        with self._breaking():
            for chunk in chunks:
                if not self.counting:
                    self._counters["matches"] += len(chunk)
                yield chunk

    def _clear_up(self) -> None:
        """Keep only the events that the engine can still report."""
        with self._breaking():
            self._run.recycle(now=True)
            self._buffer.prune(self._run.recogniser.still_needed())

    def _check_whole(self) -> None:
        if self._broken:
            raise StreamError(
                "a push was interrupted, so the stream's state is unknown",
                hint="restore a snapshot into a new stream, and push again what came after it",
            )

    @contextmanager
    def _breaking(self) -> Iterator[None]:
        """A failure within this context leaves the engine between two events, so the run cannot go on."""
        try:
            with in_plain_words("find the matches"):
                yield
        except GeneratorExit:
            raise
        except BaseException:
            self._broken = True
            raise


def _width(program: Program, measured: Measure | None, time: str | None) -> Fraction | None:
    """The width of a window, if it is measured on the ordering's time."""
    if measured is None or time is None or not program.shared_clock or measured.name != time:
        return None
    return measured.width(program.schema)


def _prefixed(prefix: str, arrays: Arrays) -> Arrays:
    return {f"{prefix}{name}": value for name, value in arrays.items()}


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"`{each.name}` ({each.type})" for each in schema)


def _free(name: str, taken: list[str]) -> str:
    while name in taken:
        name += "_"
    return name
