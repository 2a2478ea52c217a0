"""The lines of the picture as SVG path data: edges, self-loops and arrowheads."""

from __future__ import annotations

from math import cos, radians, sin, sqrt

from cerite.viz.columns import Kind, Route
from cerite.viz.measure import LOOP
from cerite.viz.placing import Placed

HEAD = 8.0  # the length of an arrowhead

Point = tuple[float, float]


def number(value: float) -> str:
    """A coordinate with one decimal at most, the same on every machine."""
    text = f"{value:.1f}"
    return text.removesuffix(".0") if text not in ("-0.0", "0.0") else "0"


class Path:
    """Path data under construction; it remembers where it is and merges straight pieces."""

    def __init__(self, x: float, y: float) -> None:
        self.parts = [f"M{number(x)} {number(y)}"]
        self.x, self.y = x, y

    def level(self, x: float) -> None:
        """A horizontal line."""
        if number(x) != number(self.x):
            if self.parts[-1].startswith("H"):
                self.parts.pop()
            self.parts.append(f"H{number(x)}")
            self.x = x

    def curve(self, a: Point, b: Point, end: Point) -> None:
        """A cubic Bézier curve with control points a and b."""
        self.parts.append("C" + " ".join(f"{number(x)} {number(y)}" for x, y in (a, b, end)))
        self.x, self.y = end

    def ease(self, x: float, y: float) -> None:
        """A curve that starts and ends level."""
        if number(y) == number(self.y):
            self.level(x)
        else:
            middle = (self.x + x) / 2
            self.curve((middle, self.y), (middle, y), (x, y))

    def __str__(self) -> str:
        return "".join(self.parts)


def edge_path(picture: Placed, k: int) -> tuple[str, str]:
    """The line of the k-th route and its arrowhead."""
    route = picture.columns.routes[k]
    if picture.columns.items[route.label].kind is Kind.TURN:
        return _turn(picture, route, *picture.ports[k])
    source, target = route.stops[0], route.stops[-1]
    rightward = picture.span(source).middle < picture.span(target).middle
    leave, enter = picture.ports[k]
    heights = (leave, *(picture.y[stop] for stop in route.stops[1:-1]), enter)
    path = Path(picture.touch(source, leave, rightward), leave)
    path.level(_beside(picture, source, rightward, leave, heights[1]))
    for before, stop, after in zip(heights, route.stops[1:-1], heights[2:], strict=False):
        y = picture.y[stop]
        path.ease(_beside(picture, stop, not rightward, y, before), y)
        path.level(_beside(picture, stop, rightward, y, after))
    path.ease(_beside(picture, target, not rightward, enter, heights[-2]), enter)
    tip = picture.touch(target, enter, not rightward)
    path.level(tip - HEAD / 2 if rightward else tip + HEAD / 2)
    return str(path), head((tip, enter), 0 if rightward else 180)


def loop_path(picture: Placed, state: int) -> tuple[str, str]:
    """A self-loop above its state, and its arrowhead."""
    x, y, radius = picture.span(state).middle, picture.y[state], picture.columns.radius
    dx = 8.5
    dy = sqrt(radius**2 - dx**2)
    tip = x + dx, y - dy
    top = y - radius - LOOP * 1.18
    path = Path(x - dx, y - dy)
    path.curve((x - 2.3 * dx, top), (x + 2.3 * dx, top), (tip[0] + 2, tip[1] - HEAD / 2))
    return str(path), head(tip, 109)


def start_path(picture: Placed, state: int, length: float) -> tuple[str, str]:
    """The arrow that comes from nowhere into the initial state."""
    tip = picture.span(state).middle - picture.columns.radius
    path = Path(tip - length, picture.y[state])
    path.level(tip - HEAD / 2)
    return str(path), head((tip, picture.y[state]), 0)


def head(tip: Point, degrees: float) -> str:
    """An arrowhead that points in a direction; 0 is to the right, 90 down."""
    corners = [tip]
    for turn in (157.0, 203.0):
        angle = radians(degrees + turn)
        corners.append((tip[0] + HEAD * cos(angle), tip[1] + HEAD * sin(angle)))
    return "M" + "L".join(f"{number(x)} {number(y)}" for x, y in corners) + "Z"


def _beside(picture: Placed, item: int, right: bool, y: float, other: float) -> float:
    """The x beside an item from where its edge may curve towards another height."""
    kind, span, sign = picture.columns.items[item].kind, picture.span(item), 1 if right else -1
    if kind is Kind.LANE:
        return span.right if right else span.left
    if kind is Kind.STATE:
        start = picture.touch(item, y, right) + sign * (HEAD + 1)
    else:
        start = span.middle + sign * picture.columns.items[item].width / 2
    return picture.clear(item, start, right, y, other)


def _turn(picture: Placed, route: Route, leave: float, enter: float) -> tuple[str, str]:
    """An edge inside one column: to the right, round its label, and back."""
    source, label, target = route.stops
    item, far, y = picture.columns.items[label], picture.span(label).left, picture.y[label]
    bend = item.above if leave < enter else -item.above
    path = Path(picture.touch(source, leave, True), leave)
    path.level(_beside(picture, source, True, leave, y - bend))
    path.ease(far, y - bend)
    end, bulge = far + item.width - 10, far + item.width
    path.level(end)
    path.curve((bulge, y - bend), (bulge, y + bend), (end, y + bend))
    path.level(far)
    path.ease(_beside(picture, target, True, enter, y + bend), enter)
    tip = picture.touch(target, enter, True)
    path.level(tip + HEAD / 2)
    return str(path), head((tip, enter), 180)
