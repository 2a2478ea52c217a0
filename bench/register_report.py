"""A run of the register suite as Markdown tables and SVG charts, and whether it met its targets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench import svg
from bench.report import big, million, table, written
from bench.targets import Outcome

Row = dict[str, Any]
TITLES = {"seq": "sequences", "k": "Kleene", "kn": "nested Kleene", "q": "other operators"}
STREAMS = {"stocks": "Stock market", "homes": "Smart homes", "taxis": "Taxi trips"}
UNITS = {"stocks": "ms", "homes": "s", "taxis": "s"}


def register_outcomes(rows: list[Row]) -> list[Outcome]:
    """Every target that can be judged from the rows."""
    good = {row["name"]: row for row in rows if "error" not in row}
    return [*_windows(good), *_enumerating(good)]


def _windows(rows: dict[str, Row]) -> Iterator[Outcome]:
    for row in rows.values():
        wide = rows.get(f"stocks {row['pattern']} 30000")
        if row["name"] == f"stocks {row['pattern']} 500" and row["family"] in ("k", "kn") and wide is not None:
            ratio, used = (wide[name] / row[name] for name in ("count_s", "count_cpu_s"))
            target = f"{row['pattern']} on stocks: counting at 30,000 ms within 10 times of 500 ms"
            yield Outcome(target, f"{ratio:.1f} times, {used:.1f} in processor time", ratio <= 10)


def _enumerating(rows: dict[str, Row]) -> Iterator[Outcome]:
    row = rows.get("stocks k3 500")
    if row is not None and "arrow_rate" in row:
        rate, used = row["arrow_rate"] / 1e6, row["arrow_cpu_rate"] / 1e6
        measured = f"{rate:.1f} million on {row['events']:,} events, {used:.1f} in processor time"
        yield Outcome("k3 on stocks at 500 ms: 2 million events/s, all matches in Arrow", measured, rate >= 2)


def register_markdown(results: Row) -> str:
    """All tables of a run."""
    facts = {**results["machine"], "code": results["code"]}
    parts = ["; ".join(f"{name} {value}" for name, value in facts.items()) + "."]
    judged = register_outcomes(results["workloads"])
    if judged:
        heads = ("Target", "Measured", "Met")
        parts.append(table(heads, ((each.target, each.measured, "yes" if each.met else "no") for each in judged)))
    for stream, where in STREAMS.items():
        for family, title in TITLES.items():
            mine = [row for row in results["workloads"] if (row["stream"], row["family"]) == (stream, family)]
            if mine:
                parts += [f"### {where}: {title}", _origin(mine), _rows(mine, UNITS[stream])]
    return "\n\n".join(parts) + "\n"


def _rows(rows: list[Row], unit: str) -> str:
    heads = ("Pattern", f"Window, {unit}", "Matches", "Occurrences", "Entries", "Update", "Count", "Arrow", "Update MB")
    return table((*heads, "Count MB"), (_cells(row) for row in rows))


def _cells(row: Row) -> tuple[str, ...]:
    head = (row["pattern"], f"{row['window']:,}")
    if "error" in row:
        return (*head, row["error"], *[""] * 7)
    rates = (_both(row, "update"), _both(row, "count"), _both(row, "arrow") or "skipped")
    numbers = (big(int(row["matches"])), f"{row['occurrences']:,}", f"{row['entries']:,}")
    return (*head, *numbers, *rates, f"{row['update_mb']:.0f}", f"{row['count_mb']:.0f}")


def _both(row: Row, name: str) -> str:
    """Elapsed / processor time."""
    if f"{name}_rate" not in row:
        return ""
    return f"{million(row[f'{name}_rate'])} / {million(row[f'{name}_cpu_rate'])}"


def _origin(rows: list[Row]) -> str:
    found = dict.fromkeys(f"{row['events']:,} events ({row['origin']})" for row in rows if "error" not in row)
    return "; ".join(found) + ". Rates are millions of events a second, elapsed / processor time."


def register_charts(results: Row, folder: Path) -> list[Path]:
    """Rates and entries of the shortest patterns against the window; gives the files."""
    made: list[Path] = []
    for stream, where in STREAMS.items():
        rows = [row for row in results["workloads"] if row["stream"] == stream and "error" not in row]
        by_pattern = {name: {row["window"]: row for row in rows if row["pattern"] == name}
                      for name in ("seq3", "k3", "kn4")}  # fmt: skip
        by_pattern = {name: found for name, found in by_pattern.items() if len(found) > 1}
        windows = sorted(set.intersection(*(set(found) for found in by_pattern.values()))) if by_pattern else []
        if len(windows) < 2:
            continue
        for column, unit, title in (("count_rate", "events/s", "counting"), ("entries", "entries", "entries alive")):
            series = {name: [found[each][column] for each in windows] for name, found in by_pattern.items()}
            axis = f"window, {UNITS[stream]}"
            picture = svg.lines(f"{where}: {title} against the window", unit, windows, series, axis)
            made.append(written(folder / f"registers-{stream}-{column.split('_')[0]}.svg", picture))
    return made
