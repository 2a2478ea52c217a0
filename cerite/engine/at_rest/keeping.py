"""A run over data at rest that keeps the events of its matches: `Run` for callers that want more than positions.

Invariant: an event is kept while a match to come may contain it; memory follows what can still match, and a source that
can be read only once is read only once.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from cerite.engine.bind import Program
from cerite.engine.results.event_buffer import EventBuffer, Placed
from cerite.engine.results.output import MatchChunk
from cerite.engine.results.ties import Ties
from cerite.engine.run import Run


class KeepingRun:
    """One reading of a stream whose batches have the program's columns, those of `order`, and perhaps more.

    >>> from cerite.engine.bind import bind
    >>> from cerite.engine.events.rows import Columns
    >>> from cerite.engine.plan import plan
    >>> from cerite.language.ceql import parse_query
    >>> query = parse_query("SELECT * FROM S WHERE A ; B")
    >>> program = bind(plan(query), pa.schema({"type": pa.string()}), Columns("type"))
    >>> batch = pa.record_batch({"type": ["A", "C", "B"], "v": [1, 2, 3]})
    >>> [(chunk.positions.tolist(), placed.rows["v"].to_pylist()) for chunk, placed in KeepingRun(program).find(batch)]
    [([0, 2], [1, 3])]
    """

    def __init__(self, program: Program, order: tuple[str, ...] | None = None) -> None:
        """`order` names the columns that order events; None if something other than columns tells events apart."""
        self.run = Run(program)
        self.intake = self.run.intake
        self._buffer = EventBuffer(None if order is None else Ties(order, program.plan.partition))

    def find(self, batch: pa.RecordBatch) -> Iterator[tuple[MatchChunk, Placed]]:
        """The matches that end in the next batch, with their events; to be read to the end before another batch."""
        for chunk in self._read(batch):
            yield chunk, self._buffer.placed(chunk)

    def pass_over(self, batch: pa.RecordBatch) -> None:
        """Read the next batch without enumerating the matches that end in it."""
        chunks = self._read(batch)
        self.run.recogniser.discard(chunks)

    def _read(self, batch: pa.RecordBatch) -> Iterator[MatchChunk]:
        if self._buffer.full:
            self.run.recycle(now=True)
            self._buffer.prune(self.run.recogniser.still_needed())
        else:
            self.run.recycle()
        rows = self.run.intake.take(batch)
        chunks = self.run.read(rows)
        self._buffer.add_some(rows.position, rows.batch, self.run.recogniser.relevant)
        return chunks

    def rest(self) -> Iterator[tuple[MatchChunk, Placed]]:
        """The matches that are decided because nothing more will come, with their events."""
        for chunk in self.run.rest():
            yield chunk, self._buffer.placed(chunk)
