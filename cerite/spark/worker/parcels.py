"""Before the exchange of data at rest: the rows of a task become parcels, one binary of Arrow for each task they go to.

So Spark moves a few large values instead of rows, and neither sorts rows nor turns them into Arrow a second time; what
a row needs to find its way does not travel. Invariant: the parcels of a task hold each of its rows once, or under T-CER
once for every chunk that reads it, with the number of the chunk and whether the chunk owns it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from cerite.core.arrays import Flags, Longs, distinct
from cerite.engine.events.keys import Numbers, numbers
from cerite.engine.results.match_ids import FILE, ROW
from cerite.spark.worker import Batches
from cerite.spark.worker.job import CHUNK, OWNED, Cut, Job, Number
from cerite.spark.worker.narrow import narrowed
from cerite.spark.worker.packing import gathered, written

PARCELS = "placement int, parcel binary"
FLUSH_ROWS, FLUSH_BYTES = 1 << 20, 1 << 25  # rows that are sorted into parcels at once
PARCEL_BYTES = 1 << 25  # a parcel is larger only if a single row is
_FEW_ENDS = 8
_SCHEMA = pa.schema([("placement", pa.int32()), ("parcel", pa.binary())])


@dataclass(frozen=True)
class Addresses:
    """Which task a row goes to; it travels to the workers.

    `columns` are the names of the columns that arrive; `bucket` is the one with the number of the row's bucket, None if
    all rows are in bucket 0. A bucket in `cuts` is cut into chunks by the column `clock`. A bucket without cuts is the
    unit with its own number, chunk c of another is unit `first[bucket] + c`; `tasks` are those of the units, and
    `placement` has, for each task, the integer that Spark's hash sends to it. Where rows are `numbered`, they come in
    the order of their numbers (`ROW`), of which only the order matters, and no other parcel's numbers lie between those
    of a parcel.
    """

    columns: tuple[str, ...]
    bucket: str | None
    clock: str | None
    cuts: Mapping[int, tuple[Cut, ...]]
    first: Mapping[int, int]
    tasks: tuple[int, ...]
    placement: tuple[int, ...]
    numbered: bool = False


@dataclass(frozen=True)
class Copies:
    """Rows by their places, each as often as chunks read it: where each copy goes, its chunk, and whether that owns it.

    Copies for the chunks that own them come first, as the rows lie. No other row in a chunk has the same time as one of
    these, so that the columns that break ties still rise wherever they decide.
    """

    place: Longs | None
    task: Longs
    chunk: Longs
    owned: Flags


def sender(job: Job, addresses: Addresses) -> Callable[[Batches], Batches]:
    """The function for `mapInArrow`: rows in, parcels out."""

    def sent(batches: Batches) -> Batches:
        for rows in gathered(batches, FLUSH_ROWS, FLUSH_BYTES):
            yield from posted(job, addresses, rows.rename_columns(list(addresses.columns)))

    return sent


def posted(job: Job, addresses: Addresses, rows: pa.RecordBatch) -> Batches:
    """The parcels of some rows, task by task."""
    copies = addressed(addresses, rows)
    events = rows.select([name for name in job.columns if name in rows.schema.names])
    if FILE in job.columns and FILE not in rows.schema.names:  # there is one file
        events = events.append_column(FILE, pa.array(np.zeros(rows.num_rows, np.int64)))
    tasks = distinct(copies.task) if len(addresses.placement) > 1 else copies.task[:1]
    order = copies.place
    if tasks.size > 1:
        by_task = _by_task(copies.task, len(addresses.placement))
        order = by_task if order is None else order[by_task]
        copies = Copies(order, copies.task[by_task], copies.chunk[by_task], copies.owned[by_task])
    events = events if order is None else events.take(pa.array(order))
    if job.owned:
        events = events.append_column(CHUNK, pa.array(copies.chunk.astype(np.int32)))
        events = events.append_column(OWNED, pa.array(copies.owned))
    events = events.select(list(job.columns))
    ends = np.append(np.searchsorted(copies.task, tasks), copies.task.size)
    for task, (begin, stop) in zip(tasks.tolist(), pairwise(ends.tolist()), strict=True):
        for part in _portions(events.slice(begin, stop - begin)):
            payload = [written(narrowed(_renumbered(part) if addresses.numbered else part))]
            placed = pa.array([addresses.placement[task]], pa.int32())
            yield pa.RecordBatch.from_arrays([placed, pa.array(payload, pa.binary())], schema=_SCHEMA)


def _renumbered(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows under consecutive numbers, starting with the first one's, which take no room in a parcel."""
    place = rows.schema.get_field_index(ROW)
    first = rows.column(place)[0].as_py()
    return rows.set_column(place, ROW, pa.array(np.arange(first, first + rows.num_rows)))


