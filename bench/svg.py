"""Charts as hand-written SVG: bars on a logarithmic axis, and lines on two logarithmic axes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

COLOURS = ("#1f6f8b", "#d9822b", "#6b8e23", "#8b3a62", "#777777")
LEFT, TOP, BOTTOM, HEIGHT = 70, 50, 90, 260


def bars(title: str, unit: str, names: Sequence[str], series: Mapping[str, Sequence[float | None]]) -> str:
    """A group of bars for each name, one bar per series."""
    low, high = _decades([value for values in series.values() for value in values])
    group, width = 14 * len(series) + 12, LEFT + (14 * len(series) + 12) * len(names) + 20
    parts = _frame(title, unit, width, low, high) + _legend(list(series))
    for index, name in enumerate(names):
        x = LEFT + 6 + index * group
        for k, values in enumerate(series.values()):
            value = values[index]
            if value is not None and value > 0:
                y = _y(value, low, high)
                parts.append(_rect(x + 14 * k, y, 12, TOP + HEIGHT - y, COLOURS[k % len(COLOURS)]))
        parts.append(_turned(x + 7 * len(series), TOP + HEIGHT + 12, name))
    return _document(parts, width)


def lines(title: str, unit: str, xs: Sequence[float], series: Mapping[str, Sequence[float]], axis: str) -> str:
    """A line with dots per series."""
    low, high = _decades([value for values in series.values() for value in values])
    width, first, last = 560, math.log10(min(xs)), math.log10(max(xs))
    span = (last - first) or 1.0
    places = [LEFT + 20 + (math.log10(x) - first) / span * (width - LEFT - 60) for x in xs]
    parts = _frame(title, unit, width, low, high) + _legend(list(series))
    for k, values in enumerate(series.values()):
        dots = [(x, _y(value, low, high)) for x, value in zip(places, values, strict=True)]
        colour = COLOURS[k % len(COLOURS)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in dots)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in dots]
    parts += [_text(place, TOP + HEIGHT + 18, short(x), "middle") for place, x in zip(places, xs, strict=True)]
    parts.append(_text((LEFT + width) / 2, TOP + HEIGHT + 40, axis, "middle"))
    return _document(parts, width)


def short(value: float) -> str:
    """A number for an axis.

    >>> short(20_000_000), short(500), short(0.01)
    ('20M', '500', '0.01')
    """
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def _decades(values: Sequence[float | None]) -> tuple[int, int]:
    known = [value for value in values if value is not None and value > 0] or [1.0]
    low, high = math.floor(math.log10(min(known))), math.ceil(math.log10(max(known)))
    return low, max(high, low + 1)


def _y(value: float, low: int, high: int) -> float:
    return TOP + HEIGHT - (math.log10(max(value, 10.0**low)) - low) / (high - low) * HEIGHT


def _frame(title: str, unit: str, width: int, low: int, high: int) -> list[str]:
    parts = [_text(LEFT, 20, f"{title} ({unit}, logarithmic)", "start")]
    for power in range(low, high + 1):
        y = _y(10.0**power, low, high)
        parts.append(f'<line x1="{LEFT}" x2="{width - 10}" y1="{y:.1f}" y2="{y:.1f}" stroke="#dddddd"/>')
        parts.append(_text(LEFT - 8, y + 4, short(10.0**power), "end"))
    return parts


def _legend(names: Sequence[str]) -> list[str]:
    parts = []
    for k, name in enumerate(names):
        parts.append(_rect(LEFT + 120 * k, 30, 10, 10, COLOURS[k % len(COLOURS)]))
        parts.append(_text(LEFT + 120 * k + 14, 39, name, "start"))
    return parts


def _rect(x: float, y: float, width: float, height: float, colour: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>'


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _turned(x: float, y: float, words: str) -> str:
    return f'<text transform="translate({x:.1f},{y:.1f}) rotate(-45)" text-anchor="end">{escape(words)}</text>'


def _document(parts: Sequence[str], width: int) -> str:
    size = f'width="{width}" height="{TOP + HEIGHT + BOTTOM}"'
    style = 'font-family="sans-serif" font-size="12" fill="#222222"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>'
    return "\n".join((head, '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>\n"))
