"""One query on several cores of one machine: a stream at rest is cut into segments, or its partitions are divided.

A run first reads the window before its segment (`segments`) and then finds the matches that end in the segment. Kernels
run without Python's lock, so segments run at the same time. A run that is done goes on with a later segment and keeps
what it has learnt (deterministic states, classes of events). Where time cannot be cut, since a match depends on more
than its window or the window is one of its partition, threads have partitions of their own (`shards`), and while they
read a batch, the next one is taken in. Counts need no order, so counting deals segments out otherwise (`dealing`).

Invariants: the matches are those of one run, with the same positions, in the order of their ends; an error comes after
the matches that end before its segment or batch. At most two segments for each thread are in memory, or two batches,
unless the whole stream is, and at most `pipe.AHEAD` chunks of matches wait for their turn: memory follows the window.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from threading import Lock
from time import monotonic
from typing import Any, Generic, TypeVar

import pyarrow as pa

from cerite.core.errors import StreamError
from cerite.engine.at_rest import shards
from cerite.engine.at_rest.dealing import dealt
from cerite.engine.at_rest.keeping import KeepingRun
from cerite.engine.at_rest.pipe import Pipe
from cerite.engine.at_rest.segments import Batches, Pieces, Segment, last_of, segments, uncut
from cerite.engine.at_rest.shards import ShardedRun, undivided
from cerite.engine.bind import Program
from cerite.engine.results.event_buffer import Placed
from cerite.engine.results.output import MatchChunk
from cerite.engine.run import Run

T = TypeVar("T")
R = TypeVar("R", Run, KeepingRun)

SEGMENT = 1 << 20  # the most events of a segment, unless its window has many; fewer if each thread would get few
LONG_SEGMENT = 1 << 21  # the same if kernels read a segment in one piece: only Python between two segments costs then
WORTH_CUTTING = 1 << 19  # the fewest events that are worth several threads
PIECE = 1 << 18  # events that a run reads at once: what it computes of them stays in the cache
FEWEST = 1 << 14  # the fewest events that are worth a run of their own
UNKNOWN = 1 << 16  # events of a segment as long as it is not known how many matches they give
AHEAD = 16  # segments that are cut ahead if their events are in memory anyway: later, it would take longer
READY = 1 << 19  # matches of a segment that may wait for their turn: if there are more, its thread waits, too
VARIABLE = "CERITE_THREADS"


def thread_count(threads: int | None) -> int:
    """How many threads to use: set by the caller, else by CERITE_THREADS, else as many as there are cores.

    >>> thread_count(3)
    3
    """
    if threads is None:
        text = os.environ.get(VARIABLE, "").strip()
        if not text:
            return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        threads = int(text) if text.isdecimal() else -1
        name, shown = VARIABLE, repr(text)
    else:
        name, shown = "threads", repr(threads)
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise StreamError(f"{name} must be a whole number from 1 on, not {shown}", hint="1 runs on one core")
    return threads


def divided(program: Program) -> str:
    """How several threads find matches in data at rest."""
    why = uncut(program)
    if why is None:
        return "the stream is cut by time"
    whole = undivided(program, counting=False)
    if whole is None:
        return f"partitions are divided among threads; the stream is not cut: {why}"
    return f"one thread reads and another recognises; neither cut ({why}) nor divided ({whole})"


class ThreadedRun:
    """One reading of a stream at rest: by several threads if it can be cut, else by one run in the caller's thread.

    Among the results there is a None after every batch, so that the caller can show the progress.

    >>> from cerite.engine.bind import bind
    >>> from cerite.engine.events.rows import Columns
    >>> from cerite.engine.plan import plan
    >>> from cerite.language.ceql import parse_query
    >>> query = parse_query("SELECT * FROM S WHERE A ; B WITHIN 5 EVENTS")
    >>> program = bind(plan(query), pa.schema({"type": pa.string()}), Columns("type"))
    >>> run = ThreadedRun(program, threads=2)
    >>> sum(filter(None, run.count([pa.record_batch({"type": ["A", "A", "B"]})]))), run.rows
    (2, 3)
    """

    def __init__(self, program: Program, threads: int, events: int | None = None, *, in_memory: bool = False) -> None:
        """`events` is how many there are, if that is known; few are not worth several threads.

        To read ahead what is `in_memory` takes no room.
        """
        self._program = program
        self._threads = 1 if events is not None and events <= WORTH_CUTTING else threads
        self._ahead = max(self._threads, AHEAD if in_memory else 0)
        self._alone = events is None  # what comes piece by piece may have to be read in the caller's thread
        self._left = events  # how many are still to be cut, if that is known
        self._segment, self._unknown, self._piece = SEGMENT, UNKNOWN, PIECE
        self._lock = Lock()
        self.rows = 0  # read so far
        self._matches = 0  # in these rows, as far as they are enumerated
        self.active = 0  # states that held partial matches at the end of the last batch
        self.first_time: int | None = None  # of the first event, in ticks of the time column
        self._unseen: frozenset[str] | None = None
        self._spare: list[Any] = []  # runs that are done with their segments, all of one kind
        self._seen: frozenset[str] = frozenset()

    def find(self, batches: Batches) -> Iterator[MatchChunk | None]:
        """The matches, some at a time."""
        return self._results(batches, (), self._chunks, ShardedRun.find)

    def place(self, batches: Batches, order: tuple[str, ...] | None) -> Iterator[tuple[MatchChunk, Placed] | None]:
        """The matches with their events; `order` are the columns that order events (`KeepingRun`)."""
        by_segment, by_shard = partial(self._placed, order=order), partial(ShardedRun.place, order=order)
        return self._results(batches, order, by_segment, by_shard)

    def count(self, batches: Batches) -> Iterator[int | None]:
        """How many matches there are, in parts; nothing waits for its turn, so segments are long from the start.

        Where kernels compute what they read block by block, nothing else has to stay in the cache.
        """
        if self._program.by_codes:
            self._segment = self._piece = LONG_SEGMENT
        self._unknown = self._segment
        if self._threads > 1 and uncut(self._program) is None:
            yield from dealt(self._cut(batches), self._counts, self._threads, self._ahead)
        else:
            yield from self._results(batches, (), self._counts, ShardedRun.count, counting=True)
        for run in self._spare:
            run.end()

    def types(self) -> tuple[frozenset[str], frozenset[str]]:
        """The event types that the query names and no event had, and those that there were (`Intake.types`)."""
        return self._unseen or frozenset(), self._seen

    def _chunks(self, segment: Segment) -> Iterator[MatchChunk | None]:
        run, before = self._begin(segment, lambda: Run(self._program))
        for batch in before:
            chunks = run.find(batch)
            run.recogniser.discard(chunks)
        for batch in segment.own:
            matches = 0
            for chunk in run.find(batch):
                matches += len(chunk)
                yield chunk
            self._advance(run, batch, matches)
            yield None
        yield from run.rest()  # data at rest is complete
        self._finish(run)

    def _placed(self, segment: Segment, order: tuple[str, ...] | None) -> Iterator[tuple[MatchChunk, Placed] | None]:
        keeping, before = self._begin(segment, lambda: KeepingRun(self._program, order))
        for batch in before:
            keeping.pass_over(batch)
        for batch in segment.own:
            matches = 0
            for chunk, placed in keeping.find(batch):
                matches += len(chunk)
                yield chunk, placed
            self._advance(keeping.run, batch, matches)
            yield None
        yield from keeping.rest()
        self._finish(keeping)

    def _counts(self, segment: Segment) -> Iterator[int | None]:
        run, before = self._begin(segment, lambda: Run(self._program, learnt=self._program.learnt))
        for batch in before:
            run.count(batch)
        for batch in segment.own:
            yield run.count(batch)
            self._advance(run, batch)
            yield None
        yield run.count_rest()
        self._finish(run)

    def _begin(self, segment: Segment, new: Callable[[], R]) -> tuple[R, list[pa.RecordBatch]]:
        """A run for the segment, and the events before the segment that it still has to read.

        A run that is done with an earlier segment can go on without beginning anew: what it still holds is too old for
        this segment, unless it has read up to it.
        """
        size = sum(batch.num_rows for batch in segment.before)
        with self._lock:
            spare: list[R] = [each for each in self._spare if each.intake.rows <= segment.first + size]
            if spare:
                self._spare.remove(spare[-1])
        run = spare[-1] if spare else new()
        run.intake.rows = max(run.intake.rows, segment.first)
        return run, last_of(segment.before, segment.first + size - run.intake.rows)

    def _size(self) -> int:
        """How many events the next segment should have: fewer if they give many matches, 0 if too many."""
        with self._lock:
            rows, matches = self.rows, self._matches
        wanted = self._unknown if not rows else READY * rows // matches if matches else self._segment
        even = self._segment if self._left is None else max(PIECE, self._left // self._threads)
        return 0 if wanted < FEWEST else min(wanted, self._segment, even)

    def _cut(self, batches: Batches) -> Iterator[Segment]:
        """The segments; if the number of events is known, the last ones are shorter, so that threads end together."""
        for segment in segments(self._program, batches, self._size, self._piece):
            if self._left is not None and isinstance(segment.own, list):
                self._left -= sum(batch.num_rows for batch in segment.own)
            yield segment

    def _advance(self, run: Run, batch: pa.RecordBatch, matches: int = 0) -> None:
        with self._lock:
            self.rows += batch.num_rows
            self._matches += matches
            self.active = run.active

    def _finish(self, run: Run | KeepingRun) -> None:
        unseen, seen = run.intake.types()
        with self._lock:
            if self.first_time is None:
                self.first_time = run.intake.first_time
            self._seen |= seen
            self._spare.append(run)
            self._unseen = (unseen if self._unseen is None else self._unseen & unseen) - self._seen

    def _results(
        self, batches: Batches, order: tuple[str, ...] | None, by_segment: Callable[[Segment], Iterator[T]],
        by_shard: Callable[[ShardedRun, Iterator[pa.RecordBatch]], Iterator[T]], *, counting: bool = False,
    ) -> Iterator[T]:  # fmt: skip
        """What is recognised, in the order of the stream: by segments, by shards, or by one run."""
        if self._threads == 1:
            return by_segment(self._whole(batches))
        if uncut(self._program, order) is None:
            return self._in_order(by_segment, batches)
        return self._by_shard(by_segment, by_shard, Pieces(batches), counting)

    def _whole(self, batches: Batches) -> Segment:
        """The stream in one segment."""
        return Segment([], Pieces(batches).all(lambda: self._piece), 0)

    def _by_shard(
        self, by_segment: Callable[[Segment], Iterator[T]],
        by_shard: Callable[[ShardedRun, Iterator[pa.RecordBatch]], Iterator[T]], stream: Pieces,
        counting: bool,
    ) -> Iterator[T]:  # fmt: skip
        """What is found in shards, if that saves enough time."""
        began = monotonic()
        sample, failure = stream.several(shards.PIECE, shards.PIECE)
        reading = monotonic() - began
        rest = stream.all(lambda: shards.PIECE) if failure is None else _failing(failure)
        count = shards.shard_count(self._program, self._threads, sample, reading, counting=counting)
        if not count:
            yield from by_segment(self._whole(chain(sample, rest)))
            return
        run = ShardedRun(self._program, count)
        for item in by_shard(run, chain(sample, rest)):
            self.rows, self.active = run.rows, run.active
            yield item
        self._unseen, self._seen = run.intake.types()
        self.first_time = run.intake.first_time

    def _in_order(self, recognise: Callable[[Segment], Iterator[T]], batches: Batches) -> Iterator[T]:
        """What is recognised in each segment, in the order of the segments."""
        cut = self._cut(batches)
        waiting: deque[_Waiting[T]] = deque()
        with ThreadPoolExecutor(self._threads, "cerite") as pool:
            try:
                more = True
                while more or waiting:
                    while more and len(waiting) < self._threads + 2:
                        waiting.append(_Waiting(cut, recognise))
                        more = not waiting[-1].last
                        if len(waiting) >= self._threads or not more:  # cut first: a thread that begins has the lock
                            for each in waiting:
                                each.begin(pool, alone=self._alone)
                    yield from waiting.popleft().results()
            finally:
                for each in waiting:
                    each.pipe.stop()


def _failing(failure: BaseException) -> Iterator[pa.RecordBatch]:
    raise failure
    yield


class _Waiting(Generic[T]):
    """The next segment, if there is one and it can be read, and what a thread finds in it."""

    def __init__(self, cut: Iterator[Segment], recognise: Callable[[Segment], Iterator[T]]) -> None:
        self.pipe: Pipe[T] = Pipe()
        self._recognise = recognise
        self._segment: Segment | None = None  # that no thread has begun
        try:
            self._segment = next(cut, None)
        except BaseException as error:  # raised when its turn comes: what was read before may hold matches
            self.pipe.end(error)
        else:
            if self._segment is None:
                self.pipe.end()
        self.last = self._segment is None

    def begin(self, pool: ThreadPoolExecutor, *, alone: bool) -> None:
        """Hand the segment to a thread, if that has not been done; `alone`, the caller reads what is not read yet."""
        segment = self._segment
        if segment is None or (alone and not isinstance(segment.own, list)):
            return
        own, self._segment = segment._replace(own=self.pipe.wanted(segment.own)), None
        self.pipe.begin(pool, lambda: self._recognise(own))

    def results(self) -> Iterator[T]:
        """What is found, in its order."""
        return iter(self.pipe) if self._segment is None else self._recognise(self._segment)
