"""A stream that several threads read holds the matches of one run: the judge's, with the same ids and events.

It is cut into segments, or its partitions are divided among shards (`tests/faults/test_threads.py` has what fails).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import assume
from hypothesis import strategies as st

from cerite.engine.at_rest import segments, shards, threads
from cerite.engine.bind import Program
from cerite.engine.recycle import Recycler
from cerite.engine.results import event_buffer
from cerite.pattern import Consume, QuerySpec, Size
from tests import strategies as random
from tests.dressed import PLAIN
from tests.properties import absent
from tests.properties.agreement import (
    SEMANTICS,
    cases,
    deciding,
    engine_queries,
    judged,
    looked_at,
    picks,
    ready,
    runnable,
    same,
    unpicked,
)
from tests.properties.agreement import sorted_window as in_order
from tests.properties.arrivals import REGISTERS
from tests.telling import Share, often, telling

Rows = list[dict[str, Any]]
STREAMS = random.streams(9, random.full_rows | random.rows)
WINDOWS = st.sampled_from([Size.events(3), Size.events(5), Size(2, "milliseconds"), Size.of("at", 2), None])

SHORT = st.sampled_from([Size.events(2), Size.events(3), Size(1, "milliseconds"), Size.of("at", 1)])


@pytest.fixture(autouse=True, scope="module")
def _short_segments() -> Iterator[None]:
    with (
        patch.multiple(segments, SPAN=1, LOOK_BACK=1),
        patch.multiple(
            threads, SEGMENT=2, LONG_SEGMENT=2, WORTH_CUTTING=2, PIECE=3, UNKNOWN=2, FEWEST=1, READY=4
        ),  # and no cutting from four matches an event
    ):
        yield


@cases(often(360), engine_queries() | REGISTERS, STREAMS, SEMANTICS, WINDOWS, st.integers(1, 4))
def test_matches_are_those_of_one_run(
    share: Share, query: QuerySpec, rows: Rows, semantics: Any, window: Size | None, cut: int
) -> None:
    query = unpicked(query if window is None else replace(query, within=window, consume=Consume.NONE))
    query, rows = telling(query, rows, partial(looked_at, semantics=semantics))
    assume(runnable(query) and rows and in_order(query, rows))
    whole = PLAIN.table(rows)
    table = pa.Table.from_batches(whole.to_batches(cut))
    one = ready(query).run(table, time="at", semantics=semantics, threads=1)
    many = ready(query).run(table, time="at", semantics=semantics, threads=2)
    expected = judged(query, whole.to_pylist(), semantics)
    share.note(bool(expected) and segments.uncut(many.prepared.program) is None)
    actual = list(many)
    same(actual, expected, query, expected)
    assert [each.end for each in actual] == [each.end for each in one], "in the order of their ends"
    assert ready(query).run(table, time="at", semantics=semantics, threads=3).count() == one.count()
    assert _counted(many.to_arrow(events=True)) == _counted(one.to_arrow(events=True))


@cases(often(120), engine_queries() | REGISTERS, STREAMS, SEMANTICS, SHORT, st.lists(st.booleans(), min_size=12))
def test_a_run_goes_on_with_any_later_segment(
    share: Share, query: QuerySpec, rows: Rows, semantics: Any, window: Size, turns: list[bool]
) -> None:
    """However segments are dealt out to two threads, what a run still holds of an earlier one adds nothing."""
    query = unpicked(replace(query, within=window, consume=Consume.NONE))
    query, rows = telling(query, rows, partial(looked_at, semantics=semantics))
    assume(runnable(query) and rows and in_order(query, rows))
    table = PLAIN.table(rows)
    one = ready(query).run(table, time="at", semantics=semantics, threads=1)
    program = one.prepared.program
    assume(segments.uncut(program) is None)
    readers = [threads.ThreadedRun(program, 1) for _ in range(2)]
    names = program.schema.names
    cut = segments.segments(program, [batch.select(names) for batch in table.to_batches()], lambda: 2, 3)
    counts = [(turn, sum(filter(None, readers[turn]._counts(each)))) for turn, each in zip(turns, cut, strict=False)]
    expected = one.count()
    share.note(bool(expected) and len(counts) > 1)
    assert sum(count for _, count in counts) == expected


@cases(often(160), engine_queries(), STREAMS, STREAMS, SEMANTICS)
def test_what_was_learnt_of_one_stream_changes_no_count_of_another(
    share: Share, query: QuerySpec, rows: Rows, others: Rows, semantics: Any
) -> None:
    """Runs of one query leave their tables to the next one, whatever its stream."""
    query, rows = telling(unpicked(query), rows, partial(looked_at, semantics=semantics))
    assume(runnable(query) and all(each and in_order(query, each) for each in (rows, others)))
    once = ready(query)
    for each in (rows, others, rows):
        table = PLAIN.table(each)
        expected = judged(query, table.to_pylist(), semantics)
        result = once.run(table, time="at", semantics=semantics, threads=1)
        assert result.count() == len(expected)
    share.note(bool(expected) and bool(result.prepared.program.learnt))


KEYS = st.sampled_from([(), ("id",), ("name",), ("id", "name")])


@cases(
    often(360), engine_queries() | REGISTERS | absent.queries(), STREAMS, SEMANTICS, KEYS, st.integers(1, 4),
    st.booleans(),
)  # fmt: skip
def test_matches_in_shards_are_those_of_one_run(
    share: Share, query: QuerySpec, rows: Rows, semantics: Any, keys: tuple[str, ...], cut: int, recycled: bool
) -> None:
    """Whatever can be divided is, everything else is in one shard; numbers of partitions are used again."""
    query, rows = telling(replace(query, partition=keys), rows, partial(absent.judge, semantics=semantics))
    assume(runnable(query) and rows)
    table = pa.Table.from_batches(PLAIN.table(absent.fitting(query, rows)).to_batches(cut))
    one = ready(query).run(table, time="at", semantics=semantics, threads=1)
    program = one.prepared.program
    rows = table.to_pylist()
    expected = judged(query, rows, semantics)
    everything = judged(unpicked(query), rows, semantics) if picks(query) else expected
    with _in_shards(recycled) as counts:
        many = ready(query).run(table, time="at", semantics=semantics, threads=2)
        actual = list(many)
        same(actual, expected, query, everything, deciding(query, rows, semantics))
        assert [each.end for each in actual] == [each.end for each in one], "in the order of their ends"
        assert ready(query).run(table, time="at", semantics=semantics, threads=3).count() == one.count()
        events = many.to_arrow(events=True)
    assert events.num_rows == len(expected)
    if not picks(query):  # else no rule says which matches are reported
        assert _counted(events) == _counted(one.to_arrow(events=True))
    share.note(bool(expected) and (max(counts, default=1) > 1) == (shards.undivided(program, counting=True) is None))


@contextmanager
def _in_shards(recycled: bool) -> Iterator[list[int]]:
    """No stream is cut by time or too short for shards; the numbers of shards that streams were read in."""
    counts: list[int] = []

    def everything(program: Program, threads: int, *_: object, counting: bool) -> int:
        counts.append(1 if shards.undivided(program, counting=counting) else threads)
        return counts[-1]

    with (
        patch.object(threads, "uncut", lambda *_: "a test"),
        patch.object(shards, "shard_count", everything),
        patch.multiple(shards, PIECE=2, AHEAD=2),
        patch.object(event_buffer, "FEWEST", 1),
        patch.object(Recycler, "due", recycled),
    ):
        yield counts


def _counted(table: pa.Table) -> Counter[str]:
    return Counter(map(repr, table.to_pylist()))
