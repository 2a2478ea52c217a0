"""Aggregates in conditions: the engine finds what the judge finds, however the events come and whatever holds them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import assume
from hypothesis import strategies as st

from cerite.engine.registers import base
from cerite.pattern import QuerySpec, Size, Strategy
from tests import strategies as random
from tests import telling
from tests.aggregates import aggregate_patterns, has_aggregate
from tests.dressed import Dress, dresses
from tests.properties.agreement import AT_LENGTH, SEMANTICS, Rows, agree, cases, stream_agrees
from tests.properties.amounts import AGGREGATES
from tests.telling import Share

LONGEST = 8 if telling.at_night else 7  # events: with every one the judge takes twice as long
STREAMS = random.streams(LONGEST, random.full_rows | random.full_rows | random.rows)
QUERIES = random.queries(aggregate_patterns())
PLAIN = aggregate_patterns().map(lambda pattern: QuerySpec(pattern, within=Size.events(7)))


def windowed(query: QuerySpec) -> QuerySpec:
    return query if query.within is not None else replace(query, within=Size.events(6))


@cases(AGGREGATES["patterns"], PLAIN, STREAMS, SEMANTICS, dresses)
def test_differential_patterns(share: Share, query: QuerySpec, rows: Rows, semantics: Any, dress: Dress) -> None:
    agree(query, rows, semantics, dress, share)


@cases(AGGREGATES["queries"], QUERIES, STREAMS, SEMANTICS, dresses)
def test_differential_queries(share: Share, query: QuerySpec, rows: Rows, semantics: Any, dress: Dress) -> None:
    """With every clause: windows by time, attribute and count, partitions, strategies, consumption, limits."""
    agree(windowed(query), rows, semantics, dress, share)


@cases(AGGREGATES["strategies"], PLAIN, STREAMS, st.sampled_from(list(Strategy)), dresses)
def test_differential_strategies(share: Share, query: QuerySpec, rows: Rows, strategy: Strategy, dress: Dress) -> None:
    agree(replace(query, strategy=strategy), rows, "valuations", dress, share)


@cases(AGGREGATES["stream"], QUERIES, STREAMS, SEMANTICS, st.randoms(use_true_random=True), dresses)
def test_differential_stream(
    share: Share, query: QuerySpec, rows: Rows, semantics: Any, rng: Any, dress: Dress
) -> None:
    """Any batch boundaries, a snapshot and restore at every one of them."""
    stream_agrees(windowed(query), rows, semantics, rng, share, dress)


@cases(AGGREGATES["little room"], QUERIES, STREAMS, SEMANTICS, dresses)
def test_differential_with_little_room(
    share: Share, query: QuerySpec, rows: Rows, semantics: Any, dress: Dress
) -> None:
    """Everything has to grow and is rebuilt again and again."""
    with patch.object(base, "FEWEST_SETS", 2), patch.object(base, "FEWEST_ROWS", 2):
        agree(windowed(query), rows, semantics, dress, share)


@pytest.mark.nightly
@cases(AT_LENGTH, QUERIES | PLAIN, STREAMS, SEMANTICS, dresses, parts=10)
def test_differential_at_length(share: Share, query: QuerySpec, rows: Rows, semantics: Any, dress: Dress) -> None:
    query = windowed(query)
    assume(has_aggregate(query))
    agree(query, rows, semantics, dress, share)
