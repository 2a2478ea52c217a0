"""CSV and TSV: a header, then records of as many values; quotes are doubled inside quoted values.

Invariant: an unquoted empty value or NULL is NULL, a quoted one is the string; a record of another length is an error
with its line. Whole numbers that 64 bits cannot hold stay text rather than lose digits.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.types as is_

from cerite.data.chunks import Chunk, lines_cut, quoted_cut
from cerite.data.columns import first_line
from cerite.data.guesses import WHOLE, settled_times
from cerite.data.source import refuse_repeated
from cerite.data.unify import Guess
from cerite.errors import Span, StreamError

_BLOCK = 1 << 20


class Delimited:
    """The records of one file; `begin` learns the names of its columns."""

    guess: Guess = "all"

    def __init__(self, delimiter: str = ",") -> None:
        self._delimiter = delimiter
        self._names: list[str] = []

    def begin(self, path: Path, head: bytes) -> int:
        """Reads the header; blank lines before it are skipped."""
        lines = BytesIO(head).readlines()
        records = csv.reader((line.decode("utf-8", "replace") for line in lines), delimiter=self._delimiter)
        self._names = next(record for record in records if any(record))
        refuse_repeated(self._names, str(path))
        return sum(map(len, lines[: records.line_num]))

    def cut(self, data: bytes) -> int:
        """Whole records."""
        return quoted_cut(data) if b'"' in data else lines_cut(data)

    def parse(self, chunk: Chunk, schema: pa.Schema | None) -> pa.Table:
        """The records; without a schema types are inferred from all of them."""
        if not chunk.data:
            return pa.table({name: pa.nulls(0) for name in self._names})
        if schema is not None:
            return self._read(chunk, dict(zip(schema.names, schema.types, strict=True)), schema.names)
        table = self._read(chunk, {}, [])
        for at, column in enumerate(table.columns):
            if is_.is_timestamp(column.type):
                table = table.set_column(at, table.field(at).name, settled_times(column))
            elif is_.is_floating(column.type) and self._holds_huge(chunk, table.field(at).name, column):
                text = self._read(chunk, {table.field(at).name: pa.string()}, [table.field(at).name])
                table = table.set_column(at, table.field(at).name, text.column(0))
        return table

    def _holds_huge(self, chunk: Chunk, name: str, column: pa.ChunkedArray) -> bool:
        """Whether these floats are really whole numbers, some too large to be integers."""
        bounds = pc.min_max(pc.filter(column, pc.is_finite(column))).as_py()
        if bounds["max"] is None or max(-bounds["min"], bounds["max"]) < 2.0**63:
            return False
        text = self._read(chunk, {name: pa.string()}, [name]).column(0)
        return bool(pc.all(pc.match_substring_regex(text, WHOLE)).as_py())

    def _read(self, chunk: Chunk, types: dict[str, pa.DataType], names: list[str], block: int = _BLOCK) -> pa.Table:
        quoted = b'"' in chunk.data
        try:
            return pa_csv.read_csv(
                BytesIO(chunk.data),
                pa_csv.ReadOptions(column_names=self._names, block_size=block),
                pa_csv.ParseOptions(
                    delimiter=self._delimiter, newlines_in_values=quoted, ignore_empty_lines=len(self._names) > 1
                ),
                pa_csv.ConvertOptions(
                    column_types=types, include_columns=names, null_values=["", "NULL"],
                    strings_can_be_null=True, quoted_strings_can_be_null=False,
                ),
            )  # fmt: skip
        except pa.ArrowException as error:
            if "straddl" in str(error) and block <= len(chunk.data):  # one record is larger than a block
                return self._read(chunk, types, names, len(chunk.data) + 1)
            self._explain(chunk, error)

    def _explain(self, chunk: Chunk, error: Exception) -> NoReturn:
        """Finds the record that has too few or too many values."""
        lines = (line.decode("utf-8") for line in BytesIO(chunk.data))
        for first, last, record in _records(lines, self._delimiter):
            if record and len(record) != len(self._names):
                line = chunk.span.line + first
                text = chunk.data.split(b"\n", last)[first].decode("utf-8").rstrip("\r")
                many = f"{len(record)} value{'s' if len(record) != 1 else ''}"
                unclosed = "; does a quote stay open?" if last - first > 1 else ""
                raise StreamError(
                    f"{chunk.path}, line {line}: {many}, but the header names {len(self._names)} columns{unclosed}",
                    source=text,
                    span=Span(0, len(text)),
                    hint="put values that hold the separator, quotes or line ends in quotes",
                ) from error
        raise StreamError(f"{chunk.where}: {first_line(error)}") from error


def _records(lines: Iterator[str], delimiter: str) -> Iterator[tuple[int, int, list[str]]]:
    """Each record with the (0-based) lines it begins and ends before."""
    records = csv.reader(lines, delimiter=delimiter)
    before = 0
    for record in records:
        yield before, records.line_num, record
        before = records.line_num
