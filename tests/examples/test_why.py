"""Why events are a match, and why not: what each construct says when it is the culprit."""

from __future__ import annotations

from inspect import signature
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import cerite
from cerite.api.query import DataOptions, Query
from cerite.core.errors import ArgumentError
from tests.command import EVENTS
from tests.command import cerite as command

ROWS: list[dict[str, Any]] = [
    {"type": "A", "v": 1, "k": "p", "at": 0},
    {"type": "B", "v": 3, "k": "p", "at": 1_000},
    {"type": "A", "v": 2, "k": "p", "at": 1_500},
    {"type": "C", "v": 480, "k": "p", "at": 3_000},
    {"type": "C", "v": 600, "k": "q", "at": 40_000},
]


def culprit(text: str, events: Any, **options: Any) -> tuple[str, str]:
    answer = cerite.query(text).why_not(ROWS, events, **({"time": "at"} | options))
    assert answer.culprit is not None
    assert answer
    return answer.culprit.kind, answer.culprit.text


@pytest.mark.parametrize(
    ("text", "events", "kind", "said"),
    [
        ("A AS x ; C AS y FILTER y[v > 500]", [0, 3], "condition", "`v > 500` was 480"),
        ("A AS x ; C[v < x.v]", [2, 3], "condition", "`v < x.v` was 480 < 2"),
        ("A+ AS x ; C FILTER COUNT(x) >= 2", [0, 3], "condition", "`COUNT(x) >= 2` was 1"),
        ("A AS x ; C FILTER x[w > 1]", [0, 3], "condition", "`w > 1` was NULL"),
        ("A AS x ; C WITHIN 30 seconds", [0, 4], "window", "40 seconds after row 0, window 30 seconds"),
        ("A AS x ; C WITHIN 3 EVENTS", [0, 3], "window", "4 events from row 0 on, window 3 EVENTS"),
        ("A AS x ; C WITHIN 100 [v]", [0, 3], "window", "`v` went from 1 to 480, window 100 [v]"),
        ("A ; NOT B ; C", [0, 3], "negation", "`NOT B`, but row 1 is between row 0 and row 3"),
        ("A ; NOT (B ; A) ; C WITHIN 9 EVENTS", [0, 3], "negation",
         "`NOT (B ; A)`, but rows 1 to 2 are between row 0 and row 3"),
        ("A : C", [0, 3], "contiguity", "2 events between row 0 and row 3, where `:` allows none"),
        ("A:+ ; C", [0, 2, 3], "contiguity", "1 event between row 0 and row 2, where `:` allows none"),
        ("NEXT(A ; C)", [2, 3], "strategy", "NEXT preferred rows 0, 3"),
        ("A ; C PARTITION BY [k]", [0, 4], "partition", "row 0 is of k = 'p', row 4 of k = 'q'"),
        ("A ; C CONSUME BY ANY", [0, 4], "consumption",
         "CONSUME BY ANY: the match that ended at row 3 made the query forget row 0"),
        ("A ; C LIMIT 1", [0, 3], "limit", "LIMIT 1 at row 3: reported are rows 2, 3"),
        ("A ; C SUPPRESS 1 hours", [0, 4], "suppression", "SUPPRESS 1 hour: a match was reported that ends at row 3"),
        ("A ; B", [0, 3], "type", "row 3 is `C`, where the pattern has `B`"),
        ("A ; D", [0], "missing", "the pattern needs `D` after row 0, and the data has none there"),
        ("A ; B", [0, 1, 3], "type", "the pattern is complete before row 3"),
    ],
)  # fmt: skip
def test_what_ended_it_is_named_with_its_values(text: str, events: list[int], kind: str, said: str) -> None:
    assert culprit(f"SELECT * FROM S WHERE {text}", events) == (kind, said)


