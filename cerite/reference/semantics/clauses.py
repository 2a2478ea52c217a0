"""A query's clauses, in the order in which they take effect.

FROM and PARTITION BY make substreams; WHERE gives valuations on each; SELECT projects; WITHIN drops what is too long;
the strategy selects among what is left with the same end (docs/semantics.md, *Selection and windows*); CONSUME BY
restarts after a match has been decided; LIMIT bounds what one occurrence reports; SUPPRESS leaves out what becomes
known too soon after the last match that was reported.

A match is decided at the event that completes it. Where something is absent after it (docs/semantics.md, *Absence*), it
is decided just before the first event past the window, in the order in which the windows end; the end of the stream
decides all matches whose windows are still open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf, isfinite
from typing import Any, Literal, Union

from cerite.core.errors import suppress_without_time
from cerite.core.match import Match
from cerite.pattern.nodes import Pattern, Size
from cerite.pattern.query import Consume, QuerySpec
from cerite.pattern.references import resolve
from cerite.reference.semantics.patterns import Evaluator, Valuation, selected
from cerite.reference.semantics.short_stream import Number, Stream, StreamEvent, apart, deadline

Semantics = Literal["valuations", "complex-events"]


def matches(
    query: QuerySpec | Pattern,
    stream: Stream | Iterable[Mapping[str, Any]],
    *,
    semantics: Semantics = "valuations",
    type: str = "type",
    time: str | None = None,
) -> list[Match]:
    """All matches in the order in which they are decided, then by end, latest start first, then by positions.

    >>> from cerite.language.ceql import parse_query
    >>> rows = [{"type": kind} for kind in "ABAC"]
    >>> for match in matches(parse_query("SELECT * FROM S WHERE A AS x ; C AS y"), rows):
    ...     print(match)
    [2,3] A=2, C=3, x=2, y=3
    [0,3] A=0, C=3, x=0, y=3
    """
    events = stream if isinstance(stream, Stream) else Stream.of(stream, type=type, time=time)
    return [each.match for each in _decisions(query, events, semantics)]


def _decisions(query: QuerySpec | Pattern, events: Stream, semantics: Semantics) -> list[Decided]:
    if semantics not in ("valuations", "complex-events"):
        raise ValueError(f"semantics is 'valuations' or 'complex-events', not {semantics!r}")
    whole = query if isinstance(query, QuerySpec) else QuerySpec(query)
    pattern = resolve(whole.where)

    def on(substream: Stream, past: Stream) -> list[Decided]:
        return _clauses(whole, pattern, substream, past, events)

    result = _consumed(whole, events, on)
    if semantics == "complex-events":
        result = _once(replace(each, match=each.match.without_bindings()) for each in result)
    ordered = sorted(result, key=lambda each: (each.moment, each.match.end, -each.match.start, each.match))
    return _suppressed(_limited(ordered, whole.limit), whole, events)


def occurrences(
    query: QuerySpec,
    stream: Stream | Iterable[Mapping[str, Any]],
    *,
    semantics: Semantics = "valuations",
    type: str = "type",
    time: str | None = None,
) -> dict[Match, object]:
    """What LIMIT or SUPPRESS counts each match by; which of several matches with equal keys are reported is left open.

    That is the event that ends the match, or the first event of the window that decides it; under SUPPRESS, in the case
    of a window, its deadline.
    """
    every = replace(query, limit=None, suppress=None)
    events = stream if isinstance(stream, Stream) else Stream.of(stream, type=type, time=time)
    decided = _decisions(every, events, semantics)
    if query.suppress is None:
        return {each.match: (each.late, each.by) for each in decided}
    scope = query.partition if query.suppress.per_partition else ()
    attributes = {event.position: event.attributes for event in events.events}
    return {
        each.match: (each.time, *(attributes[each.match.end][name] for name in scope)) if each.late else each.by
        for each in decided
    }


# The event, and which of the windows that it closes; matches that the event itself completes come after those.
Moment = tuple[float, Union[float, Fraction]]


@dataclass(frozen=True, slots=True)
class Decided:
    """A match, when it is decided, and by what: its last event, or the end of a window.

    `by` is the position of the event that ends it, or with which the window began; `time` is when it is decided: the
    event's time, or the deadline, if the window is one of time.
    """

    moment: Moment
    match: Match
    by: int
    time: Number | None

    @property
    def late(self) -> bool:
        """Whether it is decided only after its last event."""
        return self.moment[1] < inf

    @property
    def last(self) -> float:
        """The position of the last event read when it is decided; an event that closes a window comes after that."""
        return self.moment[0] - 1 if self.moment[1] < inf else self.moment[0]


def _once(decided: Iterable[Decided]) -> list[Decided]:
    """Each match once, as it is decided first."""
    first: dict[Match, Decided] = {}
    for each in decided:
        if each.match not in first or (each.moment, each.by) < (first[each.match].moment, first[each.match].by):
            first[each.match] = each
    return list(first.values())


On = Callable[[Stream, Stream], list[Decided]]


def _consumed(query: QuerySpec, stream: Stream, on: On) -> list[Decided]:
    parts = stream.partitions(query.partition)
    if query.consume is Consume.NONE:
        return [match for part in parts for match in on(part, Stream())]
    if query.consume is Consume.ANY:
        return _restarting(parts, on)
    return [match for part in parts for match in _restarting([part], on)]


def _restarting(parts: list[Stream], on: On) -> list[Decided]:
    """The matches that are decided first, then, again and again, those on what comes after."""
    decided: list[Decided] = []
    last: float = -1
    while True:
        matches = [match for part in parts for match in on(part.after(last), part.up_to(last))]
        if not matches:
            return decided
        first = min(match.moment for match in matches)
        now = [match for match in matches if match.moment == first]
        decided += now
        last = now[0].last


def _clauses(query: QuerySpec, pattern: Pattern, stream: Stream, past: Stream, whole: Stream) -> list[Decided]:
    every = Evaluator(stream, past).within(pattern, query.within)
    valuations: Iterable[Valuation] = (each for each in every if _completes(each))
    if query.variables is not None:
        chosen = frozenset(query.variables)
        valuations = {each.projected(chosen) for each in valuations}
    if query.within is not None:
        size = query.within
        valuations = [each for each in valuations if stream.fits(size, _known(each.start), _known(each.end))]
    if query.strategy is not None:
        valuations = selected(query.strategy, valuations, lambda each: each.end, lambda each: each.positions)
    return _once(_decided(each, stream, whole) for each in valuations)


def _decided(each: Valuation, stream: Stream, whole: Stream) -> Decided:
    match = _reported(each, stream)
    ways = [Decided((match.end, inf), match, match.end, stream.events[_known(each.end)].time)]
    for size, start in each.waits:
        clock, event = whole if stream.measures_time(size) else stream, stream.events[start]
        closing = clock.past(size, event)
        moment = (len(whole.events) if closing is None else closing, _rank(size, event, clock))
        ways.append(Decided(moment, match, event.position, deadline(size, event)))
    return max(ways, key=lambda way: (way.moment, way.by))


def _rank(size: Size, start: StreamEvent, clock: Stream) -> float | Fraction:
    """The rank of a window among those that the same event closes: by its deadline, else by its first event."""
    if size.is_time and start.time is not None and isfinite(start.time):
        return Fraction(start.time) + size.width
    return clock.first_with(size, start)


def _completes(each: Valuation) -> bool:
    """A match is complete at the event that it marks last: recognition never looks ahead (definition 24)."""
    return not each.is_empty and each.end == each.hi


def _reported(each: Valuation, stream: Stream) -> Match:
    position = [event.position for event in stream.events]
    bound = ((name, position[rank]) for name, rank in each.bindings)
    return Match.of(position[_known(each.start)], position[_known(each.end)], bound)


def _known(rank: int | None) -> int:
    assert rank is not None
    return rank


def _limited(decided: list[Decided], limit: int | None) -> list[Decided]:
    """At most `limit` matches that end at one event, or that wait for the window that one event began."""
    reported: dict[tuple[bool, int], int] = {}
    left = []
    for each in decided:
        occurrence = (each.late, each.by)
        reported[occurrence] = reported.get(occurrence, 0) + 1
        if limit is None or reported[occurrence] <= limit:
            left.append(each)
    return left


def _suppressed(decided: list[Decided], query: QuerySpec, stream: Stream) -> list[Decided]:
    """The matches that are left, in the order of reporting, if a reported one silences those known soon after it."""
    if query.suppress is None:
        return decided
    scope = query.partition if query.suppress.per_partition else ()
    last: dict[tuple[Any, ...], Number] = {}  # by partition, when the last reported match was known
    reported = []
    for each in decided:
        attributes = stream.events[each.match.end].attributes
        key = tuple((type(attributes[name]) is bool, attributes[name]) for name in scope)
        if each.time is None:
            raise suppress_without_time()
        if key in last and apart(last[key], each.time, query.suppress.size):
            continue
        last[key] = each.time
        reported.append(each)
    return reported


# SREMO on a whole string, before streaming: Match(e, S) of the SRT report's definition 18.


def string_matches(pattern: Pattern, string: Stream) -> set[frozenset[int]]:
    """The sets of positions that some way of consuming the whole string, first event to last, marks.

    >>> from cerite.language.sremo import parse_sremo
    >>> string_matches(parse_sremo("A^o . (true^x)*"), Stream.of([{"type": "A"}, {"type": "B"}]))
    {frozenset({0})}
    """
    last = len(string.events) - 1
    valuations = Evaluator(string).all(resolve(pattern))
    whole = (each for each in valuations if (each.is_empty if last < 0 else (each.lo, each.hi) == (0, last)))
    return {frozenset(string.events[rank].position for rank in each.positions) for each in whole}
