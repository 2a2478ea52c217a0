"""A query's clauses in the order in which they mean something.

FROM and PARTITION BY make substreams; WHERE gives valuations on each; SELECT projects; WITHIN drops what is too long;
the strategy selects among what is left with the same end (docs/semantics.md, *Selection and windows*); CONSUME BY
restarts after an event that completed a match; LIMIT bounds what one occurrence reports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from cerite.core.match import Match
from cerite.pattern.nodes import Pattern
from cerite.pattern.query import Consume, QuerySpec
from cerite.pattern.references import resolve
from cerite.reference.semantics.patterns import Evaluator, Valuation, selected
from cerite.reference.semantics.stream import Stream

Semantics = Literal["valuations", "complex-events"]


def matches(
    query: QuerySpec | Pattern,
    stream: Stream | Iterable[Mapping[str, Any]],
    *,
    semantics: Semantics = "valuations",
    type: str = "type",
    time: str | None = None,
) -> list[Match]:
    """Every match, ordered by end, then latest start first, then positions.

    >>> from cerite.language.ceql import parse_query
    >>> rows = [{"type": kind} for kind in "ABAC"]
    >>> for match in matches(parse_query("SELECT * FROM S WHERE A AS x ; C AS y"), rows):
    ...     print(match)
    [2,3] A=2, C=3, x=2, y=3
    [0,3] A=0, C=3, x=0, y=3
    """
    if semantics not in ("valuations", "complex-events"):
        raise ValueError(f"semantics is 'valuations' or 'complex-events', not {semantics!r}")
    events = stream if isinstance(stream, Stream) else Stream.of(stream, type=type, time=time)
    whole = query if isinstance(query, QuerySpec) else QuerySpec(query)
    pattern = resolve(whole.where)

    def on(substream: Stream) -> list[Match]:
        return _clauses(whole, pattern, substream)

    result = _consumed(whole, events, on)
    if semantics == "complex-events":
        result = list({match.without_bindings() for match in result})
    return _limited(
        sorted(result, key=lambda each: (each.end, -each.start, each.positions, each.bindings)), whole.limit
    )


def _consumed(query: QuerySpec, stream: Stream, on: Callable[[Stream], list[Match]]) -> list[Match]:
    parts = stream.partitions(query.partition)
    if query.consume is Consume.NONE:
        return [match for part in parts for match in on(part)]
    if query.consume is Consume.ANY:
        return _restarting(parts, on)
    return [match for part in parts for match in _restarting([part], on)]


def _restarting(parts: list[Stream], on: Callable[[Stream], list[Match]]) -> list[Match]:
    """The matches of the first event that completes any, then the same on what comes after that event."""
    kept: list[Match] = []
    while True:
        matches = [match for part in parts for match in on(part)]
        if not matches:
            return kept
        end = min(match.end for match in matches)
        kept += [match for match in matches if match.end == end]
        parts = [part.after(end) for part in parts]


def _clauses(query: QuerySpec, pattern: Pattern, stream: Stream) -> list[Match]:
    valuations: Iterable[Valuation] = (each for each in Evaluator(stream).all(pattern) if _completes(each))
    if query.variables is not None:
        chosen = frozenset(query.variables)
        valuations = {each.projected(chosen) for each in valuations}
    if query.within is not None:
        size = query.within
        valuations = [each for each in valuations if stream.fits(size, _known(each.start), _known(each.end))]
    if query.strategy is not None:
        valuations = selected(query.strategy, valuations, lambda each: each.end, lambda each: each.positions)
    return list({_reported(each, stream) for each in valuations})


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


def _limited(matches: list[Match], limit: int | None) -> list[Match]:
    if limit is None:
        return matches
    reported: dict[int, int] = {}
    kept = []
    for match in matches:
        reported[match.end] = reported.get(match.end, 0) + 1
        if reported[match.end] <= limit:
            kept.append(match)
    return kept


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
