"""Ids of matches: 128-bit hashes of what a match consists of.

A match consists of the partition's values, the order keys of the first and the last event, and the order keys of every
marked event with its label. Events are hashed once for all matches that share them; a match adds up the hashes of its
own. An event that its order keys do not tell from one before it has a mark, its position, that is hashed as well.

Invariant: an id is the same in process and on Spark, whatever the plan, the number of tasks and the layout of the
columns; two matches of a query have different ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cerite.core.arrays import Ints, Longs, Words
from cerite.core.hashing import GOLDEN, mix
from cerite.core.jit import kernel, maker
from cerite.engine.results.output import Labels, MatchChunk

FILE, ROW = (
    "cerite.file",
    "cerite.row",
)  # the columns of a file's number and of the row in it, where these are the order
UNMARKED = -1
_NO_WORDS = np.zeros((0, 0, 2), np.uint64)
_PAIRS = np.frombuffer(bytes(range(256)).hex().encode(), np.uint16).copy()  # the two digits of every byte
_SEEDS = np.array([GOLDEN, 0xC2B2AE3D27D4EB4F], np.uint64)


@dataclass(frozen=True)
class Ids:
    """Builds ids of matches with these labels, from the columns that tell events apart.

    `files` are those whose numbers the column FILE holds; without them it holds their names. `root` is the folder of
    all files: ids do not depend on where it lies.
    """

    labels: Labels
    columns: tuple[str, ...]
    files: tuple[str, ...] = ()
    root: str = ""
    label_hashes: Words = field(init=False)

    def __post_init__(self) -> None:
        hashes = np.array([_text_hash(repr(sorted(label))) for label in self.labels], np.uint64)
        lanes = hashes[:, None] ^ _SEEDS
        object.__setattr__(self, "label_hashes", mixed(lanes.ravel()).reshape(-1, 2))

    def of(self, chunk: MatchChunk, rows: pa.RecordBatch, marks: Longs | None = None) -> pa.Array:
        """The ids of some matches; their positions count the rows, which may have marks."""
        places: tuple[Longs, ...] = chunk.starts, chunk.ends, chunk.positions
        if rows.num_rows <= 2 * len(chunk) + chunk.positions.size:
            events = self._events(rows, marks)
        else:
            used, numbers = numbered(np.concatenate(places))
            places = tuple(np.split(numbers, (len(chunk), 2 * len(chunk))))
            mine = rows.select(list(self.columns)).take(pa.array(used)) if self.columns else rows.slice(0, used.size)
            events = self._events(mine, None if marks is None else marks[used])
        first, last, every = (np.require(each, np.int64, ["C", "W"]) for each in places)  # as kernels are compiled for
        text = np.empty(16 * len(chunk), np.uint16)
        marked = self._marked(events) if events.size * len(self.labels) <= chunk.positions.size else _NO_WORDS
        write_ids(events, marked, first, last, every, chunk.offsets, chunk.labels, self.label_hashes, _PAIRS, text)
        offsets = np.arange(0, 32 * (len(chunk) + 1), 32, dtype=np.int32)
        return pa.StringArray.from_buffers(len(chunk), pa.py_buffer(offsets), pa.py_buffer(text))

    def _marked(self, events: Words) -> Words:
        """The hash of every event under every label: for events that are in many matches."""
        return mixed((events ^ self.label_hashes[:, None, :]).ravel()).reshape(len(self.labels), -1, 2)

    def _events(self, rows: pa.RecordBatch, marks: Longs | None) -> Words:
        """Two hashes for each of the rows."""
        lanes = [np.full(rows.num_rows, seed) for seed in _SEEDS]
        for name in self.columns:
            column = rows.column(name)
            hashes = self._file_hashes(column) if name == FILE else _hashes(column)
            lanes = [_with(lane, hashes, seed) for lane, seed in zip(lanes, _SEEDS[::-1], strict=True)]
        if marks is not None and (marks != UNMARKED).any():
            marked = [_with(lane, marks.view(np.uint64), seed) for lane, seed in zip(lanes, _SEEDS[::-1], strict=True)]
            lanes = [np.where(marks == UNMARKED, lane, other) for lane, other in zip(lanes, marked, strict=True)]
        return np.stack(lanes, axis=1)

    def _file_hashes(self, column: pa.Array) -> Words:
        """The hashes of files' names; the column has their numbers, or the names if there are no numbers."""
        files = self.files
        column = column if files else column.dictionary_encode()
        names = files or column.dictionary.to_pylist()
        hashes = np.array([_text_hash(name.removeprefix(self.root)) for name in names], np.uint64)
        by_row: Words = hashes[(column if files else column.indices).to_numpy()]
        return by_row


