"""Time and memory against stream length: S3 on 1 to 20 million events that come as batches, never as a table.

The time taken to make the batches is subtracted; each length is measured in a process of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pyarrow as pa

from bench import memory
from bench.measure import Row
from bench.passes import Passes
from bench.streams import stock_batches, stock_stream
from bench.workloads import Workload, chosen

LENGTHS = (1_000_000, 2_000_000, 5_000_000, 10_000_000, 20_000_000)
QUICK_LENGTHS = (100_000, 200_000)
WARM_UP = 300_000


class Clocked:
    """Batches that know how long it took to make them."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self.seconds = 0.0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while True:
            start = time.perf_counter()
            batch = next(self._batches, None)
            self.seconds += time.perf_counter() - start
            if batch is None:
                return
            yield batch


def measure_growth(events: int, repeats: int) -> Row:
    """The measurements of S3 on this many events."""
    workload = chosen("S3")[0]
    _once(workload, WARM_UP)
    row: Row = {"name": workload.name, "events": events, "update_s": float("inf"), "count_s": float("inf")}
    passes = Passes(workload, stock_stream(1))
    row["count_mb"] = round(memory.growth(lambda: _timed(events, passes, row, "count_s", _count)), 1)
    row["update_mb"] = round(memory.growth(lambda: _timed(events, passes, row, "update_s", _update)), 1)
    for _ in range(repeats - 1):
        _timed(events, passes, row, "count_s", _count)
        _timed(events, passes, row, "update_s", _update)
    for name in ("update", "count"):
        row[f"{name}_rate"] = events / row[f"{name}_s"]
    return row


def _once(workload: Workload, events: int) -> None:
    passes, row = Passes(workload, stock_stream(1)), {"count_s": 0.0, "update_s": 0.0}
    _timed(events, passes, row, "count_s", _count)
    _timed(events, passes, row, "update_s", _update)


Run = Callable[[Passes, pa.Schema, Clocked], object]


def _timed(events: int, passes: Passes, row: Row, column: str, run: Run) -> None:
    batches = stock_batches(events)
    clocked = Clocked(batches.batches)
    start = time.perf_counter()
    run(passes, batches.schema, clocked)
    row[column] = min(row[column], time.perf_counter() - start - clocked.seconds)


def _count(passes: Passes, schema: pa.Schema, batches: Clocked) -> object:
    reader = pa.RecordBatchReader.from_batches(schema, iter(batches))
    return passes.query.run(reader, time="stock_time", type="type").count()


def _update(passes: Passes, schema: pa.Schema, batches: Clocked) -> object:
    return passes.update_batches(schema, batches)
