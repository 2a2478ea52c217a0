"""A short stream for the judge: events in order, each with a type, attributes and perhaps a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from itertools import pairwise
from typing import Any

from cerite.errors import Hint, Setting, StreamError, listed
from cerite.pattern.window import Size


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event. `time` is in milliseconds; `position` is its rank in the whole stream."""

    type: str
    attributes: Mapping[str, Any]
    position: int
    time: float | None = None


@dataclass(frozen=True, slots=True)
class Stream:
    """Events in stream order; a substream (of a partition) keeps the positions of the whole."""

    events: tuple[StreamEvent, ...] = field(default_factory=tuple)

    @staticmethod
    def of(rows: Iterable[Mapping[str, Any]], *, type: str = "type", time: str | None = None) -> Stream:
        """A stream from dictionaries: which key holds the event type, and which the time.

        >>> Stream.of([{"type": "A", "id": 1, "at": 5}], time="at").events[0].time
        5.0
        """
        events = []
        for position, row in enumerate(rows):
            if type not in row:
                raise StreamError(
                    f"event {position} has no `{type}`; it has {listed(row)}", hint=Hint("name it: ", Setting("type"))
                )
            attributes = {name: value for name, value in row.items() if name != type}
            events.append(StreamEvent(str(row[type]), attributes, position, _milliseconds(row, time, position)))
        times = [event.time for event in events]
        for position, (one, two) in enumerate(pairwise(times)):
            if one is not None and two is not None and two < one:
                raise StreamError(f"the stream is not sorted by time: event {position + 1} is before event {position}")
        return Stream(tuple(events))

    def partitions(self, attributes: tuple[str, ...]) -> list[Stream]:
        """One substream per value tuple; events with a NULL there belong to none."""
        if not attributes:
            return [self]
        found: dict[tuple[Any, ...], list[StreamEvent]] = {}
        for event in self.events:
            key = tuple(event.attributes.get(name) for name in attributes)
            if not any(value is None or value != value for value in key):
                found.setdefault(tuple((type(value) is bool, value) for value in key), []).append(event)
        return [Stream(tuple(events)) for events in found.values()]

    def after(self, position: int) -> Stream:
        """The events after a position of the whole stream."""
        return Stream(tuple(event for event in self.events if event.position > position))

    def fits(self, size: Size, start: int, end: int) -> bool:
        """Whether the window holds from the event of rank `start` to that of rank `end`, both inside."""
        if size.unit == "events":
            return end - start + 1 <= size.amount
        first, last = self.events[start], self.events[end]
        if size.unit == "attribute":
            low, high = first.attributes.get(size.attribute or ""), last.attributes.get(size.attribute or "")
            if low is None or high is None:
                return False
            if not all(isinstance(value, (int, float)) for value in (low, high)):
                raise StreamError(f"a window over `{size.attribute}` needs numbers, not {low!r}")
            return bool(high - low <= size.amount)
        if first.time is None or last.time is None:
            raise StreamError(
                "the query has a time window but the stream no time", hint=Hint("name its column: ", Setting("time"))
            )
        return last.time - first.time <= size.milliseconds


def _milliseconds(row: Mapping[str, Any], time: str | None, position: int) -> float | None:
    if time is None:
        return None
    value = row.get(time)
    if isinstance(value, datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=timezone.utc)
        return aware.timestamp() * 1000
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise StreamError(f"event {position} has no usable time in `{time}`: {value!r}")
    return float(value)
