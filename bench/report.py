"""A run as Markdown tables and SVG charts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from bench import svg
from bench.targets import enumeration_rate, outcomes

Row = dict[str, Any]
TITLES = {
    "core": "Stock market: sequences with output and without",
    "windows": "Stock market: S3' with wider windows",
    "operators": "Stock market: other operators",
    "homes": "Smart homes: sequences with output and without",
    "taxis": "Taxi trips: sequences with output and without",
    "strings": "Stock market: strings that are not dictionary-encoded",
}
RATES = ("update", "count", "arrow", "conditions", "polars", "numpy")


def markdown(results: Row) -> str:
    """All tables of a run."""
    rows, growth = results["workloads"], results["growth"]
    facts = {**results["machine"], "code": results["code"]}
    parts = ["; ".join(f"{name} {value}" for name, value in facts.items()) + "."]
    judged = outcomes(rows, growth)
    if judged:
        heads = ("Target", "Measured", "Met")
        parts.append(table(heads, ((each.target, each.measured, "yes" if each.met else "no") for each in judged)))
    for group, title in TITLES.items():
        mine = [row for row in rows if row["group"] == group]
        if mine:
            parts += [f"### {title}", _origin(mine), _rate_table(mine)]
    many = [row for row in rows if row["group"] == "enumeration" and "error" not in row]
    if many:
        parts += ["### Enumeration into Arrow", _origin(many), _enumeration_table(many)]
    if growth:
        parts += ["### Growth with the stream: S3 on batches that are dropped", _growth_table(growth)]
    return "\n\n".join(parts) + "\n"


def charts(results: Row, folder: Path) -> list[Path]:
    """Writes a chart per group; gives the files."""
    rows = [row for row in results["workloads"] if "error" not in row]
    made: list[Path] = []
    for group in TITLES:
        mine = [row for row in rows if row["group"] == group]
        if mine:
            series = {
                name: [row[f"{name}_rate"] for row in mine] for name in ("update", "count", "arrow", "polars", "numpy")
            }
            picture = svg.bars(TITLES[group], "events/s", [row["name"] for row in mine], series)
            made.append(written(folder / f"{group}.svg", picture))
    growth = [row for row in results["growth"] if "error" not in row]
    if growth:
        lengths = [row["events"] for row in growth]
        for name, unit, places in (("time", "s", 6), ("memory", "MB", 1)):
            suffix = "s" if name == "time" else "mb"
            series = {each: [round(row[f"{each}_{suffix}"], places) for row in growth] for each in ("update", "count")}
            picture = svg.lines(f"S3: {name} against stream length", unit, lengths, series, "events")
            made.append(written(folder / f"growth-{name}.svg", picture))
    return made


def _rate_table(rows: list[Row]) -> str:
    heads = ("Query", "Matches", "Occurrences", "Update", "Count", "Arrow", "Conditions", "Polars floor", "NumPy floor")
    return table((*heads, "Update MB", "Count MB"), (_rate_cells(row) for row in rows))


def _rate_cells(row: Row) -> tuple[str, ...]:
    if "error" in row:
        return (row["name"], row["error"], *[""] * 9)
    update, count, arrow, *rest = (million(row[f"{name}_rate"]) for name in RATES)
    arrow = arrow or "skipped"
    numbers = (big(int(row["matches"])), f"{row['occurrences']:,}")
    return (row["name"], *numbers, update, count, arrow, *rest, f"{row['update_mb']:.0f}", f"{row['count_mb']:.0f}")


def _enumeration_table(rows: list[Row]) -> str:
    heads = ("Query", "Events", "Matches", "Million matches/s", "of which enumerating", "to_arrow(), s", "Note")
    return table(heads, (_enumeration_cells(row) for row in rows))


def _enumeration_cells(row: Row) -> tuple[str, ...]:
    head = (row["name"], f"{row['events']:,}", big(int(row["matches"])))
    if row["pieces_s"] is None:
        return (*head, "skipped", "", "", row["arrow_note"])
    alone = int(row["matches"]) / max(1e-9, row["pieces_s"] - row["update_s"])
    rates = (f"{enumeration_rate(row) / 1e6:.1f}", f"{alone / 1e6:.1f}")
    return (*head, *rates, "" if row["arrow_note"] else f"{row['arrow_s']:.2f}", row["arrow_note"])


def _growth_table(rows: list[Row]) -> str:
    heads = ("Events", "Update s", "Count s", "Update M/s", "Count M/s", "Update MB", "Count MB")
    cells: Callable[[Row], tuple[str, ...]] = lambda row: (  # noqa: E731
        f"{row['events']:,}", f"{row['update_s']:.3f}", f"{row['count_s']:.3f}", million(row["update_rate"]),
        million(row["count_rate"]), f"{row['update_mb']:.0f}", f"{row['count_mb']:.0f}",
    )  # fmt: skip
    bad = ((f"{row['events']:,}", row["error"], *[""] * 5) for row in rows if "error" in row)
    return table(heads, [*(cells(row) for row in rows if "error" not in row), *bad])


def _origin(rows: list[Row]) -> str:
    found = [f"{row['events']:,} events ({row['origin']})" for row in rows if "error" not in row]
    return "; ".join(dict.fromkeys(found)) + ". Rates are millions of events a second."


def million(rate: float | None) -> str:
    """A rate in millions.

    >>> million(2_340_000.0), million(12_345.0), million(None)
    ('2.3', '0.012', '')
    """
    if rate is None:
        return ""
    return f"{rate / 1e6:.1f}" if rate >= 1e6 else f"{rate / 1e6:.2g}"


def big(number: int) -> str:
    """A number that may be very large.

    >>> big(1234), big(10**15)
    ('1,234', '1.0e15')
    """
    if number < 10**12:
        return f"{number:,}"
    digits = len(str(number)) - 1
    return f"{number / 10**digits:.1f}e{digits}"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; all columns but the first are aligned to the right."""
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def written(path: Path, text: str) -> Path:
    """Write a file and give its path."""
    path.write_text(text, encoding="utf-8")
    return path
