"""The positions bound to each variable, as Arrow lists: from a chunk of matches, one column per variable.

Variables that the same marks name share one column, and a variable of every mark shares `positions` itself. Where all
matches have the same labels, a column takes the same places of every match; else positions are copied by label,
without branches: each is written at the column's end, and only one that the column holds moves the end on.

Indices are unsigned in the inner loops: Numba looks whether a signed one is negative, which takes twice as long.

Invariant: arrays handed out are never written again; offsets that are the same in every chunk are made once.
"""

from functools import lru_cache
from itertools import accumulate

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cerite.engine.matches import Matches, Sequence, rows_to_keep
from cerite.jit import kernel, maker

Longs = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32]
Labels = tuple[frozenset[str], ...]
Columns = tuple[tuple[int, ...], ...]  # what each column takes of a match: places in it, or labels

BLOCK = 128  # matches that stay in the cache while every column takes its own
ONE = np.uint64(1)


def lists_of(chunk: Matches, labels: Labels, variables: tuple[str, ...]) -> list[pa.Array]:
    """Lists of all positions, and for each variable of those whose label names it."""
    columns, shared = _layout(labels, variables, chunk.sequence)
    positions = pa.array(chunk.positions)
    if chunk.sequence is None:
        every = pa.ListArray.from_arrays(pa.array(chunk.offsets.astype(np.int32)), positions)
        made = _by_label(chunk, columns, len(labels)) if columns else []
    else:
        every = pa.ListArray.from_arrays(_ramp(len(chunk.sequence), len(chunk)), positions)
        made = _by_place(chunk, columns, len(chunk.sequence)) if columns else []
    made.append(every)
    return [every, *(made[k] for k in shared)]


@lru_cache(maxsize=64)
def _layout(labels: Labels, variables: tuple[str, ...], sequence: Sequence | None) -> tuple[Columns, tuple[int, ...]]:
    """The distinct columns, and which is each variable's; -1 is the one of all positions."""
    marks = [*enumerate(labels)][1:] if sequence is None else [*enumerate(labels[k] for k in sequence)]
    taken = [tuple(k for k, names in marks if variable in names) for variable in variables]
    columns = tuple(dict.fromkeys(each for each in taken if len(each) < len(marks)))
    return columns, tuple(columns.index(each) if each in columns else -1 for each in taken)


def _by_place(chunk: Matches, columns: Columns, width: int) -> list[pa.Array]:
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


def _by_label(chunk: Matches, columns: Columns, labels: int) -> list[pa.Array]:
    held = np.zeros((len(columns), labels), np.uint8)
    for column, row in zip(columns, held, strict=True):
        row[list(column)] = 1
    ends, begins, values = take_labels(held, chunk.offsets, chunk.positions, chunk.labels)
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
def take_labels(
    held: npt.NDArray[np.uint8], offsets: Longs, positions: Longs, labels: Ints
) -> tuple[Ints, Longs, Longs]:
    """Column c takes the positions whose label l has `held[c, l]`: list offsets, where its values begin, values.

    After a column's values there is room for one more: what comes when it is full is written there.
    """
    uses = np.zeros((4, held.shape[1]), np.int64)  # four counts in turn: none waits for the one before it
    for k in range(labels.size):
        uses[k & 3, labels[k]] += 1
    begin = np.zeros(held.shape[0] + 1, np.int64)
    for c in range(held.shape[0]):
        begin[c + 1] = begin[c] + 1
        for label in range(held.shape[1]):  # by hand: NumPy's product and sum take a second to compile
            for turn in range(4):
                begin[c + 1] += held[c, label] * uses[turn, label]
    values = np.empty(begin[-1], np.int64)
    ends = np.zeros((held.shape[0], offsets.size), np.int32)
    for block in range(0, offsets.size - 1, BLOCK):
        for c in range(held.shape[0]):
            holds, column = held[c], values[begin[c] : begin[c + 1]]
            i, end = np.uint64(offsets[block]), np.uint64(ends[c, block])
            for m in range(block + 1, min(block + BLOCK, offsets.size - 1) + 1):
                stop = np.uint64(offsets[m])
                while i < stop:
                    column[end] = positions[i]
                    end += np.uint64(holds[np.uint64(labels[i])])
                    i += ONE
                ends[c, m] = end
    return ends, begin, values
