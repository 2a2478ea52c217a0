"""`python -m bench live`: the in-process stream, events per second of processor time by size of push.

The stock stream is pushed in batches of 10,000 and of 100 events: in order without a watermark, and out of order with
one. Out of order, every event is delayed by up to half a second, and the watermark's delay is a second. The goals are 3
million events a second with batches of 10,000, and 100,000 with batches of 100, where the fixed cost of a push is all
that counts.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import cerite
from bench.streams import stock_stream

QUERIES = {
    "a pair": "SELECT * FROM S WHERE SELL AS x ; BUY AS y FILTER x[name = 'INTC'] AND y[name = 'RIMM'] "
    "WITHIN 10 EVENTS",
    "by key": "SELECT * FROM S WHERE SELL AS x ; BUY AS y FILTER x[volume > 5000] AND y[volume > 5000] "
    "PARTITION BY [name] WITHIN 1 second",
    "registers": "SELECT * FROM S WHERE SELL AS x ; BUY AS y FILTER x[name = 'INTC'] AND y[price > x.price] "
    "AND y[name = 'RIMM'] WITHIN 10 EVENTS",
}
GOALS = {10_000: 3_000_000, 100: 100_000}
EVENTS = {10_000: 2_000_000, 100: 100_000}
DISORDER = 500  # milliseconds
Row = dict[str, Any]


def rows(events: int | None, repeats: int) -> Iterator[Row]:
    """A row for every query, size of push and order of arrival."""
    for size, goal in GOALS.items():
        count = min(EVENTS[size], events or EVENTS[size])
        for late in (False, True):
            table, column = _arriving(count, late=late)
            for name, text in QUERIES.items():
                stream = _Stream(text, table, column, size, "1 second" if late else None)
                stream.seconds(20)  # kernels are compiled
                seconds = min(stream.seconds() for _ in range(repeats))
                yield {
                    "name": name, "push": size, "watermark": late, "events": count, "matches": stream.matches,
                    "rate": round(count / seconds), "push_ms": round(seconds / -(-count // size) * 1e3, 3),
                    "goal": goal,
                }  # fmt: skip


def line(row: Row) -> str:
    """A measurement as it is printed."""
    order = "out of order, watermark" if row["watermark"] else "in order"
    reached = "reaches" if row["rate"] >= row["goal"] else "MISSES"
    return (
        f"{row['name']}, pushes of {row['push']:,}, {order}: {row['rate'] / 1e6:.2f} M/s of processor time, "
        f"{row['push_ms']:.3f} ms a push, {reached} the goal of {row['goal'] / 1e6:g} M/s"
    )


def _arriving(events: int, *, late: bool) -> tuple[pa.Table, str]:
    stream = stock_stream(events)
    if not late:
        return stream.table, stream.time
    ticks = pc.cast(stream.table[stream.time], pa.int64()).to_numpy()
    arrival = ticks + np.random.default_rng(11).integers(0, DISORDER, events)
    return stream.table.take(pa.array(np.argsort(arrival, kind="stable"))).combine_chunks(), stream.time


class _Stream:
    """One query over a table that is pushed piece by piece."""

    def __init__(self, text: str, table: pa.Table, time: str, size: int, watermark: str | None) -> None:
        self._query, self._schema = cerite.query(text), table.schema
        self._batches = table.to_batches(max_chunksize=size)
        self._settings: dict[str, Any] = {"time": time, "watermark": watermark}
        self.matches = 0

    def seconds(self, most: int | None = None) -> float:
        """The processor time of pushing everything and counting what each push completes."""
        stream = self._query.stream(self._schema, **self._settings)
        matches, begin = 0, time.process_time()
        for batch in self._batches[:most]:
            matches += stream.push(batch).count()
        matches += stream.close().count()
        seconds = time.process_time() - begin
        if stream.metrics.late:
            raise RuntimeError("no event of this stream should be late")
        self.matches = matches
        return seconds
