"""Cerite queries inside T-CER and R-CER: readable examples first, then random ones, judged by `cerite.reference`."""

from __future__ import annotations

import pickle
from collections import Counter
from dataclasses import replace
from typing import Any

import pyarrow as pa
from hypothesis import assume
from hypothesis import strategies as st

from cerite.core.errors import PatternError
from cerite.core.match import Match
from cerite.dataflow import (
    Element,
    Operator,
    QueryCondition,
    QueryRule,
    StreamTuple,
    r_cer,
    sort_preprocess,
    t_cer,
)
from cerite.dataflow.event_time import tuples_of
from cerite.engine.plan import plan
from cerite.language import parse_pattern
from cerite.pattern import Consume, QuerySpec, Size
from cerite.pattern.check import check
from cerite.reference import matches
from tests import strategies as random
from tests.dataflow.streams import outputs, watermarked
from tests.properties.agreement import cases, picks, unpicked
from tests.telling import Share, often

TRADES = pa.schema([("type", pa.string()), ("name", pa.string()), ("price", pa.float64())])
EVENTS = pa.schema(
    [
        ("type", pa.string()),
        ("id", pa.int64()),
        ("price", pa.float64()),
        ("name", pa.string()),
        ("ok", pa.bool_()),
        ("n", pa.int64()),
    ]
)
ROWS = [  # as they arrive
    {"type": "SELL", "name": "MSFT", "price": 26.0, "at": 0},
    {"type": "BUY", "name": "ORCL", "price": 11.0, "at": 3},
    {"type": "BUY", "name": "MSFT", "price": 25.0, "at": 2},
    {"type": "BUY", "name": "MSFT", "price": 25.0, "at": 2},
    {"type": "BUY", "name": "MSFT", "price": 27.0, "at": 6},
    {"type": "SELL", "name": "ORCL", "price": 10.0, "at": 5},
]
PAIRS = "SELECT * FROM S WHERE SELL AS x ; BUY AS y WITHIN 5 milliseconds"


def prices(matches: list[StreamTuple]) -> list[tuple[int, float, float]]:
    return sorted((t.payload.end, t.payload.bound("x")[0]["price"], t.payload.bound("y")[0]["price"]) for t in matches)


# ---------------------------------------------------------------- examples
def test_a_query_over_a_disordered_stream_with_duplicates() -> None:
    condition = QueryCondition(PAIRS, TRADES, time="at")
    assert condition.duration == 6
    rule = QueryRule(PAIRS, TRADES, time="at")
    expected = [(2, 26.0, 25.0), (3, 26.0, 11.0), (6, 10.0, 27.0)]
    for recognise in (t_cer(condition, condition.duration), r_cer(rule, distance=2)):
        flow = sort_preprocess() >> recognise
        assert prices(flow.run(tuples_of(ROWS, time="at"), disorder=2, every=2)) == expected


def test_a_query_per_key() -> None:
    condition = QueryCondition(PAIRS, TRADES, time="at")
    rule = QueryRule(PAIRS, TRADES, time="at")
    for recognise in (
        t_cer(condition, condition.duration, key=lambda t: t.payload["name"]),
        r_cer(rule, distance=2, key=lambda t: t.payload["name"]),
    ):
        flow = sort_preprocess() >> recognise
        assert prices(flow.run(tuples_of(ROWS, time="at"), disorder=2, every=2)) == [(2, 26.0, 25.0)]


def test_what_r_cer_finds_has_the_time_of_the_event_that_completes_it() -> None:
    flow = sort_preprocess() >> r_cer(QueryRule(PAIRS, TRADES, time="at"), distance=1)
    matches = flow.run(tuples_of(ROWS, time="at"), disorder=2, every=1)
    assert [(t.time, t.payload.start, t.payload.end) for t in matches] == [(2, 0, 2), (3, 0, 3), (6, 5, 6)]


def test_the_state_of_a_rule_is_a_value() -> None:
    """It can be pickled, and continued more than once with the same answer."""
    rule = QueryRule("SELECT * FROM S WHERE SELL AS x ; BUY AS y", TRADES)
    first, second = StreamTuple(1, ROWS[0]), StreamTuple(2, ROWS[1])
    state, matches = rule(None, first)
    assert matches == []
    again = pickle.loads(pickle.dumps(state))
    assert rule(state, second)[1] == rule(state, second)[1] == rule(again, second)[1]
    assert str(rule(again, second)[1][0].match) == "[0,1] BUY=1, SELL=0, x=0, y=1"


def test_a_rule_keeps_only_what_its_window_may_still_bind() -> None:
    def size(text: str) -> int:
        rule, state = QueryRule(text, TRADES), None
        for time in range(20):
            state, _ = rule(state, StreamTuple(time, ROWS[0]))
        assert state is not None
        return len(state.kept)

    assert size("SELECT * FROM S WHERE SELL AS x ; BUY AS y WITHIN 3 milliseconds") == 4
    assert size("SELECT * FROM S WHERE SELL AS x ; BUY AS y WITHIN 3 EVENTS") == 3
    assert size("SELECT * FROM S WHERE SELL AS x ; BUY AS y") == 20


