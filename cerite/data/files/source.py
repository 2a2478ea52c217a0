"""One source of several files, of any formats.

Invariant: rows come in the order of the files, with one schema for all; memory is bounded by a few batches, because
the next batch is read (in a thread of its own) while one is used, and no further.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

import pyarrow as pa
import pyarrow.types as is_

from cerite.data.columns import STRINGS, conform, root, subschema, with_leaves
from cerite.data.files.chunks import COMPRESSIONS
from cerite.data.files.columnar import IpcPart, ParquetPart
from cerite.data.files.core_text import CoreText
from cerite.data.files.delimited import Delimited
from cerite.data.files.json_lines import JsonLines
from cerite.data.files.part import Part
from cerite.data.files.paths import TEXTS, AnyPath, files_of, format_of
from cerite.data.files.text import Format, TextPart
from cerite.data.guesses import sampled
from cerite.data.positions import Positions, gather
from cerite.data.reading import Reading
from cerite.data.source import BATCH_ROWS, Sight, Source, checked_rows, chosen
from cerite.data.unify import unified

_CACHED_BYTES = 1 << 26  # text of up to this many bytes stays in memory once parsed
SAMPLE = 10_000  # strings of a typed file that are looked at where their order matters
_PACKED = 10  # how many times larger compressed text may become


class FileSource(Source):
    """The rows of files; see `open_events` for what may be named."""

    def __init__(
        self,
        data: AnyPath | Sequence[AnyPath],
        columns: Sequence[str] | None = None,
        batch_rows: int = BATCH_ROWS,
        reading: Reading | None = None,
    ) -> None:
        self._batch_rows = checked_rows(batch_rows)
        reading = reading or Reading()
        files = files_of(data, reading.format)
        self.files = tuple(files)
        self.name = str(files[0]) if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"
        forms = [reading.format or format_of(file) for file in files]
        if not any(form in TEXTS for form in forms):
            replace(reading, format=None).refuse_text_options(self.name)
        keep = sum(_text_size(file) for file, form in zip(files, forms, strict=True) if form in TEXTS) <= _CACHED_BYTES
        self._parts = [_part(file, form, keep, reading) for file, form in zip(files, forms, strict=True)]
        self._reading = reading
        top = self._unified()
        self.available = tuple(top.names)
        self.everything = with_leaves(top, self.name)
        self.schema = subschema(
            self.everything, chosen(columns, self.everything.names if columns else top.names, self.name)
        )
        counts = [sum(part.counts) for part in self._parts]
        self.rows: int = sum(counts)
        if all(isinstance(part, ParquetPart) for part in self._parts):
            self.row_starts = tuple(accumulate(counts[:-1], initial=0))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows of all files, one batch read ahead."""
        return _ahead(self._conformed())

    def take(self, positions: Positions, columns: Sequence[str] | None = None) -> pa.Table:
        """Rows by position; only the row groups or chunks that hold them are read."""
        names = tuple(self.schema.names) if columns is None else chosen(columns, self.everything.names, self.name)
        schema = subschema(self.everything, names)
        places = [(part, segment) for part in self._parts for segment in range(len(part.counts))]
        counts = [part.counts[segment] for part, segment in places]

        def read(i: int) -> Iterator[pa.RecordBatch]:
            part, segment = places[i]
            return self._of(part, [segment], schema)

        return gather(positions, counts, read, schema, self.name)

    def sights(self, name: str) -> dict[str, Sight]:
        """What the column looks like in the text files that have it; nothing for a column that is declared."""
        first: dict[str, Sight] = {}
        for part in self._parts if name not in self._reading.kinds else ():
            first = part.sights(name) | first
        return first

    def samples(self, name: str) -> dict[str, Sight]:
        """What the first strings of the column look like in the first file that has it with a type of its own."""
        typed = (part for part in self._parts if part.guess == "none" and name in part.schema.names)
        part = next((each for each in typed if sum(each.counts)), None)
        if part is None or name in self._reading.kinds or part.schema.field(name).type != STRINGS:
            return {}
        segment = next(at for at, count in enumerate(part.counts) if count)
        first = next(iter(part.read([segment], pa.schema([(name, STRINGS)]), SAMPLE)))
        text = first.column(name).cast(pa.string()).slice(0, SAMPLE)
        return {shape: Sight(value, f"{part.path}, row {row}") for shape, (row, value) in sampled(text).items()}

    def lacking(self, name: str) -> list[str]:
        """The files without a column that other files have."""
        home = root(name, self.available)
        return [] if home is None else [str(part.path) for part in self._parts if home not in part.schema.names]

    def _unified(self) -> pa.Schema:
        """One schema for all parts. Where a column has only words for missing values, they may as well be text."""
        for part in self._parts:
            if part.guess == "none":
                self._reading.refuse_other_kinds(part.schema, str(part.path))
        schema = unified((str(part.path), part.schema, part.guess) for part in self._parts)
        spelled = frozenset().union(*(part.spelled for part in self._parts))
        return pa.schema(
            [(each.name, STRINGS if is_.is_null(each.type) and each.name in spelled else each.type) for each in schema]
        )

    def _conformed(self) -> Iterator[pa.RecordBatch]:
        for part in self._parts:
            yield from self._of(part, range(len(part.counts)), self.schema)

    def _of(self, part: Part, segments: Sequence[int], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for batch in part.read(segments, schema, self._batch_rows):
            if batch.num_rows:
                yield conform(batch, schema, str(part.path))


def _part(path: Path, form: str, keep: bool, reading: Reading) -> Part:
    if form == "parquet":
        return ParquetPart(path)
    if form == "ipc":
        return IpcPart(path)
    formats: dict[str, Callable[[], Format]] = {
        "csv": lambda: Delimited(",", reading),
        "tsv": lambda: Delimited("\t", reading),
        "json": lambda: JsonLines(reading),
        "core": lambda: CoreText(reading),
    }
    return TextPart(path, formats[form](), keep)


def _text_size(path: Path) -> int:
    return path.stat().st_size * (_PACKED if path.suffix.lower() in COMPRESSIONS else 1)


def _ahead(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same batches, the next one being prepared while one is used."""
    with ThreadPoolExecutor(1, "cerite-read") as thread:
        coming = thread.submit(next, batches, None)
        while (batch := coming.result()) is not None:
            coming = thread.submit(next, batches, None)
            yield batch
