"""What a thread finds, some at a time, for one reader; the thread waits while nobody reads.

Invariant: the reader gets everything in its order, and an error after what came before it. A reader that stops lets the
thread stop, too; at most `AHEAD` items wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import takewhile
from threading import Condition
from time import monotonic
from typing import Generic, TypeVar

T = TypeVar("T")
S = TypeVar("S")

AHEAD = 64  # items that wait for the reader
TELL = 0.02  # seconds after which the reader is told what there is: to wake it costs more than most items


class Pipe(Generic[T]):
    """Items on their way from a thread to a reader.

    >>> with ThreadPoolExecutor(1) as pool:
    ...     list(Pipe[int]().begin(pool, lambda: iter([1, 2, 3])))
    [1, 2, 3]
    """

    def __init__(self, *, tell: float = TELL) -> None:
        """`tell` is the seconds after which the reader is told what there is."""
        self._tell = tell
        self._items: deque[T] = deque()
        self._changed = Condition()
        self._error: BaseException | None = None
        self._over = False
        self._stopped = False

    def begin(self, pool: ThreadPoolExecutor, items: Callable[[], Iterator[T]]) -> Pipe[T]:
        """Let a thread find the items."""
        pool.submit(self._fill, items)
        return self

    def end(self, error: BaseException | None = None) -> None:
        """There are no items, or only this error."""
        self._error, self._over = error, True

    def __iter__(self) -> Iterator[T]:
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._items or self._over)
                    some, self._items = self._items, deque()
                    self._changed.notify()
                if not some:
                    break
                yield from some
        finally:
            self.stop()
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Let the thread stop, because nobody will read any more."""
        with self._changed:
            self._stopped = True
            self._changed.notify()

    def wanted(self, inputs: Iterable[S]) -> Iterator[S]:
        """What the thread works on, as long as somebody reads."""
        return takewhile(lambda _: not self._stopped, inputs)

    def _fill(self, items: Callable[[], Iterator[T]]) -> None:
        woken = monotonic()  # when the reader was woken
        try:
            for item in items():
                with self._changed:
                    self._changed.wait_for(lambda: len(self._items) < AHEAD or self._stopped)
                    if self._stopped:
                        return
                    self._items.append(item)
                    if 2 * len(self._items) >= AHEAD or monotonic() - woken >= self._tell:
                        self._changed.notify()
                        woken = monotonic()
        except BaseException as error:
            self._error = error
        finally:
            with self._changed:
                self._over = True
                self._changed.notify()
