"""Behind the exchange: the parcels of a task become its rows, group by group and in stream order.

Rows are sorted in memory as long as they fit there; more than that are sorted in runs, which wait in temporary files
and are then merged. Columns are compared as 64-bit numbers in the order of their values, NULLs last, and only as many
of them as it takes to tell rows apart. Invariant: rows come in the order of `job.unit` and `job.order`, so that those
of a group are next to each other; about twice `MOST_IN_MEMORY` bytes of rows are in memory, however many there are.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cerite.core.arrays import Flags, Longs
from cerite.engine.events.keys import MOST, ordered
from cerite.spark.worker import Batches
from cerite.spark.worker.feed import PACK
from cerite.spark.worker.job import Job
from cerite.spark.worker.narrow import constants, first_number, joined, wide_bytes
from cerite.spark.worker.packing import read

MOST_IN_MEMORY = 1 << 27  # bytes of rows that are sorted at once
PIECE = 1 << 20  # bytes of a run that are looked at together
_DIGIT = 16  # width in bits of the numbers that NumPy sorts without comparing


def arrived(job: Job, batches: Batches) -> Batches:
    """The rows of all parcels, in order."""
    columns = tuple(dict.fromkeys((*job.unit, *job.order)))
    lead = len(job.unit) + 1
    held: list[pa.RecordBatch] = []
    size = 0
    runs = Runs(columns, lead)
    try:
        for batch in batches:
            for parcel in batch.column(0):
                held.append(read(parcel.as_buffer()))
                size += wide_bytes(held[-1])
                if size >= MOST_IN_MEMORY:
                    runs.add(_sorted(held, columns, lead))
                    size = 0
        if not runs.count:
            yield from _sorted(held, columns, lead)
            return
        runs.add(_sorted(held, columns, lead))
        yield from runs.merged()
    finally:
        runs.close()


def _sorted(batches: list[pa.RecordBatch], columns: Sequence[str], lead: int) -> Batches:
    """The rows of some parcels in order, piece by piece; the list is emptied, so as not to hold them twice for long."""
    if not batches:
        return
    rows, same = joined(_in_line(batches, columns[lead:])), constants(batches)
    batches.clear()
    order = order_of(rows, columns, lead)
    for begin in range(0, rows.num_rows, PACK):
        yield rows.slice(begin, PACK) if order is None else _taken(rows, begin, order[begin : begin + PACK], same)


def _taken(rows: pa.RecordBatch, begin: int, places: Longs, same: frozenset[str]) -> pa.RecordBatch:
    """The rows at some places; columns that are the same everywhere are not looked up."""
    at = pa.array(places)
    pairs = zip(rows.schema.names, rows.columns, strict=True)
    columns = [each.slice(begin, places.size) if name in same else each.take(at) for name, each in pairs]
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def _in_line(parcels: list[pa.RecordBatch], columns: Sequence[str]) -> list[pa.RecordBatch]:
    """The parcels sorted by what breaks ties in their first rows, if that is numbers: mostly, this sorts all rows."""
    firsts = [tuple(first_number(parcel, name) for name in columns) for parcel in parcels]
    if any(number is None for first in firsts for number in first):
        return parcels
    return [parcels[place] for place in sorted(range(len(parcels)), key=firsts.__getitem__)]


def _one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


class Runs:
    """Sorted runs in temporary files, and the merge of them."""

    def __init__(self, columns: Sequence[str], lead: int) -> None:
        self._columns, self._lead = columns, lead
        self._folder: Path | None = None
        self.count = 0

    def add(self, pieces: Batches) -> None:
        """Write another run."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="cerite-", dir=_local_folder()))
        writer: pa.ipc.RecordBatchFileWriter | None = None
        for rows in pieces:
            if writer is None:
                writer = pa.ipc.new_file(str(self._folder / f"{self.count}"), rows.schema)
            size = max(1, rows.num_rows * PIECE // max(rows.nbytes, PIECE))
            for begin in range(0, rows.num_rows, size):
                writer.write_batch(rows.slice(begin, size))
        if writer is not None:
            writer.close()
            self.count += 1

    def merged(self) -> Batches:
        """The rows of all runs in order: in each step, those up to the first end of a piece in any run."""
        waiting = [_pieces(self._folder / str(number)) for number in range(self.count) if self._folder is not None]
        heads = [next(pieces) for pieces in waiting]
        while heads:
            rows = _one(heads)
            order = order_of(rows, self._columns, self._lead)
            order = np.arange(rows.num_rows) if order is None else order
            rank = np.empty(order.size, np.int64)
            rank[order] = np.arange(order.size)
            ends = np.cumsum([head.num_rows for head in heads])
            certain = order[: int(rank[ends - 1].min()) + 1]
            yield rows.take(pa.array(certain))
            taken = np.bincount(np.searchsorted(ends, certain, side="right"), minlength=len(heads)).tolist()
            left = [(head.slice(count), pieces) for head, count, pieces in zip(heads, taken, waiting, strict=True)]
            left = [(head if head.num_rows else next(pieces, None), pieces) for head, pieces in left]
            heads, waiting = [], []
            for head, pieces in left:
                if head is not None:
                    heads.append(head)
                    waiting.append(pieces)

    def close(self) -> None:
        """Remove the files."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def _pieces(path: Path) -> Batches:
    with pa.memory_map(str(path)) as file:
        reader = pa.ipc.open_file(file)
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number)


def _local_folder() -> str | None:
    """Where Spark keeps what does not fit into memory, None if it does not say."""
    folders = [each for each in os.environ.get("SPARK_LOCAL_DIRS", "").split(",") if os.path.isdir(each)]
    return folders[0] if folders else None


# ------------------------------------------------------------ order


def order_of(rows: pa.RecordBatch, columns: Sequence[str], lead: int) -> Longs | None:
    """The places of the rows in the order of some columns, None if rows are in order; mostly the first `lead` decide.

    Sorting is stable, so where rows already lie in the order of the other columns, nothing else has to be done.
    """
    keys = Keys(rows, columns)
    if keys.rise(None):
        return None
    order = keys.sorted(min(lead, len(columns)))
    return order if keys.rise(None, lead) or keys.rise(order) else keys.sorted(len(columns))


class Keys:
    """Columns as numbers in the order of their values, computed when they are needed."""

    def __init__(self, rows: pa.RecordBatch, columns: Sequence[str]) -> None:
        self._ways: list[Callable[[], list[Longs]]] = [partial(_numbers, rows.column(name)) for name in columns]
        self._known: list[list[Longs]] = []

    def of(self, place: int) -> list[Longs]:
        """The numbers of a column, the most significant first."""
        while len(self._known) <= place:
            self._known.append(self._ways[len(self._known)]())
        return self._known[place]

    def rise(self, order: Longs | None, first: int = 0) -> bool:
        """Whether the rows are in order, by the columns from the first one on."""
        equal: Flags | None = None
        for place in range(first, len(self._ways)):
            for key in self.of(place):
                values = key if order is None else key[order]
                falls = values[1:] < values[:-1]
                if (falls if equal is None else falls & equal).any():
                    return False
                same = values[1:] == values[:-1]
                equal = same if equal is None else equal & same
                if not equal.any():
                    return True
        return True

    def sorted(self, count: int) -> Longs:
        """The places of the rows sorted by the first `count` columns; equal rows stay as they lie."""
        order: Longs | None = None
        for place in reversed(range(count)):
            for key in reversed(self.of(place)):
                order = _sorted_further(key, order)
        return np.arange(len(self.of(0)[0])) if order is None else order


def _sorted_further(key: Longs, order: Longs | None) -> Longs | None:
    """An order (None: as rows lie), sorted stably by one more key: by counting digits, where NumPy would compare."""
    least, most = (int(key.min()), int(key.max())) if key.size else (0, 0)
    if most == least:
        return order
    above = (key - least).view(np.uint64)
    for digit in range(0, (most - least).bit_length(), _DIGIT):
        part = (above >> np.uint64(digit)).astype(np.uint16)
        order = np.argsort(part, kind="stable") if order is None else order[np.argsort(part[order], kind="stable")]
    return order


def _numbers(column: pa.Array) -> list[Longs]:
    """A column as numbers in the order of its values; a flag before them where some are NULL."""
    kind = column.type
    if pa.types.is_floating(kind):
        values = _floats(column)
    elif pa.types.is_integer(kind) or pa.types.is_temporal(kind) or pa.types.is_boolean(kind):
        values = _whole(column)
    else:
        values = _ranks(column)
    if not column.null_count:
        return [values]
    missing = column.is_null().to_numpy(zero_copy_only=False)
    return [missing.astype(np.int64), np.where(missing, 0, values)]


def _whole(column: pa.Array) -> Longs:
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        column = column.view(pa.int64())
    elif pa.types.is_date32(kind):
        column = column.view(pa.int32())
    values = pc.fill_null(column.cast(pa.int64()), 0) if column.null_count else column.cast(pa.int64())
    return np.asarray(values.to_numpy(zero_copy_only=False))


def _floats(column: pa.Array) -> Longs:
    """As Spark orders them: NaN last."""
    values = column.cast(pa.float64())
    numbers = (pc.fill_null(values, 0.0) if values.null_count else values).to_numpy(zero_copy_only=False)
    return np.where(np.isnan(numbers), MOST, ordered(numbers))


def _ranks(column: pa.Array) -> Longs:
    """The rank of each value among the distinct ones; texts are ranked by their bytes."""
    coded = column.dictionary_encode()
    rank = np.empty(len(coded.dictionary) + 1, np.int64)
    rank[pc.sort_indices(coded.dictionary).to_numpy(zero_copy_only=False)] = np.arange(len(coded.dictionary))
    places: Longs = pc.fill_null(coded.indices, 0).to_numpy(zero_copy_only=False)
    return rank[places]
