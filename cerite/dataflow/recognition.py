"""A Cerite query that is being run, tuple by tuple: the engine's stream, and the tuples its matches may still hold.

The tuples must come in event-time order. Invariant: every tuple that a match completed later can bind is kept; with a
time window these are the tuples inside it, with `WITHIN n EVENTS` (and no partitions) the last n, otherwise all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from cerite.dataflow.streams import StreamTuple
from cerite.engine.intake import Columns
from cerite.engine.plan import Plan
from cerite.errors import StreamError
from cerite.match import Match
from cerite.streaming import EventStream


@dataclass(frozen=True, slots=True)
class Recognised:
    """φ: a match, when it happened, and the time that its recognition depended on.

    The positions of `match` count what the query was fed, unless a column of positions was named.
    """

    start: int  # the time of the match's first event
    end: int  # and of its last
    match: Match
    window: int | None = None  # ε, where the match is found in chunks and one must contain all of its window

    @property
    def min_time(self) -> int:
        """min τ of P. P is all that decides about the match: a strategy compares every start in the window."""
        return self.start if self.window is None else self.end - self.window

    @property
    def max_time(self) -> int:
        """max τ of P."""
        return self.end

    @property
    def events(self) -> list[dict[str, Any]]:
        """The payloads of the matched tuples."""
        return self.match.events

    def bound(self, variable: str) -> list[dict[str, Any]]:
        """The payloads of the tuples bound to a variable."""
        held = dict(zip(self.match.positions, self.events, strict=True))
        return [held[position] for position in self.match.variables.get(variable, ())]


@dataclass(frozen=True, slots=True)
class Saved:
    """A recognition as a value: it can be carried in a tuple, pickled, and continued any number of times."""

    engine: bytes
    kept: tuple[tuple[int, StreamTuple], ...]


class Recognition:
    """Runs one plan over tuples in order; payloads are mappings, and τ fills the column `columns.time`."""

    def __init__(self, plan: Plan, schema: pa.Schema, columns: Columns, saved: Saved | None = None) -> None:
        assert columns.time is not None
        self._plan = plan
        self._time, self._position = columns.time, columns.position
        self._stream = EventStream(plan, schema, columns)
        self._names = schema.names
        self._kept: dict[int, StreamTuple] = {}  # by position, the latest last
        if saved is not None:
            self._stream.restore(saved.engine)
            self._kept = dict(saved.kept)

    def take(self, t: StreamTuple, window: int | None = None) -> list[Recognised]:
        """What this tuple completes."""
        self._check(t)
        event = {**t.payload, self._time: t.time}
        found = self._stream.push({name: event[name] for name in self._names if name in event})
        self._kept[self._stream.rows - 1 if self._position is None else t.payload[self._position]] = t
        self._forget(t.time)
        return [self._recognised(match, window) for match in found]

    def saved(self) -> Saved:
        """The state after what was taken so far."""
        return Saved(self._stream.snapshot(), tuple(self._kept.items()))

    def _recognised(self, match: Match, window: int | None) -> Recognised:
        payloads = {position: self._kept[position].payload for position in match.positions}

        def fetch(found: Match, variable: str | None) -> list[dict[str, Any]]:
            positions = found.positions if variable is None else found.variables[variable]
            return [payloads[position] for position in positions]

        known = replace(match, fetch=fetch)
        return Recognised(self._kept[match.start].time, self._kept[match.end].time, known, window)

    def _forget(self, now: int) -> None:
        """Drop, oldest first, what has left the window."""
        window = self._plan.window
        if window is None or window.attribute is not None or (self._plan.partition and not window.is_time):
            return
        for position, t in list(self._kept.items()):
            age = now - t.time if window.is_time else len(self._kept)
            if age <= window.width:
                return
            del self._kept[position]

    def _check(self, t: StreamTuple) -> None:
        if not isinstance(t.payload, Mapping):
            raise StreamError(f"a query reads attributes, but a payload is {t.payload!r}", hint="use dictionaries")
        before = next(reversed(self._kept.values()), t).time
        if t.time < before:
            raise StreamError(
                f"a tuple of time {t.time} came after one of {before}, but a query reads its stream in order",
                hint="sort before: sort_preprocess() >> …",
            )
