"""Charts of results, drawn by Matplotlib: bars and lines on logarithmic axes. The file's name says the format.

`source` is kept in the metadata of an SVG file: what the figures came from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
mpl.rcParams["svg.hashsalt"] = "cerite"  # the same figures give the same file

from matplotlib import pyplot as plt  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

Series = Mapping[str, Sequence[float | None]]


def bars(
    path: Path, title: str, unit: str, names: Sequence[str], series: Series, source: str | None = None, colour: int = 0
) -> Path:
    """A group of bars per name, one per series, in colours from `colour` on; what was not measured has none."""
    figure, axes = _frame(title, unit, 2 + 0.16 * len(names) * (len(series) + 1))
    width = 1 / (len(series) + 1)
    for k, (name, values) in enumerate(series.items()):
        places = [place + k * width for place, value in enumerate(values) if value]
        axes.bar(places, [value for value in values if value], width, label=name, color=f"C{colour + k}")
    middle = width * (len(series) - 1) / 2
    axes.set_xticks([place + middle for place in range(len(names))], names, rotation=45, ha="right")
    return _written(figure, axes, path, source)


def lines(
    path: Path, title: str, unit: str, xs: Sequence[float], series: Series, axis: str, source: str | None = None
) -> Path:
    """A line with dots per series."""
    figure, axes = _frame(title, unit, 6)
    for name, values in series.items():
        known = [(x, value) for x, value in zip(xs, values, strict=True) if value]
        axes.plot([x for x, _ in known], [value for _, value in known], marker="o", label=name)
    axes.set_xscale("log")
    axes.set_xlabel(axis)
    return _written(figure, axes, path, source)


def _frame(title: str, unit: str, width: float) -> tuple[Figure, Axes]:
    figure, axes = plt.subplots(figsize=(max(width, 5), 4), layout="constrained")
    axes.set_yscale("log")
    axes.set_title(title)
    axes.set_ylabel(unit)
    axes.grid(axis="y", alpha=0.4)
    return figure, axes


def _written(figure: Figure, axes: Axes, path: Path, source: str | None) -> Path:
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1))  # next to the bars, never on them
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None, "Source": source} if path.suffix == ".svg" else None)
    plt.close(figure)
    return path
