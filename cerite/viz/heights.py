"""How high each item sits: close to its neighbours along edges, in its column's order, and never on top of another."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from cerite.viz.columns import Columns, Route
from cerite.viz.measure import GAP

RELAX, LEVEL, SWEEPS = 8, 24, 40  # when to look at both sides, when to level long edges, when to stop


def heights(columns: Columns, order: Sequence[Sequence[int]]) -> list[float]:
    """The y of each item's line, rounded to whole pixels; the order in columns is kept and no two items overlap."""
    items = columns.items
    left: dict[int, list[tuple[int, float]]] = {}
    right: dict[int, list[tuple[int, float]]] = {}
    for a, b, weight in columns.segments():
        right.setdefault(a, []).append((b, weight))
        left.setdefault(b, []).append((a, weight))
    apart = [[items[a].below + GAP + items[b].above for a, b in pairwise(column)] for column in order]
    y = [0.0] * len(items)
    long = [route for route in columns.routes if len(route.stops) > 3]
    for sweep in range(SWEEPS):
        forward = sweep % 2 == 0
        levels: dict[int, float] = {}
        if sweep >= LEVEL:
            for route in long:
                levels.update(dict.fromkeys(route.stops[1:-1], _outermost(route, y)))
        for c in range(len(order)) if forward else reversed(range(len(order))):
            wanted = []
            for item in order[c]:
                if item in levels:
                    wanted.append(levels[item])
                    continue
                sides = (left, right) if sweep >= RELAX else (left,) if forward else (right,)
                around = [pair for side in sides for pair in side.get(item, ())]
                total = sum(weight for _, weight in around)
                wanted.append(sum(y[other] * weight for other, weight in around) / total if total else y[item])
            for item, value in zip(
                order[c], spread(wanted, [items[k].weight for k in order[c]], apart[c]), strict=True
            ):
                y[item] = value
    for c, column in enumerate(order):  # rounding may bring two items too close by less than a pixel
        for k, item in enumerate(column):
            y[item] = float(round(y[item]))
            if k and y[item] < y[column[k - 1]] + apart[c][k - 1] - 1:
                y[item] = y[column[k - 1]] + apart[c][k - 1] - 1
    return y


def _outermost(route: Route, y: Sequence[float]) -> float:
    """Where an edge that passes several columns can be level: as far from its states as it has to be anywhere."""
    inner = [y[stop] for stop in route.stops[1:-1]]
    below = 2 * sum(inner) / len(inner) >= y[route.stops[0]] + y[route.stops[-1]]
    return max(inner) if below else min(inner)


def spread(wanted: Sequence[float], weights: Sequence[float], apart: Sequence[float]) -> list[float]:
    """The values nearest to those wanted, in least squares by weight, at least `apart` from one to the next.

    >>> spread([0, 0, 100], [1, 1, 1], [10, 10])
    [-5.0, 5.0, 100.0]
    """
    offsets = [0.0]
    for distance in apart:
        offsets.append(offsets[-1] + distance)
    blocks: list[tuple[float, float, int]] = []  # mean, weight, length; means increase
    for value, weight, offset in zip(wanted, weights, offsets, strict=False):
        mean, total, length = value - offset, weight, 1
        while blocks and blocks[-1][0] >= mean:
            before, heavy, many = blocks.pop()
            mean, total, length = (before * heavy + mean * total) / (heavy + total), heavy + total, length + many
        blocks.append((mean, total, length))
    means = [mean for mean, _, length in blocks for _ in range(length)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=False)]
