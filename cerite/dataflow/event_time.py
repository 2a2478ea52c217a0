"""Event-time streams (DEBS 2024, section 2.1): tuples ⟨τ, φ⟩ and, among them, watermarks (definition 1).

A stream is any iterable of both. Invariant of a well-formed one: watermarks never decrease, and no tuple is earlier
than the watermark before it; a tuple that is earlier all the same is *late*, which operators count and discard.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Union

from cerite.core.errors import CeriteError, Hint, Setting, StreamError, listed

# What can be wrong with an operator's parameters; what is wrong with a stream is a `StreamError` as everywhere.


class DataflowError(CeriteError):
    """The parameters of an operator contradict each other or the definition they belong to."""


def check_multiple(name: str, value: int, delta: int, *, least: int) -> None:
    """Refuse a length of time that is not a whole number of steps of δ, or is less than `least`."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise DataflowError(f"{name} is {value!r}, not a whole number", hint="event time is counted in whole units")
    if value < least:
        raise DataflowError(f"{name} is {value}, but must be at least {least}")
    if value % delta:
        raise DataflowError(
            f"{name} is {value}, not a multiple of δ = {delta}", hint="event time advances in steps of δ"
        )


@dataclass(frozen=True, slots=True)
class StreamTuple:
    """⟨τ, φ⟩: an event time in whole units (milliseconds, where queries look at it) and any payload."""

    time: int  # τ
    payload: Any  # φ


@dataclass(frozen=True, slots=True)
class Watermark:
    """From here on no tuple is earlier than `time`."""

    time: int  # W


Element = Union[StreamTuple, Watermark]


def tuples_of(rows: Iterable[Mapping[str, Any]], *, time: str) -> Iterator[StreamTuple]:
    """The rows as tuples, in the order they come; `time` names the column of the event time.

    >>> list(tuples_of([{"type": "A", "at": 5}], time="at"))
    [StreamTuple(time=5, payload={'type': 'A', 'at': 5})]
    """
    for number, row in enumerate(rows):
        if time not in row:
            raise StreamError(
                f"row {number} has no `{time}`; it has {listed(row)}", hint=Hint("name its time: ", Setting("time"))
            )
        if isinstance(row[time], bool) or not isinstance(row[time], int):
            raise StreamError(
                f"row {number} has the time {row[time]!r}, not a whole number", hint="use milliseconds since some epoch"
            )
        yield StreamTuple(row[time], row)


def with_watermarks(tuples: Iterable[StreamTuple], *, disorder: int, every: int, tail: int = 1) -> Iterator[Element]:
    """The tuples with watermarks between them: `disorder` behind the latest tuple, and at most `every` apart (A3).

    `disorder` promises how much earlier than its predecessors a tuple may be. When the tuples end, watermarks run on
    to `tail` after the latest of them, so that the windows it fell into are complete.

    >>> stream = with_watermarks([StreamTuple(4, "b"), StreamTuple(3, "a")], disorder=2, every=2)
    >>> [element.time for element in stream if isinstance(element, Watermark)]
    [2, 4, 5]
    """
    check_multiple("disorder", disorder, 1, least=0)
    check_multiple("every", every, 1, least=1)
    reached = latest = None
    for each in tuples:
        latest = each.time if latest is None else max(latest, each.time)
        yield each
        if reached is None:
            reached = latest - disorder
            yield Watermark(reached)
        while reached + every <= latest - disorder:
            reached += every
            yield Watermark(reached)
    if reached is not None and latest is not None:
        while reached < latest + tail:
            reached = min(reached + every, latest + tail)
            yield Watermark(reached)


def merged(*streams: Iterable[Element]) -> Iterator[Element]:
    """The streams {S₁, S₂, …} fed as one, an element of each in turn (section 2.2).

    Its watermark is the smallest of the latest of each; a stream that has ended no longer holds it back.

    >>> [each.time for each in merged([Watermark(1), Watermark(9)], [Watermark(5)]) if isinstance(each, Watermark)]
    [1, 5, 9]
    """
    running = dict(enumerate(map(iter, streams)))
    latest: dict[int, int] = {}
    reached: int | None = None
    while running:
        for number, stream in list(running.items()):
            element = next(stream, None)
            if isinstance(element, StreamTuple):
                yield element
                continue
            if element is None:
                del running[number]
            else:
                latest[number] = element.time
            low = _low(running, latest)
            if low is not None and (reached is None or low > reached):
                reached = low
                yield Watermark(low)


def _low(running: Mapping[int, Any], latest: Mapping[int, int]) -> int | None:
    """The time that all running streams have reached; when none runs any more, the latest that any reached."""
    if not running:
        return max(latest.values(), default=None)
    return min(latest[number] for number in running) if all(number in latest for number in running) else None
