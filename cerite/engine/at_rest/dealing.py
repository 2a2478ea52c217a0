"""Segments whose results need no order, dealt out to several threads: whoever is done takes the next one.

The caller's thread reads the stream, and while enough segments wait, it works on one of them like the others. So one
thread less has to begin, and nobody wakes another only to hand over a number.

Invariants: only the caller's thread reads. At most `ahead` segments wait. The error that is raised is the first of the
stream: segments are begun in their order, and those after one that has failed are left out.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import takewhile
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

from cerite.engine.at_rest.pipe import TELL
from cerite.engine.at_rest.segments import Segment

T = TypeVar("T")


def dealt(cut: Iterator[Segment], work: Callable[[Segment], Iterator[T]], threads: int, ahead: int) -> Iterator[T]:
    """The results of all segments, in any order; while `ahead` of them wait, none is read.

    >>> cut = (Segment([], [], first) for first in range(5))
    >>> sorted(dealt(cut, lambda segment: iter([segment.first]), threads=2, ahead=2))
    [0, 1, 2, 3, 4]
    """
    deal = _Deal(cut, work, threads - 1, ahead)
    with ThreadPoolExecutor(threads - 1, "cerite") as pool:
        try:
            yield from deal.read_ahead(pool)
            while (segment := deal.next()) is not None:
                for result in deal.results_of(segment):
                    yield result
                    yield from deal.read_ahead(pool)
                yield from deal.read_ahead(pool)
            deal.end()
            while wait(deal.helpers, TELL).not_done:
                yield from deal.handed_in()
        finally:
            deal.stop()
    yield from deal.handed_in()
    deal.raise_first_error()


class _Deal(Generic[T]):
    """What the threads share."""

    def __init__(self, cut: Iterator[Segment], work: Callable[[Segment], Iterator[T]], others: int, ahead: int) -> None:
        self.helpers: list[Future[None]] = []
        self._cut = cut
        self._work = work
        self._others = others  # threads besides the caller's
        self._ahead = ahead
        self._waiting: SimpleQueue[Segment | None] = SimpleQueue()  # segments, and a None for each thread at the end
        self._results: deque[T] = deque()
        self._endless: Segment | None = None  # the last one, if it is read while somebody works on it
        self._errors: list[tuple[float, Exception]] = []  # each with the number of its segment's first event
        self._stopped = False

    def read_ahead(self, pool: ThreadPoolExecutor) -> Iterator[T]:
        """Read until enough segments wait; what other threads find in the meantime."""
        while self._waiting.qsize() < self._ahead and not self._errors:
            try:
                segment = next(self._cut, None)
            except Exception as error:
                self._errors.append((math.inf, error))
                return
            if segment is None:
                return
            if not isinstance(segment.own, list):
                self._endless = segment
                continue
            self._waiting.put(segment)
            if len(self.helpers) < self._others:
                self.helpers.append(pool.submit(self._help))
            yield from self.handed_in()

    def next(self) -> Segment | None:
        """The segment that the caller works on next: the one that waits the longest."""
        try:
            return self._waiting.get_nowait()
        except Empty:
            last, self._endless = self._endless, None
            return last

    def results_of(self, segment: Segment) -> Iterator[T]:
        """What there is in a segment, if nothing before it has failed."""
        if self._stopped or any(first < segment.first for first, _ in self._errors):
            return
        own = takewhile(lambda _: not self._stopped, segment.own)
        try:
            yield from self._work(segment._replace(own=own))
        except Exception as error:
            self._errors.append((segment.first, error))

    def handed_in(self) -> Iterator[T]:
        """What other threads have found."""
        while self._results:
            yield self._results.popleft()

    def end(self) -> None:
        """Let the other threads end after the segments that wait."""
        for _ in self.helpers:
            self._waiting.put(None)

    def stop(self) -> None:
        """Let them end, because nobody wants the results any more."""
        self._stopped = True
        self.end()

    def raise_first_error(self) -> None:
        """Raise the first error of the stream, if there is one."""
        for _, error in sorted(self._errors, key=lambda each: each[0])[:1]:
            raise error

    def _help(self) -> None:
        """Work on segments, in a thread of its own, until there are no more."""
        for segment in iter(self._waiting.get, None):
            for result in self.results_of(segment):
                self._results.append(result)
