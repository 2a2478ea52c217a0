"""A short stream for the judge: events in order, each with a type, attributes and perhaps a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any, Union

from cerite.core.errors import Hint, Setting, StreamError, listed
from cerite.pattern.nodes import Size, of_floats

Number = Union[int, float, Decimal, Fraction]
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event. `time` is in milliseconds; `position` is its rank in the whole stream."""

    type: str
    attributes: Mapping[str, Any]
    position: int
    time: Number | None = None


@dataclass(frozen=True, slots=True)
class Stream:
    """Events in stream order; a substream (of a partition) keeps the positions of the whole.

    `clock` is the attribute that holds the time, if one does: a window over it is one of time.
    """

    events: tuple[StreamEvent, ...] = field(default_factory=tuple)
    clock: str | None = None

    @staticmethod
    def of(rows: Iterable[Mapping[str, Any]], *, type: str = "type", time: str | None = None) -> Stream:
        """A stream from dictionaries: which key holds the event type, and which the time.

        >>> Stream.of([{"type": "A", "id": 1, "at": 5}], time="at").events[0].time
        5
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
        return Stream(tuple(events), time)

    def partitions(self, attributes: tuple[str, ...]) -> list[Stream]:
        """One substream per value tuple; events with a NULL there belong to none."""
        if not attributes:
            return [self]
        by_key: dict[tuple[Any, ...], list[StreamEvent]] = {}
        for event in self.events:
            key = tuple(event.attributes.get(name) for name in attributes)
            if not any(value is None or value != value for value in key):
                by_key.setdefault(tuple((type(value) is bool, value) for value in key), []).append(event)
        return [replace(self, events=tuple(events)) for events in by_key.values()]

    def after(self, position: float) -> Stream:
        """The events after a position of the whole stream."""
        return replace(self, events=tuple(event for event in self.events if event.position > position))

    def up_to(self, position: float) -> Stream:
        """The events up to a position of the whole stream."""
        return replace(self, events=tuple(event for event in self.events if event.position <= position))

    def measures_time(self, size: Size) -> bool:
        """Whether time drives a window of this size: then it closes for all partitions alike."""
        return size.is_time or (self.clock is not None and size.attribute == self.clock)

    def past(self, size: Size, start: StreamEvent) -> int | None:
        """The position of the first event past the window that began at `start`; None if there is none."""
        for rank, event in enumerate(self.events):
            if event.position > start.position and _known(size, event) and not self._holds(size, start, rank):
                return event.position
        return None

    def first_with(self, size: Size, start: StreamEvent) -> int:
        """The position of the first event to which the window gives the same place as to `start`: they end together."""
        if size.unit == "events":
            return start.position
        value = _place(size, start)
        return next(each.position for each in self.events if _place(size, each) == value)

    def _holds(self, size: Size, start: StreamEvent, rank: int) -> bool:
        if size.unit == "events":
            return self.fits(size, next(k for k, each in enumerate(self.events) if each == start), rank)
        return Stream((start, self.events[rank])).fits(size, 0, 1)

    def fits(self, size: Size, start: int, end: int) -> bool:
        """Whether the window holds from the event of rank `start` to that of rank `end`, both inside."""
        if size.unit == "events":
            return end - start + 1 <= size.amount
        first, last = self.events[start], self.events[end]
        if size.unit == "attribute":
            low, high = first.attributes.get(size.attribute or ""), last.attributes.get(size.attribute or "")
            if low is None or high is None:
                return False
            if not all(isinstance(value, (int, float, Decimal)) for value in (low, high)):
                raise StreamError(f"a window over `{size.attribute}` needs numbers, not {low!r}")
            return apart(low, high, size)
        if first.time is None or last.time is None:
            raise StreamError(
                "the query has a time window but the stream no time", hint=Hint("name its column: ", Setting("time"))
            )
        return apart(first.time, last.time, size)


def _place(size: Size, event: StreamEvent) -> Any:
    return event.time if size.is_time else event.attributes.get(size.attribute or "")


def _known(size: Size, event: StreamEvent) -> bool:
    """Whether the event has the value by which the window is measured."""
    if size.unit == "events":
        return True
    value = _place(size, event)
    return value is not None and value == value


def deadline(size: Size, start: StreamEvent) -> Number | None:
    """When a window of time that begins with this event is over; None for windows that time does not end."""
    if not size.is_time or start.time is None:
        return None
    if isinstance(start.time, float):
        return start.time + of_floats(size.width)
    return Fraction(start.time) + size.width


def apart(low: Number, high: Number, size: Size) -> bool:
    """Whether two values are at most so far apart: floats subtract as floats, everything else exactly."""
    if isinstance(low, float) or isinstance(high, float):
        return high == low or float(high) - float(low) <= of_floats(size.width)  # equal ones may be infinite
    return Fraction(high) - Fraction(low) <= size.width


def _milliseconds(row: Mapping[str, Any], time: str | None, position: int) -> Number | None:
    if time is None:
        return None
    value = row.get(time)
    if isinstance(value, date):
        return instant(value) / 1_000_000
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)) or value != value:
        raise StreamError(f"event {position} has no usable time in `{time}`: {value!r}")
    return value


def instant(value: date) -> Fraction:
    """Nanoseconds since 1970 of a date or a time; without a zone it is UTC."""
    whole = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
    aware = whole.astimezone(timezone.utc) if whole.tzinfo else whole.replace(tzinfo=timezone.utc)
    micros = (aware - _EPOCH) // timedelta(microseconds=1)
    return Fraction(micros * 1_000 + getattr(value, "nanosecond", 0))
