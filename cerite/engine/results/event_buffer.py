"""The events that matches may still contain, by position: what a live run keeps of the stream.

Rows are kept while the engine holds their positions, so memory follows what can still match, for every kind of window
and without one. To look through all that the engine holds takes time in proportion to it, and is done when the buffer
has doubled since the last time.

Invariant: every position that a node of the tECS names is here, and which of them are tied with one before them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from cerite.core.arrays import Arrays, Longs
from cerite.engine.events.batches import joined, merging, packed, tidied, unpacked
from cerite.engine.results.match_ids import UNMARKED, numbered
from cerite.engine.results.output import MatchChunk
from cerite.engine.results.ties import Ties

FEWEST = 1 << 12  # up to so many rows are not worth clearing up; tests begin with less


class Placed(NamedTuple):
    """Matches whose positions are places in a batch, that batch (their events, once each), and marks for the ids."""

    matches: MatchChunk
    rows: pa.RecordBatch
    marks: Longs
    positions: Longs  # of the rows, rising


class EventBuffer:
    """Rows in the order of their positions, in parts of falling size; `ties` finds those that need a mark."""

    def __init__(self, ties: Ties | None = None) -> None:
        self._parts: list[tuple[Longs, pa.RecordBatch]] = []
        self._enough = FEWEST
        self._ties = ties
        self._tied: Longs = np.zeros(0, np.int64)  # positions, rising

    def __len__(self) -> int:
        return sum(positions.size for positions, _ in self._parts)

    @property
    def full(self) -> bool:
        """Whether there is twice as much as after it was last cleared up."""
        return len(self) > self._enough

    def add(self, positions: Longs, rows: pa.RecordBatch) -> None:
        """Keep more rows, whose positions come after all others."""
        if not positions.size:
            return
        if self._ties is not None and not self._ties.everything:
            self._tied = np.concatenate([self._tied, positions[self._ties.of(rows)]])
        self._parts.append((positions, rows))
        first = merging([each.size for each, _ in self._parts])
        if first is not None:
            self._merge(first)

    def add_some(self, positions: Longs, rows: pa.RecordBatch, relevant: Longs) -> None:
        """Keep those of more rows that are relevant."""
        self.add(positions[relevant], rows if relevant.size == rows.num_rows else rows.take(pa.array(relevant)))

    def prune(self, needed: Longs) -> None:
        """Keep only the rows at these rising positions."""
        parts = []
        for positions, rows in self._parts:
            mine = np.flatnonzero(np.isin(positions, needed, assume_unique=True))
            if mine.size == positions.size:
                parts.append((positions, rows))
            elif mine.size:
                parts.append((positions[mine], tidied(rows.take(pa.array(mine)))))
        self._parts = parts
        self._tied = self._tied[np.isin(self._tied, needed, assume_unique=True)]
        if parts:
            self._merge(0)
        self._enough = max(FEWEST, 2 * len(self))

    def take(self, positions: Longs) -> pa.RecordBatch | None:
        """The rows at these rising positions; None if the buffer is empty."""
        pieces = []
        for mine, rows in self._parts:
            begin, stop = np.searchsorted(positions, (mine[0], mine[-1] + 1))
            if begin < stop:
                pieces.append(rows.take(pa.array(np.searchsorted(mine, positions[begin:stop]))))
        return joined(pieces) if pieces else None

    def placed(self, chunk: MatchChunk) -> Placed:
        """The matches with their events, which are all in the buffer."""
        needed, places = numbered(np.concatenate([chunk.starts, chunk.ends, chunk.positions]))
        rows = self.take(needed)
        assert rows is not None
        return Placed(chunk.placed(places), rows, self.marks(needed), needed)

    def marks(self, positions: Longs) -> Longs:
        """The marks of these positions: the position itself where a row is tied with one before it."""
        if self._ties is not None and self._ties.everything:
            return positions
        if not self._tied.size:
            return np.full(positions.size, UNMARKED, np.int64)
        return np.where(np.isin(positions, self._tied, assume_unique=True), positions, UNMARKED)

    def state(self) -> Arrays:
        """What a snapshot keeps."""
        ties = {} if self._ties is None else {f"ties.{name}": each for name, each in self._ties.state().items()}
        if not self._parts:
            return ties
        self._merge(0)
        positions, rows = self._parts[0]
        return {"positions": positions, "rows": packed(rows), "tied": self._tied, **ties}

    def restore(self, state: Arrays) -> None:
        """Continue with the rows of a snapshot."""
        self._parts = []
        if "rows" in state:
            self._parts = [(state["positions"].astype(np.int64), unpacked(state["rows"].view(np.uint8)))]
        self._tied = state["tied"].astype(np.int64) if "tied" in state else self._tied[:0]
        if self._ties is not None:
            self._ties.restore({"last": state["ties.last"]} if "ties.last" in state else {})
        self._enough = max(FEWEST, 2 * len(self))

    def _merge(self, first: int) -> None:
        some = self._parts[first:]
        if len(some) > 1:
            whole = np.concatenate([positions for positions, _ in some]), joined([rows for _, rows in some])
            self._parts[first:] = [whole]
