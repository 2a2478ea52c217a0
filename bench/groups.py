"""Registers moved in groups beside entries moved one by one: `python -m bench.groups [--repeats N] [--publish]`.

Counting `A AS x ; B ; C[v > x.v]` and the same with B+, of values that are all different, in windows of 100 to
100,000 events; A, B and C are one event in ten each. Every B moves every start in the window. Of B+ the number of
matches has as many bits as there are B in the window, and what adds and multiplies such numbers takes longer the longer
they are; of B it fits a word. Then k3 and kn4 on smart homes within 300 seconds. Processor time per event, best of the
repeats; entries are moved one by one only in windows in which that ends soon. Both are of one process, so the machine
need not be quiet. `--publish` keeps the figures in bench/results/groups.json and draws them for docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

import cerite
from bench import publish
from bench.register_patterns import TIMES, where
from bench.streams import home_stream
from cerite.engine.bind import Program, bind
from cerite.engine.events.rows import Columns
from cerite.engine.registers.counter import RegisterCounter
from cerite.engine.run import Run

Row = dict[str, Any]
WINDOWS = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
ONE_BY_ONE = 3_000  # the widest window in which entries are moved one by one
SHAPES = ("B", "B+")
HOMES = {"k3": ("k", 3), "kn4": ("kn", 4)}
SECONDS = 300


def text(shape: str, window: int) -> str:
    """The query of a window."""
    return f"SELECT * FROM S WHERE A AS x ; {shape} ; C[v > x.v] WITHIN {window} EVENTS"


def stream(events: int) -> pa.Table:
    """Random events with values that are all different."""
    rng = np.random.default_rng(1)
    types = pa.array(rng.choice(np.array(list("ABCD")), events, p=[0.1, 0.1, 0.1, 0.7])).dictionary_encode()
    return pa.table({"type": types, "v": rng.permutation(events).astype(np.float64)})


def counted(program: Program, table: pa.Table, *, grouped: bool) -> tuple[int, float]:
    """How many matches there are, and the processor time that counting them took."""
    run = Run(program)
    if not grouped:
        assert program.machine is not None
        run.__dict__["counter"] = RegisterCounter(program.machine, windowed=True, shared_clock=program.shared_clock)
    batches = table.select(list(program.read)).to_batches()
    start = time.process_time()
    return sum(map(run.count, batches)), time.process_time() - start


def measured(
    query: str, table: pa.Table, columns: Columns, repeats: int, *, both: bool
) -> tuple[int, float, float | None]:
    """The number of matches, and microseconds per event in groups and, if asked for, one by one; both must agree."""
    program = bind(cerite.query(query).plan(), table.schema, columns)
    warm = table.slice(0, 200)
    counted(program, warm, grouped=True)
    runs = [counted(program, table, grouped=True) for _ in range(repeats)]
    matches, each = runs[0][0], 1e6 / table.num_rows
    others: list[float] = []
    if both:
        counted(program, warm, grouped=False)
        for _ in range(repeats):
            other, seconds = counted(program, table, grouped=False)
            if other != matches:
                raise AssertionError(f"{query}: {matches} in groups, {other} one by one")
            others.append(seconds * each)
    return matches, min(seconds for _, seconds in runs) * each, min(others, default=None)


def row(name: str, pattern: str, within: str, events: int, found: tuple[int, float, float | None]) -> Row:
    """A measurement as it is kept; times are microseconds per event."""
    matches, grouped, single = found
    facts: Row = {"name": name, "pattern": pattern, "within": within, "events": events, "bits": matches.bit_length()}
    times = {"grouped": round(grouped, 3), "single": None if single is None else round(single, 3)}
    return facts | {"shape": None, "window": None} | times


def line(row: Row) -> str:
    """A measurement for people."""
    grouped, single = row["grouped"], row["single"]
    beside = "" if single is None else f", one by one {single:.2f} µs, {single / grouped:.1f} times as long"
    return f"{row['name']}: {grouped:.2f} µs per event in groups{beside}; the count has {row['bits']} bits"


def rows(widest: int, homes_events: int, repeats: int) -> Iterator[Row]:
    """Every measurement."""
    for shape in SHAPES:
        for window in (each for each in WINDOWS if each <= widest):
            table = stream(max(20_000, 3 * window))
            found = measured(text(shape, window), table, Columns("type"), repeats, both=window <= ONE_BY_ONE)
            pattern, within = f"A AS x ; {shape} ; C[v > x.v]", f"{window:,} events"
            kept = row(f"A ; {shape} ; C within {within}", pattern, within, table.num_rows, found)
            yield kept | {"shape": shape, "window": window}
    homes = home_stream(homes_events)
    for name, (family, length) in HOMES.items():
        query = f"SELECT * FROM S WHERE {where('homes', family, length)} WITHIN {SECONDS} [{TIMES['homes']}]"
        found = measured(query, homes.table, Columns("type", homes.time), repeats, both=True)
        within = f"{SECONDS} s of smart homes"
        yield row(f"{name} on smart homes within {SECONDS} s", name, within, homes_events, found)


def main() -> None:
    """Measure, print, and publish if that is wanted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--homes", type=int, default=100_000, help="events of smart homes")
    parser.add_argument("--widest", type=int, default=WINDOWS[-1], help="the widest window")
    parser.add_argument("--repeats", type=int, default=1, help="the best of so many is reported")
    parser.add_argument("--publish", action="store_true", help="keep the figures in bench/results and render the docs")
    request = parser.parse_args()
    kept: list[Row] = []
    result = publish.result("groups", "Counting by window", request.repeats, kept)
    for each in rows(request.widest, request.homes, request.repeats):
        print(line(each), flush=True)
        kept.append(each)
    if request.publish:
        publish.publish(result)


if __name__ == "__main__":
    main()
