"""The streams of the streaming benchmark, as Parquet files that are micro-batches."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cerite.core.arrays import Longs

SCHEMA = "type string, k bigint, v double, at timestamp, n bigint"
DAY = 86_400
PER_SECOND = 100_000  # events in a second of event time, where the rate is not the point
_KINDS = ("A", "B", "C", "D")


def events(first: int, at: Longs, keys: Longs, seed: int) -> pa.Table:
    """Events with these times (microseconds) and keys, numbered from `first` on; their types do not follow the keys."""
    rng = np.random.default_rng([seed, 1])
    kinds = pa.DictionaryArray.from_arrays(pa.array(rng.integers(0, 4, at.size), pa.int32()), _KINDS)
    return pa.table({
        "type": kinds.cast(pa.string()), "k": keys, "v": rng.random(at.size),
        "at": pa.array(at, pa.timestamp("us", "UTC")), "n": np.arange(first, first + at.size),
    })  # fmt: skip


def keyed_files(folder: Path, count: int, batch: int, keys: int) -> None:
    """`count` events in files of `batch`, with keys drawn from `keys`."""
    for first in range(0, count, batch):
        size = min(batch, count - first)
        drawn = np.random.default_rng(first).integers(0, keys, size)
        at = (np.arange(first, first + size) * (1_000_000 // PER_SECOND)).astype(np.int64)
        _write(events(first, at, drawn, first), folder, first // batch)


def day_files(folder: Path, count: int, batch: int) -> None:
    """A day of event time; every key has some twenty events within a few seconds, and never comes back."""
    for first in range(0, count, batch):
        numbers = np.arange(first, min(first + batch, count))
        drawn = numbers // 20 + np.random.default_rng(first).integers(0, 50, numbers.size)
        at = (numbers * (DAY * 1_000_000 / count)).astype(np.int64)
        _write(events(first, at, drawn, first), folder, first // batch)


def paced_batch(folder: Path, number: int, rate: int, keys: int) -> None:
    """The events of the last second by the system clock."""
    now = time.time_ns() // 1_000
    at = np.linspace(now - 1_000_000, now, rate, endpoint=False).astype(np.int64)
    _write(events(number * rate, at, np.random.default_rng(number).integers(0, keys, rate), number), folder, number)


def _write(table: pa.Table, folder: Path, number: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f".{number:06}"
    pq.write_table(table, draft)
    os.utime(draft, (1_700_000_000 + number,) * 2)  # the order in which Spark takes them
    draft.rename(folder / f"{number:06}.parquet")
