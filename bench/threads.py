"""Cores: `python -m bench.threads [--events N] [--repeats N] [--only S3,k3] [--publish]`, elapsed time by threads.

Counting and finding, on data in memory, with 1, 2, 4, … threads up to the machine's cores. This needs a quiet machine:
anything else that runs takes cores away. The same code is a third faster at some times, and in some processes, than in
others; so the numbers of threads take turns in every process, several processes measure, a rate is that of the fastest,
and a speed-up, which compares times of one process, is the median. `--publish` keeps the figures in
bench/results/threads.json and renders docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from statistics import median
from typing import Any

import pyarrow as pa

import cerite
from bench import publish
from bench.register_patterns import chosen_registers
from bench.streams import stock_stream
from bench.workloads import chosen
from cerite.api.result import Matches
from cerite.engine.at_rest.threads import thread_count

Row = dict[str, Any]
EVENTS = 10_000_000
BY_KEY = {  # windows of each partition: the stream cannot be cut by time
    "sequence by name": "SELECT * FROM S WHERE SELL AS x ; BUY+ AS b ; SELL AS y PARTITION BY [name] WITHIN 7 EVENTS",
    "comparison by name": """SELECT x, b, y FROM S WHERE SELL AS x ; BUY+ AS b ; SELL AS y FILTER y[price < x.price]
        PARTITION BY [name] WITHIN 9 EVENTS""",
}
NAMES = ("S3", "Q1", "k3", *BY_KEY, "Q3")
MOST = 100_000_000  # matches that are worth finding


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print a table, and publish it if requested."""
    parser = argparse.ArgumentParser(prog="python -m bench.threads", description=__doc__)
    parser.add_argument("--events", type=int, default=EVENTS, help=f"events of the stream (default: {EVENTS:,})")
    parser.add_argument("--repeats", type=int, default=3, help="repetitions, of which the fastest counts (default: 3)")
    parser.add_argument("--processes", type=int, default=5, help="that measure one after the other (default: 5)")
    parser.add_argument("--only", default=",".join(NAMES), help=f"which of {', '.join(NAMES)}")
    parser.add_argument("--publish", action="store_true", help="keep the figures in bench/results and render the docs")
    request = parser.parse_args(arguments)
    kept: list[Row] = []
    result = publish.result("threads", f"{request.events:,} stock events", request.repeats, kept)
    print(f"{request.events:,} stock events; millions of events a second, and times one thread")
    print("| query | threads | counting | times | finding | times |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name in request.only.split(","):
        text = query_text(name)
        runs = [_apart(text, request.events, request.repeats) for _ in range(request.processes)]
        for row in rows(name, text, request.events, runs):
            print(line(row), flush=True)
            kept.append(row)
    if request.publish:
        publish.publish(result)
    return 0


def query_text(name: str) -> str:
    """One of `NAMES` as it is written."""
    if name == "k3":
        return chosen_registers("stocks k3 10000")[0].text
    return BY_KEY[name] if name in BY_KEY else chosen(name)[0].text


def times(text: str, table: pa.Table, repeats: int) -> list[list[float]]:
    """Seconds by number of threads: of counting, and of finding unless there are too many matches."""
    query = cerite.query(text)
    runs = [partial(query.run, table, threads=threads) for threads in _numbers()]
    calls = [_count, _find] if _count(runs[0]) <= MOST else [_count]
    by_call = [_least([partial(call, run) for run in runs], repeats) for call in calls]
    return [list(each) for each in zip(*by_call, strict=True)]


def rows(name: str, text: str, events: int, runs: list[list[list[float]]]) -> Iterator[Row]:
    """A row for each number of threads: rates, and multiples of one thread's rate; what was not measured has none.

    `runs` are the `times` of several processes.
    """
    for at, threads in enumerate(_numbers()):
        row: Row = {"name": name, "query": text, "threads": threads, "events": events}
        row |= {f"{what}_{figure}": None for what in ("count", "find") for figure in ("rate", "times")}
        for k, what in enumerate(("count", "find")[: len(runs[0][0])]):
            row[f"{what}_rate"] = round(events / min(run[at][k] for run in runs))
            row[f"{what}_times"] = round(median(run[0][k] / run[at][k] for run in runs), 3)
        yield row


def _apart(text: str, events: int, repeats: int) -> list[list[float]]:
    """`times` in a process of its own."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(_of_stocks, text, events, repeats).result()


def _of_stocks(text: str, events: int, repeats: int) -> list[list[float]]:
    return times(text, stock_stream(events).table, repeats)


def line(row: Row) -> str:
    """A row as it is printed."""
    cells = [
        "- | -" if row[f"{what}_rate"] is None else f"{row[f'{what}_rate'] / 1e6:.1f} | {row[f'{what}_times']:.2f}"
        for what in ("count", "find")
    ]
    return f"| {row['name']} | {row['threads']} | {' | '.join(cells)} |"


def _count(run: Callable[[], Matches]) -> int:
    return run().count()


def _find(run: Callable[[], Matches]) -> int:
    return sum(map(len, run().chunks()))


def _numbers() -> list[int]:
    most = max(thread_count(None), os.cpu_count() or 1)
    return [*(2**k for k in range(most.bit_length()) if 2**k < most), most]


def _least(calls: Sequence[Callable[[], object]], repeats: int) -> list[float]:
    """The least elapsed time of each call, which take turns; one round before that compiles what they need."""
    seconds: list[list[float]] = [[] for _ in calls]
    for number in range(repeats + 1):
        for call, measured in zip(calls, seconds, strict=True):
            start = time.perf_counter()
            call()
            if number:
                measured.append(time.perf_counter() - start)
    return [min(each) for each in seconds]


if __name__ == "__main__":
    sys.exit(main())
