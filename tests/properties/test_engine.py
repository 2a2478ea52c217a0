"""The local engine finds what the judge finds: differential tests on random patterns, streams and clauses."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cerite.core.errors import PatternError
from cerite.pattern import Concat, Event, Pattern, QuerySpec, Size, Strategy
from tests import strategies as random
from tests.dressed import PLAIN, Dress, dresses
from tests.properties.agreement import (
    AT_LENGTH,
    SEMANTICS,
    Rows,
    agree,
    cases,
    engine_queries,
    ready,
    runnable,
    stream_agrees,
)
from tests.telling import Share, often

# what is passed over before a match starts may lack the window's attribute
PASSED_OVER = QuerySpec(Concat((Event(None, None, False), Event("A"))), within=Size.of("price", 0.5))


@cases(often(500), engine_queries(), random.streams(8), SEMANTICS, dresses)
def test_differential_run(share: Share, query: QuerySpec, rows: Rows, semantics: Any, dress: Dress) -> None:
    agree(query, rows, semantics, dress, share)


@settings(max_examples=1)
@given(st.just([{"type": "A", "at": 0}, {"type": "A", "at": 0, "price": 0}]))
def test_what_is_passed_over_may_lack_the_attribute_of_the_window(rows: Rows) -> None:
    agree(PASSED_OVER, rows, "valuations")


@cases(often(250), engine_queries(), random.streams(8), SEMANTICS, st.randoms(use_true_random=True), dresses)
def test_differential_stream(
    share: Share, query: QuerySpec, rows: Rows, semantics: Any, rng: Any, dress: Dress
) -> None:
    """Any batch boundaries, a snapshot and restore at every one of them."""
    stream_agrees(query, rows, semantics, rng, share, dress)


@cases(often(200), random.regular_patterns(size=4), random.streams(10), st.sampled_from(list(Strategy)), dresses)
def test_differential_strategies(share: Share, pattern: Pattern, rows: Rows, strategy: Strategy, dress: Dress) -> None:
    agree(QuerySpec(pattern, strategy=strategy), rows, "valuations", dress, share)


@cases(often(200), random.queries(random.checked_patterns()), random.streams(4), least=0.05)
def test_what_the_engine_does_not_run_is_refused_not_wrong(share: Share, query: QuerySpec, rows: Rows) -> None:
    """By the plan alone, before an event is read, and with advice."""
    if runnable(query):
        agree(query, rows, "valuations", share=share)
    else:
        with pytest.raises(PatternError) as refusal:
            ready(query).run(PLAIN.table(rows), time="at")
        assert refusal.value.hint


@pytest.mark.nightly
@cases(AT_LENGTH, engine_queries(), random.streams(9), SEMANTICS, dresses, parts=25)
def test_differential_run_at_length(share: Share, query: QuerySpec, rows: Rows, semantics: Any, dress: Dress) -> None:
    agree(query, rows, semantics, dress, share)
