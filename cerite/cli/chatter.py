"""Keeps what Spark's processes print about themselves off the terminal; everything else they print is shown."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

CHATTER = (
    b"Starting Streaming TransformWithState", b"Streaming TransformWithState", b"WARNING: Using incubator modules",
    b"Setting default log level", b"To adjust logging level", b"NOTE: Picked up JDK_JAVA_OPTIONS",
)  # fmt: skip


class Sieve:
    """Passes lines on from a pipe to a file, without chatter; once it is `closed`, it passes nothing on."""

    def __init__(self) -> None:
        self.closed = False

    def run(self, reading: int, shown: int) -> None:
        """Pass lines on until the writers are gone."""
        quiet = False
        with os.fdopen(reading, "rb") as lines, os.fdopen(shown, "wb", buffering=0) as out:
            for line in lines:
                text = line.strip()
                quiet = text.startswith(CHATTER) or (quiet and not text)  # and the empty line after it
                if not (quiet or self.closed):
                    out.write(line)


@contextmanager
def without_chatter() -> Iterator[Sieve]:
    """A JVM started within this context writes its standard error through a sieve, for as long as it lives."""
    sieve = Sieve()
    try:
        shown = os.dup(2)
    except OSError:  # there is no standard error
        yield sieve
        return
    reading, writing = os.pipe()
    os.dup2(writing, 2)
    os.close(writing)
    threading.Thread(target=sieve.run, args=(reading, shown), daemon=True).start()
    try:
        yield sieve
    finally:
        os.dup2(shown, 2)
