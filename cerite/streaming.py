"""Streams that keep coming: push batches, take the matches that each completes, snapshot between them.

Results do not depend on where batches are cut, nor on snapshots and restores in between. Counting runs beside finding,
so the count of a batch is exact and cheap even where enumerating it is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cerite.engine.engines import counter_of, recogniser_of
from cerite.engine.intake import Columns, Intake
from cerite.engine.matches import Matches as Chunk
from cerite.engine.plan import Plan
from cerite.engine.snapshot import pack, unpack
from cerite.errors import SnapshotError, StreamError
from cerite.results import Matches

Batch = Any  # pa.RecordBatch, pa.Table, or a sequence of dictionaries


class EventStream:
    """Takes batches of one schema and gives the matches each completes.

    >>> import cerite, pyarrow as pa
    >>> q = cerite.query("SELECT * FROM S WHERE A AS x ; B AS y WITHIN 5 EVENTS")
    >>> stream = q.stream(pa.schema([("type", pa.string())]))
    >>> stream.push([{"type": "A"}]).count()
    0
    >>> saved = stream.snapshot()
    >>> again = q.stream(pa.schema([("type", pa.string())]))
    >>> again.restore(saved)
    >>> [str(match) for match in again.push([{"type": "B"}])]
    ['[0,1] A=0, B=1, x=0, y=1']
    """

    def __init__(self, plan: Plan, schema: pa.Schema, columns: Columns) -> None:
        self._plan = plan
        self._schema = schema
        self._intake = Intake(plan, schema, columns)
        self._recogniser = recogniser_of(self._intake)
        self._counter = counter_of(self._intake) if plan.counts_without_enumerating else None
        self._unread: Iterator[Chunk] | None = None

    @property
    def rows(self) -> int:
        """How many events have been pushed."""
        return self._intake.rows

    def push(self, batch: Batch) -> Matches:
        """The matches that these events complete; they can be read until the next push."""
        self._finish()
        tables = self._batches(batch)
        count = 0 if self._counter is not None else None
        chunks: list[Iterator[Chunk]] = []
        for each in tables:
            rows = self._intake.take(each)
            if self._counter is not None and count is not None:
                count += self._counter.read(rows).matches
            self._unread = self._recogniser.read(rows)
            if len(tables) > 1:
                chunks.append(iter(list(self._unread)))
                self._unread = None
        return Pushed(self._plan, chunks if self._unread is None else [self._unread], count)

    def snapshot(self) -> bytes:
        """The whole state, to be restored by a stream of the same query and schema."""
        self._finish()
        arrays: dict[str, npt.NDArray[Any]] = {
            "recogniser": np.frombuffer(self._recogniser.snapshot(), np.uint8),
            **{f"intake.{name}": value for name, value in self._intake.state().items()},
        }
        if self._counter is not None:
            arrays["counter"] = np.frombuffer(self._counter.snapshot(), np.uint8)
        return pack("stream", {"schema": str(self._schema), "plan": self._fingerprint()}, arrays)

    def restore(self, data: bytes) -> None:
        """Continue, in a fresh stream of the same query, where a snapshot was taken."""
        if self.rows:
            raise StreamError("events were pushed already", hint="restore into a fresh stream: query.stream(schema)")
        meta, arrays = unpack(data, "stream")
        if meta["plan"] != self._fingerprint():
            raise SnapshotError("the snapshot was taken with another query")
        if meta["schema"] != str(self._schema):
            raise SnapshotError("the snapshot was taken with other columns")
        self._recogniser.restore(arrays["recogniser"].tobytes())
        if self._counter is not None:
            self._counter.restore(arrays["counter"].tobytes())
        prefix = "intake."
        self._intake.restore(
            {name.removeprefix(prefix): each for name, each in arrays.items() if name.startswith(prefix)}
        )

    def _fingerprint(self) -> str:
        plan = self._plan
        guards = "; ".join(map(str, plan.guards))
        return f"{guards} | {plan.semantics} {plan.strategy} {plan.window} {plan.partition} {plan.consume} {plan.limit}"

    def _batches(self, batch: Batch) -> list[pa.RecordBatch]:
        if isinstance(batch, pa.RecordBatch):
            found = [batch]
        elif isinstance(batch, pa.Table):
            found = batch.combine_chunks().to_batches()
        else:
            found = [pa.RecordBatch.from_pylist(list(batch), schema=self._schema)]
        for each in found:
            if each.schema.names != self._schema.names:
                raise StreamError(f"a batch has other columns than the stream: {', '.join(each.schema.names)}")
        return found

    def _finish(self) -> None:
        if self._unread is not None:
            self._recogniser.discard(self._unread)
            self._unread = None


class Pushed(Matches):
    """The matches of one push; they can be read once, until the next push."""

    def __init__(self, plan: Plan, chunks: list[Iterator[Chunk]], count: int | None) -> None:
        self.variables = plan.variables if plan.semantics == "valuations" else ()
        self.labels = plan.automaton.labels
        self._chunks = chunks
        self._count = count
        self._read: list[Chunk] = []

    def chunks(self) -> Iterator[Chunk]:
        """The matches in flat arrays, some at a time; what was read before comes again."""
        yield from list(self._read)
        for chunks in self._chunks:
            for chunk in chunks:
                self._read.append(chunk)
                yield chunk

    def count(self) -> int:
        """How many matches the pushed events complete."""
        if self._count is None:
            self._count = sum(len(chunk) for chunk in self.chunks())
        return self._count
