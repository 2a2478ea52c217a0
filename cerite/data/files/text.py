"""Text files (CSV, JSON lines, CORE's form): types are guessed from the whole file before the first row is given.

Invariant: the guess looks at every row, so no later value can fail to fit, and the number of rows is known. A small
file is parsed once and cached; of a large one only the places of its chunks are kept, and it is parsed again when read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.types as is_

from cerite.core.errors import StreamError
from cerite.data.columns import STRINGS, canonical, canonical_schema, rooted
from cerite.data.files.chunks import COMPRESSIONS, Chunk, Span, again, chunks, opened, packed_as
from cerite.data.files.part import Part, blank, reading
from cerite.data.guesses import shapes
from cerite.data.source import Sight
from cerite.data.unify import Guess, unified

_HEAD = 1 << 20
_BOM = b"\xef\xbb\xbf"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_LOOK = 1_000  # bytes; in UTF-16 about half of them are 0


class Format(Protocol):
    """How records of a kind of text are separated and parsed."""

    guess: Guess
    spelled: set[str]
    """Columns in which the usual spellings of a missing value were seen where nothing else was: they may be text."""

    def begin(self, path: Path, head: bytes) -> int:
        """Looks at the beginning of the text; returns how many bytes are header, not records."""

    def cut(self, data: bytes) -> int:
        """How many bytes are whole records."""

    def parse(self, chunk: Chunk, schema: pa.Schema | None) -> pa.Table:
        """The chunk's rows; with a schema, those of its columns that are there, read as its types."""

    def line(self, chunk: Chunk, row: int) -> int:
        """The line of the file that a row of the chunk begins on."""


class TextPart(Part):
    """One text file."""

    def __init__(self, path: Path, form: Format, keep: bool) -> None:
        self.path = path
        self.guess = form.guess
        self._form = form
        self._spans: list[Span] = []
        self._counts: list[int] = []
        self._cached: list[pa.Table] | None = [] if keep else None
        guesses: list[tuple[str, pa.Schema, Guess]] = []
        with reading(path):
            start, line = self._beginning()
            for chunk in chunks(path, start, line, form.cut):
                table = form.parse(chunk, None)
                self._spans.append(chunk.span)
                self._counts.append(table.num_rows)
                guesses.append((chunk.where, canonical_schema(table.schema), form.guess))
                if self._cached is not None:
                    self._cached.append(table)
            if not guesses:  # a header and nothing else
                empty = form.parse(Chunk(path, b"", Span(start, 0, line)), None)
                guesses.append((str(path), canonical_schema(empty.schema), form.guess))
        self.schema = unified(guesses)
        self.spelled = frozenset(form.spelled)

    @property
    def counts(self) -> Sequence[int]:
        """Rows of each chunk."""
        return self._counts

    def read(self, segments: Sequence[int], schema: pa.Schema, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The chunks, from memory or parsed again."""
        wanted = rooted(schema, self.schema)
        with reading(self.path):
            for segment, table in zip(segments, self._tables(segments, wanted), strict=True):
                if table.num_columns:
                    yield from table.combine_chunks().to_batches(max_chunksize=batch_rows)
                else:
                    yield from blank(self._counts[segment], batch_rows)

    def sights(self, name: str) -> dict[str, Sight]:
        """For every shape of value in the column, the first one: numbers, booleans, times, and other text."""
        first: dict[str, Sight] = {}
        if name not in self.schema.names:
            return first
        with reading(self.path):
            for chunk in again(self.path, self._spans):
                table = self._form.parse(chunk, pa.schema({name: STRINGS}))
                for shape, (row, value) in shapes(table[name]).items():
                    if shape not in first:
                        first[shape] = Sight(value, f"{self.path}, line {self._form.line(chunk, row)}")
        return first

    def _tables(self, segments: Sequence[int], schema: pa.Schema) -> Iterator[pa.Table]:
        cached = self._cached
        if cached is not None and all(self._fits(cached[segment].schema, schema) for segment in segments):
            for segment in segments:
                yield cached[segment].select([name for name in cached[segment].column_names if name in schema.names])
        elif not len(schema):
            yield from (pa.table({}) for _ in segments)
        else:
            for chunk in again(self.path, [self._spans[segment] for segment in segments]):
                yield self._form.parse(chunk, schema)

    def _fits(self, cached: pa.Schema, wanted: pa.Schema) -> bool:
        """Whether the parsed columns can be used as these types; text that was read as something else cannot."""
        for column in wanted:
            if column.type != STRINGS or column.name not in cached.names:
                continue
            kind = cached.field(column.name).type
            if canonical(kind) != STRINGS and not (is_.is_null(kind) and column.name not in self.spelled):
                return False
        return True

    def _beginning(self) -> tuple[int, int]:
        with opened(self.path) as file:
            head = file.read(_HEAD)
        if not head.strip():
            raise StreamError(f"{self.path}: the file is empty", hint="remove it, or write at least one record")
        _refuse_other_bytes(self.path, head)
        bom = len(_BOM) if head.startswith(_BOM) else 0
        start = bom + self._form.begin(self.path, head[bom:])
        return start, 1 + head.count(b"\n", 0, start)


def _refuse_other_bytes(path: Path, head: bytes) -> None:
    """Refuse what is text in another encoding, or packed text that does not say so in its name."""
    packed = packed_as(head)
    if packed is not None:
        ending = next(each for each, name in COMPRESSIONS.items() if name == packed)
        raise StreamError(
            f"{path}: this is {packed}, which the file's name does not say",
            hint=f"let the name end in {ending}, or unpack it",
        )
    zeros = head[:_LOOK].count(0)
    if head.startswith(_UTF_16) or zeros * 3 > len(head[:_LOOK]):
        raise StreamError(
            f"{path}: the text is UTF-16, not UTF-8",
            hint=f"save the file as UTF-8: iconv -f UTF-16 -t UTF-8 {path.name} > utf8-{path.name}",
        )
