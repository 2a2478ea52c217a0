"""`open_events`: looks at what it is given and opens it as a `Source`.

Invariant: this is the only place that knows all kinds of data; it reads no rows itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from cerite.core.errors import StreamError, a, first_line
from cerite.data.files.source import FileSource
from cerite.data.frames import is_pandas, is_polars, is_spark, open_pandas, open_polars
from cerite.data.memory import TableSource
from cerite.data.readers import ReaderSource
from cerite.data.reading import Reading
from cerite.data.rows import RowSource
from cerite.data.source import BATCH_ROWS, Source
from cerite.language.queries import SchemaLike, declared

_HINT = "pass a path, an Arrow table or reader, a pandas or Polars frame, or an iterable of dictionaries"


def open_events(
    data: Any,
    *,
    columns: Sequence[str] | None = None,
    batch_rows: int = BATCH_ROWS,
    schema: SchemaLike | None = None,
    null_values: str | Sequence[str] = (),
    delimiter: str | None = None,
    format: str | None = None,
) -> Source:
    """Opens events for reading, whatever holds them.

    `data` is a pyarrow Table, RecordBatch or RecordBatchReader, or anything that streams Arrow
    (`__arrow_c_stream__`); a pandas DataFrame; a Polars DataFrame or LazyFrame; a path, glob or directory, or a list of
    those, of Parquet, CSV/TSV, JSON lines, Arrow IPC (Feather), or CORE's text form (.txt, .stream); or an iterable of
    dictionaries. `columns` are those to read, all by default; a batch has at most `batch_rows` rows.

    `schema` declares the kinds of columns, e.g. `{"zip": "string"}`: text is read as declared, other data must be of
    that kind. `null_values` are further spellings of missing values in text, `delimiter` separates the values of CSV,
    and `format` is the format of files whose extension does not tell it.

    >>> source = open_events(({"type": "BUY", "price": price} for price in range(5)), columns=["price"], batch_rows=2)
    >>> [batch.to_pydict() for batch in source.batches()]
    [{'price': [0, 1]}, {'price': [2, 3]}, {'price': [4]}]

    A source that can be read again also gives rows by position:

    >>> open_events(pa.table({"id": [7, 8, 9]})).take([2, 0]).to_pydict()
    {'id': [9, 7]}
    """
    kinds = {} if schema is None else declared(schema).column_kinds
    return opened(data, Reading.of(kinds, null_values, delimiter, format), columns, batch_rows)


def opened(data: Any, reading: Reading, columns: Sequence[str] | None = None, batch_rows: int = BATCH_ROWS) -> Source:
    """Events, read as the caller wants it."""
    if isinstance(data, (str, os.PathLike)) or _are_paths(data):
        return FileSource(data, columns, batch_rows, reading)
    return as_declared(_of_types(data, columns, batch_rows), reading)


def as_declared(source: Source, reading: Reading) -> Source:
    """Data with types of its own, checked against what is declared; strings that are declared times become times."""
    reading.refuse_text_options(source.name)
    if isinstance(source, TableSource):
        for name, kind in reading.kinds.items():
            if kind == "timestamp" and source.is_text(name):
                source = source.timed(name)
    reading.refuse_other_kinds(source.everything, source.name)
    return source


def _of_types(data: Any, columns: Sequence[str] | None, batch_rows: int) -> Source:
    """Data whose values have types of their own."""
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.Table):
        return TableSource(data.select, data.column_names, "the table", columns, batch_rows)
    if isinstance(data, pa.RecordBatchReader):
        return ReaderSource(data, "the reader", columns, batch_rows)
    if is_pandas(data):
        return open_pandas(data, columns, batch_rows)
    if is_polars(data):
        return open_polars(data, columns, batch_rows)
    if is_spark(data):
        raise StreamError(
            "a Spark DataFrame is not read here",
            hint="find matches on Spark: cerite.spark.match(df, query, time=…); or collect it: df.toArrow()",
        )
    if hasattr(data, "__arrow_c_stream__"):
        return ReaderSource(_reader(data), f"the stream of {type(data).__name__}", columns, batch_rows)
    if isinstance(data, Iterable) and not isinstance(data, (Mapping, bytes, bytearray)):
        return RowSource(data, columns, batch_rows)
    hint = "for columns, pass pyarrow.table(data); for one event, [data]" if isinstance(data, Mapping) else _HINT
    raise StreamError(f"events cannot be read from {a(type(data).__name__)}", hint=hint)


def _are_paths(data: object) -> bool:
    return isinstance(data, (list, tuple)) and bool(data) and all(isinstance(each, (str, os.PathLike)) for each in data)


def _reader(data: Any) -> pa.RecordBatchReader:
    if hasattr(data, "to_frame"):
        raise StreamError(
            f"a {type(data).__name__} is one column, and events have several", hint="pass a frame of all of them"
        )
    try:
        return pa.RecordBatchReader.from_stream(data)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise StreamError(
            f"the stream of {type(data).__name__} has no rows: {first_line(error)}", hint=_HINT
        ) from error