@pytest.mark.parametrize(
    ("strategy", "events", "said"),
    [
        ("LAST", [0, 3], "LAST preferred the match from row 2 (rows 2, 3), which ends at row 3, too"),
        ("NEXT", [2, 3], "NEXT preferred the match from row 0 (rows 0, 3), which ends at row 3, too"),
        ("STRICT", [0, 3], "STRICT: rows 1, 2 between them"),
    ],
)
def test_a_strategy_says_what_it_preferred(strategy: str, events: list[int], said: str) -> None:
    assert culprit(f"SELECT {strategy} * FROM S WHERE A ; C", events) == ("strategy", said)


def test_max_names_the_larger_match() -> None:
    said = culprit("SELECT MAX * FROM S WHERE A+ ; C", [0, 3])[1]
    assert said == "MAX preferred the match from row 0 (rows 0, 2, 3), which ends at row 3, too"


def test_absences_at_the_ends() -> None:
    after = culprit("SELECT * FROM S WHERE A AS x ; NOT B WITHIN 30 seconds", [0])
    assert after == ("negation", "`NOT B`, but row 1 is after row 0, in the 30 seconds from row 0 on")
    before = culprit("SELECT * FROM S WHERE NOT B ; C WITHIN 30 seconds", [3])
    assert before == ("negation", "`NOT B`, but row 1 is before row 3, in the 30 seconds that end at row 3")


def test_the_furthest_of_several_ways_is_reported() -> None:
    """The first branch ends at row 0, the second only at row 3."""
    query = "SELECT * FROM S WHERE (A AS x ; C AS y FILTER x[v > 9]) OR (A AS x ; C AS y FILTER y[v > 500])"
    assert culprit(query, [0, 3]) == ("condition", "`v > 500` was 480")


def test_what_fails_besides_is_named_in_order() -> None:
    query = cerite.query("SELECT * FROM S WHERE A AS x ; C AS y FILTER x[v > 1] AND y[v > 700] WITHIN 30 seconds")
    answer = query.why_not(ROWS, [0, 4], time="at")
    assert [str(each) for each in (answer.culprit, *answer.besides)] == [
        "`v > 1` was 1", "`v > 700` was 600", "40 seconds after row 0, window 30 seconds",
    ]  # fmt: skip
    assert [each.verdict for each in answer.events] == ["failed", "not reached"]


def test_events_that_match_say_why() -> None:
    answer = cerite.query("SELECT * FROM S WHERE A AS x ; C AS y FILTER y[v > x.v]").why_not(ROWS, [2, 3], time="at")
    assert not answer
    assert answer.why is not None
    assert str(answer) == str(answer.why)
    assert answer.match == cerite.Match.of(2, 3, [("A", 2), ("x", 2), ("C", 3), ("y", 3)])


def test_events_that_select_does_not_show() -> None:
    """`why` finds the others; `why_not` takes all of a match, or what SELECT shows of one that is reported."""
    query = cerite.query("SELECT y FROM S WHERE A AS x ; B ; C AS y FILTER y[v > 500]")
    (match,) = query.run(ROWS, time="at")
    assert [each.position for each in query.why(match).events] == [0, 1, 4]
    assert not query.why_not(ROWS, [4], time="at")
    assert query.why_not(ROWS, [0, 1, 3], time="at").culprit.text == "`v > 500` was 480"  # type: ignore[union-attr]


def test_positions_are_those_that_are_reported() -> None:
    """Rows out of order keep their numbers; a column of positions is used where one is named."""
    query = cerite.query("SELECT * FROM S WHERE A AS x ; C AS y FILTER y[v > 500]")
    backwards = ROWS[::-1]
    (match, _) = query.run(backwards, time="at", order_by="v")
    assert set(match.positions) == {0, 2}
    assert [each.position for each in query.why(match).events] == [2, 0]
    assert query.why_not(backwards, [1, 4], time="at", order_by="v").culprit.position == 1  # type: ignore[union-attr]
    numbered = pa.Table.from_pylist([{**row, "n": 10 * at} for at, row in enumerate(ROWS)])
    answer = query.why_not(numbered, [0, 30], time="at", position="n")
    assert [each.position for each in answer.events] == [0, 30]


