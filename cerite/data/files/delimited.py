"""CSV and TSV: a header, then records of as many values; quotes are doubled inside quoted values.

Invariant: in a column of text an unquoted empty value or NULL is NULL, a quoted one is the string; in other columns the
usual spellings of a missing value are NULL, quoted or not. A record of another length, or a value that is not what its
column is declared to be, is an error with its line. Numbers that would lose digits stay text: whole ones that 64 bits
cannot hold, and those with leading zeros.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.types as is_

from cerite.core.errors import Hint, Setting, Span, StreamError, first_line
from cerite.data.columns import STRINGS, is_number
from cerite.data.files.chunks import Chunk, lines_cut, quoted_cut
from cerite.data.guesses import (
    ABSENT,
    MISSING,
    PADDED,
    SHAPES,
    WHOLE,
    MisfitError,
    declared,
    guessed,
    settled_times,
    typed,
    without,
)
from cerite.data.reading import Reading, refusal
from cerite.data.source import refuse_repeated
from cerite.data.unify import Guess

_BLOCK = 1 << 20
_SEPARATORS = (";", "\t", "|", ",")
_TRUE, _FALSE = ["true", "True", "TRUE"], ["false", "False", "FALSE"]


class Delimited:
    """The records of one file; `begin` learns the names of its columns."""

    guess: Guess = "all"

    def __init__(self, delimiter: str = ",", reading: Reading | None = None) -> None:
        self._reading = reading or Reading()
        self._delimiter = self._reading.delimiter or delimiter
        self._names: list[str] = []
        self.spelled: set[str] = set()

    def begin(self, path: Path, head: bytes) -> int:
        """Reads the header; blank lines before it are skipped."""
        lines = BytesIO(head).readlines()
        records = csv.reader((line.decode("utf-8", "replace") for line in lines), delimiter=self._delimiter)
        self._names = next(record for record in records if any(record))
        refuse_repeated(self._names, str(path))
        if len(self._names) == 1 and self._reading.delimiter is None:
            self._refuse_another_separator(path, lines[records.line_num - 1 :])
        return sum(map(len, lines[: records.line_num]))

    def _refuse_another_separator(self, path: Path, lines: Sequence[bytes]) -> None:
        """Refuse one column whose name and first value hold a separator that other files of text have."""
        header, first = lines[0], next((line for line in lines[1:] if line.strip()), lines[0])
        other = next((each for each in _SEPARATORS if each.encode() in header and each.encode() in first), None)
        if other is None or other == self._delimiter:
            return
        form = {",": "csv", "\t": "tsv"}.get(other)
        shown = {"\t": "a tab"}.get(other, f"`{other}`")
        raise StreamError(
            f"{path}: there is one column; the separator seems to be {shown}",
            hint=Hint("say so: ", Setting("delimiter", other) if form is None else Setting("format", form)),
        )

    def cut(self, data: bytes) -> int:
        """Whole records."""
        return quoted_cut(data) if b'"' in data else lines_cut(data)

    def parse(self, chunk: Chunk, schema: pa.Schema | None) -> pa.Table:
        """The records; without a schema types are inferred from all of them."""
        if not chunk.data:
            return pa.table({name: pa.nulls(0) for name in self._names})
        if schema is not None:
            return self._typed(chunk, dict(zip(schema.names, schema.types, strict=True)))
        others = [name for name in self._names if name not in self._reading.kinds]
        table = self._wide(chunk, {}, others) if others else pa.table({})
        known = [name for name in self._names if name not in others]
        exact = self._exact(chunk, known + [name for name in others if _may_have_lost(table[name])])
        if _has_padding(chunk.data, self._delimiter):
            exact |= self._exact(chunk, [name for name in others if is_number(table[name].type)])
        columns = {name: self._declared(chunk, exact[name], name) for name in known}
        columns |= {name: self._settled(chunk, table[name], name, exact.get(name)) for name in others}
        return pa.table({name: columns[name] for name in self._names})

    def line(self, chunk: Chunk, row: int) -> int:
        """The line at which a record of the chunk begins."""
        lines = (line.decode("utf-8") for line in BytesIO(chunk.data))
        records = (first for first, _, record in _records(lines, self._delimiter) if record or len(self._names) == 1)
        return chunk.span.line + next(first for at, first in enumerate(records) if at == row)

    def _declared(self, chunk: Chunk, text: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
        kind = self._reading.kinds[name]
        try:
            return declared(text, kind, self._reading.null_values)
        except MisfitError as misfit:
            raise refusal(f"{chunk.path}, line {self.line(chunk, misfit.row)}", name, misfit.value, kind) from None

    def _settled(self, chunk: Chunk, column: pa.ChunkedArray, name: str, text: pa.ChunkedArray | None) -> pa.Array:
        """The column as it was inferred, unless that lost something; `text` is its exact text where that is known."""
        nulls = self._reading.null_values
        if text is not None and is_.is_null(column.type):
            if without(text, nulls).null_count < len(text):
                self.spelled.add(name)
            return column
        if text is not None and is_number(column.type) and pc.any(pc.match_substring_regex(text, PADDED)).as_py():
            return without(text, nulls)
        if is_.is_timestamp(column.type):
            return settled_times(column)
        if is_.is_floating(column.type) and (b"+" in chunk.data or _is_huge(column)):
            exact = self._exact(chunk, [name])[name]
            if pc.all(pc.match_substring_regex(without(exact, (*MISSING, *nulls)), WHOLE)).as_py():
                return self._whole(exact)
        if not is_.is_string(column.type):
            return column
        values = column if text is None else text
        trimmed = _trimmed(values)
        if trimmed is not None and not is_.is_string((known := guessed(trimmed, nulls)).type):
            return known
        return without(values, nulls)

    def _whole(self, text: pa.ChunkedArray) -> pa.ChunkedArray:
        """Whole numbers that Arrow took for floats: some have a plus sign, or 64 bits do not hold them."""
        try:
            return typed(text, pa.int64(), self._reading.null_values)
        except MisfitError:
            return without(text, self._reading.null_values)

    def _typed(self, chunk: Chunk, types: dict[str, pa.DataType]) -> pa.Table:
        """The columns as these types, natively where that is exact."""
        texts = self._exact(chunk, [name for name, each in types.items() if each == STRINGS])
        others = {name: each for name, each in types.items() if name not in texts}
        columns: dict[str, pa.ChunkedArray] = {
            name: without(text, self._reading.null_values) for name, text in texts.items()
        }
        if others:
            try:
                table = self._wide(chunk, others, list(others))
                columns |= {name: table[name] for name in others}
            except pa.ArrowInvalid:  # spaces around numbers, perhaps
                for name, text in self._exact(chunk, list(others)).items():
                    columns[name] = typed(text, others[name], self._reading.null_values)
        return pa.table({name: columns[name] for name in types})

    def _exact(self, chunk: Chunk, names: Sequence[str]) -> dict[str, pa.ChunkedArray]:
        """The text of these columns, NULL where it is absent."""
        if not names:
            return {}
        types = dict.fromkeys(names, pa.string())
        table = self._read(chunk, types, names, nulls=ABSENT, quoted=False)
        return {name: table[name] for name in names}

    def _wide(self, chunk: Chunk, types: dict[str, pa.DataType], names: Sequence[str]) -> pa.Table:
        """The columns, with every spelling of a missing value read as NULL."""
        spellings = (*MISSING, *(f" {each}" for each in MISSING), *self._reading.null_values)
        return self._read(chunk, types, names, nulls=spellings, quoted=True)

    def _read(
        self, chunk: Chunk, types: dict[str, pa.DataType], names: Sequence[str], *,
        nulls: Sequence[str], quoted: bool, block: int = _BLOCK,
    ) -> pa.Table:  # fmt: skip
        try:
            return pa_csv.read_csv(
                BytesIO(chunk.data),
                pa_csv.ReadOptions(column_names=self._names, block_size=block),
                pa_csv.ParseOptions(
                    delimiter=self._delimiter, newlines_in_values=b'"' in chunk.data,
                    ignore_empty_lines=len(self._names) > 1,
                ),
                pa_csv.ConvertOptions(
                    column_types=types, include_columns=names, null_values=nulls, true_values=_TRUE,
                    false_values=_FALSE, strings_can_be_null=True, quoted_strings_can_be_null=quoted,
                ),
            )  # fmt: skip
        except pa.ArrowInvalid as error:
            if "straddl" in str(error) and block <= len(chunk.data):  # one record is larger than a block
                return self._read(chunk, types, names, nulls=nulls, quoted=quoted, block=len(chunk.data) + 1)
            if "conversion error" in str(error):
                raise
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


def _trimmed(text: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """The values without spaces around them, if some have such and the first value is not plain text."""
    first = next((value for value in (each.as_py() for each in text[:100]) if value and value.strip()), "x").strip()
    if not any(re.match(shape, first) for shape in SHAPES.values()) and first not in MISSING:
        return None
    trimmed = pc.utf8_trim_whitespace(text)
    return trimmed if pc.any(pc.not_equal(trimmed, text)).as_py() else None


def _is_huge(column: pa.ChunkedArray) -> bool:
    """Whether some of these floats are beyond the whole numbers of 64 bits."""
    bounds = pc.min_max(pc.filter(column, pc.is_finite(column))).as_py()
    return bounds["max"] is not None and max(-bounds["min"], bounds["max"]) >= 2.0**63


def _may_have_lost(column: pa.ChunkedArray) -> bool:
    """Whether text that was not a missing value may have been taken for one."""
    return bool(is_.is_null(column.type) or (is_.is_string(column.type) and column.null_count > 0))


def _has_padding(data: bytes, delimiter: str) -> bool:
    """Whether some value may have a leading zero: a quick look, without parsing."""
    text = np.frombuffer(b"\n\n" + data + b"\n ", np.uint8)
    ends = np.frombuffer(f'{delimiter}\n"'.encode(), np.uint8)
    zeros = np.flatnonzero(text == ord("0"))
    after = text[zeros + 1]
    zeros = zeros[((after >= ord("0")) & (after <= ord("9"))) | (after == ord("x")) | (after == ord("X"))]
    signed = np.isin(text[zeros - 1], np.frombuffer(b"+-", np.uint8))
    return bool(np.isin(text[zeros - 1 - signed], ends).any())


def _records(lines: Iterator[str], delimiter: str) -> Iterator[tuple[int, int, list[str]]]:
    """Each record with the (0-based) line at which it begins and the one before which it ends."""
    records = csv.reader(lines, delimiter=delimiter)
    before = 0
    for record in records:
        yield before, records.line_num, record
        before = records.line_num
