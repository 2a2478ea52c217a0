"""Assertions about the matches of a query in a few events: a failure says what is missing, why, and what is extra."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Union

from cerite.api.query import AnyQuery, Query
from cerite.api.query import query as checked
from cerite.core.errors import ArgumentError, CeriteError
from cerite.core.match import Match
from cerite.testing.event_text import notation
from cerite.testing.given import AnyEvents, Rows, rows_of

Expected = Union[int, Iterable[Union[Iterable[int], Mapping[str, Any]]]]
_HINT = "give tuples of positions, [(0, 2)], mappings of variables, [{'x': 0, 'y': [1, 2]}], or how many there are"
_SHOWN = 5  # of each kind of difference


def assert_matches(
    query: AnyQuery, events: AnyEvents, expected: Expected, *, time: str = "at", type: str = "type"
) -> None:
    """Assert that the matches of the query in these events are the expected ones, in any order.

    Each is given by its positions, `(0, 2)`, or by the positions of some variables, `{"x": 0, "y": [1, 2]}`; instead of
    a list, a number says how many matches there are.

    >>> assert_matches("SELECT * FROM S WHERE A AS x ; B+ AS y", "A B B", [(0, 1), (0, 2), {"x": 0, "y": [1, 2]}])
    >>> assert_matches("SELECT * FROM S WHERE A AS x ; B AS y FILTER y[v > 5]", "A B(v=3)", [(0, 1)])
    Traceback (most recent call last):
    AssertionError: the query has 0 matches where 1 is expected
      in      A B(v=3)
      missing (0, 1): `v > 5` was 3
    """
    __tracebackhide__ = True
    subject = checked(query)
    rows, named = rows_of(events, type, time)
    matches = list(subject.run(rows, time=named, type=type))
    if isinstance(expected, int) and not isinstance(expected, bool):
        if len(matches) != expected:
            raise AssertionError(_report(subject, rows, named, type, matches, matches, [], expected))
        return
    wanted = _wanted(expected)
    left, missing = list(matches), []
    for each in wanted:
        match = next((match for match in left if _is(each, match)), None)
        if match is None:
            missing.append(each)
        else:
            left.remove(match)
    if left or missing:
        raise AssertionError(_report(subject, rows, named, type, matches, left, missing, len(wanted)))


def assert_no_match(query: AnyQuery, events: AnyEvents, *, time: str = "at", type: str = "type") -> None:
    """Assert that the query has no match in these events.

    >>> assert_no_match("SELECT * FROM S WHERE A ; B WITHIN 5 seconds", "A@0 B@6s")
    """
    __tracebackhide__ = True
    assert_matches(query, events, [], time=time, type=type)


Wanted = Union[frozenset[int], dict[str, frozenset[int]]]


def _wanted(expected: Any) -> list[Wanted]:
    if not isinstance(expected, Iterable) or isinstance(expected, (str, Mapping)):
        raise ArgumentError(f"matches cannot be expected as {expected!r}", hint=_HINT)
    return [_one(each) for each in expected]


def _one(each: Any) -> Wanted:
    if isinstance(each, Match):
        return frozenset(each.positions)
    if isinstance(each, Mapping):
        return {str(name): _positions(value) for name, value in each.items()}
    return _positions(each)


def _positions(value: Any) -> frozenset[int]:
    several = (value,) if isinstance(value, int) else value
    if isinstance(several, str) or not isinstance(several, Iterable):
        raise ArgumentError(f"a match cannot be expected as {value!r}", hint=_HINT)
    positions = frozenset(several)
    if any(isinstance(each, bool) or not isinstance(each, int) for each in positions):
        raise ArgumentError(f"a match cannot be expected as {value!r}", hint=_HINT)
    return positions


def _is(wanted: Wanted, match: Match) -> bool:
    if isinstance(wanted, frozenset):
        return frozenset(match.positions) == wanted
    return all(frozenset(match.variables.get(name, ())) == positions for name, positions in wanted.items())


def _report(
    query: Query, rows: Rows, time: str | None, type: str, matches: list[Match], extra: list[Match],
    missing: list[Wanted], count: int,
) -> str:  # fmt: skip
    number = f"the query has {_many(len(matches))} where {count} {'is' if count == 1 else 'are'} expected"
    if len(matches) == count:
        number = f"the query has other matches than the {count} expected"
    lines = [number, f"  in      {notation(rows, type=type, time=time or 'at') or 'no events at all'}"]
    lines += [f"  missing {_text(each)}{_why_not(query, rows, time, type, each)}" for each in missing[:_SHOWN]]
    lines += [f"  extra   {match}" for match in extra[:_SHOWN]]
    more = len(extra[_SHOWN:]) + len(missing[_SHOWN:])
    return "\n".join([*lines, *([f"  and {more:,} more"] if more else [])])


def _many(count: int) -> str:
    return f"{count:,} match{'' if count == 1 else 'es'}"


def _text(wanted: Wanted) -> str:
    if isinstance(wanted, frozenset):
        return f"({', '.join(map(str, sorted(wanted)))}{',' if len(wanted) == 1 else ''})"
    return ", ".join(f"{name}={','.join(map(str, sorted(positions)))}" for name, positions in wanted.items())


def _why_not(query: Query, rows: Rows, time: str | None, type: str, wanted: Wanted) -> str:
    """Why an expected match is not a match, if there is something to say."""
    positions = wanted if isinstance(wanted, frozenset) else frozenset().union(*wanted.values())
    try:
        answer = query.why_not(rows, sorted(positions), time=time, type=type)
    except CeriteError as error:
        return f": {error.message}"
    return "" if answer.culprit is None else f": {answer.culprit}"
