"""Streams that keep coming: push batches, take the matches that each completes, snapshot between them.

Results do not depend on where batches are cut, nor on snapshots and restores in between. A stream opened with
`counting=True` counts beside finding, so that the count of a push is exact and cheap even where enumerating it is not.

Invariants: a push that is refused leaves the stream exactly as it was, and one that breaks off half-way (no memory, an
interrupt) leaves a stream that refuses to go on. What `push` returns stays readable: before the stream goes on, matches
that were not read are held, as many as fit `KEPT`; if there are more, reading on raises, and nothing is silently empty.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from cerite.api.result import Matches
from cerite.core.errors import Hint, Setting, SnapshotError, StreamError, in_plain_words, listed
from cerite.data.pushed import batch_of, typed
from cerite.engine.bind import Program
from cerite.engine.output import MatchChunk
from cerite.engine.plan import Plan
from cerite.engine.run import Run
from cerite.engine.snapshot import pack, unpack

COUNTED = 1 << 26  # matches of a push that are counted by enumerating them
KEPT = 1 << 23  # events of matches that are held for a push whose matches were not read: about 100 MB


class EventStream:
    """Takes batches of one schema and gives the matches each completes.

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
    """

    def __init__(self, program: Program, *, counting: bool = False) -> None:
        self._program = program
        self._run = Run(program)
        self._counting = counting and program.plan.counts_without_enumerating
        self._unread: Iterator[MatchChunk] | None = None  # what the last push has left to enumerate
        self._latest: weakref.ref[Pushed] | None = None  # who might still read it
        self._broken = False

    @property
    def rows(self) -> int:
        """How many events have been pushed."""
        return self._run.intake.rows

    def push(self, batch: Any) -> Matches:
        """The matches that these events complete; they can be read at any time later.

        `batch` is an Arrow table or batch, a pandas or Polars frame, dictionaries, or one dictionary, with exactly the
        stream's columns. Values of another type are taken if none of them changes, else the push is refused; a push
        that is refused changes nothing.
        """
        self._check_whole()
        events = batch_of(batch, self._program.schema)
        self._finish()
        with self._breaking():
            self._run.recycle()
        try:
            rows = self._run.intake.take(events)
        except StreamError as error:
            if error.hint is not None and "order_by" in str(error.hint):  # data at rest is sorted, a stream is not
                error.hint = "push the events in that order; what comes late cannot be put before what was pushed"
            raise
        with self._breaking():
            count = self._run.counter.read(rows).matches if self._counting else None
            self._unread = self._reading(self._run.recogniser.read(rows))
        pushed = Pushed(self._program.plan, self._unread, count)
        self._latest = weakref.ref(pushed)
        return pushed

    def snapshot(self) -> bytes:
        """The whole state, to be restored by a stream of the same query, schema and columns."""
        self._check_whole()
        self._finish()
        with self._breaking():
            return pack("stream", self._identity(), self._run.state(counting=self._counting))

    def restore(self, data: bytes) -> None:
        """Continue, in a fresh stream of the same query, where a snapshot was taken."""
        if self.rows:
            raise StreamError("events were pushed already", hint="restore into a fresh stream: query.stream(schema)")
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise SnapshotError(f"a snapshot is bytes, not {type(data).__name__}")
        meta, arrays = unpack(bytes(data), "stream")
        self._check_identity(meta)
        if self._counting and "counter" not in arrays:
            raise SnapshotError(
                "the snapshot was taken of a stream that does not count", hint="open the stream without counting=True"
            )
        if not self._counting:
            arrays.pop("counter", None)
        fresh = Run(self._program)  # apart: what cannot be restored changes nothing
        fresh.restore(arrays)
        self._run = fresh

    def _identity(self) -> dict[str, Any]:
        """What must be the same where a snapshot is taken and where it is restored."""
        plan, columns = self._program.plan, self._program.columns
        guards = "; ".join(map(str, plan.guards))
        clauses = f"{plan.semantics} {plan.strategy} {plan.window} {plan.partition} {plan.consume} {plan.limit}"
        return {
            "query": f"{guards} | {clauses}",
            "schema": {column.name: str(column.type) for column in self._program.schema},
            "columns": {"time": columns.time, "type": columns.type, "position": columns.position},
            "unit": columns.unit,
        }

    def _check_identity(self, taken: dict[str, Any]) -> None:
        mine = self._identity()
        if taken["query"] != mine["query"]:
            raise SnapshotError("the snapshot was taken with another query", hint="restore it with the query it is of")
        there, here = taken["schema"], mine["schema"]
        if list(there.items()) != list(here.items()):
            differing = [name for name in {**there, **here} if there.get(name) != here.get(name)]
            told = "; ".join(
                f"`{name}` is {there.get(name, 'missing')} there and {here.get(name, 'missing')} here"
                for name in differing[:3]
            )
            raise SnapshotError(
                f"the snapshot was taken with other columns: {told or 'they are in another order'}",
                hint="restore it into a stream of the schema it was taken with",
            )
        for role, name in mine["columns"].items():
            if taken["columns"][role] != name:
                raise SnapshotError(
                    f"the snapshot was taken with {_named(role, taken['columns'][role])}, "
                    f"but this stream has {_named(role, name)}",
                    hint="open the stream with the same columns: query.stream(schema, time=…, type=…, position=…)",
                )

        if taken["unit"] != mine["unit"]:
            raise SnapshotError(
                f"the snapshot was taken with times in {taken['unit']}, but this stream has {mine['unit']}",
                hint=Hint("open the stream with ", Setting("time_unit", taken["unit"])),
            )

    def _check_whole(self) -> None:
        if self._broken:
            raise StreamError(
                "the stream broke off inside a push, so what it holds is not known",
                hint="restore a snapshot into a new stream, and push again what came after it",
            )

    @contextmanager
    def _breaking(self) -> Iterator[None]:
        """A failure in here leaves the engine between two events: the stream cannot go on."""
        try:
            with in_plain_words("find the matches"):
                yield
        except GeneratorExit:
            raise
        except BaseException:
            self._broken = True
            raise

    def _reading(self, chunks: Iterator[MatchChunk]) -> Iterator[MatchChunk]:
        with self._breaking():
            yield from chunks

    def _finish(self) -> None:
        """Before the stream goes on: hold what the last push found, if anyone can still ask for it."""
        if self._unread is None:
            return
        pushed = None if self._latest is None else self._latest()
        if pushed is not None:
            pushed.hold()
        self._run.recogniser.discard(self._unread)
        self._unread = self._latest = None
        self._check_whole()


def _named(role: str, name: str | None) -> str:
    return f"no {role} column" if name is None else f"the {role} column `{name}`"


class Pushed(Matches):
    """The matches of one push: found when they are read, held for reading again as far as they fit."""

    def __init__(self, plan: Plan, chunks: Iterator[MatchChunk], count: int | None) -> None:
        self.variables = plan.variables if plan.semantics == "valuations" else ()
        self.labels = plan.automaton.labels
        self.partition = plan.partition
        self._rest = chunks
        self._count = count
        self._held: list[MatchChunk] = []
        self._size = 0  # events of the matches held
        self._seen = 0  # matches read so far
        self._gone = False  # whether a chunk after the held ones was read, or given up, and not held
        self._over = False  # whether the stream has gone on

    def chunks(self) -> Iterator[MatchChunk]:
        """The matches in flat arrays, some at a time; what was read before comes again."""
        at = 0
        while at < len(self._held) or not self._gone:
            if at == len(self._held):
                chunk = self._next()
                if chunk is None:
                    return
                if self._gone:  # too much to hold: this reader, the first to come here, gets the rest as it is found
                    yield chunk
                    yield from self._unheld()
                    return
            yield self._held[at]
            at += 1
        self._refuse()

    def count(self) -> int:
        """How many matches the pushed events complete."""
        if self._count is None:
            for _ in self.chunks():
                if self._seen > COUNTED:
                    raise StreamError(
                        f"this push completes more than {COUNTED:,} matches, which are counted one by one",
                        hint="open the stream with counting=True, or add LIMIT or a selection strategy",
                    )
        assert self._count is not None
        return self._count

    def exists(self) -> bool:
        """Whether there is any match."""
        return super().exists() if self._count is None else self._count > 0

    def hold(self) -> None:
        """Hold what was not read yet, as far as it fits: the stream is about to go on."""
        while not self._gone and self._next() is not None:
            pass
        self._over = True

    def _unheld(self) -> Iterator[MatchChunk]:
        while (chunk := self._next()) is not None:
            yield chunk
        if self._over:
            self._refuse()

    def _next(self) -> MatchChunk | None:
        """The next chunk, held if it fits; None at the end, when the count is known too."""
        chunk = None if self._over else next(self._rest, None)
        if chunk is None:
            if self._count is None and not self._over:
                self._count = self._seen
            return None
        self._seen += len(chunk)
        self._size += len(chunk) + chunk.positions.size
        if not self._gone and self._size <= KEPT:
            self._held.append(chunk)
        else:
            self._gone = True
        return chunk

    def _refuse(self) -> None:
        said = "" if self._count is None else f" {self._count:,}"
        raise StreamError(
            f"the{said} matches of this push are too many to be held, and were "
            + ("not read before the stream went on" if self._over else "read once already"),
            hint="read or write them before the next push, once; or add LIMIT or a selection strategy",
        )


def stream_schema(schema: Any) -> pa.Schema:
    """The columns of a stream: an Arrow schema, a mapping of names to types, or data to take them from."""
    found = typed(schema)
    repeated = sorted({name for name in found.names if found.names.count(name) > 1})
    if repeated:
        raise StreamError(f"the stream has two columns called {listed(repeated)}", hint="rename one of them")
    if not found.names:
        raise StreamError("the stream has no columns", hint="name them with their types: {'type': 'string', …}")
    return found
