"""The command: `python -m bench [papers|registers] [--events N] [--only core,S9] [--quick] [--repeats N] [--out …]`.

`papers`, the default, are the queries of the CORE paper; `registers` those of the SRT paper (see `register_run`).

Writes results.json, results.md and SVG charts into the folder, and prints a line per measurement.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.growth import LENGTHS, QUICK_LENGTHS
from bench.machine import code, machine
from bench.register_run import EVENTS as REGISTER_EVENTS
from bench.register_run import run_registers
from bench.report import charts, markdown
from bench.targets import outcomes
from bench.worker import measured_apart
from bench.workloads import chosen, workloads

EVENTS, QUICK_EVENTS = 5_000_000, 100_000
Row = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs what is asked for; the exit code is 1 if a measurement failed."""
    asked = _parser().parse_args(arguments)
    if asked.suite == "registers":
        return run_registers(asked)
    folder = asked.out or Path("build/bench")
    events = asked.events or (QUICK_EVENTS if asked.quick else EVENTS)
    repeats = asked.repeats or (1 if asked.quick else 3)
    before = code()
    results: Row = {"machine": machine(), "events": events, "repeats": repeats, "workloads": [], "growth": []}
    for workload in chosen(asked.only):
        row = measured_apart("workload", workload.name, events, repeats)
        results["workloads"].append({"group": workload.group, **row})
        print(_line(row), flush=True)
    if asked.only is None or "growth" in asked.only.split(","):
        for length in QUICK_LENGTHS if asked.quick else LENGTHS:
            row = measured_apart("growth", "S3", length, repeats)
            results["growth"].append(row)
            print("growth " + _line(row), flush=True)
    rows = results["workloads"] + results["growth"]
    if not rows:
        groups = sorted({each.group for each in workloads()} | {"growth"})
        print(f"nothing is called {asked.only!r}: name workloads, or groups of {', '.join(groups)}")
        return 2
    results["code"] = before if code() == before else f"{before}, then changed to {code()} during the run"
    write(results, folder)
    print(f"results.json, results.md and charts are in {folder}")
    return 1 if any("error" in row for row in rows) else 0


def write(results: Row, folder: Path) -> None:
    """The files of a run."""
    folder.mkdir(parents=True, exist_ok=True)
    judged = outcomes(results["workloads"], results["growth"])
    results["targets"] = [{"target": each.target, "measured": each.measured, "met": each.met} for each in judged]
    (folder / "results.json").write_text(json.dumps(results, indent=1), encoding="utf-8")
    (folder / "results.md").write_text(markdown(results), encoding="utf-8")
    charts(results, folder)


def _line(row: Row) -> str:
    if "error" in row:
        return f"{row['name']}: {row['error']}"
    rates = [f"{name} {row[f'{name}_rate'] / 1e6:.1f} M/s" for name in ("update", "count")]
    return f"{row['name']}: {row['events']:,} events, " + ", ".join(rates)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measures Cerite; see docs/benchmarks.md.")
    parser.add_argument("suite", nargs="?", choices=("papers", "registers"), default="papers", help="what to measure")
    parser.add_argument(
        "--events", type=int, help=f"events per workload (default {EVENTS:,}; of registers {REGISTER_EVENTS:,})"
    )
    parser.add_argument("--only", help="groups or names, separated by commas: core, S9, growth; k3, kn, taxis, …")
    parser.add_argument("--quick", action="store_true", help="fewer events, one repetition")
    parser.add_argument("--repeats", type=int, help="the best of so many runs is reported (default 3)")
    parser.add_argument("--out", type=Path, help="folder for the results (default build/bench)")
    return parser
