"""Random pattern files of Wayeb, each drawn together with what the SRT report says it means.

`oracle_*` strategies give pairs: a text, and the pattern that the definitions rewrite it to, or what one sentence says
of one event in plain Python. They share nothing with `cerite.language.wayeb`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerite.core.errors import CeriteError, PatternError
from cerite.language.wayeb import parse_wayeb
from cerite.pattern import Complement, Concat, Empty, Event, Iteration, Pattern, SkipNext, Union
from cerite.predicate.expression import Attribute, Comparison, Literal, Reference
from cerite.reference.semantics import matches
from tests import strategies as random
from tests.telling import often

SOME = often(400)
MANY = often(800)
Row = dict[str, Any]
Written = tuple[str, Pattern]
Said = tuple[str, Callable[[Row], bool]]
GAP = Iteration(Event(None, output=False), 0, None, contiguous=True)  # (⊤ ↑ ⊗)*


# ---------------------------------------------------------------- formulas
def star(pattern: Pattern) -> Pattern:
    return Iteration(pattern, 0, None, contiguous=True)


def with_gaps(parts: list[Pattern]) -> Pattern:
    """Definition 44: e1 · (⊤↑⊗)* · e2 · …"""
    return Concat(tuple(each for part in parts for each in (GAP, part))[1:])


def repeated_with_gaps(pattern: Pattern) -> Pattern:
    """⟲ of an iteration: ε + e · ((⊤↑⊗)* · e)*."""
    return Union((Empty(), Concat((pattern, star(Concat((GAP, pattern)))))))


def listed(parts: list[Written]) -> str:
    return ",".join(text for text, _ in parts)


def patterns_of(parts: list[Written]) -> list[Pattern]:
    return [pattern for _, pattern in parts]


oracle_events: st.SearchStrategy[Written] = st.sampled_from(
    [
        ("IsEventTypePredicate(A)", Event("A")),
        ('IsEventTypePredicate(A)["x"]', Event("A", register="x")),
        ("|(IsEventTypePredicate(A),IsEventTypePredicate(B))", Union((Event("A"), Event("B")))),
        ("EQ(id,1.0)", Event(None, Comparison("=", Attribute("id"), Literal(1.0)))),
        (
            '^(GTEAttr(price,"x"),IsEventTypePredicate(B))',
            Event("B", Comparison(">=", Attribute("price"), Reference("x", "price"))),
        ),
        ("TruePredicate", Event(None)),
        ("EpsilonPredicate", Empty()),
    ]
)


def _grown(inner: st.SearchStrategy[Written]) -> st.SearchStrategy[Written]:
    two, some = st.lists(inner, min_size=2, max_size=3), st.lists(inner, min_size=1, max_size=2)

    def one(parts: list[Written]) -> Pattern:
        return parts[0][1] if len(parts) == 1 else Concat(tuple(patterns_of(parts)))

    return (
        two.map(lambda parts: (f";({listed(parts)})", Concat(tuple(patterns_of(parts)))))
        | two.map(lambda parts: (f"#(;({listed(parts)}))", with_gaps(patterns_of(parts))))
        | two.map(lambda parts: (f"#({listed(parts)})", with_gaps(patterns_of(parts))))
        | two.map(lambda parts: (f"@(;({listed(parts)}))", SkipNext(tuple(patterns_of(parts)))))
        | two.map(lambda parts: (f"+({listed(parts)})", Union(tuple(patterns_of(parts)))))
        | two.map(lambda parts: (f"#(+({listed(parts)}))", Union(tuple(patterns_of(parts)))))
        | some.map(lambda parts: (f"*({listed(parts)})", star(one(parts))))
        | some.map(lambda parts: (f"#(*({listed(parts)}))", repeated_with_gaps(one(parts))))
        | some.map(lambda parts: (f"!({listed(parts)})", Complement(one(parts))))
    )


oracle_formulas = st.recursive(oracle_events, _grown, max_leaves=5)


@SOME
@given(oracle_formulas, random.streams(5))
def test_oracle_a_formula_means_what_the_definitions_rewrite_it_to(written: Written, rows: list[Row]) -> None:
    text, pattern = written
    if '"x")' in text and '["x"]' not in text:
        with pytest.raises(PatternError, match="no event is stored"):
            parse_wayeb(text)
    else:
        assert matches(parse_wayeb(text), rows) == matches(pattern, rows)


# ---------------------------------------------------------------- sentences
def _has(attribute: str, holds: Callable[[Any], bool]) -> Callable[[Row], bool]:
    """A comparison with NULL, NaN or with a missing attribute is not satisfied."""

    def check(row: Row) -> bool:
        value = row.get(attribute)
        return value is not None and value == value and holds(value)

    return check


oracle_predicates: st.SearchStrategy[Said] = st.sampled_from(
    [
        ("IsEventTypePredicate(A)", lambda row: row["type"] == "A"),
        ("IsEventTypePredicate(B)", lambda row: row["type"] == "B"),
        ("EQStr(EventType,C)", lambda row: row["type"] == "C"),
        ("EQ(id,1.0)", _has("id", lambda value: value == 1)),
        ("NEQ(id,0)", _has("id", lambda value: value != 0)),
        ("BT(price,-1.0,2.0)", _has("price", lambda value: -1 <= value < 2)),
        ("GTE(price,.5)", _has("price", lambda value: value >= 0.5)),
        ("EQStr(name,ab)", _has("name", lambda value: value == "ab")),
        ("TruePredicate()", lambda row: True),
    ]
)
oracle_sentences: st.SearchStrategy[Said] = st.recursive(
    oracle_predicates,
    lambda inner: (
        inner.map(lambda one: (f"-{one[0]}" if one[0][0] != "-" else f"-({one[0]})", lambda row: not one[1](row)))
        | st.lists(inner, min_size=2, max_size=3).map(
            lambda some: (f"^({','.join(text for text, _ in some)})", lambda row: all(says(row) for _, says in some))
        )
        | st.lists(inner, min_size=2, max_size=3).map(
            lambda some: (f"|({','.join(text for text, _ in some)})", lambda row: any(says(row) for _, says in some))
        )
    ),
    max_leaves=6,
)


@MANY
@given(oracle_sentences, random.streams(6))
def test_oracle_a_sentence_accepts_the_events_it_is_true_of_once_each(said: Said, rows: list[Row]) -> None:
    text, says = said
    try:
        query = parse_wayeb(text)
    except PatternError as error:
        refused = error.message
    else:
        assert [match.positions for match in matches(query, rows)] == [(i,) for i, row in enumerate(rows) if says(row)]
        return
    assert "leaves open which types" in refused


@MANY
@given(st.text(alphabet="AEQLTGxv;+*!#@^|-()[]{}:,.\"'&~ \n015", max_size=40) | st.text(max_size=20))
def test_random_text_gives_a_query_or_a_clear_error(text: str) -> None:
    with suppress(CeriteError):  # anything else is a defect
        parse_wayeb(text)
