"""Matches of several streams as one, in the order of their ends.

Two streams are merged at a time, as far as both are known: up to the end of whichever chunk ends first.

Invariant: the ends of two streams differ, and within each they do not decrease; nothing is held back that could be
reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from cerite.core.arrays import Ints, Longs, borrowed
from cerite.core.jit import inlined, kernel
from cerite.engine.results.output import MatchChunk, alike


class MatchArrays(NamedTuple):
    """The arrays of a chunk; labels are empty where they need not be copied."""

    starts: Longs
    ends: Longs
    offsets: Longs
    positions: Longs
    labels: Ints


def merged(streams: list[Iterator[MatchChunk]]) -> Iterator[MatchChunk]:
    """The matches of all streams.

    >>> part = lambda *ends: iter([alike(np.array(ends), np.array(ends), np.array(ends), (1,))])
    >>> [chunk.ends.tolist() for chunk in merged([part(1, 1, 4), part(2, 3, 5)])]
    [[1, 1, 2, 3, 4], [5]]
    """
    while len(streams) > 1:
        pairs = zip(streams[::2], streams[1::2], strict=False)
        streams = [*streams[2 * (len(streams) // 2) :], *(_merged(*pair) for pair in pairs)]
    return streams[0]


def _merged(one: Iterator[MatchChunk], other: Iterator[MatchChunk]) -> Iterator[MatchChunk]:
    a, b = _next(one), _next(other)
    i = j = 0
    while a is not None and b is not None:
        end = min(a.ends[-1], b.ends[-1])
        n, m = (int(np.searchsorted(each.ends, end, side="right")) for each in (a, b))
        yield _interleaved(a, i, n, b, j, m)
        i, j = n, m
        if i == len(a):
            a, i = _next(one), 0
        if j == len(b):
            b, j = _next(other), 0
    if a is not None:
        yield a.slice(i, len(a))
    if b is not None:
        yield b.slice(j, len(b))
    yield from one
    yield from other


def _next(stream: Iterator[MatchChunk]) -> MatchChunk | None:
    return next((chunk for chunk in stream if len(chunk)), None)


def _interleaved(a: MatchChunk, i: int, n: int, b: MatchChunk, j: int, m: int) -> MatchChunk:
    """Matches i to n of one chunk and j to m of another one."""
    if i == n or j == m:
        return a.slice(i, n) if j == m else b.slice(j, m)
    count = n - i + m - j
    size = int(a.offsets[n] - a.offsets[i] + b.offsets[m] - b.offsets[j])
    starts, ends, positions = (np.empty(each, np.int64) for each in (count, count, size))
    if a.sequence is not None and a.sequence == b.sequence:
        whole = alike(starts, ends, positions, a.sequence)
        arrays = MatchArrays(starts, ends, np.empty(count + 1, np.int64), positions, np.empty(0, np.int32))
    else:
        whole = MatchChunk(starts, ends, np.empty(count + 1, np.int64), positions, np.empty(size, np.int32))
        arrays = MatchArrays(starts, ends, whole.offsets, positions, whole.labels)
    interleave(_arrays(a), i, n, _arrays(b), j, m, arrays)
    return whole


def _arrays(chunk: MatchChunk) -> MatchArrays:
    """The arrays of a chunk as kernels know them."""
    return MatchArrays(
        borrowed(chunk.starts), borrowed(chunk.ends), borrowed(chunk.offsets), borrowed(chunk.positions),
        borrowed(chunk.labels),
    )  # fmt: skip


@kernel
def interleave(a: MatchArrays, i: int, n: int, b: MatchArrays, j: int, m: int, whole: MatchArrays) -> None:
    """Copy matches i to n of `a` and j to m of `b`, in the order of their ends."""
    k, at = 0, 0
    whole.offsets[0] = 0
    while i < n or j < m:
        if j == m or (i < n and a.ends[i] < b.ends[j]):
            at = copy_match(a, i, k, at, whole)
            i += 1
        else:
            at = copy_match(b, j, k, at, whole)
            j += 1
        k += 1


@inlined
def copy_match(of: MatchArrays, i: int, k: int, at: int, whole: MatchArrays) -> int:
    """Make match i of a chunk the k-th, with its positions from `at` on; returns where the next ones go."""
    whole.starts[k], whole.ends[k] = of.starts[i], of.ends[i]
    for p in range(of.offsets[i], of.offsets[i + 1]):
        whole.positions[at] = of.positions[p]
        if whole.labels.size:
            whole.labels[at] = of.labels[p]
        at += 1
    whole.offsets[k + 1] = at
    return at
