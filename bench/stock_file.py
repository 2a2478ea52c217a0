"""The real stock stream, where its file is at hand, repeated day after day."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bench.stock_figures import DAY_MS
from bench.stocks import SCHEMA


def stock_file() -> Path | None:
    """Where the file is: where CERITE_STOCKS says."""
    path = Path(os.environ.get("CERITE_STOCKS", ""))
    return path if path.is_file() else None


def repeated_days(path: Path) -> Iterator[pa.RecordBatch]:
    """The file's day, repeated without end: stock_time goes on by a day, ids go on from the last."""
    day = _day(path)
    times, ids = (day.column(name).to_numpy() for name in ("stock_time", "id"))
    for k in count():
        columns = day.columns
        columns[SCHEMA.get_field_index("id")] = pa.array(ids + k * (int(ids.max()) + 1))
        columns[SCHEMA.get_field_index("stock_time")] = pa.array(times + k * DAY_MS)
        yield pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


@cache
def _day(path: Path) -> pa.RecordBatch:
    """The file's rows, strings as codes of one dictionary."""
    day = pq.read_table(path, columns=SCHEMA.names).combine_chunks().to_batches()[0]
    columns = [column.dictionary_encode() if pa.types.is_string(column.type) else column for column in day.columns]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
