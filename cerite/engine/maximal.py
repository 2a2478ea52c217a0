"""MAX (ICDT 2019, section 4): of the matches with one end, those whose set of positions no other strictly contains.

The candidates of one event, already maximal among the matches of their start (see `determinise_max`), are enumerated
and compared with larger ones.

Invariant: chunks go in and come out by ascending end; an event's matches are judged together wherever chunks were cut.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from cerite.engine.matches import Matches, concatenate
from cerite.jit import inner, kernel

Longs = npt.NDArray[np.int64]


@inner
def _within(positions: Longs, a: int, a_end: int, b: int, b_end: int) -> bool:
    while a < a_end:
        while b < b_end and positions[b] < positions[a]:
            b += 1
        if b == b_end or positions[b] != positions[a]:
            return False
        a += 1
        b += 1
    return True


@kernel
def _keep(ends: Longs, offsets: Longs, positions: Longs, by_length: Longs, kept: npt.NDArray[np.bool_]) -> None:
    """`by_length` orders the matches by end, then longest first; a kept set excludes everything it contains."""
    begin = 0
    for x in range(by_length.size):
        m = by_length[x]
        if ends[m] != ends[by_length[begin]]:
            begin = x
        size = offsets[m + 1] - offsets[m]
        kept[m] = True
        for y in range(begin, x):
            o = by_length[y]
            if offsets[o + 1] - offsets[o] == size:
                break
            if kept[o] and _within(positions, offsets[m], offsets[m + 1], offsets[o], offsets[o + 1]):
                kept[m] = False
                break


def maximal(chunks: Iterator[Matches], limit: int | None) -> Iterator[Matches]:
    """The MAX-selected matches of a batch, at most `limit` for one event."""
    waiting: list[Matches] = []
    for chunk in chunks:
        closed = int(np.searchsorted(chunk.ends, chunk.ends[-1]))
        if closed or (waiting and waiting[-1].ends[-1] != chunk.ends[-1]):
            yield _select(concatenate([*waiting, chunk.select(np.arange(closed))]), limit)
            waiting = []
        waiting.append(chunk.select(np.arange(closed, len(chunk))))
    if waiting:
        yield _select(concatenate(waiting), limit)


def _select(matches: Matches, limit: int | None) -> Matches:
    kept = np.zeros(len(matches), np.bool_)
    order = np.lexsort((-np.diff(matches.offsets), matches.ends)).astype(np.int64)
    _keep(matches.ends, matches.offsets, matches.positions, order, kept)
    which = np.flatnonzero(kept)
    if limit is not None:
        ends = matches.ends[which]
        which = which[np.arange(which.size) - np.searchsorted(ends, ends) < limit]
    return matches.select(which)
