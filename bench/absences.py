"""Absence against occurrence: `python -m bench.absences [--events N] [--keys N] [--repeats N]`.

The stream has requests (A) and answers (B), seven to three, of random keys, one event per millisecond. A pattern that
ends or begins with NOT is compared with the same pattern without the NOT, and with the part that occurs alone, in
windows of 10^5 and 10^6 milliseconds; as many windows are open at once as one has requests. Printed are the processor
time per event, best of the repeats, and its ratios, which are of one process, so that the machine need not be quiet.
Everything runs once beforehand, so that no compilation is measured.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa

import cerite

WINDOWS = (100_000, 1_000_000)  # milliseconds, and events
PATTERNS = {
    "A AS x ; NOT B PARTITION BY [id]": ("A AS x ; B PARTITION BY [id]", "A AS x PARTITION BY [id]"),
    "A AS x ; NOT A PARTITION BY [id]": ("A AS x ; A PARTITION BY [id]", "A AS x PARTITION BY [id]"),
    "A AS x ; NOT B[id = x.id]": ("A AS x ; B[id = x.id]", "A AS x"),
    "(A AS x ; NOT B[id = x.id] WITHIN 10 seconds) ; A[id = x.id]": ("A AS x ; A[id = x.id]", "A AS x"),
    "NOT A ; B AS x PARTITION BY [id]": ("A ; B AS x PARTITION BY [id]", "B AS x PARTITION BY [id]"),
}


def stream(events: int, keys: int) -> pa.Table:
    """Random requests and answers, always the same."""
    rng = np.random.default_rng(1)
    types = pa.array(np.where(rng.random(events) < 0.3, "B", "A")).dictionary_encode()
    return pa.table({"type": types, "id": rng.integers(0, keys, events), "at": np.arange(events)})


def measured(pattern: str, window: int, table: pa.Table, repeats: int) -> tuple[float, int]:
    """Nanoseconds of processor time per event to find all matches, and how many there are."""
    query = cerite.query(f"SELECT * FROM S WHERE {pattern} WITHIN {window} milliseconds")

    def work(events: pa.Table) -> int:
        return sum(len(chunk) for chunk in query.run(events, time="at").chunks())

    work(table.slice(0, 1_000))
    best = _timed(lambda: work(table), repeats)
    return best / table.num_rows * 1e9, query.run(table, time="at").count()


def _timed(work: Callable[[], int], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=2)
    request = parser.parse_args()
    table = stream(request.events, request.keys)
    print("| pattern | window | matches | ns/event | without NOT | times | what occurs alone | times |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for window in WINDOWS:
        for pattern, others in PATTERNS.items():
            cost, matches = measured(pattern, window, table, request.repeats)
            costs = [measured(each, window, table, request.repeats)[0] for each in others]
            beside = " | ".join(f"{each:.0f} | {cost / each:.1f}" for each in costs)
            print(f"| `{pattern}` | {window:,} ms | {matches:,} | {cost:.0f} | {beside} |", flush=True)


if __name__ == "__main__":
    main()
