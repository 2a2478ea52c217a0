"""Aggregates in conditions, as people write them: text and builder, kinds, what is compiled, what is refused."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import cerite
from cerite import attr, event, var
from cerite import functions as f
from cerite.automaton.build import build
from cerite.language.ceql import parse_pattern, parse_query
from cerite.language.sremo import parse_sremo
from cerite.pattern.check import check
from cerite.reference.semantics import Stream, matches

CALLS = [{"type": "CALL", "ms": ms, "host": host} for ms, host in ((100, "a"), (300, "b"), (200, "a"), (None, "c"))]


def agreed(query: str, rows: Any, **how: Any) -> list[str]:
    """The engine's matches, which must be those of the judge."""
    runnable = cerite.query(query)
    matched = sorted(str(match) for match in runnable.run(rows, **how))
    plain = rows.to_pylist() if isinstance(rows, pa.Table) else rows
    assert matched == sorted(str(match) for match in matches(runnable.query, Stream.of(plain, time=how.get("time"))))
    assert runnable.run(rows, **how).count() == len(matched)
    return matched


@pytest.mark.parametrize(
    ("built", "text"),
    [
        (f.count(var.y) >= 5, "COUNT(y) >= 5"),
        (
            (f.count(var.y.ms) > 1) & (f.count_distinct(var.y.host) < 3),
            "[COUNT(y.ms) > 1 AND COUNT(DISTINCT y.host) < 3]",
        ),
        (f.sum(var.y.ms) / f.count(var.y) > 2 * f.avg(var.y.ms), "SUM(y.ms) / COUNT(y) > 2 * AVG(y.ms)"),
        (f.min(var.y.ms) != f.max(var.y.ms), "MIN(y.ms) != MAX(y.ms)"),
        (f.first(var.y.host) == f.last(var.y.host), "FIRST(y.host) = LAST(y.host)"),
    ],
)
def test_the_builder_writes_what_text_writes(built: Any, text: str) -> None:
    pattern = event("CALL").as_("y").plus().filter(built)
    assert pattern.pattern == parse_pattern(f"(CALL AS y)+ FILTER {text}")
    assert str(pattern) == f"(CALL AS y)+ FILTER {text}"


def test_conditions_on_events_and_on_the_whole_in_one_call() -> None:
    pattern = event("CALL").as_("y").plus().filter(f.count(var.y) > 1, y=attr.ms > 0)
    assert pattern.pattern == parse_pattern("(CALL AS y)+ FILTER COUNT(y) > 1 AND y[ms > 0]")


def test_sremo_reads_them_too() -> None:
    pattern = parse_sremo("(A^o>y)* . B[v > AVG(y.v)]^o")
    rows = [{"type": "A", "v": 1}, {"type": "A", "v": 4}, {"type": "B", "v": 3}]
    expected = {str(match) for match in matches(pattern, rows)}
    assert {str(match) for match in cerite.query(pattern).run(rows)} == expected == {"[0,2] A=0,1, B=2, y=0,1"}


def test_thresholds_on_counts_need_no_register() -> None:
    bounded = build(parse_pattern("A ; (B AS y)+ ; C FILTER COUNT(y) >= 3 AND COUNT(y) < 6"))
    assert not any(guard.reads for guard in bounded.conditions)
    assert bounded.n_states == build(parse_pattern("A ; B{3,5} ; C")).n_states


def test_a_sum_over_gaps_is_explained_with_what_to_write() -> None:
    gaps = cerite.query("SELECT * FROM S WHERE B+ AS y ; C[v > SUM(y.v)] WITHIN 9 EVENTS").explain()
    assert "2^n sums" in str(gaps)
    assert "SKIP_NEXT" in str(gaps)
    beside = cerite.query("SELECT * FROM S WHERE B:+ AS y ; C[v > SUM(y.v)] WITHIN 9 EVENTS").explain()
    assert "2^n sums" not in str(beside)
    assert "SUM(y.v): at most one value per event at which `y` may begin" in str(beside).replace("\n", "")


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("(B AS y)+ FILTER y[v > AVG(y.v)]", "`AVG(y.v)` is NULL as long as nothing is bound to `y`"),
        ("B{1,3} AS y FILTER COUNT(y) > 3", "the pattern binds at most 3 to `y`, never `COUNT(y) > 3`"),
        ("A AS y ; B+ AS y FILTER COUNT(y) < 2", "the pattern binds at least 2 to `y`, never `COUNT(y) < 2`"),
    ],
)
def test_what_can_never_match_is_reported(where: str, said: str) -> None:
    assert any(said in note.message for note in check(parse_pattern(where)))


