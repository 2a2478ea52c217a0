"""Measures into Arrow: `python -m bench.measures [--events N] [--repeats N] [--publish]`.

S3 of the papers with measures: the price of its first event and how many events its second variable holds, one row for
every match, with its id and, where a time is named, its times. A line has the processor time (so the machine need not
be quiet) of everything from the table of events to the table of measures, and of finding the matches alone. `--publish`
keeps the figures in bench/results/measures.json and renders docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import cerite
from bench import publish
from bench.streams import stock_stream
from bench.targets import measure_outcomes
from bench.workloads import chosen

Row = dict[str, Any]
EVENTS = 1_000_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, publish if requested, and say whether the target is met."""
    parser = argparse.ArgumentParser(prog="python -m bench.measures", description=__doc__)
    parser.add_argument("--events", type=int, default=EVENTS, help=f"events of the stream (default: {EVENTS:,})")
    parser.add_argument("--repeats", type=int, default=3, help="repetitions, of which the fastest counts (default: 3)")
    parser.add_argument("--publish", action="store_true", help="keep the figures in bench/results and render the docs")
    request = parser.parse_args(arguments)
    kept: list[Row] = []
    result = publish.result("measures", "Measures into Arrow", request.repeats, kept)
    kept.append(measured(request.events, request.repeats))
    (outcome,) = measure_outcomes(kept)
    print(line(kept[0]), f"{outcome.target}: {'yes' if outcome.met else 'no'}", sep="\n")
    if request.publish:
        publish.publish(result)
    return 0 if outcome.met else 1


def measured(events: int, repeats: int) -> Row:
    """S3 on this many events: its matches, the processor times, and rows measured per second."""
    text = chosen("S3")[0].text.replace("SELECT *", "SELECT T1.price AS low, COUNT(T2) AS n")
    matches = cerite.query(text).run(stock_stream(events).table)
    total = sum(map(len, matches.chunks()))
    finding = _least(lambda: sum(map(len, matches.chunks())), repeats)
    whole = _least(lambda: sum(table.num_rows for table in matches.tables()), repeats)
    return {
        "name": "S3", "events": events, "matches": total, "finding_s": round(finding, 3), "whole_s": round(whole, 3),
        "rate": round(total / max(whole - finding, 1e-9)),
    }  # fmt: skip


def line(row: Row) -> str:
    """A measurement as lines to read."""
    return (
        f"{row['name']} on {row['events']:,} events: {row['matches']:,} matches\n"
        f"finding them: {row['finding_s']:.2f} s of processor time\n"
        f"finding and measuring them (T1.price, COUNT(T2)): {row['whole_s']:.2f} s, "
        f"{row['matches'] / row['whole_s'] / 1e6:.1f} million rows/s\n"
        f"measuring alone: {row['rate'] / 1e6:.1f} million rows/s"
    )


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
