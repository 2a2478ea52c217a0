"""What SELECT measures for every match: the match is projected first, then each value is taken from its events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cerite.core.match import Match
from cerite.pattern.query import QuerySpec
from cerite.predicate import expression as ex
from cerite.predicate.evaluate import Event, value_of
from cerite.reference.semantics.clauses import Semantics, matches
from cerite.reference.semantics.short_stream import Stream

_START, _END = ex.Attribute("START_TIME"), ex.Attribute("END_TIME")


def measures(
    query: QuerySpec,
    rows: Iterable[Mapping[str, Any]],
    *,
    semantics: Semantics = "valuations",
    type: str = "type",
    time: str | None = None,
) -> list[tuple[Match, dict[str, Any]]]:
    """Every match, with the values of its measures by name.

    >>> from cerite.language.ceql import parse_query
    >>> query = parse_query("SELECT x.v AS low, SUM(y.v) AS sum, DURATION() AS took FROM S WHERE A AS x ; B+ AS y")
    >>> rows = [{"type": "A", "v": 1, "at": 5}, {"type": "B", "v": 2, "at": 6}, {"type": "B", "v": 3, "at": 9}]
    >>> for match, values in measures(query, rows, time="at"):
    ...     print(match, values)
    [0,1] x=0, y=1 {'low': 1, 'sum': 2, 'took': 1}
    [0,2] x=0, y=1,2 {'low': 1, 'sum': 5, 'took': 4}
    [0,2] x=0, y=2 {'low': 1, 'sum': 3, 'took': 4}
    """
    events = list(rows)
    every = matches(query, Stream.of(events, type=type, time=time), semantics=semantics)
    return [(match, _measured(query, match, events, time)) for match in every]


def _measured(query: QuerySpec, match: Match, rows: Sequence[Event], time: str | None) -> dict[str, Any]:
    ends = {} if time is None else {_START.name: rows[match.start][time], _END.name: rows[match.end][time]}

    def events(variable: str | None) -> list[Event]:
        positions = match.positions if variable is None else match.variables.get(variable, ())
        return [rows[position] for position in positions]

    def only(reference: ex.Reference) -> Event:
        (event,) = events(reference.variable)
        return event

    def gathered(aggregate: ex.Aggregate) -> list[Event]:
        return events(aggregate.variable)

    return {
        each.name: value_of(ex.transform(each.expression, _of_ends), ends, only, gathered) for each in query.measures
    }


def _of_ends(node: ex.Expression) -> ex.Expression:
    """Moments in terms of the times at the match's ends; a duration is their difference."""
    if not isinstance(node, ex.Moment):
        return node
    return {"START_TIME": _START, "END_TIME": _END}.get(node.function, ex.Arithmetic("-", _END, _START))
