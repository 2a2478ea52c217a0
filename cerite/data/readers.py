"""Sources that can be read only once: record batch readers and whatever streams Arrow (`__arrow_c_stream__`).

Invariant: nothing is read before `batches` is iterated, and nothing is kept; a second reading is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NoReturn

import pyarrow as pa

from cerite.core.errors import StreamError, first_line
from cerite.data.columns import canonical_schema, conform, subschema, with_leaves
from cerite.data.positions import Positions
from cerite.data.source import BATCH_ROWS, Source, checked_rows, chosen, refuse_repeated


class ReaderSource(Source):
    """A stream of record batches.

    >>> table = pa.table({"a": [1, 2]})
    >>> source = ReaderSource(table.to_reader(), "a reader")
    >>> sum(batch.num_rows for batch in source.batches())
    2
    """

    rows = None

    def __init__(
        self,
        reader: pa.RecordBatchReader,
        name: str,
        columns: Sequence[str] | None = None,
        batch_rows: int = BATCH_ROWS,
    ) -> None:
        refuse_repeated(reader.schema.names, name)
        self.name = name
        self.available = tuple(reader.schema.names)
        self.everything = with_leaves(canonical_schema(reader.schema), name)
        wanted = self.available if columns is None else chosen(columns, self.everything.names, name)
        self.schema = subschema(self.everything, chosen(wanted, wanted, name))
        self._batch_rows = checked_rows(batch_rows)
        self._reader: pa.RecordBatchReader | None = reader

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The reader's batches as they come, large ones cut."""
        if self._reader is None:
            refuse_second(self.name)
        reader, self._reader = self._reader, None
        return self._conformed(reader)

    def narrowed(self, columns: Sequence[str]) -> Source:
        """The same rows with these columns; this source cannot be read any more."""
        source = super().narrowed(columns)
        self._reader = None
        return source

    def take(self, positions: Positions, columns: Sequence[str] | None = None) -> pa.Table:
        """Refused: the rows are gone."""
        refuse_take(self.name)

    def _conformed(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        try:
            for batch in reader:
                for start in range(0, batch.num_rows, self._batch_rows):
                    yield conform(batch.slice(start, self._batch_rows), self.schema, self.name)
        except (pa.ArrowException, OSError) as error:
            raise StreamError(f"{self.name} broke off: {first_line(error)}") from error


def refuse_take(name: str) -> NoReturn:
    """Refuse to look up positions in data that cannot be read again."""
    raise StreamError(
        f"{name} can be read only once, so its rows cannot be looked up by position", hint="pass a table or a file"
    )


def refuse_second(name: str) -> NoReturn:
    """Refuse to read data that has been consumed."""
    raise StreamError(f"{name} can be read only once, and has been", hint="open it anew, or pass a table or a file")
