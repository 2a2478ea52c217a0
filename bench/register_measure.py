"""Measures one pattern with registers in this process: rates, matches, and how many entries are alive at most.

Entries are counted every 200 events, after what has left the window was dropped.
Kleene patterns in wide windows have more matches than anyone can enumerate: only few are put into a table, of more the
first thousand are taken. Times are processor time: on one core with one thread it is what a quiet machine would take.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from bench import memory
from bench.measure import PATIENCE, Row
from bench.passes import Passes
from bench.register_patterns import RegisterWorkload, register_workloads
from bench.streams import STREAMS, Stream
from bench.workloads import Workload
from cerite.engine.engines import recogniser_of
from cerite.engine.registers.recogniser import RegisterRecogniser

MOST_ENUMERATED = 1_000_000
FIRST = 1_000
SAMPLE = 200
WARM_UP = 20_000


def measure_registers(name: str, events: int, repeats: int) -> Row:
    """All figures of one workload; times are the best of `repeats` and without compilation."""
    workload = next(each for each in register_workloads() if each.name == name)
    stream = STREAMS[workload.stream](events)
    passes = _passes(workload, stream)
    _warm_up(workload, stream)
    row: Row = {
        "name": name, "family": workload.family, "stream": workload.stream, "pattern": workload.pattern,
        "length": workload.length, "window": workload.window, "origin": stream.origin, "events": events,
    }  # fmt: skip
    row["entries"] = peak_entries(passes)
    row["plan_s"] = _best(lambda: _passes(workload, stream), repeats)
    row["count_mb"] = round(memory.growth(passes.count), 1)
    row["update_mb"] = round(memory.growth(passes.update), 1)
    row |= _both(passes, repeats)
    matches = int(row["matches"])
    row["first_s"] = _best(lambda: passes.found().head(FIRST), repeats)
    row["arrow_s"] = _best(passes.to_arrow, repeats) if matches <= MOST_ENUMERATED else None
    for column in ("update", "count", "arrow"):
        seconds = row[f"{column}_s"]
        row[f"{column}_rate"] = None if seconds is None else events / seconds
    return row


def peak_entries(passes: Passes) -> int:
    """The most entries alive at once: deterministic states that hold partial matches inside the window."""
    intake = passes.intake()
    engine = recogniser_of(intake)
    assert isinstance(engine, RegisterRecogniser)
    peak = 0
    for batch in passes.stream.table.select(list(intake.read)).to_batches(SAMPLE):
        engine.discard(engine.read(intake.take(batch)))
        engine.reclaim()
        peak = max(peak, engine.active)
    return peak


def _both(passes: Passes, repeats: int) -> Row:
    """Counting and updating take turns, so that what slows the machine for a while slows both."""
    row: Row = {"count_s": float("inf"), "update_s": float("inf")}
    begun = time.perf_counter()
    for _ in range(repeats):
        start = time.process_time()
        row["matches"] = str(passes.count())  # may be too large for a number in JSON
        middle = time.process_time()
        row["occurrences"] = passes.update()
        end = time.process_time()
        row["count_s"] = min(row["count_s"], middle - start)
        row["update_s"] = min(row["update_s"], end - middle)
        if time.perf_counter() - begun > PATIENCE:
            break
    return row


def _best(call: Callable[[], object], repeats: int) -> float:
    """The least processor time of some runs, in seconds."""
    found, begun = float("inf"), time.perf_counter()
    for _ in range(repeats):
        start = time.process_time()
        call()
        found = min(found, time.process_time() - start)
        if time.perf_counter() - begun > PATIENCE:
            break
    return found


def _passes(workload: RegisterWorkload, stream: Stream) -> Passes:
    return Passes(Workload(workload.name, workload.family, workload.stream, workload.text), stream)


def _warm_up(workload: RegisterWorkload, stream: Stream) -> None:
    small = _passes(workload, Stream(stream.table.slice(0, WARM_UP), stream.time, stream.origin))
    small.update()
    small.count()
    small.found().head(1)
