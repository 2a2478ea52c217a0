"""Random streams for the properties: keyed tuples, disorder, and honest watermarks (definition 1, A3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from cerite.dataflow import Element, StreamTuple, Watermark


@dataclass(frozen=True)
class Reading:
    """A payload: which tuple this is, its key and a value."""

    number: int
    key: str
    value: int


def key_of(t: StreamTuple) -> str:
    key: str = t.payload.key
    return key


@dataclass(frozen=True)
class Fed:
    """A stream, its tuples in the order they arrived, and the δ and D_W it keeps to."""

    elements: list[Element]
    arrived: list[StreamTuple]
    delta: int
    distance: int


@st.composite
def arrivals(draw: st.DrawFn, delta: int = 1, most: int = 10, span: int = 12) -> list[StreamTuple]:
    """Keyed tuples, somewhat out of order; several may share a time."""
    begin = draw(st.integers(-20, 20))
    times = draw(st.lists(st.tuples(st.integers(0, span), st.integers(0, 4)), max_size=most))
    times.sort(key=sum)
    keys, values = st.sampled_from("ab"), st.integers(0, 3)
    return [
        StreamTuple((begin + time) * delta, Reading(number, draw(keys), draw(values)))
        for number, (time, _) in enumerate(times)
    ]


@st.composite
def fed(draw: st.DrawFn, tail: int = 1, most: int = 10, span: int = 12) -> Fed:
    """A stream whose watermarks come now and then; the last is `tail` steps after the latest tuple."""
    delta, steps = draw(st.sampled_from([1, 10])), draw(st.integers(1, 4))
    arrived = draw(arrivals(delta, most, span))
    return Fed(draw(watermarked(arrived, steps, tail, delta)), arrived, delta, steps * delta)


@st.composite
def watermarked(draw: st.DrawFn, arrived: list[StreamTuple], steps: int, tail: int, delta: int = 1) -> list[Element]:
    """These tuples with watermarks that none of them is late for, at most `steps` steps of δ apart."""
    elements: list[Element] = []
    reached: int | None = None
    for number, t in enumerate(arrived):
        elements.append(t)
        coming = [each.time for each in arrived[number + 1 :]]
        last = max(each.time for each in arrived) + tail * delta
        goal = min(coming) - draw(st.integers(0, 2)) * delta if coming else last
        if not coming or draw(st.booleans()):
            earliest = min(each.time for each in arrived[: number + 1])
            times = list(_approach(reached, earliest, goal, steps * delta))
            elements += map(Watermark, times)
            reached = times[-1] if times else reached
    return elements


def _approach(reached: int | None, earliest: int, goal: int, distance: int) -> Iterator[int]:
    if reached is None:
        reached = min(goal, earliest + distance)
        yield reached
    while reached < goal:
        reached = min(reached + distance, goal)
        yield reached


def outputs(elements: Any) -> list[StreamTuple]:
    """The tuples of a stream, after checking that its watermarks rise and none of its tuples is late."""
    reached: int | None = None
    tuples: list[StreamTuple] = []
    for element in elements:
        if isinstance(element, StreamTuple):
            assert reached is None or element.time >= reached, "an output is late"
            tuples.append(element)
        else:
            assert reached is None or element.time > reached, "a watermark does not rise"
            reached = element.time
    return tuples
