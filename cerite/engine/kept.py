"""The events that matches may still contain, by position: what a live run keeps of the stream.

Rows are kept while the engine holds their positions, so memory follows what can still match for every kind of window
and for none. Looking what the engine holds costs as much as it holds; it is done when twice as much is kept as the
last time.

Invariant: every position that a node of the tECS names is here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cerite.core.arrays import Longs
from cerite.engine.events.batches import joined, merging, packed, tidied, unpacked

FEWEST = 1 << 12  # rows that are never worth clearing up; tests begin with less


class KeptRows:
    """Rows in the order of their positions, in parts of falling size."""

    def __init__(self) -> None:
        self._parts: list[tuple[Longs, pa.RecordBatch]] = []
        self._enough = FEWEST

    def __len__(self) -> int:
        return sum(positions.size for positions, _ in self._parts)

    @property
    def full(self) -> bool:
        """Whether there is twice as much as when it was last cleared up."""
        return len(self) > self._enough

    def add(self, positions: Longs, rows: pa.RecordBatch) -> None:
        """Keep more rows, whose positions come after all others."""
        if not positions.size:
            return
        self._parts.append((positions, rows))
        first = merging([each.size for each, _ in self._parts])
        if first is not None:
            self._merge(first)

    def prune(self, needed: Longs) -> None:
        """Keep only rows at these positions, which rise."""
        parts = []
        for positions, rows in self._parts:
            mine = np.flatnonzero(np.isin(positions, needed, assume_unique=True))
            if mine.size == positions.size:
                parts.append((positions, rows))
            elif mine.size:
                parts.append((positions[mine], tidied(rows.take(pa.array(mine)))))
        self._parts = parts
        if parts:
            self._merge(0)
        self._enough = max(FEWEST, 2 * len(self))

    def take(self, positions: Longs) -> pa.RecordBatch | None:
        """The rows at these positions, which rise; None if there is nothing kept."""
        pieces = []
        for mine, rows in self._parts:
            begin, stop = np.searchsorted(positions, (mine[0], mine[-1] + 1))
            if begin < stop:
                pieces.append(rows.take(pa.array(np.searchsorted(mine, positions[begin:stop]))))
        return joined(pieces) if pieces else None

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """What a snapshot keeps."""
        if not self._parts:
            return {}
        self._merge(0)
        positions, rows = self._parts[0]
        return {"positions": positions, "rows": packed(rows)}

    def restore(self, kept: dict[str, npt.NDArray[Any]]) -> None:
        """Continue with the rows of a snapshot."""
        self._parts = []
        if "rows" in kept:
            self._parts = [(kept["positions"].astype(np.int64), unpacked(kept["rows"].view(np.uint8)))]
        self._enough = max(FEWEST, 2 * len(self))

    def _merge(self, first: int) -> None:
        some = self._parts[first:]
        if len(some) > 1:
            whole = np.concatenate([positions for positions, _ in some]), joined([rows for _, rows in some])
            self._parts[first:] = [whole]
