"""A stream that cannot be cut by time, on several cores: its partitions are divided among shards with engines of their
own, each in a thread.

The events of a partition are recognised by one shard, in their order: R-CER (DEBS 2024, listing 5) inside a process.
The caller's thread reads the stream and takes it in for all shards, so conditions, numbers of partitions and the order
of the stream are worked out and checked once, while the shards recognise what was read before. What may matter of a
batch is copied for them; they are up to `AHEAD` batches behind. Where partitions cannot be divided, there is one shard.

Invariants: matches are those of one run, with the same positions, in the order of their ends: every event is in one
shard only, so the ends of two shards differ. A partition stays in its shard until it is forgotten. Numbers of
partitions change only while all threads are idle.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from queue import SimpleQueue
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from cerite.core.arrays import Buffers, Ints, Longs
from cerite.core.errors import CeriteError
from cerite.core.jit import kernel
from cerite.engine.at_rest.pipe import Pipe
from cerite.engine.at_rest.segments import Pieces
from cerite.engine.bind import Program
from cerite.engine.engines import Engines
from cerite.engine.events.masks import relevant_events
from cerite.engine.events.rows import Rows
from cerite.engine.intake import Intake
from cerite.engine.recycle import Recycler
from cerite.engine.results.event_buffer import EventBuffer, Placed
from cerite.engine.results.merge import merged
from cerite.engine.results.output import MatchChunk
from cerite.engine.results.ties import Ties
from cerite.engine.run import Run

T = TypeVar("T")

AHEAD = 4  # batches that are taken in before the shards have read them, so that none of them waits for another
PIECE = 1 << 17  # events of such a batch
SAMPLED = 1 << 14  # events by which it is estimated how much time several threads save
ENOUGH = 1.25  # times as fast as one thread: by less, it is not worth it


def undivided(program: Program, *, counting: bool) -> str | None:
    """Why the partitions of a stream are not divided among threads for this program, None if they are."""
    plan = program.plan
    if not plan.partition:
        return "no partitions"
    if plan.across_partitions is not None:
        return plan.across_partitions.reason
    if plan.late and not (counting and plan.counts_without_enumerating):
        return "matches are reported in the order in which they are decided, in all partitions"
    return None


def shard_count(program: Program, threads: int, sample: list[pa.RecordBatch], reading: float, *, counting: bool) -> int:
    """How many shards to recognise a stream in, 0 for none, estimated from a sample; `reading` it took some seconds."""
    events, shards = sum(batch.num_rows for batch in sample), 1 if undivided(program, counting=counting) else threads
    if events < PIECE:  # the stream ends with it
        return 0
    try:
        times = [*_timed(program, sample, counting=counting)]
    except CeriteError:  # raised in its turn
        return shards
    intake, copying, engine = np.min(times[1:] or times, axis=0)  # the first includes what happens only once
    intake += reading / events
    return shards if intake + engine >= ENOUGH * max(intake + copying, engine / shards) else 0


def _timed(program: Program, sample: list[pa.RecordBatch], *, counting: bool) -> Iterator[tuple[float, float, float]]:
    """Seconds per event, some at a time: of taking them in, of copying them for shards, and of the engine."""
    run, buffers = Run(program), Buffers()
    for piece in Pieces(sample).all(lambda: SAMPLED):
        if run.intake.rows >= PIECE:
            break
        began = perf_counter()
        rows = run.intake.take(piece)
        taken = perf_counter()
        rows.of(relevant_events(rows.bits, program.relevant, buffers), buffers)
        copied = perf_counter()
        if counting:
            run.counted(rows)
        else:
            chunks = run.read(rows)
            run.recogniser.discard(chunks)
        done, count = perf_counter(), piece.num_rows
        yield (taken - began) / count, (copied - taken) / count, (done - copied) / count


class Part(NamedTuple):
    """What may matter of a batch to a shard, and the low up to which it decides what waits (`Intake.decided`).

    The batch's last event may be in another shard, or in none: it does not matter, but time has passed.
    """

    rows: Rows
    decided: int


class Done(NamedTuple):
    """A shard has read its part of a batch; so many deterministic states hold partial matches."""

    active: int


class Shard:
    """Some partitions, with engines of their own, which a thread feeds."""

    def __init__(self, program: Program) -> None:
        self.engines = Engines(program, learnt=program.learnt)
        self.results: Pipe[Any] = Pipe(tell=0)
        self._parts: SimpleQueue[Part | None] = SimpleQueue()
        self._buffers = deque(Buffers() for _ in range(AHEAD + 1))

    def hand(self, rows: Rows, events: Longs, decided: int) -> None:
        """Let the thread read these events of a batch, which are copied, and decide what is over after it."""
        self._buffers.rotate()
        self._parts.put(Part(rows.of(events, self._buffers[0]), decided))

    def stop(self) -> None:
        """Let the thread end: nobody will read what it finds."""
        self.results.stop()
        self._parts.put(None)

    def find(self) -> Iterator[Longs | MatchChunk | Done]:
        """For every part: the events that could be in a match, the matches, and that it is done."""
        for rows, decided in iter(self._parts.get, None):
            chunks = self.engines.read(rows)
            assert rows.events is not None
            yield rows.events[self.engines.recogniser.relevant]
            yield from chunks
            yield from self.engines.rest(decided)
            yield Done(self.engines.active)

    def count(self) -> Iterator[int | Done]:
        """For every part: how many matches end there, and that it is done."""
        for rows, decided in iter(self._parts.get, None):
            yield self.engines.counted(rows)
            yield self.engines.count_rest(decided)
            yield Done(self.engines.active)


class ShardedRun:
    """One reading of a stream by several threads.

    Among the results there is a None after every batch, so that the caller can show the progress.
    """

    def __init__(self, program: Program, shards: int) -> None:
        self.intake = Intake(program)
        self.rows = 0  # read so far
        self.active = 0  # deterministic states that held partial matches after them
        self._shards = [Shard(program) for _ in range(shards)]
        self._recycler = Recycler(self.intake)
        self._owner: Ints = np.zeros(0, np.int32)  # the shard of every partition
        self._load: Longs = np.zeros(shards, np.int64)  # how many events every shard has had
        self._buffers = Buffers()
        self._kept: EventBuffer | None = None
        self._fresh = 0  # batches since numbers were given anew

    def find(self, batches: Iterator[pa.RecordBatch]) -> Iterator[MatchChunk | None]:
        """The matches, some at a time."""
        yield from self._read(batches, Shard.find, lambda _, results: merged([*map(_chunks, results)]))
        yield from self._rest()

    def place(
        self, batches: Iterator[pa.RecordBatch], order: tuple[str, ...] | None
    ) -> Iterator[tuple[MatchChunk, Placed] | None]:
        """The matches with their events; `order` names the columns that order events (`KeepingRun`)."""
        kept = self._kept = EventBuffer(None if order is None else Ties(order, self.intake.program.plan.partition))

        def placed(rows: Rows, results: list[Iterator[Any]]) -> Iterator[tuple[MatchChunk, Placed]]:
            relevant = np.sort(np.concatenate([next(each) for each in results]))
            kept.add_some(rows.position, rows.batch, relevant)
            return ((chunk, kept.placed(chunk)) for chunk in merged([*map(_chunks, results)]))

        yield from self._read(batches, Shard.find, placed)
        yield from ((chunk, kept.placed(chunk)) for chunk in self._rest())

    def count(self, batches: Iterator[pa.RecordBatch]) -> Iterator[int | None]:
        """How many matches there are, in parts."""
        yield from self._read(batches, Shard.count, lambda _, results: iter([sum(sum(each) for each in results)]))
        yield sum(shard.engines.count_rest() for shard in self._shards)
        for shard in self._shards:
            shard.engines.end()

    def _rest(self) -> Iterator[MatchChunk]:
        """The matches that the end of the stream decides; where there are any, there is one shard."""
        for shard in self._shards:
            yield from shard.engines.rest()

    def _read(
        self, batches: Iterator[pa.RecordBatch], work: Callable[[Shard], Iterator[Any]],
        result: Callable[[Rows, list[Iterator[Any]]], Iterator[T]],
    ) -> Iterator[T | None]:  # fmt: skip
        """The results of every batch, in their order; an error comes after those of the batches before it."""
        taken: deque[tuple[Rows, int]] = deque()  # with how many events there were; the shards may not have read them
        failure, more = None, True
        with self._working(work) as results:
            while more or taken:
                if taken and (len(taken) == AHEAD or self._due or not more):
                    rows, count = taken.popleft()
                    self.active = 0
                    yield from result(rows, [self._until_done(each) for each in results])
                    self.rows += count
                    yield None
                    continue
                if self._due:
                    self._forget()
                try:
                    batch = next(batches, None)
                    if batch is not None:
                        taken.append((self._take(batch), batch.num_rows))
                except Exception as error:
                    failure, batch = error, None
                more = batch is not None
        if failure is not None:
            raise failure

    @contextmanager
    def _working(self, work: Callable[[Shard], Iterator[Any]]) -> Iterator[list[Iterator[Any]]]:
        """What the shards find, each in a thread of its own."""
        with ThreadPoolExecutor(len(self._shards), "cerite") as pool:
            try:
                yield [iter(shard.results.begin(pool, partial(work, shard))) for shard in self._shards]
            finally:
                for shard in self._shards:
                    shard.stop()

    def _until_done(self, results: Iterator[Any]) -> Iterator[Any]:
        """What a shard finds in its next part."""
        for each in results:
            if isinstance(each, Done):
                self.active += each.active
                return
            yield each

    def _take(self, batch: pa.RecordBatch) -> Rows:
        """Take the next batch in and hand it to the shards; new partitions go to the one with the fewest events."""
        rows, buffers = self.intake.take(batch), self._buffers
        self._fresh += 1
        events = relevant_events(rows.bits, self.intake.program.relevant, buffers)
        if len(self._shards) == 1 or rows.partition is None:
            self._shards[0].hand(rows, events, self.intake.decided)
            return rows
        new = max(int(rows.partition.max(initial=-1)) + 1 - self._owner.size, 0)
        self._owner = np.concatenate([self._owner, np.zeros(new, np.int32)])
        order, ends = buffers.take("order", events.size, np.int64), np.zeros(len(self._shards), np.int64)
        divide(events, rows.partition, self._owner, np.zeros(new, np.int64), self._load, order, ends)
        for shard, own in zip(self._shards, np.split(order, ends[:-1]), strict=True):
            shard.hand(rows, own, self.intake.decided)
        return rows

    @property
    def _due(self) -> bool:
        """Whether it is time to forget what no event can bind any more."""
        often = self._fresh < 2 * AHEAD  # all threads have to wait for it
        return (self._recycler.due and not often) or (self._kept is not None and self._kept.full)

    def _forget(self) -> None:
        """While all threads are idle: forget what no event can bind any more."""
        self._fresh = 0
        kept = self._recycler.recycle([each for shard in self._shards for each in shard.engines.used])
        if kept is not None and len(self._shards) > 1:
            self._owner = self._owner[kept]
        if self._kept is not None:
            needed = [shard.engines.recogniser.still_needed() for shard in self._shards]
            self._kept.prune(np.unique(np.concatenate(needed)))


def _chunks(results: Iterator[Any]) -> Iterator[MatchChunk]:
    return (each for each in results if isinstance(each, MatchChunk))


@kernel
def divide(events: Longs, partition: Longs, owner: Ints, fresh: Longs, load: Longs, order: Longs, ends: Longs) -> None:
    """Give the last partitions, as many as `fresh` has room for, to shards, and sort the events by shard."""
    known, shards = owner.size - fresh.size, load.size
    for i in events:
        p = partition[i]
        if p >= known:
            fresh[p - known] += 1
        else:
            load[owner[p]] += 1
            ends[owner[p]] += 1
    for k in range(fresh.size):
        least = 0
        for shard in range(1, shards):
            if load[shard] < load[least]:
                least = shard
        owner[known + k] = least
        load[least] += fresh[k]
        ends[least] += fresh[k]
    begin = 0
    for shard in range(shards):
        begin, ends[shard] = begin + ends[shard], begin
    for i in events:
        shard = owner[partition[i]]
        order[ends[shard]] = i
        ends[shard] += 1
