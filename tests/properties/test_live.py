"""Live streams find what data at rest finds: any arrival order, cutting, watermark, snapshots and restores.

`Plain` says which events are read, and in which order; the judge's matches of these are the matches of the stream.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cerite.core.match import Match
from cerite.data.columns import canonical_schema
from cerite.engine import recycle
from cerite.engine.bind import Program, bind
from cerite.engine.events import batches, ids
from cerite.engine.events.rows import Columns
from cerite.engine.live.live_run import LiveRun, Released
from cerite.engine.live.sorter import Ordering
from cerite.engine.plan import plan
from cerite.engine.results import event_buffer
from cerite.pattern import QuerySpec, Size
from tests import strategies as random
from tests.properties.agreement import (
    SCHEMA,
    SEMANTICS,
    Rows,
    cases,
    engine_queries,
    judged,
    picks,
    planned,
    ready,
    runnable,
    same,
    sorted_window,
    unpicked,
)
from tests.properties.arrivals import RANDOM, REGISTERS, Plain, arriving
from tests.telling import Share, often, telling

SERIAL = pa.schema([*canonical_schema(SCHEMA), ("n", pa.int64())])  # `n` is carried along: the program does not have it
STREAMS = random.streams(9, random.full_rows | random.full_rows | random.rows)
QUERIES = engine_queries() | REGISTERS
DELAYS = (0, 1, 2, 5, 1000, 10_000)
WAYS = 16  # in which the events of one stream arrive
Answers = tuple[list[Match], list[Match]]


@dataclass
class Live:
    """A live run, restored now and then, and its matches."""

    query: QuerySpec
    semantics: Any
    ordering: Ordering
    rng: Any
    matches: list[Match] = field(default_factory=list)
    events: list[tuple[Match, list[int]]] = field(default_factory=list)  # the serial numbers of each match's events
    late: Rows = field(default_factory=list)

    def __post_init__(self) -> None:
        self.program = bound(self.query, self.semantics)
        self.run = self.fresh()

    def fresh(self) -> LiveRun:
        return LiveRun(self.program, self.ordering)

    def take(self, released: Released) -> None:
        labels = self.program.plan.automaton.labels
        for chunk in released.chunks:
            placed, rows, *_ = released.with_rows(chunk)
            serial = rows.column("n").to_numpy()
            for k in range(len(chunk)):
                begin, stop = chunk.offsets[k], chunk.offsets[k + 1]
                positions = chunk.positions[begin:stop].tolist()
                marks = [labels[mark] for mark in chunk.labels[begin:stop]]
                match = Match.of(
                    int(chunk.starts[k]), int(chunk.ends[k]),
                    [(name, at) for names, at in zip(marks, positions, strict=True) for name in names],
                )  # fmt: skip
                match = replace(match, positions=tuple(positions), bindings=match.bindings)
                self.matches.append(match if self.semantics == "valuations" else match.without_bindings())
                here = placed.positions[begin:stop]
                self.events.append((match, serial[[placed.starts[k], *here, placed.ends[k]]].tolist()))
        if released.late is not None:
            self.late += released.late.to_pylist()
        if self.rng.random() < 0.3:
            again = self.fresh()
            saved = self.run.snapshot()
            again.restore(saved)
            assert self.rng.random() < 0.8 or self.run.snapshot() == saved
            assert again.metrics == self.run.metrics
            self.run = again


@lru_cache(maxsize=4)
def bound(query: QuerySpec, semantics: Any) -> Program:
    """The program of a query: events arrive in many ways, but it is planned once."""
    return bind(ready(query).plan(semantics), canonical_schema(SCHEMA), Columns("type", "at"))


@contextmanager
def little_room() -> Iterator[None]:
    """Everything that is cleared up or merged now and then is so always."""
    with ExitStack() as stack:
        for module in (event_buffer, ids, recycle):
            stack.enter_context(patch.object(module, "FEWEST", 0))
        for name, value in (("MANY", 2), ("FEW", 2), ("SPARE", 0)):
            stack.enter_context(patch.object(batches, name, value))
        yield


def batch(rows: Rows) -> pa.RecordBatch:
    table = pa.Table.from_pylist(rows, pa.schema([*SCHEMA, ("n", pa.int64())])).cast(SERIAL).combine_chunks()
    return table.to_batches()[0] if rows else pa.RecordBatch.from_pylist([], SERIAL)


def live_agrees(query: QuerySpec, rows: Rows, semantics: Any, rng: Any, share: Share | None = None) -> None:
    """One query and stream, arriving in several ways; where all is read in one order, the judge runs once."""
    rows = [{**row, "n": n} for n, row in enumerate(rows)]
    answers: dict[tuple[Any, ...], Answers] = {}
    for _ in range(WAYS):
        matched = arrives(query, rows, semantics, rng, answers)
        if share is not None and matched is not None:
            share.note(matched)


def arrives(query: QuerySpec, rows: Rows, semantics: Any, rng: Any, answers: dict[Any, Answers]) -> bool | None:
    """One arrival of the events, cut somehow; whether there was a match, None if the query cannot be run on them."""
    delay = rng.choice(DELAYS)
    tied, unique, beyond = rng.random() < 0.5, rng.random() < 0.3, rng.random() < 0.4
    plain = Plain(delay, tied, unique)
    arrival = arriving(rows, delay, rng, beyond=beyond)
    if unique:  # a source that delivers twice
        arrival = [each for row in arrival for each in [row] * rng.choice([1, 1, 2])]
    pieces, steps = list(arrival), []
    while pieces:
        size = rng.randint(0, 4)
        steps.append(pieces[:size])
        pieces = pieces[size:]
    for some in steps:
        plain.push(some)
    plain.close()
    if not sorted_window(query, plain.read):
        query = replace(query, within=Size.events(4))
    if not runnable(query):
        return None
    ordering = Ordering("at", ("n",) if tied else (), Fraction(delay), ("n",) if unique else ())
    live = Live(query, semantics, ordering, rng)
    for some in steps:
        live.take(live.run.push(batch(some)))
    live.take(live.run.close())
    serial = [row["n"] for row in plain.read]
    expected, everything = answer(query, plain.read, semantics, answers)
    same(live.matches, expected, query, everything)
    for match, numbers in live.events:
        assert numbers == [serial[at] for at in (match.start, *match.positions, match.end)]
    reported = [(row["n"], row["at"], row["late_by"], row["reason"]) for row in live.late]
    assert reported == [(row["n"], row["at"], row["late_by"], "late") for row in plain.late]
    metrics = live.run.metrics
    assert (metrics.events, metrics.read, metrics.late, metrics.duplicates) == (
        len(arrival), len(plain.read), len(plain.late), plain.twice,
    )  # fmt: skip
    assert metrics.pending == 0
    return bool(expected)


def answer(query: QuerySpec, rows: Rows, semantics: Any, answers: dict[Any, Answers]) -> Answers:
    """What the judge says of these events, and what it says without LIMIT and SUPPRESS."""
    key = (query.within, tuple(row["n"] for row in rows))
    if key not in answers:
        stream = [{name: value for name, value in row.items() if name != "n"} for row in rows]
        expected = judged(query, stream, semantics)
        answers[key] = expected, judged(unpicked(query), stream, semantics) if picks(query) else expected
    return answers[key]


@cases(often(80), engine_queries(), random.streams(9), SEMANTICS, RANDOM)
def test_live_is_batch(share: Share, query: QuerySpec, rows: Rows, semantics: Any, rng: Any) -> None:
    query, rows = telling(query, rows, partial(_looked_at, semantics=semantics))
    live_agrees(query, rows, semantics, rng, share)


@cases(often(50), REGISTERS, STREAMS, SEMANTICS, RANDOM)
def test_live_with_registers_is_batch(share: Share, query: QuerySpec, rows: Rows, semantics: Any, rng: Any) -> None:
    plan = planned(query)
    assume(plan is not None and plan.has_registers)
    query, rows = telling(query, rows, partial(_looked_at, semantics=semantics))
    live_agrees(query, rows, semantics, rng, share)


@often(30)
@given(QUERIES, STREAMS, SEMANTICS, RANDOM)
def test_live_with_little_room_is_batch(query: QuerySpec, rows: Rows, semantics: Any, rng: Any) -> None:
    with little_room():
        live_agrees(query, rows, semantics, rng)


def _looked_at(query: QuerySpec, rows: Rows, semantics: Any) -> list[Match] | None:
    fits = query if sorted_window(query, rows) else replace(query, within=Size.events(4))
    return judged(fits, rows, semantics) if runnable(fits) else None


# ------------------------------------------------------------ the sorter alone
TIMES = {
    "int64": pa.int64(), "uint64": pa.uint64(), "float64": pa.float64(), "date": pa.date32(),
    "us": pa.timestamp("us"), "ns with a zone": pa.timestamp("ns", "UTC"), "decimal": pa.decimal128(9, 2),
}  # fmt: skip


@pytest.mark.parametrize("kind", TIMES)
@often(30)
@given(st.lists(st.integers(0, 40), max_size=60), st.integers(0, 10), st.randoms(use_true_random=True))
def test_events_come_out_in_order_whatever_holds_their_times(kind: str, times: list[int], delay: int, rng: Any) -> None:
    """Every event is read once in order, or is late; the watermark is exact in every type of time."""
    arrow = TIMES[kind]
    unit = 86_400_000 if kind == "date" else 100 if kind == "decimal" else 1
    program = bind(plan(QuerySpec(_any())), pa.schema({"at": arrow, "n": pa.int64()}), Columns(None, "at"))
    run = LiveRun(program, Ordering("at", (), Fraction(delay * unit)))
    plain = Plain(delay, False, False)
    order: list[int] = []
    at = 0
    while at < len(times):
        size = rng.randint(1, 7)
        some = [{"at": time, "n": n} for n, time in enumerate(times[at : at + size], at)]
        at += size
        plain.push(some)
        instants = pa.array([_instant(row["at"], arrow) for row in some], arrow)
        rows = pa.record_batch({"at": instants, "n": pa.array([row["n"] for row in some])})
        order += _read(run.push(rows))
        assert run.clock is not None
        metrics = run.metrics
        if kind != "float64":  # whose differences are rounded: the watermark is the least float as near as the delay
            assert metrics.watermark == run.clock.key(_instant(plain.watermark, arrow))
        assert (metrics.pending, metrics.late) == (len(plain.waiting), len(plain.late))
    order += _read(run.close())
    plain.close()
    assert order == [row["n"] for row in plain.read]


def _any() -> Any:
    from cerite.pattern import Event

    return Event(None)


def _read(released: Released) -> list[int]:
    matches: list[int] = []
    for chunk in released.chunks:
        placed, rows, *_ = released.with_rows(chunk)
        matches += rows.column("n").to_numpy()[placed.positions].tolist()
    return matches


def _instant(time: int | None, kind: pa.DataType) -> Any:
    """A time as Python has it in a column of this type."""
    if pa.types.is_decimal(kind):
        return Decimal(time or 0)
    raw = pa.scalar(time, pa.int32() if pa.types.is_date(kind) else pa.int64())
    shift = 100 if pa.types.is_uint64(kind) else 0  # which has no time before 0
    return raw.cast(kind).as_py() if pa.types.is_temporal(kind) else raw.as_py() + shift


def test_many_small_batches_are_merged_a_logarithm_of_times(monkeypatch: pytest.MonkeyPatch) -> None:
    program = bind(plan(QuerySpec(_any())), pa.schema({"at": pa.int64(), "n": pa.int64()}), Columns(None, "at"))
    run = LiveRun(program, Ordering("at", (), Fraction(10**9)))
    moved = 0
    whole = batches.joined

    def counting(some: Any) -> pa.RecordBatch:
        nonlocal moved
        moved += sum(each.num_rows for each in some)
        return whole(some)

    monkeypatch.setattr("cerite.engine.live.sorter.joined", counting)
    rng = np.random.default_rng(7)
    for time in rng.integers(0, 10**6, 3000).tolist():
        run.push(pa.record_batch({"at": [time], "n": [0]}))
    assert run.metrics.pending == 3000
    assert moved < 3000 * 8
