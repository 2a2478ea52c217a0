"""Where everything is: the x of columns, the y of items, and the points where edges meet their states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from cerite.automaton import Automaton
from cerite.viz.columns import Columns, Kind, columns
from cerite.viz.heights import heights, spread
from cerite.viz.measure import LIFT, LOOP, PORT, REACH
from cerite.viz.ordering import ordered

MARGIN = 10.0
START = 30.0  # the length of the arrow into the initial state
AISLE = 14.0  # the least room between columns


@dataclass(frozen=True, slots=True)
class Box:
    """Room that something takes; `item` is whose it is."""

    item: int
    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True, slots=True)
class Span:
    """The x of a column's left edge, middle and right edge."""

    left: float
    middle: float
    right: float


@dataclass(frozen=True, slots=True)
class Placed:
    """A picture with all coordinates known; `ports` has the y at both ends of every route, `boxes` go by column."""

    columns: Columns
    spans: tuple[Span, ...]
    boxes: tuple[tuple[Box, ...], ...]
    y: tuple[float, ...]
    ports: tuple[tuple[float, float], ...]
    width: float
    height: float

    def span(self, item: int) -> Span:
        """The column of an item."""
        return self.spans[self.columns.items[item].column]

    def touch(self, state: int, y: float, right: bool) -> float:
        """The x at which the circle of a state is at height y, on its right or left side."""
        away = sqrt(max(0.0, self.columns.radius**2 - (y - self.y[state]) ** 2))
        return self.span(state).middle + (away if right else -away)

    def clear(self, item: int, start: float, right: bool, low: float, high: float) -> float:
        """The x from which an edge beside the item meets nothing of its column between the heights low and high."""
        low, high = min(low, high) - 3, max(low, high) + 3
        for box in self.boxes[self.columns.items[item].column]:
            if box.item != item and box.top < high and box.bottom > low:
                start = max(start, box.right + 2) if right else min(start, box.left - 2)
        return start


def placed(automaton: Automaton) -> Placed:
    """All coordinates for the picture of an automaton."""
    made = columns(automaton)
    order = ordered(made)
    y = heights(made, order)
    top = min(value - item.above for value, item in zip(y, made.items, strict=True)) - MARGIN
    y = [value - top for value in y]
    height = max(value + item.below for value, item in zip(y, made.items, strict=True)) + MARGIN
    spans = _spans(made, len(order), y)
    boxes: list[list[Box]] = [[] for _ in order]
    for k, item in enumerate(made.items):
        boxes[item.column] += _boxes(made, k, spans[item.column], y[k])
    width = spans[-1].right + MARGIN
    return Placed(made, tuple(spans), tuple(map(tuple, boxes)), tuple(y), tuple(_ports(made, y)), width, height)


def _spans(made: Columns, count: int, y: Sequence[float]) -> list[Span]:
    """Columns as wide as their widest item, further apart where edges between them climb high."""
    widths = [0.0] * count
    for item in made.items:
        widths[item.column] = max(widths[item.column], item.width)
    climbs = [0.0] * count
    for a, b, _ in made.segments():
        column = made.items[a].column
        climbs[column] = max(climbs[column], abs(y[a] - y[b]))
    spans = []
    x = MARGIN + START
    for width, climb in zip(widths, climbs, strict=True):
        spans.append(Span(x, x + width / 2, x + width))
        x += width + AISLE + min(70.0, 0.3 * climb)
    return spans


def _boxes(made: Columns, k: int, span: Span, y: float) -> list[Box]:
    """The room an item takes; the loop of a state is nobody's, since the state's own edges must keep off it too."""
    item, radius, half = made.items[k], made.radius, made.items[k].width / 2
    if item.kind is Kind.LANE:
        return [Box(k, span.left, y - 2, span.right, y + 2)]
    if item.kind is Kind.TURN:
        return [Box(k, span.left, y - item.above, span.left + item.width, y + item.below)]
    if item.kind is Kind.LABEL:
        return [Box(k, span.middle - half, y - item.above, span.middle + half, y + item.below)]
    circle = Box(k, span.middle - radius, y - radius, span.middle + radius, y + radius)
    if item.above < radius + LOOP:
        return [circle]
    text = Box(-1, span.middle - half, y - item.above, span.middle + half, y - radius - LOOP - LIFT)
    return [circle, Box(-1, span.middle - radius, text.bottom, span.middle + radius, y - radius), text]


def _ports(made: Columns, y: Sequence[float]) -> list[tuple[float, float]]:
    """Where each route leaves its source and enters its target: towards the next item, not too near another edge."""
    sides: dict[tuple[int, bool], list[tuple[float, int, int]]] = {}
    for k, route in enumerate(made.routes):
        for end, state, other in ((0, route.stops[0], route.stops[1]), (1, route.stops[-1], route.stops[-2])):
            on_right = made.items[other].column > made.items[state].column
            sides.setdefault((state, on_right), []).append((y[other], k, end))
    ports = [[0.0, 0.0] for _ in made.routes]
    most = REACH * made.radius
    for (state, _), meeting in sides.items():
        meeting.sort()
        rises = [height - y[state] for height, _, _ in meeting]
        level = [abs(rise) <= 4 for rise in rises]  # so near that a straight line looks best
        wanted = [rise if near else max(-most, min(most, 0.3 * rise)) for rise, near in zip(rises, level, strict=True)]
        many = len(meeting) - 1
        apart = min(PORT, 2 * most / max(1, many))
        found = spread(wanted, [100.0 if near else 1.0 for near in level], [apart] * many)
        for place, ((_, k, end), dy) in enumerate(zip(meeting, found, strict=True)):
            ports[k][end] = y[state] + max(place * apart - most, min(most - (many - place) * apart, dy))
    return [(a, b) for a, b in ports]
