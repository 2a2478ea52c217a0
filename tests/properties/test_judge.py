"""Laws that the definitions imply: the judge must satisfy them whatever the pattern and stream."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from cerite.pattern import (
    Complement,
    Concat,
    Consume,
    Event,
    Intersection,
    Iteration,
    Pattern,
    QuerySpec,
    Select,
    Sequence,
    Size,
    Strategy,
    Union,
    Window,
)
from cerite.pattern.nodes import walk
from cerite.reference.semantics import Stream, matches
from tests import strategies as random
from tests.telling import often

SOME = often(250)
Rows = list[dict[str, Any]]


def judged(pattern: Pattern | QuerySpec, rows: Rows, **options: Any) -> list[Any]:
    return matches(pattern, Stream.of(rows, time="at"), **options)


def accepted(pattern: Pattern) -> bool:
    return random.meaningful(pattern) == pattern


@SOME
@given(random.checked_patterns(), random.checked_patterns(), random.streams())
def test_union_is_a_union(one: Pattern, two: Pattern, rows: Rows) -> None:
    assume(accepted(Union((one, two))))
    assert set(judged(Union((one, two)), rows)) == set(judged(one, rows)) | set(judged(two, rows))


@SOME
@given(random.checked_patterns(), random.streams())
def test_intersection_with_itself_changes_nothing(pattern: Pattern, rows: Rows) -> None:
    assume(accepted(Intersection((pattern, pattern))))
    both = {match.without_bindings() for match in judged(Intersection((pattern, pattern)), rows)}
    assert both == {match.without_bindings() for match in judged(pattern, rows)}


@SOME
@given(st.lists(random.checked_patterns(size=2), min_size=3, max_size=3), random.streams(), st.booleans())
def test_sequences_are_associative(parts: list[Pattern], rows: Rows, near: bool) -> None:
    kind = Concat if near else Sequence
    left, right = kind((kind(tuple(parts[:2])), parts[2])), kind((parts[0], kind(tuple(parts[1:]))))
    assume(accepted(left) and accepted(right))
    assert judged(left, rows) == judged(right, rows) == judged(kind(tuple(parts)), rows)


@SOME
@given(random.checked_patterns(size=3), random.streams(5), st.booleans())
def test_iteration_unrolls(pattern: Pattern, rows: Rows, near: bool) -> None:
    kind = Concat if near else Sequence
    plus = Iteration(pattern, 1, None, near)
    unrolled = Union((pattern, kind((pattern, plus))))
    assume(accepted(plus) and accepted(unrolled))
    assert judged(plus, rows) == judged(unrolled, rows)
    assert judged(Iteration(pattern, 1, 2, near), rows) == judged(Union((pattern, kind((pattern, pattern)))), rows)


@SOME
@given(random.checked_patterns(sremo=False), random.streams())
def test_a_window_keeps_what_fits(pattern: Pattern, rows: Rows) -> None:
    inside = [match for match in judged(pattern, rows) if match.end - match.start + 1 <= 2]
    assert judged(Window(pattern, Size.events(2)), rows) == inside
    assert judged(QuerySpec(pattern, within=Size.events(2)), rows) == inside


@SOME
@given(random.checked_patterns(sremo=False), random.streams(), st.sampled_from(list(Strategy)))
def test_a_strategy_selects_among_the_matches(pattern: Pattern, rows: Rows, strategy: Strategy) -> None:
    everything, reported = set(judged(pattern, rows)), judged(QuerySpec(pattern, strategy=strategy), rows)
    assert set(reported) <= everything
    assert reported == judged(Select(strategy, pattern), rows)
    if strategy is not Strategy.STRICT:
        assert {match.end for match in reported} == {match.end for match in everything}
    if strategy in (Strategy.NEXT, Strategy.LAST):
        assert len({(match.end, match.positions) for match in reported}) == len({match.end for match in reported})


@SOME
@given(random.checked_patterns(size=4), random.streams(5))
def test_two_complements_accept_the_same_stretches(pattern: Pattern, rows: Rows) -> None:
    twice, thrice = Complement(Complement(pattern)), Complement(Complement(Complement(pattern)))
    marked = Concat((Event(None), twice, Event(None)))
    assert judged(marked, rows) == judged(Concat((Event(None), Complement(thrice), Event(None))), rows)


@SOME
@given(random.queries(random.checked_patterns()), random.streams())
def test_complex_events_forget_the_variables_and_nothing_else(query: QuerySpec, rows: Rows) -> None:
    query = replace(query, limit=None, suppress=None)
    forgotten = {match.without_bindings() for match in judged(query, rows)}
    reported = judged(query, rows, semantics="complex-events")
    assert set(reported) == forgotten
    assert len(reported) == len(forgotten)


def compares(query: QuerySpec) -> bool:
    """Whether a strategy inside WHERE compares matches: with fewer of them left, others may win."""
    return any(isinstance(part, Select) and part.strategy is not Strategy.STRICT for part in walk(query.where))


@SOME
@given(random.queries(random.checked_patterns()).filter(lambda query: not compares(query)), random.streams())
def test_clauses_only_drop_matches(query: QuerySpec, rows: Rows) -> None:
    everything = set(judged(replace(query, consume=Consume.NONE, limit=None, suppress=None, strategy=None), rows))
    reported = judged(query, rows)
    assert set(reported) <= everything
    if query.consume is Consume.ANY:
        ends = sorted({match.end for match in reported})
        assert all(match.start > max((end for end in ends if end < match.end), default=-1) for match in reported)
    if query.limit is not None:
        assert all(
            sum(match.end == end for match in reported) <= query.limit for end in {match.end for match in reported}
        )
    if query.suppress is not None and not query.suppress.per_partition:
        times = [rows[match.end]["at"] for match in reported]
        assert all(two - one > query.suppress.size.width for one, two in pairwise(times))


@SOME
@given(random.queries(random.checked_patterns()), random.streams(5))
def test_each_partition_is_a_stream_of_its_own(query: QuerySpec, rows: Rows) -> None:
    query = replace(query, partition=("id",), consume=Consume.NONE, limit=None, suppress=None)
    expected = []
    for key in {row.get("id") for row in rows} - {None}:
        part = [(position, row) for position, row in enumerate(rows) if row.get("id") == key]
        positions = [position for position, _ in part]
        for match in judged(replace(query, partition=()), [row for _, row in part]):
            moved = [(name, positions[each]) for name, ranks in match.bindings for each in ranks]
            expected.append(type(match).of(positions[match.start], positions[match.end], moved))
    assert sorted(judged(query, rows)) == sorted(expected)
