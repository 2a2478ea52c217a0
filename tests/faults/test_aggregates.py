"""Sums that leave 64 bits, and what the engine does not run: refused in words, wherever they come up."""

from __future__ import annotations

import pytest

import cerite
from cerite.core.errors import PatternError, StreamError
from cerite.engine.plan import plan
from cerite.reference.semantics import matches

HUGE = [{"type": "B", "v": 2**62}, {"type": "B", "v": 2**62 - 1}, {"type": "B", "v": 1}]
RUNNING = "SELECT * FROM S WHERE B:+ AS y ; C AS z FILTER z[v > SUM(y.v)]"
WHOLE = "SELECT * FROM S WHERE B AS y : B AS y : B AS y FILTER SUM(y.v) > 0"
MEAN = "SELECT * FROM S WHERE B+ AS y FILTER AVG(y.v) > 0"


@pytest.mark.parametrize("query", [RUNNING, WHOLE, MEAN])
def test_a_sum_beyond_64_bits_is_refused(query: str) -> None:
    runnable = cerite.query(query)
    assert runnable.run(HUGE[:2]).count() == len(list(runnable.run(HUGE[:2])))
    for ask in (lambda: list(runnable.run(HUGE)), lambda: runnable.run(HUGE).count()):
        with pytest.raises(StreamError, match=r"`SUM\(y\.v\)` does not fit 64 bits"):
            ask()


def test_the_judge_refuses_it_where_it_is_asked_for() -> None:
    with pytest.raises(StreamError, match=r"`SUM\(y\.v\)` does not fit 64 bits"):
        matches(cerite.query(WHOLE).query, HUGE)


def test_a_stream_refuses_it_and_goes_on_refusing() -> None:
    stream = cerite.query(RUNNING).stream({"type": "string", "v": "int"})
    assert list(stream.push(HUGE[:2])) == []
    for said in (r"`SUM\(y\.v\)` does not fit 64 bits", "a push was interrupted"):
        with pytest.raises(StreamError, match=said):
            list(stream.push(HUGE[2:]))


def test_a_sum_up_to_the_last_number_is_taken() -> None:
    rows = [{"type": "B", "v": 2**62}, {"type": "B", "v": 2**62 - 1}]
    query = f"SELECT * FROM S WHERE B AS y : B AS y FILTER SUM(y.v) = {2**63 - 1}"
    assert cerite.query(query).run(rows).count() == 1


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("B+ AS y ; C AS z FILTER z[v > COUNT(DISTINCT y.v)]", "cannot compute with it"),
        ("B+ AS y ; NOT (A AS u ; A[v > u.v AND COUNT(DISTINCT y.v) > 1]) ; C", "write it outside of the brackets"),
        ("NEXT(B+ AS y ; C AS z FILTER z[COUNT(DISTINCT y.v) > 1]) ; A", "write it outside of the brackets"),
        ("B+ AS y FILTER COUNT(DISTINCT y.v) > 2 * COUNT(y)", "cannot compute with it"),
        ("B+ AS y FILTER COUNT(DISTINCT y.v) > 40", "can distinguish at most 12 values; this compares with 41"),
        ("A AS x ; ((B AS y)* FILTER SUM(y.v) > x.v) ; C", "may be empty reads `x.v`"),
        ("(B AS y ; (B AS x FILTER x[v > SUM(y.v)])) AS y", "is not complete there"),
    ],
)
def test_what_the_engine_does_not_run_says_what_to_write(where: str, said: str) -> None:
    with pytest.raises(PatternError, match=said):
        plan(cerite.query(f"SELECT * FROM S WHERE {where} WITHIN 9 EVENTS").query)


@pytest.mark.parametrize("condition", ["lower(MAX(y.n)) > 'b'", "MIN(y.n) LIKE 'b%'", "lower(FIRST(y.n)) = LAST(y.n)"])
def test_texts_that_the_engine_does_not_compare(condition: str) -> None:
    query = cerite.query(f"SELECT * FROM S WHERE B+ AS y FILTER {condition}")
    with pytest.raises(PatternError, match="stores no text"):
        list(query.run([{"type": "B", "n": "a"}]))