def test_the_first_of_a_running_mean_is_let_pass() -> None:
    notes = check(parse_pattern("B:+ AS y FILTER y[COUNT(y) = 0 OR v > AVG(y.v)]"))
    assert not any("nothing can match" in note.message for note in notes)


def test_a_whole_that_ends_in_an_absence() -> None:
    query = parse_query("SELECT y FROM S WHERE (B AS y):+ ; NOT C FILTER COUNT(y) >= 2 WITHIN 3 EVENTS")
    check(query)
    rows = [{"type": kind} for kind in "BBCBBB"]
    assert {str(match) for match in matches(query, rows)} == {"[3,4] y=3,4", "[4,5] y=4,5", "[3,5] y=3,4,5"}


def test_a_strategy_on_a_part_reads_an_aggregate_from_outside() -> None:
    """The y of before NEXT(…) is in the sum, whichever way of the part wins."""
    rows = [{"type": kind, "v": v} for kind, v in zip("BBBCC", (3, 1, -2, 2, 5), strict=True)]
    query = "SELECT * FROM S WHERE B AS y ; NEXT(B AS y ; C AS z FILTER z[v > SUM(y.v)]) WITHIN 9 EVENTS"
    assert agreed(query, rows) == ["[0,3] B=0,2, C=3, y=0,2, z=3"]


def test_instants_have_an_order() -> None:
    start = datetime(2024, 5, 1, 12)
    rows = [{"type": "CALL", "at": start + timedelta(seconds=second)} for second in (0, 3, 9)]
    query = "SELECT y FROM S WHERE (CALL AS y):+ FILTER y[COUNT(y) = 0 OR at - MIN(y.at) < 5 seconds] AND COUNT(y) > 1"
    assert agreed(query, rows, time="at") == ["[0,1] y=0,1"]


def test_decimals_are_added_exactly() -> None:
    tenths = pa.table({"type": ["B"] * 10, "v": pa.array([Decimal("0.1")] * 10, pa.decimal128(5, 1))})
    assert agreed("SELECT y FROM S WHERE (B AS y):+ FILTER SUM(y.v) = 1", tenths) == ["[0,9] y=0,1,2,3,4,5,6,7,8,9"]
    floats = pa.table({"type": ["B"] * 10, "v": [0.1] * 10})
    assert agreed("SELECT y FROM S WHERE (B AS y):+ FILTER SUM(y.v) = 1", floats) == []


def test_floats_are_added_in_the_order_of_the_stream() -> None:
    values = [1e16, 1.0, 1.0, -1e16]
    rows = [{"type": "B", "v": value} for value in values]
    assert agreed("SELECT y FROM S WHERE (B AS y):{4} FILTER SUM(y.v) = 0", rows) == ["[0,3] y=0,1,2,3"]
    assert agreed("SELECT y FROM S WHERE (B AS y):{4} FILTER SUM(y.v) = 2", rows[1:3] + rows[:1] + rows[3:]) == [
        "[0,3] y=0,1,2,3"
    ]


def test_infinities_of_both_signs_have_no_sum() -> None:
    rows = [{"type": "B", "v": value} for value in (float("inf"), float("-inf"), 1.0)]
    assert agreed("SELECT y FROM S WHERE (B AS y):{3} FILTER SUM(y.v) IS NULL", rows) == ["[0,2] y=0,1,2"]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("FIRST(y.host) = LAST(y.host)", ["[0,2] y=0,1,2", "[0,2] y=0,2"]),
        ("FIRST(y.host) = 'b' AND upper(LAST(y.host)) IN {'A', 'X'}", ["[1,2] y=1,2"]),
        (
            "LAST(y.host) NOT LIKE 'a%' AND length(FIRST(y.host)) < 2 AND AVG(y.ms) = 200",
            ["[0,1] y=0,1", "[0,3] y=0,1,2,3", "[2,3] y=2,3", "[0,3] y=0,1,3"],
        ),
    ],
)
def test_texts_first_and_last(condition: str, expected: list[str]) -> None:
    query = f"SELECT y FROM S WHERE (CALL AS y)+ FILTER {condition} AND COUNT(y) > 1"
    assert agreed(query, CALLS) == sorted(expected)
