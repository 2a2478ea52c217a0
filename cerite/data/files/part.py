"""One file of a source, whatever its format.

Invariant: a part's rows lie in segments, each of which can be read on its own (row groups, record batches, chunks of
text); `counts` has their sizes. Every failure of the reader is a `StreamError` that begins with the file's name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from cerite.core.errors import StreamError, first_line
from cerite.data.source import Sight
from cerite.data.unify import Guess


class Part(ABC):
    """A file: its schema (canonical types, all columns) and its rows by segment."""

    guess: Guess = "none"
    path: Path
    schema: pa.Schema
    spelled: frozenset[str] = frozenset()
    """Columns of type `null` here that hold words for missing values, or text that looks like them."""

    @property
    @abstractmethod
    def counts(self) -> Sequence[int]:
        """The number of rows of each segment."""

    def sights(self, name: str) -> dict[str, Sight]:
        """What a column that was guessed to be text looks like, and where."""
        return {}

    @abstractmethod
    def read(self, segments: Sequence[int], schema: pa.Schema, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The rows of these segments, in order, with the columns of `schema` that the file has.

        Types may still differ from `schema`'s where the reader cannot give them directly.
        """


def blank(rows: int, batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Rows of a file that has none of the wanted columns: all NULL, but as many as there are."""
    for start in range(0, rows, batch_rows):
        yield pa.record_batch({"": pa.nulls(min(batch_rows, rows - start))})


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turns the reader's errors into one that names the file."""
    try:
        yield
    except (pa.ArrowException, OSError, EOFError) as error:
        raise StreamError(
            f"{path}: cannot be read: {first_line(error)}",
            hint="the file may be damaged, cut off, or of another format",
        ) from error
