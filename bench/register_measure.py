"""Measures one pattern with registers in this process: rates, matches, and how many entries are alive at most.

Entries are counted every 200 events, after dropping those that have left the window. Kleene patterns in wide windows
have more matches than anyone can enumerate: a table is made only of few, and of more the first thousand are taken.
Every pass is timed in two ways: elapsed time (`_s`), by which targets are judged, and processor time (`_cpu_s`), which
varies less when other work runs at the same time.
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
from cerite.engine.registers.recogniser import RegisterRecogniser
from cerite.engine.run import Run

MOST_ENUMERATED = 1_000_000
FIRST = 1_000
SAMPLE = 200
WARM_UP = 20_000


def measure_registers(name: str, events: int, repeats: int) -> Row:
    """All figures of one workload; times are the best of `repeats`, without compilation."""
    workload = next(each for each in register_workloads() if each.name == name)
    stream = STREAMS[workload.stream](events)
    passes = _passes(workload, stream)
    _warm_up(workload, stream)
    row: Row = {
        "name": name, "family": workload.family, "stream": workload.stream, "pattern": workload.pattern,
        "length": workload.length, "window": workload.window, "origin": stream.origin, "events": events,
    }  # fmt: skip
    row["entries"] = peak_entries(passes)
    row["count_mb"] = round(memory.growth(passes.count), 1)
    row["update_mb"] = round(memory.growth(passes.update), 1)
    matches = passes.count()
    row["matches"] = str(matches)  # may be too large for a number in JSON
    row["occurrences"] = passes.update()
    calls: dict[str, Callable[[], object]] = {"update": passes.update, "count": passes.count}
    if matches <= MOST_ENUMERATED:
        calls["arrow"] = passes.to_arrow
    else:
        calls["first"] = lambda: passes.matches().head(FIRST)
    row |= _timed(calls, repeats)
    for name in calls:
        row[f"{name}_rate"], row[f"{name}_cpu_rate"] = events / row[f"{name}_s"], events / row[f"{name}_cpu_s"]
    return row


def peak_entries(passes: Passes) -> int:
    """The most entries alive at once: deterministic states that hold partial matches inside the window."""
    run = Run(passes.run().program, in_groups=False)
    engine = run.recogniser
    assert isinstance(engine, RegisterRecogniser)
    peak = 0
    for batch in passes.stream.table.select(list(run.program.read)).to_batches(SAMPLE):
        engine.discard(run.find(batch))
        engine.reclaim()
        peak = max(peak, engine.active)
    return peak


def _timed(calls: dict[str, Callable[[], object]], repeats: int) -> Row:
    """The least elapsed and processor time of each call; they take turns, so that what slows one slows all."""
    row: Row = {f"{name}_{clock}": float("inf") for name in calls for clock in ("s", "cpu_s")}
    begun = time.perf_counter()
    for _ in range(repeats):
        for name, call in calls.items():
            elapsed, used = time.perf_counter(), time.process_time()
            call()
            row[f"{name}_cpu_s"] = min(row[f"{name}_cpu_s"], time.process_time() - used)
            row[f"{name}_s"] = min(row[f"{name}_s"], time.perf_counter() - elapsed)
        if time.perf_counter() - begun > PATIENCE:
            break
    return row


def _passes(workload: RegisterWorkload, stream: Stream) -> Passes:
    return Passes(Workload(workload.name, workload.family, workload.stream, workload.text), stream)


def _warm_up(workload: RegisterWorkload, stream: Stream) -> None:
    small = _passes(workload, Stream(stream.table.slice(0, WARM_UP), stream.time, stream.origin))
    small.update()
    small.count()
    small.matches().head(1)
