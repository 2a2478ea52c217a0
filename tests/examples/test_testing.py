"""The kit for tests of users' own rules."""

from __future__ import annotations

from typing import Any

import pytest

import cerite
from cerite.testing import arrivals, assert_agrees, assert_matches, assert_no_match, events, notation

RULE = "SELECT * FROM S WHERE A AS x ; B AS y FILTER y[v > x.v] WITHIN 10 seconds"


def test_events_as_text() -> None:
    assert events("A@0 B(price=3)@5s C@9s") == [
        {"type": "A", "at": 0},
        {"type": "B", "at": 5_000, "price": 3},
        {"type": "C", "at": 9_000},
    ]
    assert events("  A(s=MSFT,t='it''s',u=\"a, b\")@1.5min\n B(n=-1.5e3, w=1, b=false, m=null)@+250us") == [
        {"type": "A", "at": 90_000, "s": "MSFT", "t": "it's", "u": "a, b"},
        {"type": "B", "at": 90_000.25, "n": -1500.0, "w": 1, "b": False, "m": None},
    ]
    assert events("`odd name`(`a b`=1)", type="kind") == [{"kind": "odd name", "a b": 1}]
    assert events("") == []


def test_notation_is_read_back() -> None:
    rows = events("A@0 B(price=3, name='x y', ok=TRUE, f=2.0, t='TRUE', d='12', q='it''s', `a b`='')@1s C@1001")
    assert events(notation(rows)) == rows


@pytest.mark.parametrize("expected", [1, [(0, 1)], [{"x": 0}], [{"x": 0, "y": [1]}], [{0, 1}]])
def test_what_is_expected(expected: Any) -> None:
    assert_matches(RULE, "A(v=1)@0 B(v=2)@5s B(v=1)@6s", expected)
    assert_matches(cerite.query(RULE), events("A(v=1)@0 B(v=2)@5s B(v=1)@6s"), expected)


def test_failures_say_what_and_why() -> None:
    with pytest.raises(AssertionError) as failure:
        assert_matches(RULE, "A(v=1)@0 B(v=2)@5s B(v=0)@6s B(v=2)@11s", [(0, 2), {"x": 0, "y": 3}])
    assert str(failure.value).splitlines() == [
        "the query has 1 match where 2 are expected",
        "  in      A(v=1)@0 B(v=2)@5s B(v=0)@6s B(v=2)@11s",
        "  missing (0, 2): `v > x.v` was 0 > 1",
        "  missing x=0, y=3: 11 seconds after row 0, window 10 seconds",
        "  extra   [0,1] A=0, B=1, x=0, y=1",
    ]
    with pytest.raises(AssertionError, match="the query has 1 match where 0 are expected"):
        assert_no_match(RULE, "A(v=1)@0 B(v=2)@5s")
    with pytest.raises(AssertionError, match="the query has 1 match where 3 are expected"):
        assert_matches(RULE, "A(v=1)@0 B(v=2)@5s", 3)
    with pytest.raises(AssertionError, match="other matches than the 1 expected"):
        assert_matches(RULE, "A(v=1)@0 B(v=2)@5s", [(1,)])


def test_a_missing_match_that_is_there_is_distinguished() -> None:
    """Two that are expected and one that is there: the second is missing, though why_not would say that it matches."""
    with pytest.raises(AssertionError, match=r"missing \(0, 1\)$"):
        assert_matches(RULE, "A(v=1)@0 B(v=2)@5s", [(0, 1), (0, 1)])


@pytest.mark.parametrize(
    ("text", "stream", "count"),
    [
        (RULE, "A(v=1)@0 B(v=2)@5s B(v=3)@5s", 2),
        ("SELECT * FROM S WHERE A ; B+ LIMIT 1", "A B B", 2),
        ("SELECT * FROM S WHERE A ; NOT B WITHIN 2 seconds", "A@0 A@1s B@3s C@9s", 1),
        ("SELECT * FROM S WHERE A ; B SUPPRESS 2 seconds", "A@0 B@1s B@2s B@9s", 2),
        ("SELECT * FROM S WHERE A", "", 0),
    ],
)
def test_batch_stream_and_judge_agree(text: str, stream: str, count: int) -> None:
    assert assert_agrees(text, stream) == count


def test_disagreement_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    from cerite.testing import agreement

    monkeypatch.setattr(agreement, "_judged", lambda *_: [])
    with pytest.raises(AssertionError) as failure:
        assert_agrees(RULE, "A(v=1)@0 B(v=2)@5s")
    assert str(failure.value).splitlines() == [
        "one run does not give what the judge says",
        "  in         A(v=1)@0 B(v=2)@5s",
        "  only there [0,1] A=0, B=1, x=0, y=1",
    ]


def test_orders_of_arrival() -> None:
    assert sorted(arrivals([1, 2, 3])) == [[1, 3, 2], [2, 1, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1]]
    many = list(arrivals(range(20), orders=3, seed=1))
    assert [sorted(order) for order in many] == [list(range(20))] * 3
    assert many != list(arrivals(range(20), orders=3, seed=2))
