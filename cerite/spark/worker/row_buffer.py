"""The rows that matches may still need, by position; they are put into one piece when they are needed.

Invariant: positions are those that the engine counts, from 0 in every run; `whole` begins at the first row that is
still kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

import pyarrow as pa

Tag = TypeVar("Tag")


class RowBuffer(Generic[Tag]):
    """Batches of rows in stream order, each with a tag that tells when it can be dropped."""

    def __init__(self) -> None:
        self._batches: deque[tuple[int, pa.RecordBatch, Tag]] = deque()
        self._whole: pa.RecordBatch | None = None
        self.seen = 0

    def add(self, rows: pa.RecordBatch, tag: Tag, stale: Callable[[Tag], bool]) -> None:
        """Add the next rows, after dropping stale ones at the beginning."""
        while self._batches and stale(self._batches[0][2]):
            self._batches.popleft()
        self._batches.append((self.seen, rows, tag))
        self.seen += rows.num_rows
        self._whole = None

    @property
    def whole(self) -> tuple[int, pa.RecordBatch]:
        """The position of the first row, and the rows from there on."""
        if self._whole is None:
            table = pa.Table.from_batches([rows for _, rows, _ in self._batches])
            self._whole = table.unify_dictionaries().combine_chunks().to_batches()[0]
        return self._batches[0][0], self._whole
