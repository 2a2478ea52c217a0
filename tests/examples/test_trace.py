"""What the engine holds, event by event."""

from __future__ import annotations

from typing import Any

import pytest

import cerite
from cerite.testing import events


def trace(text: str, stream: str, **options: Any) -> Any:
    return cerite.query(text).trace(events(stream), **options)


def test_a_newer_start_is_folded_into_a_union() -> None:
    """Figure 5 of CORE in small: two starts are one list, and one node when an event is marked on top of both."""
    steps = trace("SELECT * FROM S WHERE A ; B", "A A B").steps
    assert [str(state) for state in steps[1].states] == ["T[{q1}] = n3, n1"]
    assert [str(node) for node in steps[2].nodes] == ["n4 = n3 ∪ n1", "n5 = row 2 as B, then n4"]
    assert [match.positions for match in steps[2].matches] == [(1, 2), (0, 2)]


def test_partitions_have_lists_of_their_own() -> None:
    steps = trace("SELECT * FROM S WHERE A ; B PARTITION BY [k]", "A(k=p) A(k=q) A B(k=q)").steps
    assert [str(state) for state in steps[1].states] == ["T[{q1}] of 'p' = n1", "T[{q1}] of 'q' = n3"]
    assert steps[2].skipped
    assert [match.positions for match in steps[3].matches] == [(1, 3)]


def test_the_picture_has_the_lists_and_all_nodes() -> None:
    drawn = trace("SELECT * FROM S WHERE A ; B", "A A B").mermaid().splitlines()
    assert drawn[0] == "flowchart TD"
    assert [line.strip() for line in drawn if "t0" in line] == [
        't0[["T#91;#123;q1#125;#93;"]]', "t0 -->|1| n3", "t0 -->|2| n1",
    ]  # fmt: skip
    assert [line.strip() for line in drawn if line.startswith(("    n4", "    n5"))] == [
        'n4(("#8746;"))', "n4 --> n3", "n4 --> n1", 'n5["row 2 as B"]', "n5 --> n4",
    ]  # fmt: skip
    assert trace("SELECT * FROM S WHERE A", "").mermaid() == "flowchart TD\n"


def test_what_is_consumed_is_gone() -> None:
    steps = trace("SELECT * FROM S WHERE A ; B CONSUME BY ANY", "A A B A").steps
    assert (len(steps[2].matches), steps[2].states) == (2, ())
    assert [str(state) for state in steps[3].states] == ["T[{q1}] = n7"]


@pytest.mark.parametrize(
    ("condition", "stored"),
    [
        ("y[v > x.v]", "x.v = 3"),
        ("y[w > x.w]", "x.w = 0.5"),
        ("y[s = x.s]", "x.s = 'MSFT'"),
        ("y[v > SUM(x.v)]", "SUM(x.v) = 3"),
        ("y[v > COUNT(x)]", "COUNT(x) = 1"),
    ],
)
def test_registers_show_what_they_store(condition: str, stored: str) -> None:
    traced = trace(
        f"SELECT * FROM S WHERE A AS x ; B AS y FILTER {condition}", "A(v=3, w=0.5, s=MSFT) B(v=9, w=1.0, s=a)"
    )
    assert traced.engine == "registers"
    assert [str(state) for state in traced.steps[0].states] == [f"T[{{q1({stored})}}] = n1"]


def test_the_end_of_the_data_decides_absences() -> None:
    traced = trace("SELECT * FROM S WHERE A ; NOT B WITHIN 5 seconds", "A@0", time="at")
    assert traced.steps[-1].title == "end of the data"
    assert [match.positions for match in traced.steps[-1].matches] == [(0,)]


def test_the_forms_of_a_trace() -> None:
    traced = trace("SELECT * FROM S WHERE A ; B", "A(s='<b>') C B")
    html = traced._repr_html_()
    assert "&lt;b&gt;" in html
    assert html.count("<details") == 3
    assert repr(traced) == str(traced)
    assert [branch.label.plain for branch in traced.__rich__().children][1] == "row 1: type='C'"


def test_rows_keep_their_numbers() -> None:
    rows = [{"type": "B", "at": 2}, {"type": "A", "at": 1}]
    traced = cerite.query("SELECT * FROM S WHERE A ; B").trace(rows, time="at", order_by="type")
    assert [step.position for step in traced.steps] == [1, 0]
    assert set(traced.steps[1].matches[0].positions) == {0, 1}
    rows = [{"type": "A", "n": 10}, {"type": "B", "n": 20}]
    traced = cerite.query("SELECT * FROM S WHERE A ; B").trace(rows, position="n")
    assert [str(node) for step in traced.steps for node in step.nodes][1] == "n1 = row 10 as A, then n0"


def test_a_trace_is_for_a_small_run() -> None:
    with pytest.raises(cerite.StreamError, match="a trace is for a small run, and the data has 201 events") as error:
        trace("SELECT * FROM S WHERE A", "A " * 201)
    assert error.value.hint
