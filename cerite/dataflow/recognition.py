"""A Cerite query that is being run, tuple by tuple: the engine's stream, and the tuples its matches may still hold.

The tuples must come in event-time order. Invariant: every tuple that a match completed later can bind is kept; with a
time window these are the tuples inside it, with `WITHIN n EVENTS` (and no partitions) the last n, otherwise all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from cerite.api.inputs import bind_query
from cerite.api.query import AnyQuery, query
from cerite.api.stream import EventStream
from cerite.core.errors import Hint, PatternError, Setting, StreamError
from cerite.core.match import Match
from cerite.data.columns import canonical_schema
from cerite.dataflow.event_time import StreamTuple
from cerite.engine.bind import Program
from cerite.engine.events.rows import Columns
from cerite.engine.plan import Semantics


@dataclass(frozen=True, slots=True)
class Recognised:
    """φ: a match, when it happened, and the time that its recognition depended on.

    The positions of `match` count what the query was fed, unless a column of positions was named.
    """

    start: int  # the time of the match's first event
    end: int  # and of its last
    match: Match
    window: int | None = None  # ε, where the stream is read in chunks and one must contain all of its window

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
        events_at = dict(zip(self.match.positions, self.events, strict=True))
        return [events_at[position] for position in self.match.variables.get(variable, ())]


@dataclass(frozen=True, slots=True)
class Saved:
    """A recognition as a value: it can be carried in a tuple, pickled, and continued any number of times."""

    engine: bytes
    kept: tuple[tuple[int, StreamTuple], ...]


class Recognition:
    """Runs one plan over tuples in order; payloads are mappings, and τ fills the column `columns.time`."""

    def __init__(self, program: Program, saved: Saved | None = None) -> None:
        columns = program.columns
        assert columns.time is not None
        self._plan = program.plan
        self._time, self._position = columns.time, columns.position
        self._stream = EventStream(program)
        self._names = program.schema.names
        self._tuples: dict[int, StreamTuple] = {}  # by position, the latest last
        if saved is not None:
            self._stream.restore(saved.engine)
            self._tuples = dict(saved.kept)

    def take(self, t: StreamTuple, window: int | None = None) -> list[Recognised]:
        """What this tuple completes."""
        self._check(t)
        event = {**t.payload, self._time: t.time}
        matches = self._stream.push({name: event[name] for name in self._names if name in event})
        self._tuples[self._stream.rows - 1 if self._position is None else t.payload[self._position]] = t
        self._forget(t.time)
        return [self._recognised(match, window) for match in matches]

    def saved(self) -> Saved:
        """The state after what was taken so far."""
        return Saved(self._stream.snapshot(), tuple(self._tuples.items()))

    def _recognised(self, match: Match, window: int | None) -> Recognised:
        payloads = {position: self._tuples[position].payload for position in match.positions}

        def fetch(whole: Match, variable: str | None) -> list[dict[str, Any]]:
            positions = whole.positions if variable is None else whole.variables[variable]
            return [payloads[position] for position in positions]

        known = replace(match, fetch=fetch)
        return Recognised(self._tuples[match.start].time, self._tuples[match.end].time, known, window)

    def _forget(self, now: int) -> None:
        """Drop, oldest first, what has left the window."""
        window = self._plan.window
        if window is None or window.attribute is not None or (self._plan.partition and not window.is_time):
            return
        for position, t in list(self._tuples.items()):
            age = now - t.time if window.is_time else len(self._tuples)
            if age <= window.width:
                return
            del self._tuples[position]

    def _check(self, t: StreamTuple) -> None:
        if not isinstance(t.payload, Mapping):
            raise StreamError(f"a query reads attributes, but a payload is {t.payload!r}", hint="use dictionaries")
        before = next(reversed(self._tuples.values()), t).time
        if t.time < before:
            raise StreamError(
                f"a tuple of time {t.time} came after one of {before}, but a query reads its stream in order",
                hint="sort before: sort_preprocess() >> …",
            )


# The engine as f_C of T-CER and as f_M of R-CER: `m, Φ ← f(m, t)` with a Cerite query inside.
#
# Both give a `Recognised` for every match at the tuple that completes it. Invariant (`reference.matches` judges it):
# behind S&P, T-CER and R-CER report the query's matches in the stream sorted by event time, each exactly once.


class QueryFunction:
    """A prepared query. `schema` has the columns it looks at; τ, in milliseconds, fills the column `time`."""

    def __init__(
        self,
        source: AnyQuery,
        schema: pa.Schema,
        *,
        time: str = "time",
        type: str | None = None,
        position: str | None = None,
        semantics: Semantics = "valuations",
    ) -> None:
        runnable = query(source)
        self.query = runnable.query
        self.plan = runnable.plan(semantics)
        columns = Columns(type, time, position)
        self._program = bind_query(self.query, self.plan, columns, canonical_schema(_completed(schema, time, position)))
        self._check()
        self._recognition()  # so that the engine refuses now what it would refuse later

    def _check(self) -> None:
        """Refuse what the operator cannot run."""
        if self.plan.has_absence:
            raise PatternError(
                "these operators do not run NOT at an end of a pattern: time decides it, and f sees only tuples",
                hint="run the query itself, or query.stream(…, watermark=…)",
            )

    def _recognition(self, saved: Saved | None = None) -> Recognition:
        return Recognition(self._program, saved)


class QueryRule(QueryFunction):
    """f_M: any query that the engine runs. The state carried forward is a snapshot of the engine, a plain value."""

    def __call__(self, state: Saved | None, t: StreamTuple) -> tuple[Saved, list[Recognised]]:
        """The state after this tuple, and what the tuple completes."""
        running = self._recognition(state)
        recognised = running.take(t)
        return running.saved(), recognised


class QueryCondition(QueryFunction):
    """f_C: a query with a time window. The state is the running engine, which never leaves its chunk.

    A chunk knows nothing about what came before it, so consumption, which depends on all of that, is refused, and so
    are parts that look at what precedes the window: `SKIP _ : A` needs an event before its match. Selection strategies
    and LIMIT are exact: a match is reported by a chunk that contains its whole window.
    """

    @property
    def duration(self) -> int:
        """D = ε + δ: the paper's bound is exclusive, a query's window inclusive; δ is a millisecond."""
        return self._window + 1

    def __call__(self, state: Recognition | None, t: StreamTuple) -> tuple[Recognition, list[Recognised]]:
        """The running query, and what the tuple completes."""
        running = self._recognition() if state is None else state
        return running, running.take(t, self._window)

    def _check(self) -> None:
        super()._check()
        if self.plan.window is None or not self.plan.window.is_time:
            raise PatternError(
                "T-CER runs queries with a time window, and this one has none",
                hint="add WITHIN … seconds, or run the query as a QueryRule in R-CER",
            )
        beyond = self.plan.beyond_window
        if beyond is not None:
            raise PatternError(
                f"T-CER recognises each chunk of time alone, which is not enough here; {beyond.reason}",
                hint="run the query as a QueryRule in R-CER",
            )
        self._window = int(self.plan.window.width)


def _completed(schema: pa.Schema, time: str, position: str | None) -> pa.Schema:
    """The schema with columns for event time and positions."""
    for name in (time, position):
        if name is not None and name not in schema.names:
            schema = schema.append(pa.field(name, pa.int64()))
    kind = schema.field(time).type
    if kind != pa.int64():
        raise StreamError(
            f"the column `{time}` holds {kind}, but event time is filled in as whole milliseconds",
            hint=Hint("declare it int64, or name another column: ", Setting("time")),
        )
    return schema
