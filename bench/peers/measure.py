"""Cerite and its peers on one stream, one after the other, each in one thread, all events in memory before.

Where Maven or a Java of 17 or later is missing, or packages cannot be had, Esper and FlinkCEP are left out and the row
says why. Rates are events per second of processor time, which for Java contains its compiler and its collector; the
first run warms up and does not count. A peer whose matches, or their measures, are others than ours is an error.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

import cerite
from bench.peers.cases import CASES, Case
from bench.peers.engines import BUILD, SECONDS, Engine
from bench.plots import PEERS

Row = dict[str, Any]
NO_HEADER = csv.WriteOptions(include_header=False, quoting_style="none")


def rows(events: int, repeats: int, engines: Sequence[Engine], only: str | None = None) -> Iterator[Row]:
    """The cases, all or those named, ours and the peers' rates beside each other."""
    BUILD.mkdir(parents=True, exist_ok=True)
    for case in CASES:
        if only is not None and case.name not in only.split(","):
            continue
        table = case.stream(events)
        seconds, result = ours(case, table, repeats)
        row: Row = {
            "name": case.name, "events": events, "query": case.query, "matches": result[0],
            "cerite": round(events / seconds),
        }  # fmt: skip
        stream = BUILD / f"{case.name}.csv"
        csv.write_csv(table.set_column(1, "type", table["type"].cast(pa.string())), stream, NO_HEADER)
        for engine in engines:
            command = engine.command(case, stream, 1 + repeats)
            if command is not None:
                row |= theirs(engine.name, command, events, result if engine.all_matches else None, row.get("error"))
        yield row


def ours(case: Case, table: pa.Table, repeats: int) -> tuple[float, tuple[int, int]]:
    """Seconds of processor time, the number of matches, and the sum of their measures."""
    query, best, result = cerite.query(case.query), float("inf"), (0, 0)
    for _ in range(1 + repeats):
        begin = time.process_time()
        measured = pa.concat_tables(query.run(table, time="at", threads=1).tables())
        best = min(best, time.process_time() - begin)
        sums = (pc.sum(measured[name]).as_py() or 0 for name in ("low", "n") if name in measured.column_names)
        result = measured.num_rows, sum(sums)
    return best, result


def theirs(
    peer: str, command: list[str], events: int, result: tuple[int, int] | None, before: str | None = None
) -> Row:
    """What one peer gives: its rate, or what went wrong, after what went wrong before. None may be any result."""
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=SECONDS, cwd=BUILD)
    except subprocess.TimeoutExpired:
        return {f"{peer}_note": f"{PEERS[peer]}: more than {SECONDS} s"}
    except subprocess.CalledProcessError as error:
        return _error(before, f"{peer}: {error.stderr.strip()[-500:]}")
    runs = figures_in(run.stdout)[1:]
    if not runs:
        return _error(before, f"{peer} tells of no run")
    for matches, total, _ in runs:
        if result is not None and (matches != result[0] or total not in (None, result[1])):
            return _error(before, f"{peer} finds {matches, total} (matches, sum of measures), we find {result}")
    return {peer: round(events / min(nanoseconds for *_, nanoseconds in runs) * 1e9)}


def figures_in(text: str) -> list[tuple[int, int | None, int]]:
    """Matches, the sum of measures if there is one, and nanoseconds, of every run that a driver tells of.

    >>> figures_in("starting\\nrun 5 70 1000\\nrun 5 - 900\\n")
    [(5, 70, 1000), (5, None, 900)]
    """
    runs = [line.split()[1:] for line in text.splitlines() if line.startswith("run ")]
    return [(int(matches), None if total == "-" else int(total), int(time)) for matches, total, time in runs]


def _error(before: str | None, words: str) -> Row:
    return {"error": words if before is None else f"{before}; {words}"}


def line(row: Row) -> str:
    """A measurement as it is printed."""
    names = {"cerite": "Cerite", **PEERS}
    rates = [f"{shown} {row[name] / 1e3:,.0f} k/s" for name, shown in names.items() if name in row]
    notes = [row[name] for name in ("skipped", *(f"{peer}_note" for peer in PEERS)) if name in row]
    return f"{row['name']}: {row['matches']:,} matches, {', '.join(rates + notes)}"
