"""NOT at the ends of windowed patterns: the engine decides what the judge decides, on random queries and streams.

Every case here contains an absence. `Plain` queries are cheap ones of a few events; the others have every clause.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import assume
from hypothesis import strategies as st

from cerite.api.stream import EventStream
from cerite.core.errors import StreamError
from cerite.core.match import Match
from cerite.data.columns import canonical_schema
from cerite.engine import recycle
from cerite.engine.bind import bind
from cerite.engine.events.rows import Columns
from cerite.engine.registers import base
from cerite.engine.tecs import finder, nodes
from cerite.pattern import QuerySpec
from cerite.pattern.absences import ends_in_absence
from tests import strategies as random
from tests.dressed import PLAIN, Dress, dresses
from tests.properties.absent import PLAIN_QUERIES, ending_parts, ends_in_window, fitting, judge, queries, windowed
from tests.properties.agreement import (
    AT_LENGTH,
    SEMANTICS,
    Rows,
    cases,
    deciding,
    judged,
    picks,
    ready,
    runnable,
    same,
    unpicked,
)
from tests.properties.amounts import ABSENCES
from tests.telling import Share, telling

STREAMS = random.streams(9, random.full_rows | random.full_rows | random.rows)


def drawn(query: QuerySpec, rows: Rows, semantics: Any, dress: Dress) -> tuple[QuerySpec, Any, Rows]:
    query, rows = telling(query, rows, partial(judge, semantics=semantics))
    assume(runnable(query))
    table = dress.table(fitting(query, rows))
    try:
        bind(ready(query).plan(semantics), canonical_schema(table.schema), Columns("type", "at"))
    except StreamError as error:  # windows of several lengths over times that are floats
        if "several lengths" not in str(error):
            raise
        assume(False)
    return query, table, table.to_pylist()


def in_order(query: QuerySpec, actual: list[Match], rows: Rows) -> None:
    """Matches come in the order in which their windows end."""
    window = ready(query).plan().window
    if window is not None and window.is_time and ends_in_absence(query.where) and ends_in_window(query):
        times = [rows[each.start]["at"] for each in actual]
        assert times == sorted(times)


def agree(share: Share, query: QuerySpec, rows: Rows, semantics: Any, dress: Dress = PLAIN) -> None:
    query, table, rows = drawn(query, rows, semantics, dress)
    expected = judged(query, rows, semantics)
    everything = judged(unpicked(query), rows, semantics) if picks(query) else expected
    result = ready(query).run(table, time="at", semantics=semantics)
    actual = list(result)
    same(actual, expected, query, everything, deciding(query, rows, semantics))
    in_order(query, actual, rows)
    assert result.count() == ready(query).run(table, time="at", semantics=semantics).count() == len(expected)
    assert result.suppressed() == (len(everything) - len(expected) if query.suppress is not None else 0)
    share.note(bool(expected))


@cases(ABSENCES["patterns"], PLAIN_QUERIES, STREAMS, SEMANTICS)
def test_differential_patterns(share: Share, query: QuerySpec, rows: Rows, semantics: Any) -> None:
    agree(share, query, rows, semantics)


@cases(ABSENCES["parts"], ending_parts().map(windowed), STREAMS, SEMANTICS)
def test_differential_parts(share: Share, query: QuerySpec, rows: Rows, semantics: Any) -> None:
    """Parts that are decided by windows of their own."""
    agree(share, query, rows, semantics)


@cases(ABSENCES["queries"], queries(), STREAMS, SEMANTICS, dresses)
def test_differential_queries(share: Share, query: QuerySpec, rows: Rows, semantics: Any, dress: Dress) -> None:
    """With every clause: partitions, projection, consumption, limits; strategies where something is absent before."""
    agree(share, query, rows, semantics, dress)


@cases(ABSENCES["little room"], queries(), STREAMS, SEMANTICS)
def test_differential_with_little_room(share: Share, query: QuerySpec, rows: Rows, semantics: Any) -> None:
    """Everything has to grow and is rebuilt again and again."""
    with ExitStack() as stack:
        for module, name, value in (
            (base, "FEWEST_SETS", 2), (base, "FEWEST_ROWS", 2), (finder, "FEWEST", 8), (nodes, "FEWEST_CELLS", 2),
        ):  # fmt: skip
            stack.enter_context(patch.object(module, name, value))
        agree(share, query, rows, semantics)


def stream_agrees(share: Share, query: QuerySpec, rows: Rows, semantics: Any, rng: Any) -> None:
    query, table, rows = drawn(query, rows, semantics, PLAIN)
    expected = judged(query, rows, semantics)
    program = bind(ready(query).plan(semantics), canonical_schema(table.schema), Columns("type", "at"))
    counting = rng.random() < 0.5
    stream = EventStream(program, counting=counting)
    actual: list[Match] = []
    counted, at = 0, 0
    with patch.object(recycle, "FEWEST", 0):
        while at <= table.num_rows:
            size = rng.randint(0, 3)
            steps = [stream.push(table.slice(at, size))]
            at += max(size, 1) if at == table.num_rows else size
            if at < table.num_rows and rng.random() < 0.5:
                steps.append(stream.advance(table["at"][at].as_py()))
            if at > table.num_rows:
                steps.append(stream.close())
            for step in steps:
                some = list(step)
                assert step.count() == len(some)
                actual, counted = actual + some, counted + len(some)
            if rng.random() < 0.7 and at <= table.num_rows:
                again = EventStream(program, counting=counting)
                again.restore(stream.snapshot())
                stream = again
    same(actual, expected, query, judged(unpicked(query), rows, semantics), deciding(query, rows, semantics))
    in_order(query, actual, rows)
    share.note(bool(expected))


@cases(ABSENCES["stream"], queries(), STREAMS, SEMANTICS, st.randoms(use_true_random=True))
def test_differential_stream(share: Share, query: QuerySpec, rows: Rows, semantics: Any, rng: Any) -> None:
    """Any batch boundaries, a snapshot and restore at every one of them, time that passes in between, and an end."""
    stream_agrees(share, query, rows, semantics, rng)


@pytest.mark.nightly
@cases(AT_LENGTH, queries(), STREAMS, SEMANTICS, dresses, parts=10)
def test_differential_at_length(share: Share, query: QuerySpec, rows: Rows, semantics: Any, dress: Dress) -> None:
    agree(share, query, rows, semantics, dress)
