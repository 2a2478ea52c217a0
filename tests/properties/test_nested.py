"""Stateful patterns inside stateful ones: the engine finds what the judge finds, in every case drawn here."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import assume
from hypothesis import strategies as st

from cerite.engine.registers import base
from cerite.pattern import QuerySpec, Size
from tests import strategies as random
from tests.dressed import Dress, dresses
from tests.properties.agreement import AT_LENGTH, SEMANTICS, Rows, agree, cases, stream_agrees
from tests.properties.nested import is_nested, nested_patterns
from tests.telling import Share, often

MANY = often(240)
SOME = often(120)
STREAMS = random.streams(10, random.full_rows)
PATTERNS = nested_patterns().map(lambda pattern: QuerySpec(pattern, within=Size.events(9)))
QUERIES = random.queries(nested_patterns()).map(
    lambda query: query if query.within is not None else replace(query, within=Size.events(8))
)


@cases(MANY, PATTERNS, STREAMS, SEMANTICS, dresses)
def test_differential_patterns(share: Share, query: QuerySpec, rows: Rows, semantics: Any, dress: Dress) -> None:
    agree(query, rows, semantics, dress, share, like=is_nested)


@cases(MANY, QUERIES, STREAMS, SEMANTICS, dresses)
def test_differential_queries(share: Share, query: QuerySpec, rows: Rows, semantics: Any, dress: Dress) -> None:
    """With every clause: windows by time, attribute and count, partitions, strategies, consumption, limits."""
    assume(is_nested(query))
    agree(query, rows, semantics, dress, share, like=is_nested)


@cases(SOME, QUERIES, STREAMS, SEMANTICS, st.randoms(use_true_random=True), dresses)
def test_differential_stream(
    share: Share, query: QuerySpec, rows: Rows, semantics: Any, rng: Any, dress: Dress
) -> None:
    """Any batch boundaries, a snapshot and restore at every one of them."""
    assume(is_nested(query))
    stream_agrees(query, rows, semantics, rng, share, dress, like=is_nested)


@cases(SOME, QUERIES, STREAMS, SEMANTICS)
def test_differential_with_little_room(share: Share, query: QuerySpec, rows: Rows, semantics: Any) -> None:
    """Everything has to grow and is rebuilt again and again, at every level."""
    assume(is_nested(query))
    with patch.object(base, "FEWEST_SETS", 2), patch.object(base, "FEWEST_ROWS", 2):
        agree(query, rows, semantics, share=share, like=is_nested)


@pytest.mark.nightly
@cases(AT_LENGTH, PATTERNS | QUERIES, STREAMS, SEMANTICS, dresses, parts=4)
def test_differential_at_length(share: Share, query: QuerySpec, rows: Rows, semantics: Any, dress: Dress) -> None:
    assume(is_nested(query))
    agree(query, rows, semantics, dress, share, like=is_nested)
