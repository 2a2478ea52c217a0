"""The shards of a live stream on Spark find what the judge finds, whatever Spark does around them.

Spark is played here, without Java: rows are packed in tasks, exchanged in any order, given to the processor under
Spark's watermark, which is one batch behind; timers fire; tasks fail and run again; the state is all that stays.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import groupby
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import Row

from cerite.core.errors import SnapshotError, StreamError
from cerite.core.match import Match
from cerite.data.columns import canonical_schema
from cerite.engine.results.shape import Shown
from cerite.pattern import Event, Named, QuerySpec, Sequence, Size
from cerite.pattern.query import Consume
from cerite.predicate.columns.bits import ConditionBits
from cerite.spark.driver.choose import choose_live
from cerite.spark.driver.placement import placement
from cerite.spark.worker.job import BITS, WORD, unary_tests
from cerite.spark.worker.live_job import FINAL, LATE, MATCH, PLACEMENT, SHARD, SOURCE, Chunking, LiveJob, ShardColumns
from cerite.spark.worker.packing import packer, read
from cerite.spark.worker.shard import ShardProcessor
from tests import strategies as random
from tests.properties.absent import fitting, judge, queries
from tests.properties.agreement import (
    AT_LENGTH,
    SCHEMA,
    SEMANTICS,
    Rows,
    cases,
    deciding,
    engine_queries,
    judged,
    picks,
    ready,
    runnable,
    same,
    sorted_window,
    unpicked,
)
from tests.properties.arrivals import RANDOM, REGISTERS, Plain, arriving
from tests.telling import Share, often, telling

NAMES = (*SCHEMA.names, "n")
ARROW = pa.schema([*SCHEMA, ("n", pa.int64())])
DELAYS = (0, 2, 5, 1000)


class Handle:
    """What Spark gives to a processor: the state and the timers of one key at a time."""

    def __init__(self, states: dict[int, str], timers: dict[int, set[int]]) -> None:
        self.states, self.timers, self.key = states, timers, 0

    def getValueState(self, name: str, schema: str) -> Handle:  # noqa: N802
        return self

    def get(self) -> tuple[str] | None:
        state = self.states.get(self.key)
        return None if state is None else (state,)

    def update(self, value: tuple[str]) -> None:
        (self.states[self.key],) = value

    def registerTimer(self, instant: int) -> None:  # noqa: N802
        self.timers.setdefault(self.key, set()).add(instant)


@dataclass(frozen=True)
class Clock:
    """Spark's watermark in a batch."""

    milliseconds: int

    def getCurrentWatermarkInMs(self) -> int:  # noqa: N802
        return self.milliseconds


@dataclass
class Cluster:
    """A streaming query of Spark's, played."""

    live: LiveJob
    rng: Any
    delay: int
    states: dict[int, str] = field(default_factory=dict)
    timers: dict[int, set[int]] = field(default_factory=dict)
    seen: int = 0
    reported: list[Row] = field(default_factory=list)

    def batch(self, tasks: list[pa.RecordBatch], seen: int) -> None:
        """One micro-batch; it may be run, lost and run again."""
        packed = [row for task in tasks for each in packer(self.live)(iter([task])) for row in each.to_pylist()]
        clock = Clock(max(0, self.seen - self.delay))
        if self.rng.random() < 0.3:
            lost = self._served(packed, clock, dict(self.states), {k: set(v) for k, v in self.timers.items()})
            rows = self._served(packed, clock, self.states, self.timers)
            assert sorted(map(_plain, lost)) == sorted(map(_plain, rows)), "a batch that is run again reports the same"
        else:
            rows = self._served(packed, clock, self.states, self.timers)
        self.reported += rows
        self.seen = max(self.seen, seen)

    def _served(
        self, packed: list[dict[str, Any]], clock: Clock, states: dict[int, str], timers: dict[int, set[int]]
    ) -> list[Row]:
        handle = Handle(states, timers)
        processor = ShardProcessor(self.live)
        processor.init(handle)  # type: ignore[arg-type]
        reported: list[Row] = []
        self.rng.shuffle(packed)
        for number, rows in groupby(sorted(packed, key=lambda row: row["placement"]), key=lambda row: row["placement"]):
            handle.key = number
            reported += processor.handleInputRows((number,), iter([Row(**row) for row in rows]), clock)
        due = [(number, at) for number, some in timers.items() for at in some if at <= clock.milliseconds]
        for number, at in due:
            handle.key = number
            reported += processor.handleExpiredTimer((number,), clock, None)
            timers[number].discard(at)
        return reported

    @property
    def matches(self) -> list[dict[str, Any]]:
        return [row for each in self.reported if each.kind == MATCH for row in read(each.payload).to_pylist()]

    @property
    def late(self) -> list[dict[str, Any]]:
        return [row for each in self.reported if each.kind == LATE for row in read(each.payload).to_pylist()]

    def total(self, name: str) -> int:
        return sum(each[name] for each in self.reported if each.kind == SHARD)


