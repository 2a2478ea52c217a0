"""Queries that look right and are not, and queries that are too deep or too large: each ends with a word, or works."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import cerite
from cerite import Builder, CeriteError, CeriteWarning, Matches, Schema, attr, event, permute
from cerite.cli.main import app
from cerite.language import parse_pattern, parse_query, parse_sremo, parse_wayeb, skip_next
from cerite.language.builder import size
from cerite.pattern import QuerySpec
from cerite.pattern.check import check
from cerite.pattern.nodes import DEEPEST, LARGEST
from cerite.reference import matches

# ---------------------------------------------------------------- another name of the same event


@pytest.mark.parametrize(
    "pattern",
    [
        "BUY AS y FILTER y[BUY.price > 5]",
        "BUY AS y FILTER y[BUY.price > 5 AND price > 5]",
        "BUY AS y FILTER BUY[y.price > 5]",
        "BUY INTO y FILTER y[BUY.price > 5]",
        "B ; (B AS v FILTER v[B.price <= B.price])",
        "(B AS v FILTER v[B.price <= price])+",
        "(B AS x AND B AS y) FILTER x[y.price > 5]",
        "A ; NOT (B AS v FILTER v[B.price > 1]) ; C",
    ],
)
def test_a_reference_to_another_name_of_the_same_event_is_refused(pattern: str) -> None:
    with pytest.raises(CeriteError, match=r"can only be .* itself") as caught:
        check(parse_pattern(pattern))
    assert caught.value.span is not None
    assert "write `price` for this event" in str(caught.value)


def test_a_condition_that_waits_does_not_read_what_its_own_event_moves() -> None:
    """`_` is the event before x when x is checked; once C has come, it would be x itself."""
    with pytest.raises(CeriteError, match="order is not clear") as caught:
        cerite.query("SELECT * FROM S WHERE _? : (_ AS x ; C) FILTER x[id >= C.id - _.id] WITHIN 8 EVENTS")
    assert "bound last" in str(caught.value.hint)


def test_its_own_name_reads_the_event_before() -> None:
    rows = [{"type": "A", "price": price} for price in (1, 2, 2)]
    rising = cerite.query("SELECT * FROM S WHERE A AS b : (A AS b FILTER b[price > b.price])")
    assert [str(match) for match in rising.run(rows)] == ["[0,1] A=0,1, b=0,1"]


@pytest.mark.parametrize(
    "condition", ["a[s = c.s AND s = C.s]", "a[C.s = c.s]", "a.s + C.s = 2 * c.s", "a[s = c.s] AND A[s = C.s]"]
)
def test_a_condition_may_wait_for_one_event_under_two_names(condition: str) -> None:
    query = parse_query(f"SELECT * FROM S WHERE (A AS a ; C AS c) FILTER {condition}")
    rows = [{"type": "A", "s": 1}, {"type": "C", "s": 1}]
    assert [str(match) for match in cerite.query(query).run(rows)] == ["[0,1] A=0, C=1, a=0, c=1"]
    assert list(cerite.query(query).run(rows)) == matches(query, rows)


# ---------------------------------------------------------------- reluctant quantifiers


@pytest.mark.parametrize("iteration", ["B+?", "B*?", "B{1,3}?", "B??", "B:+?"])
def test_reluctant_quantifiers_are_refused_with_advice(iteration: str) -> None:
    with pytest.raises(CeriteError, match="no reluctant quantifiers") as caught:
        parse_pattern(f"A ; {iteration} ; C")
    assert f"`({iteration[:-1]})?`" in str(caught.value)
    assert "SELECT NEXT" in str(caught.value)


def test_an_optional_iteration_has_parentheses() -> None:
    assert str(parse_pattern("A ; (B+)? ; C")) == "A ; (B+)? ; C"
    assert str(event("B").plus().optional()) == "(B+)?"


# ---------------------------------------------------------------- deep and large


def deep(times: int, step: Callable[[Builder], Builder]) -> QuerySpec | Builder:
    pattern = event("A")
    for _ in range(times):
        pattern = step(pattern)
    return pattern


DEEP: dict[str, Callable[[int], object]] = {
    "NEXT(": lambda n: parse_query("SELECT * FROM S WHERE " + "NEXT(" * n + "A" + ")" * n),
    "COMPLEMENT(": lambda n: parse_query("SELECT * FROM S WHERE " + "COMPLEMENT(" * n + "A" + ")" * n),
    "PERMUTE(": lambda n: parse_query("SELECT * FROM S WHERE " + "PERMUTE(B, " * n + "A" + ")" * n),
    "(… WITHIN": lambda n: parse_query("SELECT * FROM S WHERE " + "(" * n + "A" + " WITHIN 5 EVENTS)" * n),
    "(… ; B)+": lambda n: parse_query("SELECT * FROM S WHERE " + "(" * n + "A" + "; B)+" * n),
    "NOT": lambda n: parse_query("SELECT * FROM S WHERE A[" + "NOT " * n + "v = 1]"),
    "- -": lambda n: parse_query("SELECT * FROM S WHERE A[" + "- " * n + "v = 1]"),
    "a filter of a filter": lambda n: parse_query("SELECT * FROM S WHERE A" + " FILTER A[v = 1]" * n),
    "SREMO !": lambda n: parse_sremo("A^o . " + "!" * n + "A . A^o"),
    "SREMO *": lambda n: parse_sremo("A^o" + "*" * n),
    "SREMO @": lambda n: parse_sremo("@(B^o, " * n + "A^o" + ")" * n),
    "Wayeb *": lambda n: parse_wayeb("*(" * n + "IsEventTypePredicate(A)" + ")" * n),
    "Wayeb -": lambda n: parse_wayeb("-(" * n + "GT(v,1)" + ")" * n),
    "built ~": lambda n: deep(n, lambda inner: ~inner),
    "built >>": lambda n: deep(n, lambda inner: event("B") >> inner),
    "built filters": lambda n: deep(n, lambda inner: inner.filter(A=attr.v > 0)),
    "built permute": lambda n: deep(n, lambda inner: permute(event("B"), inner)),
    "built skip_next": lambda n: deep(n, lambda inner: skip_next(event("B"), inner)),
    "built terms": lambda n: event("A", sum((attr.v for _ in range(n)), attr.v) > 0),
}


@pytest.mark.parametrize("make", DEEP.values(), ids=DEEP)
@pytest.mark.parametrize("times", [40, DEEPEST, 100, 190, 3000])
def test_deep_patterns_run_or_are_refused_in_words(make: Callable[[int], object], times: int) -> None:
    rows = [{"type": "A", "v": 1}, {"type": "B", "v": 1}]
    try:
        pattern = make(times)
        clauses = {} if isinstance(pattern, QuerySpec) else {"within": size(5, "events")}
        query = cerite.query(pattern, **clauses)  # type: ignore[arg-type]
        assert str(query)
        query.run(rows).count()
    except CeriteError as error:
        assert len(str(error)) < 600  # noqa: PT017


def test_rewrites_that_multiply_are_refused_before_they_take_long() -> None:
    nested = "SKIP_NEXT(B, " * 30 + "A" + ")" * 30
    with pytest.raises(CeriteError, match=f"more than {LARGEST:,} parts"):
        cerite.query(f"SELECT * FROM S WHERE {nested} WITHIN 5 EVENTS").plan()


# ---------------------------------------------------------------- functions and times


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("at - x.at < 5 seconds", "write 5000 if it counts milliseconds"),
        ("when + 1 > x.when", "add a duration|counts milliseconds"),
        ("when + x.when > when", "subtract timestamps from each other"),
        ("hour(at) = 3", "`hour` needs a timestamp, but `at` is a number"),
        ("lower(at) = 'a'", "`lower` needs a string"),
        ("abs(name) > 3", "`abs` needs a number"),
        ("coalesce(name, 3) = 3", "`coalesce` takes values of one kind"),
        ("coalesce(when, '2024-05-01') = when", "`coalesce` takes values of one kind"),
        ("coalesce(at, 0.5) = 3", "turn whole numbers into floats"),
        ("when - '2024-05-01' < 5 days", "`-` needs numbers"),
        ("when * 2 > when", "subtract timestamps|counts milliseconds"),
        ("5 seconds < 3", "counts milliseconds"),
    ],
)
def test_times_and_functions_of_other_kinds_are_refused_with_advice(condition: str, said: str) -> None:
    schema = Schema.of_columns({"type": "string", "at": "int", "when": "timestamp", "name": "string"})
    with pytest.raises(CeriteError, match=said):
        check(parse_pattern(f"(A AS x ; A AS y) FILTER y[{condition}]"), schema)


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("roud(v) = 3", "did you mean `round`"),
        ("sum(v) = 3", "SUM takes an attribute of a variable"),
        ("cont(y) = 3", "did you mean `count`"),
        ("abs(v, 3) = 3", "`abs` takes one value, not 2"),
        ("coalesce(v) = 3", "`coalesce` takes 2 values or more"),
        ("v < 0.0000001 seconds", "not a whole number of microseconds"),
        ("v < 99999999999 days", "does not fit 64 bits"),
    ],
)
def test_unknown_functions_and_durations_are_refused_with_advice(condition: str, said: str) -> None:
    with pytest.raises(CeriteError, match=said):
        parse_pattern(f"A[{condition}]")


def test_names_of_functions_and_units_are_still_names() -> None:
    rows = [{"type": "A", "hour": 3, "s": 5, "day": 1}]
    assert cerite.query("SELECT * FROM S WHERE A[hour = 3 AND s > day AND abs(s) = 5]").run(rows).count() == 1


def test_times_without_a_schema_are_not_refused() -> None:
    for condition in ("at - x.at < 5 seconds", "at - 5 seconds > '2024-05-01'", "at + 1 > 3", "abs(at - x.at) < 1 day"):
        check(parse_pattern(f"(A AS x ; A AS y) FILTER y[{condition}]"))


# ---------------------------------------------------------------- what can never match, and types that do not occur


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("(_ AS d FILTER d[price < d.price]):+", "`d.price` is read before anything is bound to `d`"),
        ("(_ AS d):+ FILTER d[price < d.price]", "`d.price` is read before anything is bound to `d`"),
        ("A : SKIP T", "ends with an event that it does not mark"),
        ("A ; B ; C WITHIN 2 EVENTS", "needs 3 events, and the window holds 2"),
        ("A ; (B ; C WITHIN 1 EVENTS)", "needs 2 events, and the window holds 1"),
        ("A AND B", "no event is both `A` and `B`"),
        ("A[price > 3 AND 1 = 2] ; B", "`1 = 2` is never true"),
        ("A ; NOTHING", "nothing can match NOTHING"),
    ],
)
def test_queries_that_can_never_match_get_a_warning(query: str, said: str) -> None:
    notes = check(parse_query(f"SELECT * FROM S WHERE {query}"))
    assert [said in note.message for note in notes].count(True) == 1


@pytest.mark.parametrize(
    "query",
    ["_ AS d ; (_ AS d FILTER d[price < d.price])+", "A : (SKIP T):*", "A ; B ; C WITHIN 3 EVENTS", "NOTHING OR A"],
)
def test_queries_that_may_match_get_no_such_warning(query: str) -> None:
    notes = check(parse_query(f"SELECT * FROM S WHERE {query}"))
    assert not [note for note in notes if "nothing can match" in note.message]


def test_a_complement_that_excludes_nothing_is_warned_about() -> None:
    said = "`COMPLEMENT(B)` excludes nothing here: it also matches no events at all; to say that there is none between"
    with pytest.warns(CeriteWarning, match=re.escape(said)):
        surprising = cerite.query(event("A") >> ~event("B") >> event("C"))
    rows = [{"type": "A"}, {"type": "B"}, {"type": "C"}]
    assert surprising.run(rows).count() == cerite.query("SELECT * FROM S WHERE A ; C").run(rows).count() == 1
    for excluding in ("A : COMPLEMENT(B) : C", "A ; COMPLEMENT(B*) ; C"):
        notes = check(parse_query(f"SELECT * FROM S WHERE {excluding}"))
        assert not [note for note in notes if "excludes" in note.message]


@pytest.mark.parametrize("encoded", [False, True])
@pytest.mark.parametrize("read", [lambda matches: matches.count(), list])
def test_a_misspelt_event_type_is_warned_about(encoded: bool, read: Callable[[Matches], object]) -> None:
    types = pa.array(["BUY", "SELL", "BUY"])
    table = pa.table({"type": types.dictionary_encode() if encoded else types})
    said = "no event has the type `SEL`; the data has `BUY`, `SELL`; did you mean `SELL`?"
    with pytest.warns(CeriteWarning, match=re.escape(said)):
        read(cerite.query("SELECT * FROM S WHERE SEL OR BUY").run(table))


def test_an_event_type_that_does_not_occur_is_named_if_nothing_matched() -> None:
    rows = [{"type": "A"}, {"type": "B"}]
    with pytest.warns(CeriteWarning, match="no event has the type `CRASH`; the data has `A`, `B`"):
        assert cerite.query("SELECT * FROM S WHERE A ; CRASH").run(rows).count() == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cerite.query("SELECT * FROM S WHERE A ; NOT CRASH ; B").run(rows).count() == 1
        assert cerite.query("SELECT * FROM S WHERE A ; A").run(rows).count() == 0


def test_the_command_line_shows_such_warnings(tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text("type\nBUY\nSELL\n")
    ran = CliRunner().invoke(app, ["run", "SELECT * FROM S WHERE SEL AS x", str(tmp_path / "events.csv"), "--count"])
    assert ran.exit_code == 0
    assert "warning: no event has the type `SEL`" in ran.stderr
    (tmp_path / "seconds.csv").write_text("type,at\nBUY,1714557600\nSELL,1714557601\n")
    arguments = [str(tmp_path / "seconds.csv"), "--time", "at"]
    ran = CliRunner().invoke(app, ["run", "SELECT * FROM S WHERE SEL AS x WITHIN 5 seconds", *arguments])
    assert ran.stderr.count("warning: no event has the type `SEL`") == 1
    assert "pass --time-unit s" in ran.stderr
    checked = CliRunner().invoke(app, ["check", "SELECT * FROM S WHERE A : SKIP T WITHIN 5 EVENTS"])
    assert "warning: nothing can match" in checked.stderr