def addressed(addresses: Addresses, rows: pa.RecordBatch) -> Copies:
    """Where the rows go."""
    count = rows.num_rows
    bucket = (
        np.zeros(count, np.int64)
        if addresses.bucket is None
        else rows.column(addresses.bucket).to_numpy(zero_copy_only=False).astype(np.int64)
    )
    tasks = np.array(addresses.tasks, np.int64)
    if not addresses.cuts:
        return Copies(None, tasks[bucket], np.zeros(count, np.int64), np.ones(count, np.bool_))
    assert addresses.clock is not None
    ticks, _ = numbers(rows.column(addresses.clock), addresses.clock)
    own, last, unit = np.zeros(count, np.int64), np.zeros(count, np.int64), bucket.copy()
    for number, cuts in addresses.cuts.items():
        mine = slice(None) if addresses.bucket is None else np.flatnonzero(bucket == number)
        own[mine], last[mine] = chunks_of(ticks[mine], cuts)
        unit[mine] = addresses.first[number]
    again = last - own + 1
    if count and int(again.max()) == 1:
        return Copies(None, tasks[unit + own], own, np.ones(count, np.bool_))
    read = np.flatnonzero(again > 1)
    more = np.repeat(read, again[read] - 1)
    before = np.cumsum(again[read] - 1) - (again[read] - 1)
    later = own[more] + 1 + np.arange(more.size) - np.repeat(before, again[read] - 1)
    place, chunk = np.append(np.arange(count), more), np.append(own, later)
    return Copies(place, np.append(tasks[unit + own], tasks[unit[more] + later]), chunk, np.arange(place.size) < count)


def chunks_of(ticks: Numbers, cuts: tuple[Cut, ...]) -> tuple[Longs, Longs]:
    """The chunk that owns each tick, and the last one that reads it.

    >>> own, last = chunks_of(np.array([4, 5, 8, 12]), (Cut(8, 5), Cut(12, 9)))
    >>> own.tolist(), last.tolist()
    ([0, 0, 1, 2], [0, 1, 1, 2])
    """
    return _reached(ticks, [cut.own for cut in cuts]), _reached(ticks, [cut.read for cut in cuts])


def _reached(ticks: Numbers, ends: Sequence[Number]) -> Longs:
    """How many of the rising ends are at or below each tick; to compare with a few of them is faster than to search."""
    exact = np.array(ends, ticks.dtype)
    if exact.size > _FEW_ENDS:
        return np.searchsorted(exact, ticks, side="right")
    reached = np.zeros(ticks.size, np.int64)
    for end in exact:
        reached += ~(ticks < end)  # NaN is beyond all
    return reached


def _by_task(task: Longs, tasks: int) -> Longs:
    """Places in the order of their tasks; these are few, and small numbers are sorted by counting."""
    return np.argsort(task.astype(np.uint16) if tasks <= 1 << 16 else task, kind="stable")


def _portions(rows: pa.RecordBatch) -> Batches:
    """The rows in parts that fit a parcel."""
    parts = -(-rows.nbytes // PARCEL_BYTES) or 1
    size = -(-rows.num_rows // parts)
    for begin in range(0, rows.num_rows, size):
        yield rows.slice(begin, size)