def test_consumption_is_a_matter_of_r_cer() -> None:
    rule = QueryRule("SELECT * FROM S WHERE SELL AS x ; BUY AS y CONSUME BY ANY", TRADES, time="at")
    flow = sort_preprocess() >> r_cer(rule, distance=2)
    assert prices(flow.run(tuples_of(ROWS, time="at"), disorder=2, every=2)) == [(2, 26.0, 25.0), (6, 10.0, 27.0)]


def test_a_strategy_compares_with_starts_that_a_chunk_does_not_contain() -> None:
    """A chunk that begins at 2 contains the match of 2, 3 and 4 whole, but not the larger one that it gives way to."""
    text = "SELECT MAX * FROM S WHERE SELL+ AS x ; BUY AS y WITHIN 4 milliseconds"
    rows = [{"type": kind, "at": at} for at, kind in enumerate(["SELL", "SELL", "SELL", "SELL", "BUY"])]
    condition = QueryCondition(text, TRADES, time="at")
    for size in range(5, 12):
        flow = sort_preprocess() >> t_cer(condition, condition.duration, size=size)
        matches = flow.run(tuples_of(rows, time="at"), disorder=0, every=1)
        assert [[row["at"] for row in t.payload.events] for t in matches] == [[0, 1, 2, 3, 4]]


# ---------------------------------------------------------------- against the judge
Rows = list[dict[str, Any]]


@st.composite
def disordered(draw: st.DrawFn, tail: int) -> tuple[Rows, list[Element], int]:
    """Rows in event-time order numbered `n`, the same rows as a disordered stream, and its D_W."""
    some = draw(st.lists(st.tuples(random.rows, st.integers(0, 10), st.integers(0, 3)), min_size=6, max_size=9))
    some.sort(key=lambda each: each[1] + each[2])
    arrived: Rows = [{**row, "at": at} for row, at, _ in some]
    for n, row in enumerate(sorted(arrived, key=lambda row: row["at"])):
        row["n"] = n
    steps = draw(st.integers(1, 4))
    stream = draw(watermarked(list(tuples_of(arrived, time="at")), steps, tail))
    return sorted(arrived, key=lambda row: row["n"]), stream, steps


LIKELY = st.sampled_from(["A+ ; B", "A ; B", "B : A", "A ; NOT B ; A", "(A OR B){2,3}", "A ; (B OR C)+", "A"])
PATTERNS = LIKELY.map(parse_pattern) | LIKELY.map(parse_pattern) | random.regular_patterns(size=4)


@st.composite
def queries(draw: st.DrawFn, within: st.SearchStrategy[Size | None]) -> QuerySpec:
    query = replace(draw(random.queries(PATTERNS)), within=draw(within))
    try:
        check(query)
        plan(query)
    except PatternError:
        assume(False)
    return query


TIMES = st.builds(Size, st.integers(0, 10), st.just("milliseconds"))
COUNTS = st.integers(2, 5).map(Size.events)
KEYS: Any = st.sampled_from([None, None, lambda t: t.payload.get("id")])


def judged(query: QuerySpec, rows: Rows, key: Any) -> list[Match]:
    """The matches in each key's substream, at positions of the whole stream."""
    groups: dict[Any, Rows] = {}
    for row in rows:
        groups.setdefault(key(StreamTuple(0, row)) if key else 0, []).append(row)
    return [
        Match.of(
            group[match.start]["n"],
            group[match.end]["n"],
            [(name, group[place]["n"]) for name, places in match.bindings for place in places],
        )
        for group in groups.values()
        for match in matches(query, group, time="at")
    ]


def agrees(query: QuerySpec, rows: Rows, stream: list[Element], flow: Operator, key: Any, share: Share) -> None:
    matches = [t.payload.match for t in outputs(flow.over(stream))]
    assert flow.discarded == 0
    expected = judged(query, rows, key)
    if not picks(query):
        assert Counter(matches) == Counter(expected)
    else:  # which of them are reported is not said, only how many
        assert Counter(match.end for match in matches) == Counter(match.end for match in expected)
        assert Counter(matches) <= Counter(judged(unpicked(query), rows, key))
    for match in matches:
        assert [row["n"] for row in match.events] == list(match.positions)
    share.note(bool(expected))


@cases(often(100), queries(TIMES), disordered(tail=40), st.integers(0, 6), KEYS, least=1 / 5)
def test_theorem_2_with_the_engine_as_f_c(share: Share, query: QuerySpec, fed: Any, longer: int, key: Any) -> None:
    rows, stream, _ = fed
    query = replace(query, consume=Consume.NONE, suppress=None)
    assume(not plan(query).needs_history)  # refused
    condition = QueryCondition(query, EVENTS, time="at", position="n")
    options = {} if key is None else {"key": key}
    flow = sort_preprocess() >> t_cer(condition, condition.duration, size=condition.duration + longer, **options)
    agrees(query, rows, stream, flow, key, share)


@cases(often(100), queries(TIMES | COUNTS | st.none()), disordered(tail=1), KEYS, least=1 / 5)
def test_theorem_3_with_the_engine_as_f_m(share: Share, query: QuerySpec, fed: Any, key: Any) -> None:
    rows, stream, distance = fed
    rule = QueryRule(query, EVENTS, time="at", position="n")
    flow = sort_preprocess() >> r_cer(rule, distance, **({} if key is None else {"key": key}))
    agrees(query, rows, stream, flow, key, share)
