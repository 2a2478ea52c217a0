"""One process compiles a kernel at a time: others that need the same one wait for what it writes.

Compiling takes seconds of a core, and processes that are started together, Spark's workers or tests, need the same
kernels at the same moment. A turn is a lock on a file beside the entry, which goes with its process, however that ends,
and with a compilation that fails or is interrupted.

Invariant: a turn only saves work. Where there are no such locks, where nothing can be written, and after `PATIENCE`
seconds, everybody compiles. Nobody waits in a circle: who holds a turn waits only for what its kernel calls.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

PATIENCE = 120.0  # seconds that one waits for another process at most
_PAUSE = 0.02


class Turn:
    """The right to write an entry, until `end`."""

    def __init__(self, handle: int, path: Path) -> None:
        self._handle, self._path = handle, path

    def end(self) -> None:
        """Let the next one in."""
        with suppress(OSError):
            os.unlink(self._path)
        with suppress(OSError):
            os.close(self._handle)


def take_turn(entry: Path, is_written: Callable[[], bool]) -> Turn | None:
    """Wait for one's turn; None where the entry is written meanwhile, or turns cannot be taken.

    >>> import tempfile
    >>> entry = Path(tempfile.mkdtemp()) / "some.kernel"
    >>> turn = take_turn(entry, entry.exists)
    >>> turn is None, len(list(entry.parent.iterdir()))
    (False, 1)
    >>> turn.end()
    >>> list(entry.parent.iterdir())
    []
    """
    if fcntl is None:
        return None
    path, deadline = entry.with_suffix(".lock"), time.monotonic() + PATIENCE
    while not is_written() and time.monotonic() < deadline:
        try:
            handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o666)
        except OSError:
            return None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            time.sleep(_PAUSE)
        except OSError:  # a file system without locks
            os.close(handle)
            return None
        else:
            return Turn(handle, path)
    return None