def test_events_may_be_rows_or_a_frame() -> None:
    query = cerite.query("SELECT * FROM S WHERE A AS x ; C AS y FILTER y[v > 500]")
    frame = pa.Table.from_pylist(ROWS).to_pandas()
    for events in (ROWS[0:1] + ROWS[3:4], [{"at": 0}, {"v": 480}], frame.iloc[[0, 3]]):
        assert query.why_not(frame, events, time="at").positions == (0, 3)
    assert query.why_not(ROWS[0:1] + ROWS[3:4]).positions == (0, 1)


def test_units_of_time_and_timestamps() -> None:
    query = cerite.query("SELECT * FROM S WHERE A ; B WITHIN 30 seconds")
    rows = [{"type": "A", "at": 0}, {"type": "B", "at": 31}]
    assert "31 seconds after row 0" in str(query.why_not(rows, time="at", time_unit="s"))
    table = pa.table({"type": ["A", "B"], "at": pa.array([0, 31_200], pa.timestamp("ms"))})
    assert "31.2 seconds after row 0, window 30 seconds" in str(query.why_not(table, time="at"))


def test_a_long_match_is_explained_at_once() -> None:
    """The events of a match are read as a word: that there are 2^300 other matches does not matter."""
    rows = [{"type": "A", "v": at} for at in range(300)]
    query = cerite.query("SELECT * FROM S WHERE A+ AS x FILTER x[v >= 0] AND LAST(x.v) >= 299")
    answer = query.why_not(rows)
    assert not answer
    assert len(answer.events) == 300
    assert query.why_not(rows[:-1]).culprit.text == "`LAST(x.v) >= 299` was 298"  # type: ignore[union-attr]


def test_other_calls_take_the_keywords_of_run_that_say_how_data_is_read() -> None:
    keywords = [each.name for each in signature(Query.run).parameters.values() if each.kind is each.KEYWORD_ONLY]
    assert sorted(DataOptions.__annotations__) == sorted({*keywords} - {"progress", "threads"})
    query = cerite.query("SELECT * FROM S WHERE A AS x ; C AS y FILTER y[v > x.v]")
    with pytest.raises(TypeError, match="unexpected keyword argument 'tiem'"):
        query.why_not(ROWS, [2, 3], tiem="at")  # type: ignore[call-arg]
    with pytest.raises(ArgumentError, match="`time` would say how data is read, and no data is given"):
        query.why(query.run(ROWS)[0], time="at")


def test_the_forms_of_an_explanation() -> None:
    from rich.console import Console

    answer = cerite.query("SELECT * FROM S WHERE A ; C AS y FILTER y[name != '<b>']").why_not(ROWS, [0, 3], time="at")
    html = answer._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b>'" not in html
    with Console(width=100, file=None, record=True, quiet=True) as console:
        console.print(answer)
    assert repr(answer) == str(answer)


# ---------------------------------------------------------------- on the command line
QUERY = "SELECT * FROM S WHERE SELL AS x ; BUY AS y FILTER y[price > x.price] WITHIN 30 seconds"


@pytest.fixture
def events(tmp_path: Path) -> str:
    path = tmp_path / "events.csv"
    path.write_text(EVENTS, "utf-8")
    return str(path)


def test_why_on_the_command_line(events: str) -> None:
    shown = command("why", QUERY, events, "--time", "at").stdout
    assert "[0,1] BUY=1, SELL=0, x=0, y=1 is a match" in shown
    assert "`price > x.price`: 4.5 > 3.5" in shown
    shown = command("why", QUERY, events, "--time", "at", "--rows", "0,2").stdout
    assert "ended by condition: `price > x.price` was 2.5 > 3.5" in shown
    shown = command("why", QUERY, events, "--time", "at", "--rows", "0", "--rows", "3").stdout
    assert "ended by window: 89.99 seconds after row 0, window 30 seconds" in shown


