"""Kernels that map rows of condition bits to event classes and pick the events worth looking at.

Invariant: equal rows get equal classes, classes are dense and in order of first appearance.
"""

import numpy as np
import numpy.typing as npt

from cerite.hashing import fold
from cerite.jit import kernel

PURE = -1  # no state moves: the event can go
MOVES = 0  # some state moves, or a match may end here: the event stays; greater effects are kill sets


@kernel
def classify_narrow(
    bits: npt.NDArray[np.uint64], table: npt.NDArray[np.int32], classes: npt.NDArray[np.int32], rows: int
) -> int:
    """Classes by direct lookup, for few conditions; returns the number of classes known afterwards."""
    mask = np.uint64(table.size - 1)
    for i in range(bits.size):
        value = np.int64(bits[i] & mask)
        found = table[value]
        if found < 0:
            found = np.int32(rows)
            table[value] = found
            rows += 1
        classes[i] = found
    return rows


@kernel
def classify_wide(
    bits: npt.NDArray[np.uint64],
    begin: int,
    table: npt.NDArray[np.int32],
    known: npt.NDArray[np.uint64],
    classes: npt.NDArray[np.int32],
    rows: int,
) -> tuple[int, int]:
    """Classes by an open-addressing hash of whole rows; stops when `known` is full. Returns (next event, classes)."""
    n, words = bits.shape
    mask = np.uint64(table.size - 1)
    for i in range(begin, n):
        mixed = np.uint64(0)
        for w in range(words):
            mixed = fold(mixed, bits[i, w])
        place = mixed & mask
        while True:
            found = table[place]
            if found < 0:
                if rows == known.shape[0]:
                    return i, rows
                for w in range(words):
                    known[rows, w] = bits[i, w]
                table[place] = rows
                found = np.int32(rows)
                rows += 1
                break
            same = True
            for w in range(words):
                if known[found, w] != bits[i, w]:
                    same = False
                    break
            if same:
                break
            place = (place + np.uint64(1)) & mask
        classes[i] = found
    return n, rows


@kernel
def keep_moving(classes: npt.NDArray[np.int32], effect: npt.NDArray[np.int32], kept: npt.NDArray[np.int64]) -> int:
    """Indices of the events that are not `PURE`; enough when no class kills anything."""
    n = 0
    for i in range(classes.size):
        kept[n] = i
        n += effect[classes[i]] >= 0
    return n


@kernel
def keep_first_kill(
    classes: npt.NDArray[np.int32],
    effect: npt.NDArray[np.int32],
    within: npt.NDArray[np.bool_],
    partition: npt.NDArray[np.int64],
    last: npt.NDArray[np.int32],
    kept: npt.NDArray[np.int64],
) -> int:
    """As `keep_moving`, and drops a killing event when its partition's previous one killed at least as much.

    `last` carries each partition's latest effect over batches; `partition` is empty for a single stream.
    """
    n = 0
    for i in range(classes.size):
        now = effect[classes[i]]
        if now == PURE:
            continue
        p = partition[i] if partition.size else 0
        before = last[p]
        if now > MOVES and before > MOVES and within[now, before]:
            continue
        last[p] = now
        kept[n] = i
        n += 1
    return n
