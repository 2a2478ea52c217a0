"""Conditions across events: the engine finds what the judge finds on random patterns that read other variables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from cerite.engine.plan import plan
from cerite.engine.registers import base
from cerite.pattern import Query, Size, Strategy
from tests import strategies as random
from tests.properties.test_engine import SEMANTICS, Rows, agree, runnable, stream_agrees

MANY = settings(max_examples=2500, deadline=None, suppress_health_check=list(HealthCheck))
SOME = settings(MANY, max_examples=600)
STREAMS = random.streams(9, random.full_rows | random.full_rows | random.rows)
QUERIES = random.queries(random.register_patterns(3))
PLAIN = random.register_patterns(3).map(lambda pattern: Query(pattern, within=Size.events(8)))


def reads_others(query: Query) -> bool:
    return runnable(query) and plan(query).has_registers


@MANY
@given(PLAIN, STREAMS, SEMANTICS)
def test_differential_patterns(query: Query, rows: Rows, semantics: Any) -> None:
    assume(reads_others(query))
    agree(query, rows, semantics)


@MANY
@given(QUERIES, STREAMS, SEMANTICS)
def test_differential_queries(query: Query, rows: Rows, semantics: Any) -> None:
    """With every clause: windows by time, attribute and count, partitions, strategies, consumption, limits."""
    query = query if query.within is not None else replace(query, within=Size.events(7))
    assume(reads_others(query))
    agree(query, rows, semantics)


@SOME
@given(PLAIN, STREAMS, st.sampled_from(list(Strategy)))
def test_differential_strategies(query: Query, rows: Rows, strategy: Strategy) -> None:
    query = replace(query, strategy=strategy)
    assume(reads_others(query))
    agree(query, rows, "valuations")


@SOME
@given(QUERIES, STREAMS, SEMANTICS, st.randoms(use_true_random=False))
def test_differential_stream(query: Query, rows: Rows, semantics: Any, rng: Any) -> None:
    """Any batch boundaries, a snapshot and restore at every one of them."""
    query = query if query.within is not None else replace(query, within=Size.events(7))
    assume(reads_others(query))
    stream_agrees(query, rows, semantics, rng)


@SOME
@given(QUERIES, STREAMS, SEMANTICS)
def test_differential_with_little_room(query: Query, rows: Rows, semantics: Any) -> None:
    """Everything has to grow and is rebuilt again and again."""
    query = query if query.within is not None else replace(query, within=Size.events(7))
    assume(reads_others(query))
    with patch.object(base, "FEWEST_SETS", 2), patch.object(base, "FEWEST_ROWS", 2):
        agree(query, rows, semantics)


@pytest.mark.nightly
@settings(MANY, max_examples=200_000)
@given(QUERIES | PLAIN, STREAMS, SEMANTICS)
def test_differential_at_length(query: Query, rows: Rows, semantics: Any) -> None:
    query = query if query.within is not None else replace(query, within=Size.events(7))
    assume(reads_others(query))
    agree(query, rows, semantics)
