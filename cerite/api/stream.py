"""Streams that keep coming: push events, take the matches that each push completes, snapshot between them.

Results do not depend on where batches are cut, on the order in which events arrive within the watermark, or on
snapshots and restores in between. A stream opened with `counting=True` counts matches in addition to finding them, so
that the count of a push is exact and cheap even where enumerating its matches is not.

Invariants: a push that is refused leaves the stream exactly as it was, and one that breaks off half-way (no memory, an
interrupt) leaves a stream that refuses to go on. No event is silently lost: late ones are counted, and a warning says
so.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar

import pyarrow as pa

from cerite.api.follow import Following
from cerite.api.metrics import StreamMetrics
from cerite.api.pushed import Pushed
from cerite.api.shown import EVERYTHING, Selection
from cerite.core.errors import (
    ArgumentError,
    CeriteWarning,
    Hint,
    LateWarning,
    Setting,
    SnapshotError,
    StreamError,
    not_columns,
    repeated_column,
    unknown_column,
    warn,
)
from cerite.data.pushed import Extra, batch_of, typed
from cerite.engine.bind import Program
from cerite.engine.events.keys import width_of
from cerite.engine.live.live_run import LiveRun, Released
from cerite.engine.live.sorter import Ordering
from cerite.engine.results.shape import Shape
from cerite.language.builder import duration

C = TypeVar("C", bound=str)
Late = Literal["count", "side", "raise"]


class EventStream:
    """Takes batches of one schema and returns the matches that each completes.

    >>> import cerite
    >>> q = cerite.query("SELECT * FROM S WHERE A AS x ; B AS y WITHIN 5 EVENTS")
    >>> stream = q.stream({"type": "string"})
    >>> stream.push([{"type": "A"}]).count()
    0
    >>> saved = stream.snapshot()
    >>> again = q.stream({"type": "string"})
    >>> again.restore(saved)
    >>> [str(match) for match in again.push({"type": "B"})]
    ['[0,1] A=0, B=1, x=0, y=1']

    With a watermark, events come in any order that it allows for:

    >>> stream = q.stream({"type": "string", "at": "int"}, time="at", watermark="1 second")
    >>> stream.push([{"type": "B", "at": 400}, {"type": "A", "at": 100}]).count()
    0
    >>> [match.events for match in stream.push({"type": "C", "at": 2000})]
    [[{'type': 'A', 'at': 100}, {'type': 'B', 'at': 400}]]
    """

    def __init__(
        self,
        program: Program,
        *,
        ordering: Ordering | None = None,
        late: Late = "count",
        extra: Extra = "refuse",
        counting: bool = False,
        selection: Selection = EVERYTHING,
    ) -> None:
        self._program = program
        self._selection = selection
        self._late = late
        self._extra = extra
        self._warned = False
        self._run = LiveRun(
            program, Ordering(program.columns.time) if ordering is None else ordering, counting=counting,
            late="refuse" if late == "raise" else "aside", untimed="aside" if late == "side" else "refuse",
        )  # fmt: skip
        plan, columns = program.plan, program.columns
        self._shape = Shape(
            plan.automaton.labels, plan.partition, self._run.order, columns.time, columns.position,
            selection.columns(plan, program.schema.names), measured=selection.measures,
        ).checked(program.schema, selection.source)  # fmt: skip
        self._late_schema = self._run.late_schema(program.schema)
        self._latest: weakref.ref[Pushed] | None = None  # the matches of the last push, while someone can read them

    @property
    def rows(self) -> int:
        """How many events have been pushed."""
        return self._run.events

    @property
    def closed(self) -> bool:
        """Whether the stream was closed."""
        return self._run.closed

    @property
    def metrics(self) -> StreamMetrics:
        """What the stream has seen so far and holds now."""
        return StreamMetrics.of(self._run)

    def push(self, batch: Any) -> Pushed:
        """The matches that these events complete; they can be read at any time later, with their events.

        `batch` is an Arrow table or batch, a pandas or Polars frame, dictionaries, or one dictionary, with the columns
        of the stream; what a dictionary does not have is NULL. Values of another type are accepted if converting them
        changes none, else the push is refused; a push that is refused changes nothing.
        """
        self._run.check_open()
        events = batch_of(batch, self._program.schema, extra=self._extra)
        try:
            return self._going_on(lambda: self._run.push(events))
        except StreamError as error:
            if error.hint is not None and "order_by" in str(error.hint):  # data at rest is sorted, a stream is not
                error.hint = Hint(
                    "push the events in that order, or say how much later one may come: ", Setting("watermark")
                )
            raise

    def advance(self, time: Any) -> Pushed:
        """Declare that nothing before this time will come any more; returns the matches that this completes.

        >>> import cerite
        >>> q = cerite.query("SELECT * FROM S WHERE A ; B")
        >>> stream = q.stream({"type": "string", "at": "int"}, time="at", watermark="1 minute")
        >>> stream.push([{"type": "A", "at": 1}, {"type": "B", "at": 2}]).count(), stream.advance(3).count()
        (0, 1)
        """
        clock = self._run.clock
        if clock is None:
            raise StreamError("the stream has no time column", hint=Hint("name it: ", Setting("time")))
        key = clock.key(time)
        return self._going_on(lambda: self._run.advance(key))

    def close(self) -> Pushed:
        """Declare the stream over; returns the matches that this completes. Afterwards nothing can be pushed."""
        return self._going_on(self._run.close)

    def follow(self, source: Any, *, close: bool = True) -> Following:
        """Push every batch of an iterable, or of an asynchronous one: `for matches in …`, or `async for`.

        Yields the matches of every push and finally, unless `close=False`, those of `close()`.

        >>> import asyncio, cerite
        >>> async def source():
        ...     yield [{"type": "A"}]
        ...     yield [{"type": "B"}, {"type": "B"}]
        >>> async def count():
        ...     stream = cerite.query("SELECT * FROM S WHERE A ; B").stream({"type": "string"})
        ...     return [matches.count() async for matches in stream.follow(source())]
        >>> asyncio.run(count())
        [0, 2, 0]
        """
        return Following(self.push, self.close if close else None, source)

    def __enter__(self) -> EventStream:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Close the stream, and warn if this completes matches, because nobody reads them."""
        if self.closed or error is not None:
            return
        matches = self.close().count()
        if matches:
            message = f"{matches:,} matches were completed when `with` closed the stream"
            warn(CeriteWarning(f"{message}; call stream.close() inside the block to get them"))

    def snapshot(self) -> bytes:
        """The whole state, which a stream of the same query, schema, columns and watermark can restore."""
        self._hold()
        return self._run.snapshot()

    def restore(self, data: bytes) -> None:
        """Continue, in a fresh stream of the same query, where a snapshot was taken.

        LIMIT and the attributes that SELECT shows may have changed; any other difference is refused and named.
        """
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise SnapshotError(f"a snapshot is bytes, not {type(data).__name__}")
        self._run.restore(bytes(data))

    def _going_on(self, step: Callable[[], Released]) -> Pushed:
        """What a step completes; the matches of the step before are buffered first."""
        self._hold()
        released = step()
        plan, schema = self._program.plan, self._program.schema
        kind = self._program.columns.type
        pushed = Pushed(plan, released, self._shape, schema, self._selection, self._late_schema, kind)
        self._latest = weakref.ref(pushed)
        if released.late is not None and self._late == "count" and not self._warned:
            self._warned = True
            warn(LateWarning(_late_message(released.late)))
        return pushed

    def _hold(self) -> None:
        """Before the stream goes on: buffer the matches of the last push, if anyone can still read them."""
        pushed = None if self._latest is None else self._latest()
        self._latest = None
        if pushed is not None:
            pushed.hold()


