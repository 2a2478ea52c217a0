"""Registers moved in groups against entries moved one by one: `python -m bench.groups [--repeats N] [--publish]`.

Counting, updating and enumerating `A AS x ; B ; C[v > x.v]`, and the same with B+, on values that are all different, in
windows of 100 to 100,000 events; A, B and C are one event in ten each. Every B moves every start in the window. With B+
the number of matches has as many bits as there are B in the window, and adding and multiplying such numbers takes the
longer the longer they are; with B it fits a word. Updating enumerates nothing; enumerating takes at most 20 matches of
every event, and its time beyond updating is given per match. Then k3 and kn4 run on smart homes within 300 seconds.

Times are processor time, best of the repeats; entries are moved one by one only in windows in which that ends soon.
Everything runs in one process, so the machine need not be quiet. `--publish` keeps the figures in
bench/results/groups.json and draws them for docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

import cerite
from bench import publish
from bench.register_patterns import TIMES, where
from bench.streams import home_stream
from cerite.engine.bind import Program, bind
from cerite.engine.events.rows import Columns
from cerite.engine.run import Run

T = TypeVar("T")
Row = dict[str, Any]
WINDOWS = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
ONE_BY_ONE = 3_000  # the widest window in which entries are moved one by one
SHAPES = ("B", "B+")
HOMES = {"k3": ("k", 3), "kn4": ("kn", 4)}
SECONDS = 300
KEYS = {  # of the results: in groups and one by one
    "counting": ("grouped", "single"),
    "updating": ("updating", "updating_single"),
    "enumerating": ("enumerating", "enumerating_single"),
}
LIMIT = 20  # matches of an event that are enumerated


def text(shape: str, window: int) -> str:
    """The query of a window."""
    return f"SELECT * FROM S WHERE A AS x ; {shape} ; C[v > x.v] WITHIN {window} EVENTS"


def stream(events: int) -> pa.Table:
    """Random events with values that are all different."""
    rng = np.random.default_rng(1)
    types = pa.array(rng.choice(np.array(list("ABCD")), events, p=[0.1, 0.1, 0.1, 0.7])).dictionary_encode()
    return pa.table({"type": types, "v": rng.permutation(events).astype(np.float64)})


@dataclass(frozen=True)
class Figures:
    """How many matches there are, microseconds per event, and nanoseconds per match that is enumerated."""

    matches: int
    counting: float
    updating: float
    enumerating: float


def timed(call: Callable[[], T]) -> tuple[T, float]:
    """The result of a call, and the processor time that it took."""
    start = time.process_time()
    return call(), time.process_time() - start


def counted(program: Program, table: pa.Table, *, grouped: bool) -> tuple[int, float]:
    """How many matches there are, and the processor time that counting them took."""
    run = Run(program, in_groups=grouped)
    batches = table.select(list(program.read)).to_batches()
    return timed(lambda: sum(map(run.count, batches)))


def finding_time(program: Program, table: pa.Table, *, grouped: bool, read: bool) -> tuple[int, float]:
    """How many matches are enumerated, if they are read, and the processor time that finding took."""
    run = Run(program, in_groups=grouped)
    batches = table.select(list(program.read)).to_batches()

    def find() -> int:
        matches = 0
        for batch in batches:
            chunks = run.find(batch)
            if read:
                matches += sum(map(len, chunks))
            else:
                run.recogniser.discard(chunks)
        return matches

    return timed(find)


def measured(query: str, table: pa.Table, columns: Columns, repeats: int, *, grouped: bool) -> Figures:
    """The best of the repeats, without compilation."""
    whole, some = (bind(cerite.query(each).plan(), table.schema, columns) for each in (query, f"{query} LIMIT {LIMIT}"))
    warm = table.slice(0, 2_000)
    best = [float("inf")] * 3
    matches = read = 0
    for turn in range(repeats + 1):
        events = table if turn else warm
        matches, counting = counted(whole, events, grouped=grouped)
        _, updating = finding_time(some, events, grouped=grouped, read=False)
        read, finding = finding_time(some, events, grouped=grouped, read=True)
        if turn:
            best = [min(pair) for pair in zip(best, (counting, updating, finding), strict=True)]
    each = 1e6 / table.num_rows
    return Figures(matches, best[0] * each, best[1] * each, 1e9 * max(0.0, best[2] - best[1]) / max(1, read))


def both(
    query: str, table: pa.Table, columns: Columns, repeats: int, *, single: bool
) -> tuple[Figures, Figures | None]:
    """The figures in groups and, if `single`, one by one; both must agree."""
    grouped = measured(query, table, columns, repeats, grouped=True)
    if not single:
        return grouped, None
    other = measured(query, table, columns, repeats, grouped=False)
    if other.matches != grouped.matches:
        raise AssertionError(f"{query}: {grouped.matches} in groups, {other.matches} one by one")
    return grouped, other


def row(name: str, pattern: str, within: str, events: int, grouped: Figures, single: Figures | None) -> Row:
    """A measurement as it is kept; times are microseconds per event, those of enumerating nanoseconds per match."""
    bits = grouped.matches.bit_length()
    facts: Row = {"name": name, "pattern": pattern, "within": within, "events": events, "bits": bits}
    for figure, (in_groups, one_by_one) in KEYS.items():
        facts[in_groups] = round(getattr(grouped, figure), 3)
        facts[one_by_one] = None if single is None else round(getattr(single, figure), 3)
    return facts | {"shape": None, "window": None}


def line(row: Row) -> str:
    """A measurement as a line to read."""

    def shown(figure: str, unit: str) -> str:
        grouped, single = (row[key] for key in KEYS[figure])
        return f"{figure} {grouped:.2f} {unit}" + ("" if single is None else f" (one by one {single:.2f})")

    parts = (shown("counting", "µs per event"), shown("updating", "µs"), shown("enumerating", "ns per match"))
    return f"{row['name']}, in groups: {', '.join(parts)}; the count has {row['bits']} bits"


def rows(widest: int, homes_events: int, repeats: int) -> Iterator[Row]:
    """Every measurement."""
    for shape in SHAPES:
        for window in (each for each in WINDOWS if each <= widest):
            table = stream(max(20_000, 3 * window))
            figures = both(text(shape, window), table, Columns("type"), repeats, single=window <= ONE_BY_ONE)
            pattern, within = f"A AS x ; {shape} ; C[v > x.v]", f"{window:,} events"
            kept = row(f"A ; {shape} ; C within {within}", pattern, within, table.num_rows, *figures)
            yield kept | {"shape": shape, "window": window}
    homes = home_stream(homes_events)
    for name, (family, length) in HOMES.items():
        query = f"SELECT * FROM S WHERE {where('homes', family, length)} WITHIN {SECONDS} [{TIMES['homes']}]"
        figures = both(query, homes.table, Columns("type", homes.time), repeats, single=True)
        within = f"{SECONDS} s of smart homes"
        yield row(f"{name} on smart homes within {SECONDS} s", name, within, homes_events, *figures)


def main() -> None:
    """Measure, print, and publish if requested."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--homes", type=int, default=100_000, help="events of smart homes")
    parser.add_argument("--widest", type=int, default=WINDOWS[-1], help="the widest window")
    parser.add_argument("--repeats", type=int, default=2, help="the best of so many is reported")
    parser.add_argument("--publish", action="store_true", help="keep the figures in bench/results and render the docs")
    request = parser.parse_args()
    kept: list[Row] = []
    result = publish.result("groups", "Counting and finding by window", request.repeats, kept)
    for each in rows(request.widest, request.homes, request.repeats):
        print(line(each), flush=True)
        kept.append(each)
    if request.publish:
        publish.publish(result)


if __name__ == "__main__":
    main()
