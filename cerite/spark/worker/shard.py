"""A shard of a live stream inside `transformWithState`: R-CER of the dataflow paper, its state one value in RocksDB.

    packed rows ──► LiveRun (sorter, engine, event buffer) ──► matches, late events, a row of metrics

Every micro-batch tells every shard the greatest time seen; the watermark is that time less the delay, or Spark's own if
it is greater, which is one batch behind but also takes account of rows that were filtered out. A shard that receives
nothing goes on by timer.

Invariants: Spark's watermark is applied before the events of a batch are pushed, and moves with them afterwards, so
that all shards agree on what is late; what a shard does follows from its state and the rows of the batch alone, in
whatever order these arrive, so that a replayed batch gives the same; state that is damaged, or another query's, is
refused.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from cerite.core.errors import CeriteError, SnapshotError, StreamError, first_line
from cerite.engine.bind import bind
from cerite.engine.events.keys import LEAST, MOST, ordered
from cerite.engine.events.order import positions_fall, whole_positions
from cerite.engine.events.rows import Columns
from cerite.engine.live.live_run import UNTIMED, LiveRun, Released
from cerite.engine.live.sorter import Ordering
from cerite.engine.results.output import MatchChunk
from cerite.engine.state.snapshot import pack, unpack
from cerite.spark.worker.failures import leave_quietly
from cerite.spark.worker.job import BIT, OWNED
from cerite.spark.worker.live_job import COUNTS, GAUGES, LATE, MATCH, NUMBERS, SHARD, LiveJob, check_identity
from cerite.spark.worker.owned_matches import Output
from cerite.spark.worker.packing import filled, read, written
from cerite.spark.worker.stored import bytes_of, text_of
from cerite.spark.worker.task import settle

_STATE = "shard"
_NEVER = Fraction(2**65)  # a delay that no time exceeds: with several sources the slowest one decides what is late


@dataclass
class Shard:
    """What a shard holds: a live run, the columns of its events, the greatest time of every source, its timer."""

    run: LiveRun
    schema: pa.Schema
    columns: dict[str, str]
    seen: list[int | None]
    timer: int | None = None
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTS, 0))

    @property
    def watermark(self) -> int:
        """The time key that the run has reached."""
        watermark = self.run.metrics.watermark
        return LEAST if watermark is None else watermark


class ShardProcessor(StatefulProcessor):
    """Serves the shards of one task."""

    def __init__(self, live: LiveJob) -> None:
        self.live = live

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        _say_nothing_on_the_driver()

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state; Spark calls this before anything else, and once on the driver."""
        self._handle = handle
        self._state = handle.getValueState(_STATE, "state string")
        self._served = set[int]()

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """The packed rows of one micro-batch for one shard."""
        with _refusing():
            packs = sorted(rows, key=lambda row: (row.part, row.flush))
            shard = self._loaded(packs[0].payload)
            self._served.add(key[0])
            yield from self._advanced(shard, self._spark_key(shard, timerValues))
            yield from self._pushed(shard, packs)
            if any(row.final for row in packs) and not shard.run.closed:
                yield from self._reported(shard, shard.run.close())
            yield self._committed(key[0], shard, timerValues)
        settle()

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Advance a shard that waits for time, now that Spark's watermark has moved on."""
        if key[0] in self._served:  # already, with the batch's rows and under the same watermark
            return
        with _refusing():
            shard = self._loaded(None)
            shard.timer = None
            yield from self._advanced(shard, self._spark_key(shard, timerValues))
            yield self._committed(key[0], shard, timerValues)

    def close(self) -> None:
        """Nothing to do: nothing lives outside the state."""

    # ------------------------------------------------------------ events
    def _advanced(self, shard: Shard, watermark: int) -> Iterator[Row]:
        if watermark > shard.watermark and not shard.run.closed:
            yield from self._reported(shard, shard.run.advance(watermark))

    def _pushed(self, shard: Shard, packs: list[Row]) -> Iterator[Row]:
        """Take the events, and then the watermark that results from all of them together."""
        times = [[row.seen[k] for row in packs] for k in range(self.live.sources)]
        shard.seen = [_greatest([old, *new]) for old, new in zip(shard.seen, times, strict=True)]
        shard.counts["relevant"] += sum(row.events for row in packs)
        rows = _joined([filled(read(row.payload), shard.schema) for row in packs])
        if rows.num_rows:
            if shard.run.closed:
                raise StreamError(
                    "events arrived after the stream was declared over", hint="start with a new checkpoint"
                )
            seen = shard.seen[0] if self.live.sources == 1 else None
            yield from self._reported(shard, shard.run.push(rows, seen))
        known = [each for each in shard.seen if each is not None]
        if len(known) == self.live.sources and shard.run.clock is not None:
            yield from self._advanced(shard, shard.run.clock.before(min(known), self.live.delay))

    def _reported(self, shard: Shard, released: Released) -> Iterator[Row]:
        """Matches and late events as rows; what is released has to be read before the run goes on."""
        output = Output(self.live.job)
        for chunk in released.chunks:
            matches, rows, *_ = released.with_rows(chunk)
            if self.live.job.position is not None:
                check_positions(matches, rows, self.live.job.position, self.live.job.order)
            for batch in output.batches(matches, 0, rows):
                shard.counts["matches"] += batch.num_rows
                yield _row(MATCH, None, {}, written(batch))
        late, twice = self._own(released.late), self._own(released.twice)
        if twice is not None:
            shard.counts["duplicates"] += twice.num_rows
        if late is not None:
            untimed = late.column(late.num_columns - 1).to_pylist().count(UNTIMED)
            shard.counts["untimed"] += untimed
            shard.counts["late"] += late.num_rows - untimed
            if self.live.side and late.num_rows:
                yield _row(LATE, None, {}, written(late))

    def _own(self, rows: pa.RecordBatch | None) -> pa.RecordBatch | None:
        """Under T-CER only the rows that their chunk owns: others are copies."""
        return rows if rows is None or self.live.chunking is None else rows.filter(rows.column(OWNED))

    # ------------------------------------------------------------ time
    def _spark_key(self, shard: Shard, timers: Any) -> int:
        """Spark's watermark as a time key; it is 0 before there is one."""
        milliseconds = timers.getCurrentWatermarkInMs()
        if milliseconds <= 0:
            return LEAST
        ticks = milliseconds * self.live.per_millisecond
        return int(ordered(np.array([float(ticks)]))[0]) if self._floats(shard) else min(floor(ticks), MOST)

    def _floats(self, shard: Shard) -> bool:
        return bool(pa.types.is_floating(shard.schema.field(self.live.job.time).type))

    def _committed(self, number: int, shard: Shard, timers: Any) -> Row:
        """Set the timer, write the state, and report what the batch did and what is left."""
        due = max(timers.getCurrentWatermarkInMs(), 0) + 1  # with the next step of Spark's watermark
        metrics = shard.run.metrics
        waits = metrics.pending or (self.live.job.plan.late and metrics.active)  # windows are over by time alone
        if waits and shard.timer != due:
            self._handle.registerTimer(due)
            shard.timer = due
        state = self._written(shard)
        self._state.update((state,))
        metrics = shard.run.metrics
        gauges = dict(zip(GAUGES, (metrics.pending, metrics.kept_rows, metrics.active, len(state)), strict=True))
        numbers = {**shard.counts, **gauges, "watermark": self._milliseconds(shard)}
        return _row(SHARD, self.live.placement.index(number), numbers, None)

    def _milliseconds(self, shard: Shard) -> int | None:
        """The watermark in milliseconds, as Spark reports its own."""
        key, clock = shard.run.metrics.watermark, shard.run.clock
        if key is None or clock is None or key in (LEAST, MOST):
            return None
        ticks = clock.value(key).as_py() if self._floats(shard) else key
        return floor(ticks / self.live.per_millisecond)

    # ------------------------------------------------------------ state
    def _loaded(self, payload: bytes | None) -> Shard:
        """The shard as the last batch left it, or a new one for events like a payload's."""
        stored = self._stored()
        if stored is None:
            assert payload is not None
            schema = read(payload).schema
            return Shard(self._fresh(schema), schema, dict(self.live.types), [None] * self.live.sources)
        meta, arrays = unpack(bytes_of(stored[0]), _STATE)
        check_identity(meta["identity"], meta["columns"], self.live)
        schema = pa.ipc.read_schema(pa.py_buffer(arrays["schema"].tobytes()))
        run = self._fresh(schema)
        run.restore(arrays["run"].tobytes())
        return Shard(run, schema, meta["columns"], meta["seen"], meta["timer"])

    def _stored(self) -> Any:
        """The value in the store, None if there is none yet."""
        try:
            return self._state.get()
        except PySparkException as error:  # RocksDB's checksums notice damaged files before ours do
            raise SnapshotError(
                f"the state of this shard cannot be read from the checkpoint: {first_line(error)}",
                hint="its files are damaged or missing: put a copy back, or start with a new checkpoint",
            ) from error

    def _written(self, shard: Shard) -> str:
        meta = {
            "identity": dict(self.live.identity), "columns": shard.columns, "seen": shard.seen, "timer": shard.timer,
        }  # fmt: skip
        parts = {"run": shard.run.snapshot(), "schema": bytes(shard.schema.serialize())}
        return text_of(pack(_STATE, meta, {name: np.frombuffer(part, np.uint8) for name, part in parts.items()}))

    def _fresh(self, schema: pa.Schema) -> LiveRun:
        """A fresh run over the columns that recognition looks at; others are only carried along, and may change."""
        live = self.live
        looked_at = {*live.job.read, live.job.time, *live.ties, *live.deduplicate}
        names = [name for name in schema.names if name in looked_at or name.startswith(BIT)]
        read_by_engine = pa.schema([schema.field(name) for name in names])
        program = bind(live.job.plan, read_by_engine, Columns(time=live.job.time, unit=live.unit))
        delay = live.delay if live.sources == 1 else _NEVER
        ordering = Ordering(live.job.time, live.ties, delay, live.deduplicate, strict=True)
        return LiveRun(program, ordering, untimed="aside" if live.side else "refuse")


