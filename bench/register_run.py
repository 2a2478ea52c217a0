"""The register suite: `python -m bench registers [--events N] [--only k3,taxis] [--quick] [--repeats N] [--out …]`."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path
from typing import Any

from bench.machine import code, machine
from bench.register_patterns import chosen_registers
from bench.register_report import register_charts, register_markdown, register_outcomes
from bench.worker import measured_apart

EVENTS, QUICK_EVENTS = 224_473, 20_000
Row = dict[str, Any]


def run_registers(asked: Namespace) -> int:
    """Runs what is asked for; the exit code is 1 if a measurement failed."""
    events = asked.events or (QUICK_EVENTS if asked.quick else EVENTS)
    repeats = asked.repeats or (1 if asked.quick else 3)
    before = code()
    results: Row = {"machine": machine(), "events": events, "repeats": repeats, "workloads": []}
    for workload in chosen_registers(asked.only):
        facts = {name: getattr(workload, name) for name in ("family", "stream", "pattern", "length", "window")}
        row = facts | measured_apart("registers", workload.name, events, repeats)
        results["workloads"].append(row)
        print(_line(row), flush=True)
    if not results["workloads"]:
        print(f"nothing is called {asked.only!r}: name families (seq, k, kn, q), streams, patterns (k3) or workloads")
        return 2
    results["code"] = before if code() == before else f"{before}, then changed to {code()} during the run"
    folder = asked.out or Path("build/bench/registers")
    _write(results, folder)
    print(f"results.json, results.md and charts are in {folder}")
    return 1 if any("error" in row for row in results["workloads"]) else 0


def _write(results: Row, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    judged = register_outcomes(results["workloads"])
    results["targets"] = [{"target": each.target, "measured": each.measured, "met": each.met} for each in judged]
    (folder / "results.json").write_text(json.dumps(results, indent=1), encoding="utf-8")
    (folder / "results.md").write_text(register_markdown(results), encoding="utf-8")
    register_charts(results, folder)


def _line(row: Row) -> str:
    if "error" in row:
        return f"{row['name']}: {row['error']}"
    rates = [f"{name} {row[f'{name}_rate'] / 1e6:.2f} M/s" for name in ("update", "count")]
    return f"{row['name']}: {row['events']:,} events, {', '.join(rates)}, {row['entries']:,} entries"
