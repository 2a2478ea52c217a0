"""Ratios on a machine that is not quiet: `python -m bench.paired [EVENTS] [ROUNDS]`.

The workloads of the ratio targets take turns in one process, and processor time is counted instead of elapsed time;
the best round of each is printed as millions of events per second of one processor.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

from bench.passes import Passes
from bench.pinning import pin_here, pinned_environment
from bench.streams import stock_stream
from bench.workloads import chosen

NAMES = "S3,S3',S24',windows"
PINNED = "CERITE_BENCH_PINNED"


def rates(events: int, rounds: int) -> dict[tuple[str, str], float]:
    """Events per second of processor time, by workload and pass."""
    stream = stock_stream(events)
    calls: dict[tuple[str, str], Callable[[], object]] = {}
    for workload in chosen(NAMES):
        passes = Passes(workload, stream)
        calls |= {(workload.name, "update"): passes.update, (workload.name, "count"): passes.count}
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds + 1):  # the first round also compiles, and is never the best
        for key, call in calls.items():
            start = time.process_time()
            call()
            best[key] = min(best[key], time.process_time() - start)
    return {key: events / seconds for key, seconds in best.items()}


def main() -> None:
    """Prints a line per workload and pass, then the ratios."""
    numbers = [int(each) for each in sys.argv[1:]]
    events, rounds = (*numbers, *(5_000_000, 7)[len(numbers) :])
    if PINNED not in os.environ:  # pools are sized when libraries load, so to be pinned the process starts over
        os.execve(
            sys.executable, [sys.executable, "-m", "bench.paired", *sys.argv[1:]], {**pinned_environment(), PINNED: "1"}
        )
    pin_here()
    figures = rates(events, rounds)
    for (name, what), rate in figures.items():
        print(f"{name} {what}: {rate / 1e6:.1f}")
    for what in ("update", "count"):
        wide = figures["S3' at T", what] / figures["S3' at 100T", what]
        long = figures["S3'", what] / figures["S24'", what]
        print(f"{what}: 100T takes {wide:.2f} times as long as T, S24' {long:.2f} times as long as S3'")


if __name__ == "__main__":
    main()