def _plain(row: Row) -> str:
    """A reported row; state bytes aside, which hold the event buffer in any layout."""
    shown = {name: value for name, value in row.asDict().items() if name not in ("payload", "state_bytes")}
    return f"{shown} {[] if row.payload is None else sorted(map(str, read(row.payload).to_pylist()))}"


def job(query: QuerySpec, semantics: Any, shards: int, delay: int, ids: tuple[str, ...], *, side: bool) -> LiveJob:
    compiled = ready(query).plan(semantics)
    choice = choose_live(
        compiled,
        "at" if compiled.window is None or compiled.window.attribute is None else compiled.window.attribute,
        "at",
    )
    shards = 1 if choice.operator == "sequence" else shards
    names = ("events",) if semantics != "valuations" else compiled.variables
    shown = tuple(Shown(name, None if semantics != "valuations" else name, ("n",)) for name in names)
    chunking = None
    if choice.operator == "chunks":
        assert compiled.window is not None
        chunking = Chunking(max(1, int(compiled.window.width)), int(compiled.window.width))  # many chunks, much overlap
    words = tuple(f"{BITS}{k}" for k in range(-(-len(unary_tests(compiled)) // WORD)))
    columns = ShardColumns(NAMES, ("at", "n"), "at", "n", shown)
    return LiveJob.of(
        compiled, choice.operator, chunking, columns, arriving=(*NAMES, *words, SOURCE, PLACEMENT, FINAL),
        placement=placement(shards), sources=1, delay=Fraction(delay), per_millisecond=Fraction(1), unit="ms",
        deduplicate=ids, side=side, identity={"query": str(query)}, types=dict.fromkeys(NAMES, "any"),
    )  # fmt: skip


def shipped(live: LiveJob, query: QuerySpec, rows: Rows) -> pa.RecordBatch:
    """Rows as Spark ships them: bits, source, shard."""
    compiled = ready(query).plan()
    rows = _keyed(live, rows)
    table = pa.Table.from_pylist(rows, ARROW).combine_chunks()
    batch = table.to_batches()[0] if rows else pa.RecordBatch.from_pylist([], ARROW)
    tests = unary_tests(compiled)
    canonical = pa.Table.from_batches([batch.select(SCHEMA.names)]).cast(canonical_schema(SCHEMA)).combine_chunks()
    plain = canonical.to_batches()[0] if rows else pa.RecordBatch.from_pylist([], canonical_schema(SCHEMA))
    bits = ConditionBits([(test.type, test.condition) for test in tests], canonical_schema(SCHEMA), "type").bits(plain)
    columns = list(batch.columns)
    for begin in range(0, len(tests), WORD):
        word = np.zeros(len(rows), np.int64)
        for place, k in enumerate(range(begin, min(begin + WORD, len(tests)))):
            word |= ((bits[:, k // 64] >> np.uint64(k % 64)) & np.uint64(1)).astype(np.int64) << place
        columns.append(pa.array(word))
    keys = [str([row.get(name) for name in live.job.keys]) for row in rows]
    placed = [live.placement[sum(map(ord, key)) % len(live.placement)] for key in keys]
    columns += [
        pa.array(np.zeros(len(rows), np.int32)),
        pa.array(placed, pa.int32()),
        pa.array([False] * len(rows), pa.bool_()),
    ]
    return pa.RecordBatch.from_arrays(columns, names=[f"c{k}" for k in range(len(columns))])


def _keyed(live: LiveJob, rows: Rows) -> Rows:
    """The rows that are in a partition."""
    return [row for row in rows if all(row.get(key) == row.get(key) is not None for key in live.job.keys)]


def closing(live: LiveJob, query: QuerySpec) -> pa.RecordBatch:
    """The row that says that the stream is over."""
    empty = shipped(live, query, [])
    columns = [pa.nulls(1, each.type) for each in empty.schema][:-1]
    return pa.RecordBatch.from_arrays([*columns, pa.array([True])], names=empty.schema.names)


def shards_agree(query: QuerySpec, rows: Rows, semantics: Any, rng: Any, share: Share | None = None) -> None:
    """One query and stream: arrival, cut, tasks, shards, replays and timers at random."""
    rows = [{**row, "n": n} for n, row in enumerate(rows)]
    if not sorted_window(query, rows):
        query = replace(query, within=Size.events(4))
    if not runnable(query):
        return
    delay, beyond, unique = rng.choice(DELAYS), rng.random() < 0.3, rng.random() < 0.3
    live = job(query, semantics, rng.choice([1, 2, 5]), delay, ("n",) if unique else (), side=rng.random() < 0.5)
    cluster, plain = Cluster(live, rng, delay), Plain(delay, True, False)
    arrival = arriving(rows, delay, rng, beyond=beyond)
    if unique:
        arrival = [each for row in arrival for each in [row] * rng.choice([1, 1, 2])]
    while arrival:
        size = rng.randint(0, 4)
        some, arrival = arrival[:size], arrival[size:]
        once = {row["n"]: row for row in some}
        known = {row["n"] for row in plain.waiting + plain.read} if unique else set()
        plain.push([row for n, row in once.items() if n not in known] if unique else some)
        parts = [some[k::2] for k in range(2)] if rng.random() < 0.5 else [some]
        quiet = plain.seen if plain.seen is not None and rng.random() < 0.5 else None
        if quiet is not None and rng.random() < 0.3:  # rows that were filtered out move Spark's watermark
            quiet += rng.randint(0, 3)
            plain.seen = quiet
        cluster.batch([shipped(live, query, part) for part in parts if part], max([0, *(row["at"] for row in some)]))
        if quiet is not None:
            cluster.batch([], quiet)
            cluster.batch([], quiet)
            plain.advance(quiet - delay)
    if not sorted_window(query, plain.read):
        return
    cluster.batch([closing(live, query)], 0)
    plain.close()
    serial = [row["n"] for row in plain.read]
    stream = [{name: value for name, value in row.items() if name != "n"} for row in plain.read]
    expected = judged(query, stream, semantics)
    everything = judged(unpicked(query), stream, semantics) if picks(query) else expected
    place = {n: at for at, n in enumerate(serial)}
    matches = [_match(row, live, place, semantics) for row in cluster.matches]
    same(matches, expected, query, everything, deciding(query, stream, semantics))
    assert len({row["match"] for row in cluster.matches}) == len(matches)
    unread = sum(map(cluster.total, ("late", "untimed", "duplicates")))
    assert cluster.total("relevant") - unread == len(_keyed(live, plain.read)), "every event is counted once"
    if share is not None:
        share.note(bool(expected))


def _match(row: dict[str, Any], live: LiveJob, place: dict[int, int], semantics: Any) -> Match:
    bound = {shown.column: [place[event["n"]] for event in row[shown.column]] for shown in live.job.shown}
    positions = tuple(sorted({at for some in bound.values() for at in some}))
    bindings = tuple((name, tuple(bound[name])) for name in sorted(bound) if bound[name])
    return Match(place[row["start"]], place[row["end"]], positions, bindings if semantics == "valuations" else ())


def _varied(query: QuerySpec, rng: Any) -> QuerySpec:
    """The query, or, often enough, the like that is cut into chunks of time."""
    if rng.random() < 0.6:
        return query
    window = Size(rng.choice([2, 5, 1001]), "milliseconds")
    return replace(query, partition=(), consume=Consume.NONE, suppress=None, within=window)


def _looked_at(query: QuerySpec, rows: Rows, semantics: Any) -> list[Match] | None:
    fits = query if sorted_window(query, rows) else replace(query, within=Size.events(4))
    return judged(fits, rows, semantics) if runnable(fits) else None


@cases(often(60), engine_queries(), random.streams(9), SEMANTICS, RANDOM)
def test_shards_are_batch(share: Share, query: QuerySpec, rows: Rows, semantics: Any, rng: Any) -> None:
    query, rows = telling(_varied(query, rng), rows, partial(_looked_at, semantics=semantics))
    shards_agree(query, rows, semantics, rng, share)


@cases(often(120), REGISTERS, random.streams(9, random.full_rows), SEMANTICS, RANDOM)
def test_shards_with_registers_are_batch(share: Share, query: QuerySpec, rows: Rows, semantics: Any, rng: Any) -> None:
    query, rows = telling(_varied(query, rng), rows, partial(_looked_at, semantics=semantics))
    shards_agree(query, rows, semantics, rng, share)


@cases(often(40), queries(), random.streams(9, random.full_rows), SEMANTICS, RANDOM)
def test_shards_with_absences_are_batch(share: Share, query: QuerySpec, rows: Rows, semantics: Any, rng: Any) -> None:
    """Windows are over by the watermark, also in shards that nothing comes to any more."""
    query, rows = telling(query, rows, partial(judge, semantics=semantics))
    shards_agree(query, fitting(query, rows), semantics, rng, share)


@pytest.mark.nightly
@cases(AT_LENGTH, engine_queries() | REGISTERS, random.streams(9), SEMANTICS, RANDOM, parts=4)
def test_shards_at_length(share: Share, query: QuerySpec, rows: Rows, semantics: Any, rng: Any) -> None:
    query, rows = telling(_varied(query, rng), rows, partial(_looked_at, semantics=semantics))
    shards_agree(query, rows, semantics, rng, share)


@pytest.fixture
def cluster() -> Cluster:
    """A stream that has begun."""
    cluster = Cluster(job(KEYED, "valuations", 1, 5, (), side=False), Random(1), 5)
    cluster.batch([shipped(cluster.live, KEYED, ROWS)], 40)
    assert cluster.states
    return cluster


KEYED = QuerySpec(Sequence((Named(Event("A"), "x"), Named(Event("B"), "y"))), partition=("id",), within=Size.events(9))
ROWS = [{"type": "AB"[n % 2], "id": n % 3, "price": 1.0, "name": "a", "ok": True, "at": n, "n": n} for n in range(40)]
LATER = [{**ROWS[0], "at": 41, "n": 41}]


def test_damaged_state_is_refused_wherever_it_is_damaged(cluster: Cluster) -> None:
    (number, state), *_ = cluster.states.items()
    for at in range(0, len(state), max(1, len(state) // 40)):
        for damaged in (state[:at], state[:at] + chr(ord(state[at]) ^ 4) + state[at + 1 :]):
            cluster.states[number] = damaged
            with pytest.raises(SnapshotError, match="damaged"):
                cluster.batch([shipped(cluster.live, KEYED, LATER)], 41)


def test_a_store_that_cannot_be_read_is_reported_in_words(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """RocksDB has checksums of its own, and notices damaged files first."""

    def get(handle: Handle) -> None:
        raise PySparkRuntimeError("Error getting value state: block checksum mismatch\n\tat org.rocksdb.get(…)")

    monkeypatch.setattr(Handle, "get", get)
    with pytest.raises(SnapshotError, match=r"from the checkpoint: .*block checksum mismatch") as caught:
        cluster.batch([shipped(cluster.live, KEYED, LATER)], 41)
    assert "org.rocksdb" not in caught.value.message
    assert "new checkpoint" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"identity": {"query": "another"}}, "(?s)another query: .* there, another here"),
        ({"types": {"price": "string"}}, "`price` is string here, and the events in this checkpoint have any"),
        ({"types": {"more": "long"}}, "`more` is long here, and the events in this checkpoint do not have it"),
    ],
    ids=["query", "type", "column"],
)
def test_a_checkpoint_of_something_else_is_refused(cluster: Cluster, change: dict[str, Any], expected: str) -> None:
    other = replace(cluster, live=replace(cluster.live, **change))
    with pytest.raises(SnapshotError, match=expected):
        other.batch([shipped(cluster.live, KEYED, LATER)], 41)


def test_the_number_of_shards_is_fixed(cluster: Cluster) -> None:
    live = replace(cluster.live, identity={**cluster.live.identity, "number of shards": "2"})
    with pytest.raises(SnapshotError, match="another number of shards: none there, 2 here") as caught:
        replace(cluster, live=live).batch([shipped(cluster.live, KEYED, LATER)], 41)
    assert "shards=" in str(caught.value.hint)


def test_a_stream_that_is_over_takes_nothing_more(cluster: Cluster) -> None:
    cluster.batch([closing(cluster.live, KEYED)], 0)
    assert cluster.reported[-1]["pending"] == 0
    with pytest.raises(StreamError, match="declared over"):
        cluster.batch([shipped(cluster.live, KEYED, LATER)], 41)


def test_two_events_that_nothing_orders_are_refused(cluster: Cluster) -> None:
    later = [{**LATER[0], "at": 60, "n": 60}]
    with pytest.raises(StreamError, match="two events cannot be ordered: both have at = 41, n = 41, id = 0"):
        cluster.batch([shipped(cluster.live, KEYED, LATER * 2 + later)], 60)


def test_positions_that_do_not_rise_in_a_match_are_refused(cluster: Cluster) -> None:
    falling = [{**ROWS[n], "id": 7, "at": 50 + n, "n": 90 - n} for n in range(4)]
    after = {**LATER[0], "at": 90, "n": 91}
    with pytest.raises(StreamError, match="the positions in `n` do not rise with `at`, `n`"):
        cluster.batch([shipped(cluster.live, KEYED, [*falling, after])], 90)
    with pytest.raises(StreamError, match=r"`n` must hold whole numbers below 2\^63, none of them NULL"):
        cluster.batch([shipped(cluster.live, KEYED, [*({**row, "n": None} for row in falling), after])], 90)
