"""The command: `python -m bench [papers|registers|live|peers|report] [--events N] [--only core,S9] [--quick] …`.

`papers`, the default, are the queries of the CORE paper; `registers` those of the SRT paper; `live` pushes a stream in
small and large batches, in order and out of order; `peers` also runs other engines, CORE and Wayeb if the paths of
their builds are given. Each prints a line per measurement and writes one JSON file: bench/results/SUITE.json, which is
committed, or build/bench/SUITE.json if only part was measured. `report` measures nothing: it renders
docs/benchmarks.md, its charts and docs/fresh.md from the committed files.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench import live
from bench.growth import LENGTHS, QUICK_LENGTHS
from bench.machine import code, commit, machine
from bench.peers import engines
from bench.peers import measure as peers
from bench.plots import PEERS
from bench.publish import render, write
from bench.register_patterns import chosen_registers
from bench.report import PAGE, RESULTS, draw_charts, page, read_results
from bench.worker import measured_apart
from bench.workloads import chosen, workloads

EVENTS = {"papers": 5_000_000, "registers": 224_473, "peers": 100_000}
QUICK_EVENTS = {"papers": 100_000, "registers": 20_000, "live": 20_000, "peers": 5_000}
PARTIAL = Path("build/bench")
Row = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was requested; the exit code is 1 if a measurement failed."""
    request = _parser().parse_args(arguments)
    if request.suite == "report":
        return _report(request)
    if request.suite == "peers":
        try:
            request.engines, request.skipped = engines.here(request)
        except engines.NoPeerError as error:
            print(error)
            return 2
    return _measure(request)


def _report(request: argparse.Namespace) -> int:
    results = read_results(request.results)
    if request.out is None and request.results == RESULTS:
        print(f"written from {RESULTS}: {', '.join(path.name for path in render())}")
    else:
        target = request.out or PAGE
        target.write_text(page(results), encoding="utf-8")
        print(f"{target} renders {len(results)} files of {request.results}")
    if request.charts:
        print(f"{len(draw_charts(results, request.charts))} charts are in {request.charts}")
    return 0


def _measure(request: argparse.Namespace) -> int:
    suite, quick = request.suite, request.quick
    events = request.events or (QUICK_EVENTS if quick else EVENTS).get(suite)
    repeats = request.repeats or (1 if quick else 3)
    before, facts = code(), machine() | {PEERS[engine.name]: engine.version for engine in request.engines}
    result: Row = {
        "suite": suite, "title": request.title, "machine": facts, "commit": commit(), "repeats": repeats,
        "workloads": [], "growth": [],
    }  # fmt: skip
    suites = {"papers": _papers, "registers": _registers, "live": _live, "peers": _peers}
    measured = suites[suite](request, events, repeats)
    for kind, row in measured:
        result[kind].append(row)
        print(_line(row), flush=True)
    rows = result["workloads"] + result["growth"]
    if not rows:
        groups = "seq, k, kn, q, stocks, homes, taxis, or a pattern such as k3"
        if suite == "papers":
            groups = ", ".join(sorted({each.group for each in workloads()} | {"growth"}))
        print(f"nothing is called {request.only!r}: name workloads, or groups of {groups}")
        return 2
    result["code"] = before if code() == before else f"{before}, then changed to {code()} during the run"
    target = request.out or (PARTIAL if quick or request.only else RESULTS) / f"{suite}.json"
    write(result, target)
    print(f"results are in {target}; `python -m bench report` renders those in {RESULTS}")
    return 1 if any("error" in row for row in rows) else 0


def _papers(request: argparse.Namespace, events: int | None, repeats: int) -> Iterator[tuple[str, Row]]:
    assert events is not None
    for workload in chosen(request.only):
        yield "workloads", {"group": workload.group, **measured_apart("workload", workload.name, events, repeats)}
    if request.only is None or "growth" in request.only.split(","):
        for length in QUICK_LENGTHS if request.quick else LENGTHS:
            yield "growth", measured_apart("growth", "S3", length, repeats)


def _live(request: argparse.Namespace, events: int | None, repeats: int) -> Iterator[tuple[str, Row]]:
    for row in live.rows(events, repeats):
        if request.only is None or row["name"] in request.only.split(","):
            yield "workloads", row


def _peers(request: argparse.Namespace, events: int | None, repeats: int) -> Iterator[tuple[str, Row]]:
    assert events is not None
    for row in peers.rows(events, repeats, request.engines, request.only):
        yield "workloads", row if request.skipped is None else {**row, "skipped": request.skipped}


def _registers(request: argparse.Namespace, events: int | None, repeats: int) -> Iterator[tuple[str, Row]]:
    assert events is not None
    for workload in chosen_registers(request.only):
        facts = {name: getattr(workload, name) for name in ("family", "stream", "pattern", "length", "window")}
        yield "workloads", facts | measured_apart("registers", workload.name, events, repeats)


def _line(row: Row) -> str:
    if "error" in row:
        return f"{row['name']}: {row['error']}"
    if "push" in row:
        return live.line(row)
    if "cerite" in row:
        return peers.line(row)
    rates = [f"{name} {row[f'{name}_rate'] / 1e6:.2f} M/s" for name in ("update", "count")]
    entries = [f"{row['entries']:,} entries"] if "entries" in row else []
    return f"{row['name']}: {row['events']:,} events, {', '.join(rates + entries)}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measures Cerite; see docs/benchmarks.md.")
    suites = ("papers", "registers", "live", "peers", "report")
    parser.add_argument("suite", nargs="?", choices=suites, default="papers", help="what to measure, or the report")
    defaults = ", ".join(f"{suite} {events:,}" for suite, events in EVENTS.items())
    parser.add_argument("--events", type=int, help=f"events per workload (default: {defaults})")
    parser.add_argument("--only", help="groups or names, separated by commas: core, S9, growth; k3, kn, taxis, …")
    parser.add_argument("--quick", action="store_true", help="fewer events, one repetition")
    parser.add_argument("--repeats", type=int, help="the best of so many runs is reported (default 3)")
    parser.add_argument("--title", default="All workloads", help="what the report calls this run")
    engines.add_options(parser)
    parser.add_argument("--out", type=Path, help="the file to write")
    parser.add_argument("--results", type=Path, default=RESULTS, help="report: the folder to render")
    parser.add_argument("--charts", type=Path, help="report: draw charts (SVG) into this folder as well")
    parser.set_defaults(engines=[], skipped=None)
    return parser
