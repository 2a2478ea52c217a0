"""The matches of one push: enumerated when they are read, and buffered with their events to be read again.

Invariant: what a push returns stays readable. Before the stream goes on, matches that were not read are buffered with
their events, as many as fit into `BUFFERED`; if there are more, reading past those raises: nothing is silently empty.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from cerite.api.result import Matches, Rows
from cerite.api.shown import Selection
from cerite.core.arrays import Longs
from cerite.core.errors import StreamError
from cerite.engine.events.batches import tidied
from cerite.engine.live.live_run import Released
from cerite.engine.plan import Plan
from cerite.engine.results.event_buffer import Placed
from cerite.engine.results.match_ids import numbered
from cerite.engine.results.output import MatchChunk
from cerite.engine.results.shape import Shape

COUNTED = 1 << 26  # matches of a push that are counted by enumerating them
BUFFERED = 1 << 23  # events of matches buffered for a push whose matches were not read: about 100 MB


class _EventBuffer(NamedTuple):
    """Events by position, with their marks."""

    positions: Longs = np.zeros(0, np.int64)
    rows: pa.RecordBatch | None = None
    marks: Longs = np.zeros(0, np.int64)


class Pushed(Matches):
    """The matches that a push, `advance` or `close` completed, and the events that came too late (`late`)."""

    def __init__(
        self,
        plan: Plan,
        released: Released,
        shape: Shape,
        events: pa.Schema,
        selection: Selection,
        late: pa.Schema,
        type_column: str | None,
    ) -> None:
        self.variables = plan.variables if plan.semantics == "valuations" else ()
        self.labels = plan.automaton.labels
        self.partition = plan.partition
        self.type_column = type_column
        self.selection = selection
        self.shape = shape
        self.event_schema = events
        self._late_schema = late
        self._rest = released.chunks
        self._released: Released | None = released  # until the stream goes on
        self._late = released.late
        self._event_buffer = _EventBuffer()  # of the buffered matches, once the stream has gone on
        self._count = released.count
        self._suppressed = released.suppressed if plan.suppress is not None else 0
        self._buffered: list[MatchChunk] = []
        self._size = 0  # events of the buffered matches
        self._seen = 0  # matches read so far
        self._gone = False  # whether some chunk was read, or given up, without being buffered

    @property
    def late(self) -> pa.Table:
        """The pushed events that came too late to be read: their columns, `late_by`, and the `reason`.

        `late_by` is how far behind the watermark an event was, a duration where times are timestamps; the reason is
        "late", or "no time" with `late="side"`.
        """
        if self._late is None:
            return self._late_schema.empty_table()
        return pa.Table.from_batches([self._late])

    def chunks(self) -> Iterator[MatchChunk]:
        """The matches in flat arrays, some at a time; those that were read before are given again."""
        at = 0
        while at < len(self._buffered) or not self._gone:
            if at == len(self._buffered):
                chunk = self._next()
                if chunk is None:
                    return
                if self._gone:  # the buffer is full: this reader, the first to come here, gets the rest as it comes
                    yield chunk
                    yield from self._unbuffered()
                    return
            yield self._buffered[at]
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

    def suppressed(self) -> int:
        """How many more matches the pushed events complete that SUPPRESS left out."""
        if self._suppressed is None:
            raise StreamError(
                "what SUPPRESS leaves out is not counted in this stream",
                hint="open the stream with counting=True; a query with NEXT, LAST or MAX does not count",
            )
        return self._suppressed

    def exists(self) -> bool:
        """Whether there is any match."""
        return super().exists() if self._count is None else self._count > 0

    def placed(self) -> Iterator[tuple[MatchChunk, Placed]]:
        """The matches in flat arrays, some at a time, each chunk together with its events."""
        for chunk in self.chunks():
            needed, places = numbered(np.concatenate([chunk.starts, chunk.ends, chunk.positions]))
            rows, marks = self._events(needed)
            yield chunk, Placed(chunk.placed(places), rows, marks, needed)

    def fetch(self, positions: tuple[int, ...]) -> Rows:
        """The events at these positions."""
        if not positions:
            return []
        wanted = np.array(positions, np.int64)
        needed = np.unique(wanted)
        rows: Rows = self._events(needed)[0].take(pa.array(np.searchsorted(needed, wanted))).to_pylist()
        return rows

    def _events(self, needed: Longs) -> tuple[pa.RecordBatch, Longs]:
        """The events at these rising positions, and their marks."""
        if self._released is not None:
            rows = self._released.rows(needed)
            assert rows is not None
            return rows, self._released.marks(needed)
        places = np.searchsorted(self._event_buffer.positions, needed)
        if self._event_buffer.rows is None or (places == self._event_buffer.positions.size).any():
            self._refuse()
        assert self._event_buffer.rows is not None
        if not np.array_equal(self._event_buffer.positions[places], needed):
            self._refuse()
        return self._event_buffer.rows.take(pa.array(places)), self._event_buffer.marks[places]

    def hold(self) -> None:
        """Buffer what was not read yet, as far as it fits, with its events: the stream is about to go on."""
        while not self._gone and self._next() is not None:
            pass
        released, self._released = self._released, None
        if released is not None and self._buffered:
            ends = [array for chunk in self._buffered for array in (chunk.starts, chunk.ends, chunk.positions)]
            needed = np.unique(np.concatenate(ends))
            rows = released.rows(needed)
            self._event_buffer = _EventBuffer(needed, None if rows is None else tidied(rows), released.marks(needed))

    @property
    def _over(self) -> bool:
        """Whether the stream has gone on."""
        return self._released is None

    def _unbuffered(self) -> Iterator[MatchChunk]:
        while (chunk := self._next()) is not None:
            yield chunk
        if self._over:
            self._refuse()

    def _next(self) -> MatchChunk | None:
        """The next chunk, buffered if it fits; None at the end, when the count is known too."""
        chunk = None if self._over else next(self._rest, None)
        if chunk is None:
            if self._count is None and not self._over:
                self._count = self._seen
            return None
        self._seen += len(chunk)
        self._size += len(chunk) + chunk.positions.size
        if not self._gone and self._size <= BUFFERED:
            self._buffered.append(chunk)
        else:
            self._gone = True
        return chunk

    def _refuse(self) -> None:
        number = "" if self._count is None else f" {self._count:,}"
        raise StreamError(
            f"the{number} matches of this push are too many to keep, and were "
            + ("not read before the stream went on" if self._over else "read once already"),
            hint="read or write them before the next push, once; or add LIMIT or a selection strategy",
        )
