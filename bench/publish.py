"""Where results are kept and shown: bench/results, docs/benchmarks.md with its charts, and docs/fresh.md.

What is measured is written to one file of bench/results; everything in docs follows from those files alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.machine import code, commit, machine
from bench.plots import CHARTS, draw, plots
from bench.report import FRESH, PAGE, RESULTS, fresh, page, read_results

Row = dict[str, Any]


def result(suite: str, title: str, repeats: int | None, rows: list[Row]) -> Row:
    """A result with the facts that go with every result; more rows may still be added."""
    facts = {"suite": suite, "title": title, "machine": machine(), "commit": commit(), "code": code()}
    return facts | {"repeats": repeats, "rows": rows}


def write(measured: Mapping[str, Any], target: Path) -> None:
    """Write a result to a file."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(measured, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def render() -> list[Path]:
    """Write the pages and charts that show what is in bench/results; returns their files."""
    results = read_results()
    PAGE.write_text(page(results), encoding="utf-8")
    FRESH.write_text(fresh(results), encoding="utf-8")
    drawn = draw(plots(results), CHARTS)
    for path in set(CHARTS.glob("*.svg")) - set(drawn):
        path.unlink()
    return [PAGE, FRESH, *drawn]


def publish(measured: Mapping[str, Any]) -> None:
    """Write a result to bench/results, and render what shows it."""
    target = RESULTS / f"{measured['suite']}.json"
    write(measured, target)
    print(f"results are in {target}; written from them: {', '.join(path.name for path in render())}")
