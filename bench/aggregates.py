"""Aggregates in conditions against the same pattern without: `python -m bench.aggregates [--events N] [--repeats N]`.

`A AS x : (B AS y):+ : C AS z WITHIN 100 EVENTS` on a stream of random types, six in ten of them B: without a condition,
with one that reads the last y (a register that does not change), and with aggregates. Printed are the processor time
per event, best of the repeats, and its ratio to that without a condition, for finding all matches and for counting
them; ratios are of one process, so the machine need not be quiet. Each query runs once beforehand, so that no
compilation is measured.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa

import cerite

CONDITIONS = {
    "none": "",
    "the last y": "z[v > y.v]",
    "running AVG": "z[v > AVG(y.v)]",
    "running AVG of floats": "z[f > AVG(y.f)]",
    "running COUNT": "z[v > COUNT(y)]",
    "running MAX": "z[v > MAX(y.v)]",
    "AVG of the whole": "AVG(y.v) > 500",
    "COUNT of the whole": "COUNT(y) >= 5",
}


def text(condition: str) -> str:
    """The query with a condition, or without."""
    filtered = f"FILTER {condition} " if condition else ""
    return f"SELECT x, y, z FROM S WHERE A AS x : (B AS y):+ : C AS z {filtered}WITHIN 100 EVENTS"


def stream(events: int) -> pa.Table:
    """Random events, always the same."""
    rng = np.random.default_rng(1)
    types = pa.array(rng.choice(np.array(list("ABC")), events, p=[0.1, 0.6, 0.3])).dictionary_encode()
    return pa.table({"type": types, "v": rng.integers(0, 1_000, events), "f": rng.random(events)})


def measured(condition: str, table: pa.Table, repeats: int) -> tuple[float, float, int]:
    """Microseconds of processor time per event to find and to count, and how many matches there are."""
    query = cerite.query(text(condition))

    def best(work: Callable[[], int]) -> float:
        work()
        times = []
        for _ in range(repeats):
            start = time.process_time()
            work()
            times.append(time.process_time() - start)
        return float(min(times) / table.num_rows * 1e6)

    find = best(lambda: sum(len(chunk) for chunk in query.run(table).chunks()))
    return find, best(lambda: query.run(table).count()), query.run(table).count()


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=400_000)
    parser.add_argument("--repeats", type=int, default=3)
    request = parser.parse_args()
    table = stream(request.events)
    print("| condition | matches | finding, µs/event | times | counting, µs/event | times |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    plain: tuple[float, float] | None = None
    for name, condition in CONDITIONS.items():
        find, count, matches = measured(condition, table, request.repeats)
        plain = plain or (find, count)
        shown = f"`{condition}`" if condition else name
        print(f"| {shown} | {matches:,} | {find:.2f} | {find / plain[0]:.1f} | {count:.2f} | {count / plain[1]:.1f} |")


if __name__ == "__main__":
    main()
