"""`cerite explain` on queries with registers: what is stored, what wakes an entry, and the bound."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from cerite.api.explain.text import explanation
from cerite.core.schema import Schema
from cerite.language.ceql import parse_query
from cerite.language.sremo import parse_sremo
from cerite.pattern.query import QuerySpec


def engine_of(query: QuerySpec, schema: Schema | None = None) -> str:
    """What `explain` prints of the engine, without the automaton's table."""
    out = StringIO()
    Console(file=out, width=120, color_system=None).print(explanation(query, schema))
    lines = [line[4:] for line in out.getvalue().partition("└── engine\n")[2].splitlines()]
    begin = next(k for k, line in enumerate(lines) if line.startswith("├── tests"))
    return "\n".join(line.rstrip() for line in lines[begin:])


K3 = """SELECT * FROM S WHERE SELL AS x ; BUY+ AS y ; BUY AS z
    FILTER x[name = 'INTC'] AND y[name = 'RIMM'] AND z[name = 'QQQ' AND price > x.price] WITHIN 500 milliseconds"""


K3_ENGINE = """\
├── tests on one event, each evaluated once per batch
│   ├── SELL[name = 'INTC']
│   ├── BUY[name = 'RIMM']
│   └── BUY AND _[name = 'QQQ']
├── conditions across events, as small programs in the kernel
│   └── price > x.price: indexed by order
├── registers, stored by value
│   └── x.price: alive in q1, q2, q3
│       ├── from SELL[name = 'INTC'] (q0 → q1)
│       └── to BUY AND _[name = 'QQQ' AND price > x.price] (q3 → q4)
├── what wakes an entry, by state
│   ├── q1: BUY[name = 'RIMM']
│   ├── q2: BUY[name = 'RIMM']
│   └── q3: BUY AND _[name = 'QQQ'] with price > x.price, found by order
├── dropped before the loop: every event that satisfies none of SELL[name = 'INTC'], BUY[name = 'RIMM'], BUY AND
│   _[name = 'QQQ']
├── entries, at most: per state, the distinct live values in the window
│   ├── q1, q2, q3: one per distinct x.price
│   └── moved in groups, unless the first events say that a window has only a few of them
│       ├── the n starts of the window are in one tree by x.price; what many of them have yet to do waits above them
│       └── an event costs O(log n) small matrices of 2 × 2 sets of runs, however many it moves
├── kinds guessed from the query, because no schema was given: name, price
├── per event: the logarithm of the starts in the window, or the few entries that it wakes
├── keeps: what is in the window; what has left it is forgotten
│   └── a partial match: until 500 milliseconds have passed since its start, whatever events come
├── per match: time linear in its number of events, times the logarithm of the window at most; counting enumerates
│   nothing, and moves registers in groups: the n starts of the window are in one tree by x.price, and an event
│   costs O(log n) small matrices of 2 × 2 numbers, however many it moves
└── on several cores, at rest: the stream is cut by time"""


def test_the_kleene_pattern_of_the_paper() -> None:
    assert engine_of(parse_query(K3)) == K3_ENGINE


EXPECTED = {
    "A AS x ; B AS y ; C FILTER C[id = x.id AND v > y.v]": (
        "id = x.id: indexed by hash",
        "v > y.v: checked on every entry that something else wakes",
        "q1: B",
        "q2: C with id = x.id, found by hash",
        "q1: one per distinct x.id",
        "q2: one per distinct (x.id, y.v)",
        "since the stream began (no window)",
        "keeps: more with every partial match; without WITHIN it can go on at any later event",
    ),
    "T AS b ; (T AS b FILTER b[v > b.v])+": (
        "b.v: alive in q1, q2",
        "q2: T with v > b.v, found by order",
        "q1, q2: one per distinct b.v",
    ),
    "A AS x ; B ; C[v != x.v]": ("v != x.v: checked on every entry that something else wakes", "q2: C"),
    "A AS x ; B[v + x.v > 3 * x.w]": ("`3 * w` of x: alive in q1", "q1: B"),
    "A AS x ; NOT B[id = x.id] ; C WITHIN 9 EVENTS": (
        "q1: C; B with id = x.id, found by hash",
        "x.id: alive in q1",
    ),
    "A ; NOT (B AS u ; B AS v FILTER v[id = u.id]) ; C WITHIN 9 EVENTS": (
        "watched pattern from q3: must not complete meanwhile",
        "its set of configurations is part of every entry in q1",
        "moved by B",
        "times the different watched sets",
    ),
    "A ; NEXT(B AS x ; C FILTER C[id = x.id]) ; D": ("NEXT: every other run through the part is compared with",),
    "A ; (B ; C WITHIN 3 EVENTS)": (
        "windows on parts, as registers that hold the part's first event: WITHIN 3 EVENTS",
        "q2: C inside WITHIN 3 EVENTS, found by order",
        "q2: one per distinct start of WITHIN 3 EVENTS",
    ),
    "PROJECT{x}(A AS x ; B AS y ; C FILTER C[v > y.v])": (
        "q2: C with v > y.v, found by order",
        "q2: one per distinct set of y.v",
        "the same marks may leave different events in y, so an entry holds a set of values",
    ),
}


@pytest.mark.parametrize("pattern", EXPECTED)
def test_what_is_reported(pattern: str) -> None:
    shown = engine_of(parse_query(f"SELECT * FROM S WHERE {pattern}"))
    for line in EXPECTED[pattern]:
        assert line in shown


def test_starts_that_come_late() -> None:
    shown = engine_of(QuerySpec(parse_sremo("BUY^x>r . (true^x)* . SELL[id = r.id]^o")))
    assert "late starts: in q1, q2 nothing is marked yet, so no match has started" in shown
    assert "q2: SELL with id = r.id, found by hash" in shown


def test_a_schema_decides_what_is_indexed() -> None:
    """Numbers are found by order, strings are not."""
    query = parse_query("SELECT * FROM S WHERE A AS x ; B AS y FILTER y[v > x.v]")
    assert "q1: B with v > x.v, found by order" in engine_of(query)
    assert "kinds guessed from the query, because no schema was given: v" in engine_of(query)
    strings = engine_of(query, Schema.of_columns({"v": "string"}))
    assert "v > x.v: checked on every entry that something else wakes" in strings
    assert "guessed" not in strings
    declared = parse_query(
        "CREATE STREAM S { EVENT A { v:string }, EVENT B { v:string } } "
        "SELECT * FROM S WHERE A AS x ; B AS y FILTER y[v > x.v]"
    )
    assert engine_of(declared) == strings


def test_without_registers_nothing_is_said_of_them() -> None:
    shown = engine_of(parse_query("SELECT * FROM S WHERE A ; B+ WITHIN 5 EVENTS"))
    assert "registers" not in shown
    assert "tests, each evaluated once per batch" in shown
