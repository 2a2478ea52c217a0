"""Chunks of matches in flat arrays, and the same as Arrow.

Invariant: match m binds `positions[offsets[m]:offsets[m + 1]]`, ascending, to the labels at the same places; where
`sequence` is known, these are the labels of every match.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

import numpy as np
import pyarrow as pa

from cerite.core.arrays import Bytes, Ints, Longs
from cerite.core.jit import kernel, maker

Sequence = tuple[int, ...]


@dataclass(frozen=True)
class MatchChunk:
    """Some matches, in the order of their ends."""

    starts: Longs
    ends: Longs
    offsets: Longs
    positions: Longs
    labels: Ints
    sequence: Sequence | None = None

    def __len__(self) -> int:
        return self.starts.size

    def to_arrow(self) -> pa.Table:
        """Columns start, end, positions list<int64>, labels list<int32>."""
        offsets = pa.array(self.offsets.astype(np.int32))
        return pa.table(
            {
                "start": pa.array(self.starts),
                "end": pa.array(self.ends),
                "positions": pa.ListArray.from_arrays(offsets, pa.array(self.positions)),
                "labels": pa.ListArray.from_arrays(offsets, pa.array(self.labels)),
            }
        )

    def slice(self, begin: int, stop: int) -> "MatchChunk":
        """The matches from one index up to another."""
        first, last = self.offsets[begin], self.offsets[stop]
        return MatchChunk(
            self.starts[begin:stop], self.ends[begin:stop], self.offsets[begin : stop + 1] - first,
            self.positions[first:last], self.labels[first:last], self.sequence,
        )  # fmt: skip

    def placed(self, places: Longs) -> "MatchChunk":
        """The same matches with these numbers for the starts, then the ends, then the positions."""
        first, second = len(self), 2 * len(self)
        return MatchChunk(
            places[:first], places[first:second], self.offsets, places[second:], self.labels, self.sequence
        )

    def renumbered(self, number: Longs) -> "MatchChunk":
        """The same matches with `number[p]` for position p; positions stay in the order of the events."""
        return MatchChunk(
            number[self.starts], number[self.ends], self.offsets, number[self.positions], self.labels, self.sequence
        )

    def select(self, which: Longs) -> "MatchChunk":
        """The matches at the given indices, in that order."""
        lengths = np.diff(self.offsets)[which]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        places = np.repeat(self.offsets[which] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return MatchChunk(
            self.starts[which], self.ends[which], offsets, self.positions[places], self.labels[places], self.sequence
        )


def alike(starts: Longs, ends: Longs, positions: Longs, sequence: Sequence) -> MatchChunk:
    """Matches that all have these labels; offsets and labels, the same in every such chunk, are built once."""
    offsets, labels = _repeated(sequence, rows_to_keep(starts.size))
    return MatchChunk(starts, ends, offsets[: starts.size + 1], positions, labels[: positions.size], sequence)


def rows_to_keep(count: int) -> int:
    """A power of two not below `count`: the length of arrays that are cached and cut to size."""
    return 1 << max(count - 1, 0).bit_length()


@lru_cache(maxsize=8)
def _repeated(sequence: Sequence, count: int) -> tuple[Longs, Ints]:
    offsets = np.arange(count + 1, dtype=np.int64) * len(sequence)
    labels = np.tile(np.array(sequence, np.int32), count)
    offsets.flags.writeable = labels.flags.writeable = False
    return offsets, labels


def concatenate(parts: list[MatchChunk]) -> MatchChunk:
    """Several chunks as one."""
    shifts = np.cumsum([0, *(part.positions.size for part in parts)])
    offsets = [part.offsets[1:] + shift for part, shift in zip(parts, shifts, strict=False)]
    return MatchChunk(
        np.concatenate([part.starts for part in parts]),
        np.concatenate([part.ends for part in parts]),
        np.concatenate([np.zeros(1, np.int64), *offsets]),
        np.concatenate([part.positions for part in parts]),
        np.concatenate([part.labels for part in parts]),
    )


# The positions bound to each variable, as Arrow lists: from a chunk of matches, one column per variable.
#
# Variables that the same marks name share one column, and a variable of every mark shares `positions` itself. Where
# all matches have the same labels, a column takes the same places of every match; else positions are copied by label,
# without branches: each is written at the column's end, and only one that the column holds moves the end on.
#
# Indices are unsigned in the inner loops: Numba checks whether a signed one is negative, which takes twice as long.
#
# Invariant: arrays handed out are never written again; offsets that are the same in every chunk are built once.

Labels = tuple[frozenset[str], ...]
Columns = tuple[tuple[int, ...], ...]  # what each column takes of a match: places in it, or labels

BLOCK = 128  # matches that stay in the cache while every column takes its own
ONE = np.uint64(1)


def lists_of(chunk: MatchChunk, labels: Labels, variables: tuple[str, ...]) -> list[pa.Array]:
    """Lists of all positions, and for each variable lists of the positions whose label names it."""
    columns, shared = _layout(labels, variables, chunk.sequence)
    positions = pa.array(chunk.positions)
    if chunk.sequence is None:
        every = pa.ListArray.from_arrays(pa.array(chunk.offsets.astype(np.int32)), positions)
        lists = _by_label(chunk, columns, len(labels)) if columns else []
    else:
        every = pa.ListArray.from_arrays(_ramp(len(chunk.sequence), len(chunk)), positions)
        lists = _by_place(chunk, columns, len(chunk.sequence)) if columns else []
    lists.append(every)
    return [every, *(lists[k] for k in shared)]


@lru_cache(maxsize=64)
def _layout(labels: Labels, variables: tuple[str, ...], sequence: Sequence | None) -> tuple[Columns, tuple[int, ...]]:
    """The distinct columns, and which of them each variable has; -1 is the column of all positions."""
    marks = [*enumerate(labels)][1:] if sequence is None else [*enumerate(labels[k] for k in sequence)]
    taken = [tuple(k for k, names in marks if variable in names) for variable in variables]
    columns = tuple(dict.fromkeys(each for each in taken if len(each) < len(marks)))
    return columns, tuple(columns.index(each) if each in columns else -1 for each in taken)


def _by_place(chunk: MatchChunk, columns: Columns, width: int) -> list[pa.Array]:
    count = len(chunk)
    first = np.array([0, *accumulate(map(len, columns))], np.int64)
    places = np.array([place for column in columns for place in column], np.int64)
    values = np.empty(places.size * count, np.int64)
    take_places(chunk.positions, width, first, places, values)
    whole, begins = pa.array(values), (first * count).tolist()
    return [
        pa.ListArray.from_arrays(_ramp(len(column), count), whole.slice(begin, len(column) * count))
        for column, begin in zip(columns, begins, strict=False)
    ]


def _by_label(chunk: MatchChunk, columns: Columns, labels: int) -> list[pa.Array]:
    belongs = np.zeros((len(columns), labels), np.uint8)
    for column, row in zip(columns, belongs, strict=True):
        row[list(column)] = 1
    ends, begins, values = take_labels(belongs, chunk.offsets, chunk.positions, chunk.labels)
    whole = pa.array(values)
    return [
        pa.ListArray.from_arrays(pa.array(own), whole.slice(begin, own[-1]))
        for own, begin in zip(ends, begins.tolist(), strict=False)
    ]


def _ramp(step: int, count: int) -> pa.Array:
    """Offsets of so many lists of the same length."""
    return _long_ramp(step, rows_to_keep(count)).slice(0, count + 1)


@lru_cache(maxsize=64)
def _long_ramp(step: int, count: int) -> pa.Array:
    return pa.array(np.arange(count + 1, dtype=np.int32) * np.int32(step))


@kernel
def take_places(positions: Longs, width: int, first: Longs, places: Longs, values: Longs) -> None:
    """Column c takes `places[first[c]:first[c + 1]]` of every match; its values begin at matches * first[c]."""
    matches = positions.size // width
    for begin in range(0, matches, BLOCK):
        count = min(BLOCK, matches - begin)
        block = positions[begin * width : (begin + count) * width]
        for c in range(first.size - 1):
            each = first[c + 1] - first[c]
            at = matches * first[c] + begin * each
            column = values[at : at + count * each]
            for j in range(each):
                source, target = np.uint64(places[first[c] + j]), np.uint64(j)
                for _ in range(count):
                    column[target] = block[source]
                    source += np.uint64(width)
                    target += np.uint64(each)


@maker
def take_labels(belongs: Bytes, offsets: Longs, positions: Longs, labels: Ints) -> tuple[Ints, Longs, Longs]:
    """Column c takes the positions whose label l has `belongs[c, l]`: list offsets, where its values begin, values.

    After a column's values there is room for one more: what comes when the column is full is written there.
    """
    uses = np.zeros((4, belongs.shape[1]), np.int64)  # four counts in turn: none waits for the one before it
    for k in range(labels.size):
        uses[k & 3, labels[k]] += 1
    begin = np.zeros(belongs.shape[0] + 1, np.int64)
    for c in range(belongs.shape[0]):
        begin[c + 1] = begin[c] + 1
        for label in range(belongs.shape[1]):  # by hand: NumPy's product and sum take a second to compile
            for turn in range(4):
                begin[c + 1] += belongs[c, label] * uses[turn, label]
    values = np.empty(begin[-1], np.int64)
    ends = np.zeros((belongs.shape[0], offsets.size), np.int32)
    for block in range(0, offsets.size - 1, BLOCK):
        for c in range(belongs.shape[0]):
            holds, column = belongs[c], values[begin[c] : begin[c + 1]]
            i, end = np.uint64(offsets[block]), np.uint64(ends[c, block])
            for m in range(block + 1, min(block + BLOCK, offsets.size - 1) + 1):
                stop = np.uint64(offsets[m])
                while i < stop:
                    column[end] = positions[i]
                    end += np.uint64(holds[np.uint64(labels[i])])
                    i += ONE
                ends[c, m] = end
    return ends, begin, values
