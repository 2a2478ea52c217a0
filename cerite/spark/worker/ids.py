"""Ids of matches: 128-bit hashes of what a match is made of.

That is the partition's values, the order keys of the first and the last event, and the order keys of every marked
event with its label. Events are hashed once for all matches that share them; a match adds up the hashes of its own.
Invariant: an id is the same whatever the plan, the number of tasks and the layout of the columns.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cerite.core.arrays import Longs, Words
from cerite.core.hashing import GOLDEN, mix
from cerite.core.jit import kernel, maker
from cerite.engine.output import MatchChunk
from cerite.spark.worker.job import FILE, Job

_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_SEEDS = np.array([GOLDEN, 0xC2B2AE3D27D4EB4F], np.uint64)


@dataclass(frozen=True)
class Ids:
    """Makes ids for one job."""

    job: Job
    label_hashes: Words = field(init=False)

    def __post_init__(self) -> None:
        hashes = np.array([_text_hash(repr(sorted(label))) for label in self.job.plan.automaton.labels], np.uint64)
        lanes = hashes[:, None] ^ _SEEDS
        object.__setattr__(self, "label_hashes", mixed(lanes.ravel()).reshape(-1, 2))

    def of(self, chunk: MatchChunk, rows: pa.RecordBatch) -> pa.Array:
        """The ids of some matches; their positions count the rows."""
        used, places = _numbered(np.concatenate([chunk.starts, chunk.ends, chunk.positions]))
        text = np.empty(32 * len(chunk), np.uint8)
        write_ids(self._events(rows, used), places, chunk.offsets, chunk.labels, self.label_hashes, _HEX, text)
        offsets = np.arange(0, 32 * (len(chunk) + 1), 32, dtype=np.int32)
        return pa.StringArray.from_buffers(len(chunk), pa.py_buffer(offsets), pa.py_buffer(text))

    def _events(self, rows: pa.RecordBatch, used: Longs) -> Words:
        """Two hashes for each of the rows used."""
        lanes = [np.full(used.size, seed) for seed in _SEEDS]
        for name in dict.fromkeys((*self.job.keys, *self.job.order)):
            column = rows.column(name).take(pa.array(used))
            hashes = self._file_hashes(column) if name == FILE else _hashes(column)
            lanes = [mixed(lane ^ mixed(hashes + seed)) for lane, seed in zip(lanes, _SEEDS[::-1], strict=True)]
        return np.stack(lanes, axis=1)

    def _file_hashes(self, column: pa.Array) -> Words:
        """The hashes of files' names; the column has their numbers, or the names if there are no numbers."""
        files = self.job.files
        column = column if files else column.dictionary_encode()
        names = files or column.dictionary.to_pylist()
        hashes = np.array([_text_hash(name.removeprefix(self.job.root)) for name in names], np.uint64)
        by_row: Words = hashes[(column if files else column.indices).to_numpy()]
        return by_row


def _numbered(places: Longs) -> tuple[Longs, Longs]:
    """The distinct places, rising, and the number of each place among them."""
    least = places.min()
    span = int(places.max() - least) + 1
    if 8 * places.size < span:
        return np.unique(places, return_inverse=True)
    number = np.zeros(span, np.int64)
    number[places - least] = 1
    used = np.flatnonzero(number)
    number[used] = np.arange(used.size)
    return used + least, number[places - least]


def _hashes(column: pa.Array) -> Words:
    """A 64-bit number for every value; equal values get equal ones, whatever the column's layout."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_boolean(kind):
        plain = column.cast(pa.timestamp("us")) if pa.types.is_timestamp(kind) else column
        filled: Words = pc.fill_null(plain.cast(pa.int64()), -1).to_numpy(zero_copy_only=False).view(np.uint64)
        return filled
    encoded = column if pa.types.is_dictionary(kind) else column.dictionary_encode()
    hashes = np.array([*map(_text_hash, map(str, encoded.dictionary.to_pylist())), 0], np.uint64)
    codes = pc.fill_null(encoded.indices, len(hashes) - 1).to_numpy(zero_copy_only=False)
    by_row: Words = hashes[codes]
    return by_row


def _text_hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


@maker
def mixed(values: Words) -> Words:
    """Every value mixed."""
    mixture = np.empty_like(values)
    for k in range(values.size):
        mixture[k] = mix(values[k])
    return mixture


@kernel
def write_ids(
    events: Words,
    places: Longs,
    offsets: Longs,
    labels: npt.NDArray[np.int32],
    label_hashes: Words,
    digits: npt.NDArray[np.uint8],
    text: npt.NDArray[np.uint8],
) -> None:
    """32 hexadecimal digits per match; `places` are the starts, the ends and the positions of all matches."""
    matches = offsets.size - 1
    at = 0
    for m in range(matches):
        first, last = places[m], places[matches + m]
        for lane in range(2):
            total = np.uint64(0)
            for k in range(offsets[m], offsets[m + 1]):
                total += mix(events[places[2 * matches + k], lane] ^ label_hashes[labels[k], lane])
            word = mix(total + mix(mix(events[first, lane]) ^ events[last, lane]))
            for byte in range(60, -4, -4):
                text[at] = digits[(word >> np.uint64(byte)) & np.uint64(15)]
                at += 1
