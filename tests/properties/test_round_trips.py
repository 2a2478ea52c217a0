"""Printing anything gives text that parses back to the same thing."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cerite.core.errors import CeriteError, PatternError
from cerite.language.ceql import parse_condition, parse_pattern, parse_query
from cerite.language.sremo import parse_sremo, sremo_text
from cerite.pattern import (
    Complement,
    Concat,
    Event,
    Having,
    Intersection,
    Iteration,
    Pattern,
    QuerySpec,
    SkipAny,
    SkipNext,
    Union,
    Window,
)
from cerite.pattern.printing import whole_text
from cerite.predicate.expression import Expression
from tests import strategies as random
from tests.aggregates import aggregate_patterns, wholes
from tests.telling import often

MANY = often(1000)
ODD = (*random.VARIABLES, *random.ODD_NAMES)


@MANY
@given(random.conditions(ODD))
def test_conditions(condition: Expression) -> None:
    assert parse_condition(str(condition)) == condition


@MANY
@given(random.patterns(ODD, names=ODD))
def test_patterns_in_ceql(pattern: Pattern) -> None:
    assert parse_pattern(str(pattern)) == pattern


@MANY
@given(random.queries(random.patterns(ODD, names=ODD)))
def test_queries(query: QuerySpec) -> None:
    assert parse_query(str(query)) == query


@often(300)
@given(random.queries(aggregate_patterns()))
def test_queries_with_aggregates(query: QuerySpec) -> None:
    assert parse_query(str(query)) == query


@MANY
@given(wholes(ODD))
def test_conditions_on_whole_patterns(condition: Expression) -> None:
    assert parse_condition(str(condition)) == condition
    written = f"A FILTER {whole_text(condition)}"
    assert parse_pattern(written) == Having(Event("A"), (condition,))


@MANY
@given(random.patterns(ODD, names=ODD))
def test_patterns_in_sremo(pattern: Pattern) -> None:
    """What SREMO can write round-trips too; CEL's own constructs are refused, not garbled."""
    try:
        written = sremo_text(pattern)
    except PatternError as error:
        refused = str(error)
    else:
        assert parse_sremo(written) == pattern
        return
    assert "no spelling in SREMO" in refused


SREMO_LIKE = st.recursive(
    random.events(ODD, ODD).filter(lambda event: "AS" not in str(event)),
    lambda inner: (
        random.many(inner).map(Union)
        | random.many(inner).map(Concat)
        | random.many(inner, most=2).map(Intersection)
        | inner.map(Complement)
        | inner.map(lambda each: Iteration(each, 0, None, True))
        | st.builds(Window, inner, random.sizes)
        | random.many(inner, 1).map(SkipAny)
        | random.many(inner, 1).map(SkipNext)
    ),
    max_leaves=6,
)


@MANY
@given(SREMO_LIKE)
def test_sremo(pattern: Pattern) -> None:
    assert parse_sremo(sremo_text(pattern)) == pattern


@MANY
@given(st.text(alphabet="ABxy[](){};:+*?.,'`\"<>=-!&|^#@πε∅⟲ \n0123ASORNTFILEWH", max_size=40))
def test_random_text_gives_a_pattern_or_a_clear_error(text: str) -> None:
    for parse in (parse_pattern, parse_sremo, parse_query, parse_condition):
        with suppress(CeriteError):  # anything else is a defect
            parse(text)


@pytest.mark.nightly
@settings(often(1), max_examples=100_000)
@given(random.queries(random.patterns(ODD, names=ODD, size=12)))
def test_queries_at_length(query: QuerySpec) -> None:
    assert parse_query(str(query)) == query
