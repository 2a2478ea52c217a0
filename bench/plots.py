"""The charts of docs/benchmarks.md: which results are drawn, and how. Each file says what it was drawn from.

A chart carries a digest of its figures, so that a chart of other results than those committed is noticed, whichever
version of Matplotlib drew it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

Row = dict[str, Any]
CHARTS = Path(__file__).parents[1] / "docs" / "charts"
PEERS = {
    "core": "CORE (C++)", "core_limit": "CORE (C++) LIMIT 1", "core_java": "CORE (Java)", "wayeb": "Wayeb",
    "esper": "Esper", "flink": "FlinkCEP",
}  # fmt: skip
GROUP_TIMES = {  # of bench.groups, µs per event, by plot
    "window": {"grouped": "counting in groups", "single": "counting one by one"},
    "updating": {"updating": "updating in groups", "updating_single": "updating one by one"},
}


@dataclass(frozen=True)
class Plot:
    """Series of figures over names (bars), or over numbers along an axis (lines)."""

    title: str
    unit: str
    over: Sequence[str | float]
    series: Mapping[str, Sequence[float | None]]
    axis: str | None = None
    colour: int = 0  # of the first series of bars

    @property
    def digest(self) -> str:
        """A short digest of everything that is drawn."""
        return hashlib.sha256(json.dumps(asdict(self)).encode()).hexdigest()[:16]


def plots(results: Mapping[str, Row]) -> dict[str, Plot]:
    """Every chart, by the name of its file."""
    return {f"{name}-{part}": plot for name, result in results.items() for part, plot in _plots(result).items()}


def pictures(name: str, result: Row) -> list[str]:
    """The charts of a result as they stand on the page."""
    return [f"![{plot.title}](charts/{name}-{part}.svg)" for part, plot in _plots(result).items()]


def draw(drawings: Mapping[str, Plot], folder: Path) -> list[Path]:
    """Draw charts into a folder; returns their files."""
    from bench import charts  # Matplotlib takes a second to import and only this needs it

    paths = []
    for name, plot in drawings.items():
        path = folder / f"{name}.svg"
        if plot.axis is None:
            names = [str(each) for each in plot.over]
            charts.bars(path, plot.title, plot.unit, names, plot.series, plot.digest, plot.colour)
        else:
            xs = [float(each) for each in plot.over]
            charts.lines(path, plot.title, plot.unit, xs, plot.series, plot.axis, plot.digest)
        paths.append(path)
    return paths


def _plots(result: Row) -> dict[str, Plot]:
    draw_suite = {"peers": _peers, "groups": _groups, "threads": _threads}.get(result["suite"])
    return {} if draw_suite is None else draw_suite(result)


def _peers(result: Row) -> dict[str, Plot]:
    rows = result["workloads"]
    names = [row["name"] for row in rows]
    peers = {key: shown for key, shown in PEERS.items() if any(key in row for row in rows)}
    rates = {shown: [row.get(key) for row in rows] for key, shown in ({"cerite": "Cerite"} | peers).items()}
    times = {
        shown: [round(row["cerite"] / row[key], 2) if key in row else None for row in rows]
        for key, shown in peers.items()
    }
    if not peers:
        return {}
    return {
        "rates": Plot("Rates beside other engines", "events/s of processor time", names, rates),
        "times": Plot("How many times as fast Cerite is as", "times", names, times, colour=1),  # Cerite has the first
    }


def _groups(result: Row) -> dict[str, Plot]:
    rows = [row for row in result["rows"] if row["window"] is not None]
    windows = sorted({row["window"] for row in rows})
    drawn = {}
    for name, times in GROUP_TIMES.items():
        series = {}
        for shape in dict.fromkeys(row["shape"] for row in rows):
            by_window = {row["window"]: row for row in rows if row["shape"] == shape}
            for key, shown in times.items():
                values = [by_window[window].get(key) if window in by_window else None for window in windows]
                if any(values):
                    series[f"{shape}, {shown}"] = values
        title = "Time per event against the window, all values different"
        if series:
            drawn[name] = Plot(title, "µs of processor time", windows, series, "events in the window")
    return drawn


def _threads(result: Row) -> dict[str, Plot]:
    rows = result["rows"]
    names = list(dict.fromkeys(row["name"] for row in rows))
    series = {}
    for threads in sorted({row["threads"] for row in rows}):
        by_name = {row["name"]: row for row in rows if row["threads"] == threads}
        for what, shown in (("count", "counting"), ("find", "finding")):
            values = [by_name.get(name, {}).get(f"{what}_rate") for name in names]
            series[f"{shown}, {threads} thread{'s' * (threads > 1)}"] = values
    return {"rates": Plot("Rates by threads", "events/s", names, series)} if rows else {}