def test_what_the_command_cannot_explain(events: str) -> None:
    assert "there is only one match" in command("why", QUERY, events, "--time", "at", "--match", "2", code=1).stderr
    assert "takes row numbers" in command("why", QUERY, events, "--time", "at", "--rows", "x", code=1).stderr
    both = command("why", QUERY, events, "--time", "at", "--rows", "0", "--match", "1", code=1)
    assert "leave one of them out" in both.stderr


SEARCH = [{"type": kind, "v": v} for kind, v in (("A", 1), ("B", 5), ("X", 0), ("B", 9), ("C", 3), ("A", 2), ("C", 1))]


def test_the_events_that_are_not_given_are_looked_for() -> None:
    query = cerite.query("SELECT * FROM S WHERE A AS a ; B AS b ; C AS c FILTER b[v > 5] AND c[v > b.v]")
    answer = query.why_not(SEARCH, events=[0, 4])
    assert answer.positions == (0, 4)
    assert answer.added == (3,)  # the other B fails as well, of itself
    assert answer.culprit is not None
    assert answer.culprit.text == "`v > b.v` was 3 > 9"
    assert "with row 3 they come nearest" in str(answer)


def test_several_events_may_be_added() -> None:
    answer = cerite.query("SELECT * FROM S WHERE A ; B ; B ; C[v > 7]").why_not(SEARCH, events=[0])
    assert answer.added == (1, 3, 4)
    assert answer.culprit is not None
    assert (answer.culprit.text, answer.culprit.position) == ("`v > 7` was 3", 4)


def test_an_event_that_the_data_does_not_have_is_named_with_its_place() -> None:
    answer = cerite.query("SELECT * FROM S WHERE A ; B ; C").why_not(SEARCH, events=[5, 6])
    assert (answer.added, answer.match) == ((), None)
    assert answer.culprit is not None
    assert answer.culprit.kind == "missing"
    assert answer.culprit.text == "the pattern needs `B` after row 5 and before row 6, and the data has none there"


def test_what_is_added_is_of_the_same_partition() -> None:
    rows = [{**row, "k": k} for row, k in zip(SEARCH, "ppppqqq", strict=True)]
    answer = cerite.query("SELECT * FROM S WHERE A ; C PARTITION BY [k]").why_not(rows, events=[0])
    assert answer.culprit is not None
    assert answer.culprit.text == "the pattern needs `C` after row 0, and the data has none of k = 'p' there"


@pytest.mark.parametrize(
    ("later", "window", "said"),
    [
        (3_788_474, "1 hours", "1 h 3 min 8.474 s after row 0, window 1 hour"),
        (3_600_001, "1 hours", "1 h 0.001 s after row 0, window 1 hour"),
        (5_400_000, "1 hours", "1.5 hours after row 0, window 1 hour"),
        (31_000, "1 seconds", "31 seconds after row 0, window 1 second"),
        (90_000_500, "1 days", "1 d 1 h 0.5 s after row 0, window 1 day"),
        (121_000, "2 minutes", "2 min 1 s after row 0, window 2 minutes"),
    ],
)
def test_lengths_of_time_are_as_people_read_them(later: int, window: str, said: str) -> None:
    rows = [{"type": "A", "at": 0}, {"type": "B", "at": later}]
    answer = cerite.query(f"SELECT * FROM S WHERE A ; B WITHIN {window}").why_not(rows, events=[0, 1], time="at")
    assert answer.culprit is not None
    assert answer.culprit.text == said
    part = cerite.query(f"SELECT * FROM S WHERE (A ; B WITHIN {window})").why_not(rows, events=[0, 1], time="at")
    assert part.culprit is not None
    assert part.culprit.text == said


def test_a_negation_has_one_hour_not_hours() -> None:
    rows = [{"type": "A", "at": 0}, {"type": "B", "at": 5}, {"type": "C", "at": 9_000_000}]
    answer = cerite.query("SELECT * FROM S WHERE A ; NOT B WITHIN 1 hour").why_not(rows, events=[0], time="at")
    assert answer.culprit is not None
    assert "in the 1 hour from row 0 on" in answer.culprit.text
