"""What would take too many states or too much memory is refused in words, and what only looked so is not."""

import random

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import cerite
from cerite.automaton.build import build
from cerite.cli.main import app
from cerite.core.budget import most_states
from cerite.core.errors import BudgetError, CeriteError, PatternError
from cerite.engine.counting.counter import Counter
from cerite.engine.plan import plan
from cerite.language.ceql import parse_pattern, parse_query
from cerite.reference import matches
from tests.command import cerite as cerite_command


def events(n: int, types: str = "AB") -> pa.Table:
    draw = random.Random(1)
    return pa.table({"type": [draw.choice(types) for _ in range(n)]})


def select(pattern: str) -> str:
    return f"SELECT * FROM S WHERE {pattern}"


LATE = "((A OR B)* ; A ; (A OR B){%d}) WITHIN 60 EVENTS"


def test_counting_with_exponentially_many_states_is_refused_before_the_memory_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CERITE_MEMORY", "32 MiB")
    query = cerite.query(select(LATE % 20))
    with pytest.raises(BudgetError, match=r"deterministic states in a window takes .* more than the") as caught:
        query.run(events(100)).count()
    assert "CERITE_MEMORY" in str(caught.value)


@pytest.mark.parametrize("how", ["count", "find"])
def test_sums_over_every_choice_of_events_are_refused_before_they_fill_the_memory(
    monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setenv("CERITE_MEMORY", "1 MiB")
    draw = random.Random(1)
    rows = [{"type": "A", "v": draw.random()} for _ in range(200)]
    free = cerite.query(select("A+ AS x FILTER SUM(x.v) > 1000 WITHIN 100 EVENTS"))
    with pytest.raises(BudgetError, match=r"different values of `SUM\(x\.v\)` already, since events may be") as caught:
        free.run(rows).count() if how == "count" else list(free.run(rows))
    assert "write `:+` instead of `+`" in str(caught.value)
    beside = cerite.query(select("(A AS x):+ FILTER SUM(x.v) > 3 WITHIN 100 EVENTS")).run(rows)
    assert beside.count() == len(beside.to_arrow()) > 0


def test_check_warns_of_sums_over_every_choice_of_events() -> None:
    run = CliRunner().invoke(app, ["check", select("A+ AS x FILTER SUM(x.v) > 1000 WITHIN 100 EVENTS")])
    assert run.exit_code == 0
    assert "SUM(x.v): each of n events may be taken or left, which can give 2^n different sums" in run.output
    run = CliRunner().invoke(app, ["check", select("(A AS x):+ FILTER SUM(x.v) > 1000 WITHIN 100 EVENTS")])
    assert "2^n" not in run.output


def test_what_another_run_has_learnt_is_within_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    query = cerite.query(select("A ; B ; C ; A ; B WITHIN 60 EVENTS"))
    result = query.run(events(30, "ABC"))
    assert result.count() > 0
    assert result.prepared.program.learnt
    monkeypatch.setenv("CERITE_STATES", "4")
    with pytest.raises(BudgetError, match="more than 4 deterministic states"):
        query.run(events(30, "ABC")).count()
    monkeypatch.setenv("CERITE_STATES", "")
    assert query.run(events(30, "ABC")).count() == result.count()


def test_the_budget_is_set_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    query = cerite.query(select(LATE % 6))
    assert query.run(events(30)).count() > 0
    monkeypatch.setenv("CERITE_STATES", "50")
    with pytest.raises(BudgetError, match="more than 50 deterministic states"):
        query.run(events(30)).count()
    with pytest.raises(BudgetError, match="more than 50 deterministic states"):
        query.run(events(30)).to_arrow()
    monkeypatch.setenv("CERITE_STATES", "")
    monkeypatch.setenv("CERITE_MEMORY", "64 KiB")
    with pytest.raises(BudgetError, match=r"more than the 0\.1 MiB"):
        query.run(events(30)).count()
    monkeypatch.setenv("CERITE_MEMORY", "much")
    with pytest.raises(CeriteError, match="not a number"):
        query.run(events(30)).count()


def test_a_pattern_whose_automaton_is_too_large_is_refused_by_check() -> None:
    text = select("((A{1,100}){1,100}){1,100}")
    with pytest.raises(PatternError, match=r"an automaton of at least [0-9,]+ transitions; the engine takes 200,000"):
        plan(parse_query(text))
    result = CliRunner().invoke(app, ["check", text])
    assert isinstance(result.exception, PatternError)


CHECKED = {  # what `cerite check` says of the cost
    LATE % 20: "more than 100,000 deterministic states",
    LATE % 12: "counting is refused by a stream that shows all of 8,193 deterministic states: it takes 6.0 GiB",
    "A{300} ; B WITHIN 3000 EVENTS": "302 deterministic states takes about a second for every",
    "(A OR B)* ; (A FILTER A[v > 1]) ; (A OR B){18}": "may have more than 100,000 deterministic states",
}


@pytest.mark.parametrize("pattern", CHECKED)
def test_check_says_what_a_query_may_take_before_anything_runs(pattern: str) -> None:
    refused = pattern == LATE % 20
    done = cerite_command("check", select(pattern), code=1 if refused else 0)
    assert CHECKED[pattern] in done.stderr
    assert ("CERITE_STATES" in done.stderr) == refused


def test_check_warns_of_next_in_long_windows_and_of_nothing_else() -> None:
    slow = "SELECT NEXT * FROM S WHERE A{20,} ; B WITHIN 1000 EVENTS"
    assert "NEXT in a window of 1,000 events with 22 deterministic states" in cerite_command("check", slow).stderr
    many = " ; ".join(f"A{each}" for each in range(600))
    for text in (
        slow.replace("1000", "30"),
        select(f"{many} WITHIN 900 EVENTS"),
        select("A{100} ; B WITHIN 900 EVENTS"),
    ):
        assert "warning" not in cerite_command("check", text).stderr


def test_iterations_make_automata_as_long_as_they_are() -> None:
    def size(pattern: str) -> tuple[int, int]:
        automaton = build(parse_pattern(pattern))
        return automaton.n_states, len(automaton.transitions)

    assert size("A{1,30}") == (31, 88)
    states, transitions = size("(A{1,30}){1,10}")
    assert states <= 301
    assert transitions <= 4 * states
    longer = size("(A{1,30}){1,20}")
    assert longer[1] <= 2.1 * transitions
    assert size(" ; ".join("AB" * 500)) == (1001, 1999)
    assert size("A? ; B? ; C? ; D")[0] <= 8


@pytest.mark.parametrize(
    "pattern", ["(A{1,3}){1,3}", "A{0,2} ; B", "(A?){2,3} ; B", "(A* ; B?){1,2}", "(A:B?){1,2}", "A:{1,3} : B", "A{2,}"]
)
def test_iterations_match_as_the_judge_says(pattern: str) -> None:
    rows = [{"type": kind} for kind in "AABABBA"]
    judged = matches(parse_query(select(pattern)), rows)
    results = cerite.query(select(pattern)).run(pa.table({"type": [row["type"] for row in rows]}))
    assert judged
    assert results.count() == len(judged)
    assert set(results) == set(judged)


def test_counting_without_a_window_keeps_no_matrix() -> None:
    automaton = plan(parse_query(select("A{100} ; B"))).automaton
    counter = Counter(automaton, windowed=False)
    key = np.arange(400)
    counter.feed(np.ones((400, 1), np.uint64), key, key)
    assert counter.det.n_dstates > 100
    assert counter.p.size == 1
    assert all(slot.p.shape[0] == 1 for slot in counter.wide_slots.values())
    assert counter.wide_slots


def test_states_by_default() -> None:
    assert most_states() == 100_000
