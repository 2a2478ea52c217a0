"""What the generators have in common: times with a day's rhythm, skewed keys, and groups of events put into a stream.

A *group* is a planted match or a near miss. Each has a key of its own, and background events of that key that would
fall between its events go to other keys.

Invariant: a stream has exactly the requested rows, in the order of time, and knows the positions of what was planted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cerite.core.arrays import Flags

Random = np.random.Generator
Array = npt.NDArray[Any]
SECOND = 1_000_000  # times are microseconds
MINUTE, HOUR, DAY = 60 * SECOND, 3_600 * SECOND, 86_400 * SECOND
FIRST = 1_709_539_200 * SECOND  # 4 March 2024, 8 o'clock, a Monday
Column = tuple[Array, Sequence[str]] | Array  # numbers, or codes and what they stand for


@dataclass(frozen=True)
class Stream:
    """Columns of events in the order of time, and the positions of the matches that were planted."""

    columns: Mapping[str, Column]
    at: Array  # microseconds since the first
    planted: tuple[tuple[int, ...], ...]

    def table(self) -> pa.Table:
        """The events as a table; times are whole milliseconds."""
        columns = {name: _arrow(column) for name, column in self.columns.items()}
        at = FIRST + self.at // 1_000 * 1_000
        return pa.table(columns | {"at": pa.array(at.astype(np.int64), pa.timestamp("us"))})


def _arrow(column: Column) -> pa.Array:
    if isinstance(column, tuple):
        codes, names = column
        return pa.array(list(names), pa.string()).take(pa.array(codes))
    return pa.array(column)


@dataclass(frozen=True)
class Groups:
    """Groups of events: one group per row, each with a key, one event per column; where `used` is false, there is none.

    The first `planted` of them are matches, the rest near misses.
    """

    keys: Array
    at: Array  # rising in every row
    used: Flags
    planted: int

    @property
    def size(self) -> int:
        """The number of events in all groups."""
        return int(self.used.sum())

    def flat(self, values: Any) -> Array:
        """Values given by group and event, as a column of the stream holds them."""
        return np.broadcast_to(values, self.used.shape)[self.used]


def groups(rng: Random, rows: int, keys: int, gaps: Array, used: Array | None, span: float) -> Groups:
    """As many groups as `gaps` has rows, spread over `span`; a gap is the time between two events of a group."""
    count, length = gaps.shape[0], gaps.shape[1] + 1
    starts = np.sort(rng.uniform(0.02, 0.9, count)) * span
    starts = starts[rng.permutation(count)]  # matches and near misses mixed
    at = starts[:, None] + np.concatenate([np.zeros((count, 1)), np.cumsum(gaps, axis=1)], axis=1)
    marked = np.ones((count, length), bool) if used is None else np.asarray(used, bool)
    return Groups(rng.permutation(keys)[:count], at.astype(np.int64), marked, count_planted(rows))


def count_planted(rows: int) -> int:
    """How many planted matches a stream of this many events has; there are as many near misses."""
    return max(1, rows // 1_000)


def arrivals(rng: Random, count: int, gap: float) -> Array:
    """Rising times with gaps of about `gap` seconds, shorter at noon and longer at night."""
    even = np.cumsum(rng.exponential(gap * SECOND, count))
    grid = np.arange(0.0, 3 * even[-1] + DAY, 10 * MINUTE)
    busy = 1 + 0.7 * np.sin(2 * np.pi * (grid / DAY + 0.02))  # from 8 o'clock on
    passed = np.concatenate([[0.0], np.cumsum(busy[:-1])]) * 10 * MINUTE
    times: Array = np.interp(even, passed, grid).astype(np.int64)
    return times


def skewed(rng: Random, keys: int, count: int, skew: float = 0.8) -> Array:
    """Keys of which few are frequent and many are rare, following Zipf's law."""
    shares = 1 / np.arange(1, keys + 1) ** skew
    return rng.choice(keys, count, p=shares / shares.sum())


def apart(rng: Random, keys: int, key: Array, at: Array, groups: Groups, before: float = 0) -> Array:
    """The keys of background events; those during their key's group, or up to `before` earlier, get another key."""
    begin, end = np.full(keys, np.inf), np.full(keys, -np.inf)
    begin[groups.keys], end[groups.keys] = groups.at[:, 0] - before, groups.at.max(axis=1)
    inside = (at >= begin[key]) & (at <= end[key])
    others = np.setdiff1d(np.arange(keys), groups.keys)
    moved = key.copy()
    moved[inside] = rng.choice(others, int(inside.sum()))
    return moved


def merged(at: Array, groups: Groups) -> tuple[Array, Array, tuple[tuple[int, ...], ...]]:
    """The order by time of all background and group events, the times in that order, and where the matches are."""
    times = np.concatenate([at, groups.at[groups.used]])
    order = np.argsort(times, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    own, lengths = place[at.size :], groups.used.sum(axis=1)
    ends = np.cumsum(lengths)
    matches = [tuple(own[end - n : end].tolist()) for n, end in zip(lengths, ends, strict=True)]
    return order, times[order], by_end(matches[: groups.planted])


def by_end(matches: Sequence[tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
    """Matches in the order in which queries give them."""
    return tuple(sorted(matches, key=lambda match: match[-1]))
