"""The order of items inside their columns: barycentre sweeps, keeping the order with the fewest crossings."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Mapping, Sequence

from cerite.viz.columns import Columns

SWEEPS = 16


def ordered(columns: Columns) -> list[list[int]]:
    """The items of each column from top to bottom."""
    left: dict[int, list[int]] = {}
    right: dict[int, list[int]] = {}
    for a, b, _ in columns.segments():
        right.setdefault(a, []).append(b)
        left.setdefault(b, []).append(a)
    now = columns.members()
    best, fewest = [list(column) for column in now], None
    for sweep in range(SWEEPS):
        forward = sweep % 2 == 0
        for c in range(len(now)) if forward else reversed(range(len(now))):
            near = c - 1 if forward else c + 1
            if 0 <= near < len(now):
                now[c] = _by_barycentre(now[c], now[near], left if forward else right)
        count = crossings(now, right)
        if fewest is None or count < fewest:
            best, fewest = [list(column) for column in now], count
    return best


def crossings(order: Sequence[Sequence[int]], right: Mapping[int, Sequence[int]]) -> int:
    """How many pairs of segments between neighbouring columns cross."""
    place = _places(order)
    count = 0
    for column in order:
        ends: list[int] = []
        for item in column:
            new = sorted(place[b] for b in right.get(item, ()))
            count += sum(len(ends) - bisect_right(ends, end) for end in new)
            for end in new:
                insort(ends, end)
    return count


def _by_barycentre(column: list[int], near: list[int], neighbours: Mapping[int, Sequence[int]]) -> list[int]:
    """The column sorted by the mean place of neighbours; an item without any stays about where it is."""
    place = {item: k / max(1, len(near) - 1) for k, item in enumerate(near)}
    key = {}
    for k, item in enumerate(column):
        around = [place[other] for other in neighbours.get(item, ())]
        key[item] = round(sum(around) / len(around), 9) if around else k / max(1, len(column) - 1)
    return sorted(column, key=key.__getitem__)


def _places(order: Sequence[Sequence[int]]) -> dict[int, int]:
    return {item: k for column in order for k, item in enumerate(column)}
