"""Measures one workload in this process: the figures of one row of the table."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from bench import memory
from bench.floor import numpy_floor, polars_floor
from bench.passes import Passes
from bench.streams import STREAMS, Stream
from bench.workloads import Workload

MOST_ENUMERATED = 50_000_000
MOST_BYTES = 3 << 30  # a larger table does not stay in memory: its pieces are dropped as they come
WARM_UP = 30_000
PATIENCE = 30.0  # seconds after which a pass is not repeated

Row = dict[str, Any]


def measure(workload: Workload, events: int, repeats: int) -> Row:
    """Runs all passes; times are the best of `repeats`, without compilation."""
    events = min(events, workload.most or events)
    stream = STREAMS[workload.stream](events)
    if workload.plain_strings:
        stream = plain(stream)
    passes = Passes(workload, stream)
    _warm_up(workload, stream)
    row: Row = {"name": workload.name, "group": workload.group, "stream": workload.stream, "origin": stream.origin}
    row |= {"events": events, "guards": len(passes.plan.guards), "semantics": workload.semantics}
    row["update_mb"] = round(memory.growth(passes.update), 1)
    row["count_mb"] = round(memory.growth(passes.count), 1)
    row["matches"] = str(passes.count())  # may be too large for a number in JSON
    row["occurrences"] = passes.update()
    row["conditions_s"] = best(passes.conditions, repeats)
    row["update_s"] = best(passes.update, repeats)
    row["count_s"] = best(passes.count, repeats)
    row |= _enumerated(passes, repeats)
    for name, floor in (("polars_s", polars_floor), ("numpy_s", numpy_floor)):
        call = floor(stream.table, passes.plan.tests)
        call()
        row[name] = best(call, repeats)
    for name in ("conditions", "update", "count", "arrow", "polars", "numpy"):
        seconds = row[f"{name}_s"]
        row[f"{name}_rate"] = None if seconds is None else events / seconds
    return row | _match_rates(row)


def _match_rates(row: Row) -> Row:
    """Matches per second in pieces of Arrow: over the whole run, and without reading and updating."""
    matches, whole = int(row["matches"]), row["pieces_s"]
    if whole is None:
        return {"match_rate": None, "enumerated_rate": None}
    return {"match_rate": matches / whole, "enumerated_rate": matches / max(1e-9, whole - row["update_s"])}


def _enumerated(passes: Passes, repeats: int) -> Row:
    """Enumeration into Arrow, in one table where it fits, and in pieces that are dropped as they come."""
    matches = passes.count()
    if matches > MOST_ENUMERATED:
        return {"arrow_s": None, "pieces_s": None, "arrow_note": f"more than {MOST_ENUMERATED:,} matches"}
    size = _bytes_per_match(passes) * matches
    pieces = best(passes.tables, repeats)
    if size > MOST_BYTES:
        return {"arrow_s": pieces, "pieces_s": pieces, "arrow_note": f"pieces only: {size / 1e9:.0f} GB in all"}
    return {"arrow_s": best(passes.to_arrow, repeats), "pieces_s": pieces, "arrow_note": ""}


def _bytes_per_match(passes: Passes) -> float:
    piece = next(iter(passes.matches().tables()), None)
    return 0.0 if piece is None else piece.nbytes / piece.num_rows


def best(call: Callable[[], object], repeats: int) -> float:
    """The shortest of some runs, in seconds."""
    least = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        took = time.perf_counter() - start
        least = min(least, took)
        if took > PATIENCE:
            break
    return least


def plain(stream: Stream) -> Stream:
    """The same stream with its strings not encoded."""
    columns = [
        column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column for column in stream.table.columns
    ]
    return Stream(pa.table(columns, names=stream.table.column_names), stream.time, stream.origin)


def _warm_up(workload: Workload, stream: Stream) -> None:
    """Loads and compiles everything once, on the first events."""
    small = Passes(workload, Stream(stream.table.slice(0, WARM_UP), stream.time, stream.origin))
    for each in (small.conditions, small.update, small.count):
        each()
    next(iter(small.matches().tables()), None)  # one piece: there may be very many
