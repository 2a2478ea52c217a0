"""What is wrong is reported: parameters, streams, and queries that an operator cannot run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from cerite.core.errors import CeriteError, StreamError
from cerite.dataflow import (
    Aggregate,
    DataflowError,
    Element,
    QueryCondition,
    QueryRule,
    StreamTuple,
    Watermark,
    Windows,
    own_key,
    r_cer,
    sort_preprocess,
    t_cer,
    tuples_of,
    with_watermarks,
)

SCHEMA = pa.schema([("type", pa.string()), ("v", pa.int64())])
PAIR = "SELECT * FROM S WHERE A AS x ; B AS y"


def nothing(state: Any, t: StreamTuple) -> tuple[Any, list[Any]]:
    return state, []


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Windows(1, 0), "WS is 0, but must be at least 1"),
        (lambda: Windows(0, 5), "WA is 0, but must be at least 1"),
        (lambda: Windows(6, 5), "WA = 6 exceeds the window size WS = 5"),
        (lambda: Windows(5, 5, lateness=-1), "the allowed lateness L is -1, but must be at least 0"),
        (lambda: Windows(5, 10, delta=3), "WS is 10, not a multiple of δ = 3"),
        (lambda: Windows(1, 1, delta=0), "δ is 0, but must be at least 1"),
        (lambda: Windows(1, 2.5), "WS is 2.5, not a whole number"),  # type: ignore[arg-type]
        (lambda: sort_preprocess(delta=-1), "δ is -1"),
        (lambda: t_cer(nothing, 0), "the duration D is 0, but must be at least 1"),
        (lambda: t_cer(nothing, 10, size=9), "WS = 9 is shorter than the duration D = 10"),
        (lambda: t_cer(nothing, 10, size=15, advance=7), "WA = 7 is too long: WS − D + δ is 6"),
        (lambda: t_cer(nothing, 10, size=15, advance=0), "WA is 0, but must be at least 1"),
        (lambda: r_cer(nothing, 0), "the watermarks' distance D_W is 0, but must be at least 1"),
        (lambda: r_cer(nothing, 15, delta=10), "D_W is 15, not a multiple of δ = 10"),
        (lambda: list(with_watermarks([], disorder=-1, every=1)), "disorder is -1"),
        (lambda: list(with_watermarks([], disorder=0, every=0)), "every is 0"),
    ],
)
def test_parameters(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(DataflowError) as error:
        make()
    assert message in str(error.value)
    assert isinstance(error.value, CeriteError)


@pytest.mark.parametrize(
    ("elements", "message"),
    [
        ([Watermark(20), Watermark(10)], "the watermark decreases from 20 to 10"),
        ([Watermark(5)], "a watermark has the time 5, not a multiple of δ = 10"),
        ([StreamTuple(15, "a")], "a tuple has the time 15, not a multiple of δ = 10"),
        ([StreamTuple(1.5, "a")], "a tuple has the time 1.5, not a whole number"),  # type: ignore[arg-type]
        ([StreamTuple(10, bytearray())], "payloads that hold bytearray cannot be compared"),
    ],
)
def test_streams(elements: list[Element], message: str) -> None:
    with pytest.raises(StreamError) as error:
        list(sort_preprocess(delta=10).over(elements))
    assert message in str(error.value)


def test_a_watermark_that_repeats_changes_nothing() -> None:
    assert list(sort_preprocess().over([Watermark(3), Watermark(3)])) == [Watermark(3)]


def test_a3_watermarks_too_far_apart_are_refused() -> None:
    with pytest.raises(StreamError, match="the watermark 14 is 4 after the watermark before it, but D_W is 3"):
        list(r_cer(nothing, 3).over([StreamTuple(10, "a"), Watermark(10), Watermark(14)]))
    with pytest.raises(StreamError, match="the watermark 14 is 4 after the earliest tuple, but D_W is 3"):
        list(r_cer(nothing, 3).over([StreamTuple(12, "b"), StreamTuple(10, "a"), Watermark(14)]))


def test_rows_without_time_are_refused() -> None:
    with pytest.raises(StreamError, match="row 1 has no `at`"):
        list(tuples_of([{"at": 1}, {"time": 2}], time="at"))
    with pytest.raises(StreamError, match="row 0 has the time None, not a whole number"):
        list(tuples_of([{"at": None}], time="at"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PAIR, "queries with a time window, and this one has none"),
        (PAIR + " WITHIN 5 EVENTS", "queries with a time window, and this one has none"),
        (
            PAIR + " WITHIN 5 seconds CONSUME BY ANY",
            "is not enough here; CONSUME BY: what a match forgets depends on the matches before it",
        ),
        ("SELECT * FROM S WHERE SKIP _ : A WITHIN 5 seconds", "looks at everything before it"),
        ("SELECT * FROM S WHERE A ; NOT B WITHIN 5 seconds", "do not run NOT at an end"),
        (PAIR + " FILTER y[w > 1] WITHIN 5 seconds", "the stream has no attribute `w`"),
    ],
)
def test_queries_that_t_cer_cannot_run(text: str, message: str) -> None:
    with pytest.raises(CeriteError) as error:
        QueryCondition(text, SCHEMA)
    assert message in str(error.value)


def test_a_query_that_knows_its_time_column() -> None:
    with pytest.raises(StreamError, match="the column `v` holds double, but event time is filled in as whole"):
        QueryRule(PAIR, pa.schema([("type", pa.string()), ("v", pa.float64())]), time="v")


def test_a_query_needs_order_and_attributes() -> None:
    condition = QueryCondition(PAIR + " WITHIN 5 milliseconds", SCHEMA)
    unsorted: list[Element] = [StreamTuple(2, {"type": "A"}), StreamTuple(1, {"type": "B"}), Watermark(9)]
    with pytest.raises(StreamError, match="a tuple of time 1 came after one of 2") as error:
        list(t_cer(condition, condition.duration).over(unsorted))
    assert "sort_preprocess()" in str(error.value)
    with pytest.raises(StreamError, match="a query reads attributes, but a payload is 'A'"):
        condition(None, StreamTuple(1, "A"))


def test_own_key_tells_apart_what_python_takes_for_equal() -> None:
    def same(one: Any, two: Any) -> bool:
        return own_key(StreamTuple(1, one)) == own_key(StreamTuple(1, two))

    nan = float("nan")
    assert same({"a": 1, "b": {2}}, {"b": {2}, "a": 1.0})
    assert same([nan], [float("nan")])
    assert not same({"a": 1}, {"a": True})
    assert not same({"a": nan}, {"a": "nan"})
    assert not same({"a": None}, {})


def test_an_aggregate_that_loses_tuples_says_how_many() -> None:
    counting = Aggregate(Windows(1, 1), lambda instance, t: None, lambda instance: [])
    list(counting.over([Watermark(5), StreamTuple(4, "late"), StreamTuple(5, "in time"), StreamTuple(1, "late")]))
    assert counting.discarded == 2
