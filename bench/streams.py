"""The streams of the CORE paper at any size: `stock_stream`, `home_stream`, `taxi_stream`, and the same as batches.

A stream says where it comes from: the real file or a generator.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from bench import homes, stocks, taxis
from bench.columns import first
from bench.stock_file import repeated_days, stock_file


@dataclass(frozen=True)
class Stream:
    """A table of events in stream order."""

    table: pa.Table
    time: str
    origin: str


@dataclass(frozen=True)
class Batches:
    """The same as batches, never whole in memory."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    time: str
    origin: str

    def table(self) -> Stream:
        """All in one table of one chunk."""
        whole = pa.Table.from_batches(list(self.batches), self.schema).unify_dictionaries().combine_chunks()
        return Stream(whole, self.time, self.origin)


def stock_batches(events: int, *, generated: bool = False) -> Batches:
    """BUY and SELL events, from the real file where there is one, unless `generated`."""
    path = None if generated else stock_file()
    if path is None:
        return Batches(stocks.SCHEMA, first(stocks.stock_days(), events), "stock_time", "generated")
    return Batches(stocks.SCHEMA, first(repeated_days(path), events), "stock_time", "real day, repeated")


def home_batches(events: int) -> Batches:
    """LOAD events."""
    return Batches(homes.SCHEMA, first(homes.home_blocks(), events), "plug_timestamp", "generated")


def taxi_batches(events: int) -> Batches:
    """TRIP events."""
    return Batches(taxis.SCHEMA, first(taxis.taxi_batches(), events), "dropoff_datetime", "generated")


def stock_stream(events: int, *, generated: bool = False) -> Stream:
    """`stock_batches` in one table."""
    return stock_batches(events, generated=generated).table()


def home_stream(events: int) -> Stream:
    """`home_batches` in one table."""
    return home_batches(events).table()


def taxi_stream(events: int) -> Stream:
    """`taxi_batches` in one table."""
    return taxi_batches(events).table()


STREAMS = {"stocks": stock_stream, "homes": home_stream, "taxis": taxi_stream}
BATCHES = {"stocks": stock_batches, "homes": home_batches, "taxis": taxi_batches}