def _with(lane: Words, hashes: Words, seed: np.uint64) -> Words:
    return mixed(lane ^ mixed(hashes + seed))


def numbered(places: Longs) -> tuple[Longs, Longs]:
    """The distinct places, rising, and the number of each place among them.

    >>> [each.tolist() for each in numbered(np.array([7, 3, 7]))]
    [[3, 7], [1, 0, 1]]
    """
    if not places.size:
        return places, places
    least = int(places.min())
    span = int(places.max()) - least + 1
    if 8 * places.size < span:
        return np.unique(places, return_inverse=True)
    return number_dense(places, least, span)


def _hashes(column: pa.Array) -> Words:
    """A 64-bit number for every value; equal values get equal numbers, whatever the column's layout."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_boolean(kind):
        whole = _instants(column) if pa.types.is_timestamp(kind) else column.cast(pa.int64(), safe=False)
        filled: Words = pc.fill_null(whole, -1).to_numpy(zero_copy_only=False).view(np.uint64)
        return filled
    if pa.types.is_dictionary(kind) and len(column.dictionary) > len(column):
        column = column.dictionary_decode()
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    hashes = np.array([*map(_text_hash, map(str, encoded.dictionary.to_pylist())), 0], np.uint64)
    codes = pc.fill_null(encoded.indices, len(hashes) - 1).to_numpy(zero_copy_only=False)
    by_row: Words = hashes[codes]
    return by_row


def _instants(column: pa.Array) -> pa.Array:
    """Times in microseconds, as Spark has them; times between two microseconds by their nanoseconds."""
    if column.type.unit != "ns":
        return column.cast(pa.timestamp("us")).cast(pa.int64())
    ticks = column.cast(pa.int64())
    exact = pc.multiply(pc.divide(ticks, 1000), 1000)
    return pc.if_else(pc.equal(exact, ticks), pc.divide(ticks, 1000), pc.bit_wise_not(ticks))


def _text_hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


@maker
def number_dense(places: Longs, least: int, span: int) -> tuple[Longs, Longs]:
    """`numbered` for places that lie in a short span."""
    number = np.zeros(span, np.int64)
    for k in range(places.size):
        number[places[k] - least] = 1
    count = 0
    for k in range(span):
        count += number[k]
    used = np.empty(count, np.int64)
    count = 0
    for k in range(span):
        if number[k]:
            used[count] = k + least
            number[k] = count
            count += 1
    numbers = np.empty(places.size, np.int64)
    for k in range(places.size):
        numbers[k] = number[places[k] - least]
    return used, numbers


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
    marked: Words,
    starts: Longs,
    ends: Longs,
    positions: Longs,
    offsets: Longs,
    labels: Ints,
    label_hashes: Words,
    pairs: npt.NDArray[np.uint16],
    text: npt.NDArray[np.uint16],
) -> None:
    """32 hexadecimal digits per match, by the numbers of its first and last event and of those at its positions.

    `marked` has the hashes of all events under all labels, or nothing.
    """
    matches = offsets.size - 1
    at = np.uint64(0)
    for m in range(matches):
        first, last = starts[m], ends[m]
        one, two = np.uint64(0), np.uint64(0)
        for k in range(offsets[m], offsets[m + 1]):
            place, label = np.uint64(positions[k]), np.uint64(labels[k])
            if marked.size:
                one += marked[label, place, 0]
                two += marked[label, place, 1]
            else:
                one += mix(events[place, 0] ^ label_hashes[label, 0])
                two += mix(events[place, 1] ^ label_hashes[label, 1])
        for lane in range(2):
            total = one if lane == 0 else two
            word = mix(total + mix(mix(events[first, lane]) ^ events[last, lane]))
            for byte in range(56, -8, -8):
                text[at] = pairs[(word >> np.uint64(byte)) & np.uint64(255)]
                at += np.uint64(1)
