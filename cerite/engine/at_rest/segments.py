"""A stream cut by time: T-CER (DEBS 2024, listing 4) inside a process.

Every segment holds the window before its own events, so a run that reads both finds all matches that end at its own.

Invariants: every match ends in one segment, which has all that decides it; the events that are read twice are at most a
third, unless the rhythm changes within a segment. Where a stream cannot be cut any further, or its events give so many
matches that their order keeps one thread busy anyway, the last segment goes on to the end of the stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from cerite.core.arrays import Longs
from cerite.engine.bind import Program

Batches = Iterable[pa.RecordBatch]

LOOK_BACK = 1 << 10  # events in which the beginning of a window is first searched for
SPAN = 3  # a segment has at least so many events of its own for each that it reads before them


def uncut(program: Program, order: tuple[str, ...] | None = ()) -> str | None:
    """Why a stream is not cut for this program, None if it is; `order` are the columns that tell events apart."""
    beyond = program.plan.beyond_window
    if beyond is not None:
        return beyond.reason
    by_time = program.measured is not None and program.measured.name == program.columns.time
    if program.plan.partition and not by_time:
        return "the window is one of each partition"
    if order and not by_time:
        return "events are distinguished by columns that the window does not measure"
    return None


class Segment(NamedTuple):
    """Events whose matches are reported (`own`), those in the window `before` them, and the number of the first."""

    before: list[pa.RecordBatch]
    own: Batches
    first: int


def segments(program: Program, batches: Batches, size: Callable[[], int], piece: int) -> Iterator[Segment]:
    """The stream, cut into segments of the `size` that is right at that moment, or longer if windows have many events.

    The events read before a segment are at most a third of it, unless the rhythm changes within it. A size of 0 ends
    the cutting: events that give very many matches, in their order, keep one thread busy whatever the others do. A
    segment is read in pieces of at most `piece` events.
    """
    stream = Pieces(batches)
    behind: list[pa.RecordBatch] = []  # the events in the window before the next one
    first = 0  # the number of the first of them
    while (batch := stream.next(min(size() or piece, piece))) is not None:
        behind, dropped = _within_reach(program, behind, batch)
        first += dropped or 0
        if dropped is None or not size():
            yield Segment(behind, chain([batch], stream.all(lambda: piece)), first)
            return
        events = max(size(), SPAN * sum(each.num_rows for each in behind))
        more, failure = stream.several(events - batch.num_rows, piece)
        own = [batch, *more]
        yield Segment(behind, own, first)
        if failure is not None:
            raise failure
        behind = [*behind, *own]


class Pieces:
    """A stream in pieces of its batches, each with as many events as its reader wants at that moment.

    >>> stream = Pieces([pa.record_batch({"v": [1, 2, 3]}), pa.record_batch({"v": [4, 5]})])
    >>> [piece["v"].to_pylist() for piece in stream.all(lambda: 2)]
    [[1, 2], [3], [4, 5]]
    """

    def __init__(self, batches: Batches) -> None:
        self._batches = iter(batches)
        self._left: pa.RecordBatch | None = None  # of the last batch

    def next(self, most: int) -> pa.RecordBatch | None:
        """The next events, at most so many; None at the end."""
        while not self._left:
            self._left = next(self._batches, None)
            if self._left is None:
                return None
        piece, self._left = self._left.slice(0, most), self._left.slice(most)
        return piece

    def several(self, events: int, most: int) -> tuple[list[pa.RecordBatch], BaseException | None]:
        """So many events, in pieces with at most `most`, and the error that came after them, if any."""
        some, left = list[pa.RecordBatch](), events
        try:
            while left > 0 and (piece := self.next(min(left, most))) is not None:
                some.append(piece)
                left -= piece.num_rows
        except BaseException as failure:
            return some, failure
        return some, None

    def all(self, most: Callable[[], int]) -> Iterator[pa.RecordBatch]:
        """The rest of the stream, in pieces with at most `most` events."""
        while (piece := self.next(most())) is not None:
            yield piece


def _within_reach(
    program: Program, behind: list[pa.RecordBatch], batch: pa.RecordBatch
) -> tuple[list[pa.RecordBatch], int | None]:
    """The events before a batch that it can bind, at least one, and how many are dropped (None: that is not known).

    Looks back no further than it must: events out of order before that are refused where they are read.
    """
    total = sum(each.num_rows for each in behind)
    size = LOOK_BACK
    while behind:
        keys, low = _reach(program, last_of(behind, size), batch.slice(0, 1))
        if keys is None or bool((keys[1:] < keys[:-1]).any()):
            return behind, None
        out = min(int(np.searchsorted(keys, low)), keys.size - 1)
        if out or size >= total:
            return last_of(behind, keys.size - out), total - keys.size + out
        size *= 4
    return behind, 0


def last_of(batches: list[pa.RecordBatch], count: int) -> list[pa.RecordBatch]:
    """The last `count` events."""
    some: list[pa.RecordBatch] = []
    for each in reversed(batches):
        if count <= 0:
            break
        some.append(each.slice(max(each.num_rows - count, 0)))
        count -= each.num_rows
    return some[::-1]


def _reach(program: Program, behind: list[pa.RecordBatch], event: pa.RecordBatch) -> tuple[Longs | None, int]:
    """The keys of events, and the least key at which a match may start that ends at the event after them."""
    window, measured = program.plan.window, program.measured
    assert window is not None
    if measured is None:
        count = sum(each.num_rows for each in behind)
        return np.arange(count, dtype=np.int64), count - (int(window.amount) - 1)
    parts = [measured.keys(each) for each in (*behind, event)]
    if any(missing is not None for _, _, missing in parts):
        return None, 0
    return np.concatenate([key for key, _, _ in parts[:-1]]), int(parts[-1][1][0])