def check_positions(matches: MatchChunk, rows: pa.RecordBatch, name: str, order: Sequence[str]) -> None:
    """Refuse matches whose events do not have rising positions.

    In data at rest, all events of a partition are checked; for that, a stream would have to remember every key.
    """
    values = whole_positions(rows.column(name), name)
    begins, stops = matches.offsets[:-1], matches.offsets[1:]
    some = begins < stops
    inside = np.ones(max(matches.positions.size - 1, 0), np.bool_)
    inside[begins[some & (begins > 0)] - 1] = False  # between the last event of a match and the first of the next
    bound = values[matches.positions]
    falls = bool((inside & (bound[1:] <= bound[:-1])).any())
    falls |= bool((values[matches.starts] > values[matches.ends]).any())
    falls |= bool((values[matches.starts[some]] > bound[begins[some]]).any())
    falls |= bool((values[matches.ends[some]] < bound[stops[some] - 1]).any())
    if falls:
        raise positions_fall(name, order)


def _say_nothing_on_the_driver() -> None:
    """Silence the process on the driver that PySpark asks for the state's schema: it prints what it does to stdout."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is not None and spec.name == "pyspark.sql.streaming.transform_with_state_driver_worker":
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  (for as long as the process lives)


@contextmanager
def _refusing() -> Iterator[None]:
    """An error of Cerite raised within this context reaches the driver as its message alone."""
    leave_quietly()
    try:
        yield
    except CeriteError:
        os.environ["SPARK_HIDE_TRACEBACK"] = "1"  # of this worker, which ends with the error
        raise


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    some = [batch for batch in batches if batch.num_rows] or batches[:1]
    return some[0] if len(some) == 1 else pa.Table.from_batches(some).combine_chunks().to_batches()[0]


def _greatest(keys: list[int | None]) -> int | None:
    return max((key for key in keys if key is not None), default=None)


def _row(kind: str, shard: int | None, numbers: Mapping[str, int | None], payload: bytes | None) -> Row:
    return Row(kind=kind, shard=shard, **{name: numbers.get(name) for name in NUMBERS}, payload=payload)