def _late_message(late: pa.RecordBatch) -> str:
    some = f"{late.num_rows:,} events are" if late.num_rows > 1 else "an event is"
    return (
        f"{some} late, behind the watermark, and not read; stream.metrics counts such events, "
        "late='side' gives them as matches.late, a longer watermark waits for them"
    )


def stream_schema(schema: Any) -> pa.Schema:
    """The columns of a stream: an Arrow schema, a mapping of names to types, or data to take them from."""
    columns = typed(schema)
    repeated = sorted({name for name in columns.names if columns.names.count(name) > 1})
    if repeated:
        raise repeated_column(repeated[0], "the stream", StreamError)
    if not columns.names:
        raise StreamError("the stream has no columns", hint="name them with their types: {'type': 'string', …}")
    return columns


def stream_ordering(
    program: Program, watermark: Any, order_by: str | Sequence[str], deduplicate: str | Sequence[str]
) -> Ordering:
    """How a stream puts its events in order."""
    columns, schema = program.columns, program.schema
    ties, ids = _columns(order_by, "order_by", schema), _columns(deduplicate, "deduplicate", schema)
    if watermark is None:
        for name, given in (("order_by", ties), ("deduplicate", ids)):
            if given:
                raise StreamError(
                    f"`{name}` needs a watermark: without one, events are taken as they come",
                    hint=Hint("say how late an event may come: ", Setting("watermark", "10 seconds")),
                )
        return Ordering(columns.time)
    if columns.time is None:
        raise StreamError(
            "a watermark is about time, but no time column is named", hint=Hint("name it: ", Setting("time"))
        )
    if columns.position is not None and columns.position not in ties:  # as data at rest is sorted
        ties = (*ties, columns.position)
    delay = width_of(duration(watermark, "watermark"), schema.field(columns.time).type, columns.unit)
    return Ordering(columns.time, ties, delay, ids)


def one_of(name: str, value: C, known: Sequence[str]) -> C:
    """The value of an option, refused if it is not one of the known ones.

    >>> one_of("late", "side", ("count", "side"))
    'side'
    """
    if value not in known:
        raise ArgumentError(f"`{name}` is {' or '.join(map(repr, known))}, not {value!r}")
    return value


def _columns(given: Any, role: str, schema: pa.Schema) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else tuple(given or ())
    for name in names:
        if not isinstance(name, str):
            raise not_columns(role, name)
        if name not in schema.names:
            raise unknown_column(name, schema.names, f", which `{role}` names")
    return names
