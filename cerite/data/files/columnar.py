"""Files that hold columns: Parquet by row groups, Arrow IPC by record batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from cerite.data.columns import canonical_schema, is_string, root
from cerite.data.files.part import Part, blank, reading
from cerite.data.source import refuse_repeated

# Parquet files, by row groups.
#
# Invariant: only the wanted columns of the wanted row groups are decoded, at most `batch_rows` rows at a time,
# however large a row group is. String columns come as dictionaries straight from the file's own.


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


# Arrow IPC files (Feather version 2), and files that hold an IPC stream.
#
# Invariant: record batches are the segments; only the wanted columns are decoded. Files are mapped, so an
# uncompressed one costs no memory of its own.

_MAGIC = b"ARROW1"


class IpcPart(Part):
    """One IPC file, or one IPC stream kept in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with reading(path):
            with path.open("rb") as file:
                self._is_file = file.read(len(_MAGIC)) == _MAGIC
            with self._opened(None) as reader:
                arrow = reader.schema
        refuse_repeated(arrow.names, str(path))
        self.schema = canonical_schema(arrow)

    @cached_property
    def counts(self) -> Sequence[int]:
        """Rows of each record batch; one column is enough to know them."""
        with reading(self.path), self._opened([0]) as reader:
            return [batch.num_rows for batch in _batches(reader, None)]

    def read(self, segments: Sequence[int], schema: pa.Schema, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The record batches, large ones cut."""
        wanted = {root(name, self.schema.names) for name in schema.names}
        places = [at for at, name in enumerate(self.schema.names) if name in wanted] or [0]
        with reading(self.path), self._opened(places) as reader:
            for batch in _batches(reader, segments):
                for start in range(0, batch.num_rows, batch_rows):
                    yield batch.slice(start, batch_rows)

    @contextmanager
    def _opened(self, places: list[int] | None) -> Iterator[pa.RecordBatchFileReader | pa.RecordBatchStreamReader]:
        options = pa.ipc.IpcReadOptions(included_fields=places)
        with pa.memory_map(str(self.path)) as file:
            opened = pa.ipc.open_file if self._is_file else pa.ipc.open_stream
            with opened(file, options=options) as reader:
                yield reader


def _batches(reader: pa.ipc.RecordBatchFileReader, segments: Sequence[int] | None) -> Iterator[pa.RecordBatch]:
    if isinstance(reader, pa.ipc.RecordBatchFileReader):
        for segment in range(reader.num_record_batches) if segments is None else segments:
            yield reader.get_batch(segment)
    else:  # a stream has no index: those before are skipped
        wanted = None if segments is None else set(segments)
        for at, batch in enumerate(reader):
            if wanted is None or at in wanted:
                yield batch
            if wanted and at == max(wanted):
                return
