"""What `why` and `why_not` are given that cannot be explained."""

from __future__ import annotations

from typing import Any

import pytest

import cerite
from cerite.errors import ArgumentError, BudgetError
from cerite.reference.semantics import derivations

ROWS: list[dict[str, Any]] = [{"type": "A", "v": 1}, {"type": "B", "v": 2}, {"type": "B", "v": 2}]
QUERY = cerite.query("SELECT * FROM S WHERE A AS x ; B AS y")


@pytest.mark.parametrize("match", [None, 3, (0, 1), "x"])
def test_why_explains_matches_only(match: Any) -> None:
    with pytest.raises(ArgumentError, match="`why` explains a match") as error:
        QUERY.why(match)
    assert error.value.hint is not None


def test_a_match_that_does_not_know_its_data() -> None:
    match = cerite.Match.of(0, 1, [("A", 0), ("x", 0), ("B", 1), ("y", 1)])
    with pytest.raises(cerite.StreamError, match="does not know its data") as error:
        QUERY.why(match)
    assert "query.why(match, data, time=…)" in str(error.value)
    assert QUERY.why(match, ROWS).match == match
    pushed = QUERY.stream({"type": "string", "v": "int"}).push(ROWS)
    with pytest.raises(cerite.StreamError, match="does not know its data"):
        QUERY.why(pushed[0])
    assert QUERY.why(pushed[0], ROWS).match == pushed[0]
    once = QUERY.run(iter(ROWS))
    with pytest.raises(cerite.StreamError, match="read only once"):
        QUERY.why(next(iter(once)))


def test_a_match_of_another_query_or_of_other_data() -> None:
    match = cerite.query("SELECT * FROM S WHERE A").run(ROWS)[0]
    with pytest.raises(cerite.StreamError, match="is no match of the query in this data") as error:
        QUERY.why(match)
    assert "why_not(data, events=[0])" in str(error.value)
    match = QUERY.run(ROWS)[0]
    with pytest.raises(cerite.StreamError, match="there is no row 1"):
        QUERY.why(match, ROWS[:1])
    apart = cerite.query("SELECT * FROM S WHERE A AS x ; B AS y PARTITION BY [v]")
    with pytest.raises(cerite.StreamError, match="row 1 is in another partition than row 0"):
        apart.why(match, ROWS)


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([], "no event is given"),
        ("0,1", "`events` are rows"),
        ({}, "`events` are rows"),
        (3, "`events` are rows"),
        ([0, 0], "an event is given twice"),
        ([0, 7], "there is no row 7"),
        ([0, -1], "there is no row -1"),
        ([0.5], "row numbers or rows"),
        ([{"v": 9}], "the data has no event"),
        ([{"v": 2}], "the data has 2 events like"),
        ([{"v": 2}, {"v": 2}, {"v": 2}], "the data has no event"),
        ([{"type": "A"}, 1], "row numbers or rows"),
    ],
)
def test_events_that_are_none(events: Any, said: str) -> None:
    with pytest.raises((ArgumentError, cerite.StreamError), match=said) as error:
        QUERY.why_not(ROWS, events)
    assert error.value.hint


def test_no_data_at_all() -> None:
    with pytest.raises(ArgumentError, match="no event is given"):
        QUERY.why_not([])


def test_what_can_be_read_in_too_many_ways_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The events that SELECT hides are looked for one by one, and which of them sum up to 10 000 is hard to see."""
    query = cerite.query("SELECT z FROM S WHERE A+ AS a ; B AS z FILTER SUM(a.v) = 10000")
    rows = [{"type": "A", "v": 3 * 2**at} for at in range(24)] + [{"type": "B", "v": 0}]
    monkeypatch.setattr(derivations, "MOST_STEPS", 3_000)
    match = cerite.Match(0, 24, (24,), (("z", (24,)),))
    with pytest.raises(BudgetError, match="too many ways") as error:
        query.why(match, rows)
    assert error.value.hint
