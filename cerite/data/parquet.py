"""Parquet files, by row groups.

Invariant: only the wanted columns of the wanted row groups are decoded, at most `batch_rows` rows at a time, however
large a row group is. String columns come as dictionaries straight from the file's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from cerite.data.columns import canonical_schema, is_string, root
from cerite.data.part import Part, blank, reading
from cerite.data.source import refuse_repeated


class ParquetPart(Part):
    """One Parquet file; its footer is read now, its rows later."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with reading(path), pq.ParquetFile(path) as file:
            self._metadata = file.metadata
            arrow = file.schema_arrow
        refuse_repeated(arrow.names, str(path))
        self.schema = canonical_schema(arrow)
        self._strings = [column.name for column in arrow if is_string(column.type)]
        self._counts = [self._metadata.row_group(i).num_rows for i in range(self._metadata.num_row_groups)]

    @property
    def counts(self) -> Sequence[int]:
        """Rows of each row group."""
        return self._counts

    def read(self, segments: Sequence[int], schema: pa.Schema, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The row groups, their columns decoded in parallel."""
        names = [name for name in schema.names if root(name, self.schema.names) is not None]
        if not names:
            yield from blank(sum(self._counts[segment] for segment in segments), batch_rows)
            return
        strings = [name for name in self._strings if name in names]
        with (
            reading(self.path),
            pq.ParquetFile(self.path, metadata=self._metadata, read_dictionary=strings, memory_map=True) as file,
        ):
            for segment in segments:  # one by one: row groups may differ in their dictionaries
                yield from file.iter_batches(batch_rows, [segment], names, use_threads=True)
