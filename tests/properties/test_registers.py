"""Conditions across events: the engine finds what the judge finds on random patterns that read other variables."""

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
from tests.dressed import Dress, dresses
from tests.properties.agreement import AT_LENGTH, SEMANTICS, Rows, agree, cases, planned, stream_agrees
from tests.telling import Share, often

MANY = often(300)
SOME = often(150)
STREAMS = random.streams(9, random.full_rows | random.full_rows | random.rows)
QUERIES = random.queries(random.register_patterns(3))
PLAIN = random.register_patterns(3).map(lambda pattern: QuerySpec(pattern, within=Size.events(8)))


def reads_others(query: QuerySpec) -> bool:
    plan = planned(query)
    return plan is not None and plan.has_registers


@cases(MANY, PLAIN, STREAMS, SEMANTICS, dresses)
def test_differential_patterns(share: Share, query: QuerySpec, rows: Rows, semantics: Any, dress: Dress) -> None:
    assume(reads_others(query))
    agree(query, rows, semantics, dress, share)


@cases(MANY, QUERIES, STREAMS, SEMANTICS, dresses)
def test_differential_queries(share: Share, query: QuerySpec, rows: Rows, semantics: Any, dress: Dress) -> None:
    """With every clause: windows by time, attribute and count, partitions, strategies, consumption, limits."""
    query = query if query.within is not None else replace(query, within=Size.events(7))
    assume(reads_others(query))
    agree(query, rows, semantics, dress, share)


@cases(SOME, PLAIN, STREAMS, st.sampled_from(list(Strategy)), dresses)
def test_differential_strategies(share: Share, query: QuerySpec, rows: Rows, strategy: Strategy, dress: Dress) -> None:
    query = replace(query, strategy=strategy)
    assume(reads_others(query))
    agree(query, rows, "valuations", dress, share)


@cases(SOME, QUERIES, STREAMS, SEMANTICS, st.randoms(use_true_random=True), dresses)
def test_differential_stream(
    share: Share, query: QuerySpec, rows: Rows, semantics: Any, rng: Any, dress: Dress
) -> None:
    """Any batch boundaries, a snapshot and restore at every one of them."""
    query = query if query.within is not None else replace(query, within=Size.events(7))
    assume(reads_others(query))
    stream_agrees(query, rows, semantics, rng, share, dress)


@cases(SOME, QUERIES, STREAMS, SEMANTICS, dresses)
def test_differential_with_little_room(
    share: Share, query: QuerySpec, rows: Rows, semantics: Any, dress: Dress
) -> None:
    """Everything has to grow and is rebuilt again and again."""
    query = query if query.within is not None else replace(query, within=Size.events(7))
    assume(reads_others(query))
    with patch.object(base, "FEWEST_SETS", 2), patch.object(base, "FEWEST_ROWS", 2):
        agree(query, rows, semantics, dress, share)


@pytest.mark.nightly
@cases(AT_LENGTH, QUERIES | PLAIN, STREAMS, SEMANTICS, dresses, parts=25)
def test_differential_at_length(share: Share, query: QuerySpec, rows: Rows, semantics: Any, dress: Dress) -> None:
    query = query if query.within is not None else replace(query, within=Size.events(7))
    assume(reads_others(query))
    agree(query, rows, semantics, dress, share)
