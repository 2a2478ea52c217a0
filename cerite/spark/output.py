"""Matches as rows of the result: id, times, partition values, and per variable the structs of its events.

The id is a hash of what the match is made of: partition values, the order keys of its ends and of every event with
its variables. So it is the same whatever the partitioning, and differs between matches (128 bits).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cerite.engine.matches import Matches
from cerite.results import table_of
from cerite.spark.job import FILE, OWNED, Job

MOST = 1 << 16  # events in a batch of results

Longs = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
_HEX = np.frombuffer(bytes(range(256)).hex().encode(), np.dtype("S2"))
_SEEDS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F))


@dataclass(frozen=True)
class Output:
    """Makes result batches for one job."""

    job: Job
    label_hashes: tuple[Words, Words] = field(init=False)

    def __post_init__(self) -> None:
        labels = [_text_hash(repr(sorted(label))) for label in self.job.plan.automaton.labels]
        hashes = np.array(labels, np.uint64)
        object.__setattr__(self, "label_hashes", (_mixed(hashes ^ _SEEDS[0]), _mixed(hashes ^ _SEEDS[1])))

    def batches(self, found: Matches, base: int, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The matches as batches; `base` is the position of the first of the rows."""
        shifted = Matches(found.starts - base, found.ends - base, found.offsets, found.positions - base, found.labels)
        if self.job.owned:
            owned = rows.column(OWNED).to_numpy(zero_copy_only=False)
            shifted = shifted.select(np.flatnonzero(owned[shifted.ends]))
        for piece in _pieces(shifted):
            yield self._batch(piece, rows)

    def _batch(self, found: Matches, rows: pa.RecordBatch) -> pa.RecordBatch:
        job = self.job
        starts, ends = pa.array(found.starts), pa.array(found.ends)
        made: dict[str, pa.Array] = {"match": self._ids(found, rows)}
        if job.time is not None:
            made["start_time"], made["end_time"] = (_taken(rows, job.time, each) for each in (starts, ends))
        if job.position is not None:
            position = pc.cast(rows.column(job.position), pa.int64())
            made["start"], made["end"] = position.take(starts), position.take(ends)
        made |= {name: _taken(rows, name, ends) for name in job.keys}
        variables = tuple(shown.variable for shown in job.shown if shown.variable is not None)
        table = table_of(found, job.plan.automaton.labels, variables)
        for shown in job.shown:
            lists = table.column("positions" if shown.variable is None else shown.variable).combine_chunks()
            made["events" if shown.variable is None else shown.variable] = _structs(lists, rows, shown.attributes)
        return pa.RecordBatch.from_arrays(list(made.values()), names=list(made))

    def _ids(self, found: Matches, rows: pa.RecordBatch) -> pa.Array:
        used, places = _numbered(np.concatenate([found.starts, found.ends, found.positions]), rows.num_rows)
        named = dict.fromkeys((*self.job.keys, *self.job.order))
        columns = [(name, rows.column(name).take(pa.array(used))) for name in named]
        count = len(found)
        lanes = [self._lane(lane, columns, places, count, found.offsets, found.labels) for lane in (0, 1)]
        hexadecimal = _HEX[np.stack(lanes, axis=1).byteswap().view(np.uint8).reshape(count, 16)]
        offsets = np.arange(0, 32 * (count + 1), 32, dtype=np.int32)
        return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(hexadecimal.tobytes()))

    def _lane(
        self,
        lane: int,
        columns: list[tuple[str, pa.Array]],
        places: npt.NDArray[np.int64],
        count: int,
        offsets: npt.NDArray[np.int64],
        labels: npt.NDArray[np.int32],
    ) -> Words:
        events = np.full(places.max() + 1 if places.size else 0, _SEEDS[lane])
        for name, column in columns:
            events = _mixed(events ^ _mixed(_hashed(name, column) + _SEEDS[1 - lane]))
        bound = _mixed(events[places[2 * count :]] ^ self.label_hashes[lane][labels])
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(bound, dtype=np.uint64)])
        together = sums[offsets[1:]] - sums[offsets[:-1]]
        ends = _mixed(events[places[:count]]) ^ events[places[count : 2 * count]]
        return _mixed(together + _mixed(ends))


def _numbered(places: Longs, rows: int) -> tuple[Longs, Longs]:
    """The distinct places, rising, and the number of each place among them."""
    if 8 * places.size < rows:
        return np.unique(places, return_inverse=True)
    number = np.zeros(rows, np.int64)
    number[places] = 1
    used = np.flatnonzero(number)
    number[used] = np.arange(used.size)
    return used, number[places]


def _pieces(found: Matches) -> Iterator[Matches]:
    begin = 0
    while begin < len(found):
        stop = int(np.searchsorted(found.offsets, found.offsets[begin] + MOST, side="right")) - 1
        stop = min(max(stop, begin + 1), len(found))
        yield found.select(np.arange(begin, stop))
        begin = stop


def _structs(lists: pa.ListArray, rows: pa.RecordBatch, attributes: tuple[str, ...]) -> pa.Array:
    places = lists.flatten()
    taken = [_taken(rows, name, places) for name in attributes]
    fields = [pa.field(name, array.type) for name, array in zip(attributes, taken, strict=True)]
    structs = pa.StructArray.from_arrays(taken, fields=fields)
    return pa.ListArray.from_arrays(lists.offsets, structs)


def _taken(rows: pa.RecordBatch, name: str, places: pa.Array) -> pa.Array:
    """A column's values at these places, as Spark reads them: dictionaries decoded."""
    found = rows.column(name).take(places)
    return found.dictionary_decode() if pa.types.is_dictionary(found.type) else found


def _hashed(name: str, column: pa.Array) -> Words:
    """A 64-bit number for every value; equal values get equal ones, whatever the column's layout."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_boolean(kind):
        plain = column.cast(pa.timestamp("us")) if pa.types.is_timestamp(kind) else column
        filled: Words = pc.fill_null(plain.cast(pa.int64()), -1).to_numpy(zero_copy_only=False).view(np.uint64)
        return filled
    encoded = column if pa.types.is_dictionary(kind) else column.dictionary_encode()
    values: list[Any] = encoded.dictionary.to_pylist()
    if name == FILE:  # Spark and the footers write the same path in different ways
        values = [unquote(value).rsplit("/", 1)[-1] for value in values]
    hashes = np.array([*map(_text_hash, map(str, values)), 0], np.uint64)
    codes = pc.fill_null(encoded.indices, len(values)).to_numpy(zero_copy_only=False)
    found: Words = hashes[codes]
    return found


def _text_hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def _mixed(values: Words) -> Words:
    """SplitMix64's finaliser: every bit of the result depends on every bit of the value."""
    with np.errstate(over="ignore"):
        values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return values ^ (values >> np.uint64(31))
