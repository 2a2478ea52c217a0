"""Measures into Arrow: `python -m bench.measures [--events N] [--repeats N]`.

S3 of the papers with measures: the price of its first event and how many events its second variable holds, one row for
every match, with its id and, where a time is named, its times. A line has the processor time (so the machine need not
be quiet) of everything from the table of events to the table of measures, and of finding the matches alone.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence

import cerite
from bench.streams import stock_stream
from bench.workloads import chosen

EVENTS = 1_000_000
GOAL = 10_000_000  # rows a second


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and say whether the goal is met."""
    parser = argparse.ArgumentParser(prog="python -m bench.measures", description=__doc__)
    parser.add_argument("--events", type=int, default=EVENTS, help=f"events of the stream (default: {EVENTS:,})")
    parser.add_argument("--repeats", type=int, default=3, help="repetitions, of which the fastest counts (default: 3)")
    request = parser.parse_args(arguments)
    events = stock_stream(request.events).table
    text = chosen("S3")[0].text
    measured = text.replace("SELECT *", "SELECT T1.price AS low, COUNT(T2) AS n")
    matches = cerite.query(measured).run(events)
    total = sum(map(len, matches.chunks()))
    alone = _least(lambda: sum(map(len, matches.chunks())), request.repeats)
    whole = _least(lambda: sum(table.num_rows for table in matches.tables()), request.repeats)
    print(f"S3 on {request.events:,} events: {total:,} matches")
    print(f"finding them: {alone:.2f} s of processor time")
    print(f"finding and measuring them (T1.price, COUNT(T2)): {whole:.2f} s, {total / whole / 1e6:.1f} million rows/s")
    rate = total / max(whole - alone, 1e-9)
    print(f"measuring alone: {rate / 1e6:.1f} million rows/s; the goal is {GOAL / 1e6:.0f}")
    return 0 if rate >= GOAL else 1


def _least(run: Callable[[], object], repeats: int) -> float:
    run()
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    return best


if __name__ == "__main__":
    sys.exit(main())
