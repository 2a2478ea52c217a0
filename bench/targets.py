"""The targets, and whether a run met them. A target is left out where the run did not measure it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Outcome:
    """One target."""

    target: str
    measured: str
    met: bool


def outcomes(workloads: Rows, growth: Rows) -> list[Outcome]:
    """Every target that can be judged."""
    rows = {row["name"]: row for row in workloads if "error" not in row}
    return [*_speed(rows), *_windows(rows), *_lengths(rows), *_growth(growth), *_enumeration(rows)]


def _speed(rows: dict[str, Any]) -> Iterator[Outcome]:
    if "S3" in rows:
        row = rows["S3"]
        rate, enough = row["count_rate"] / 1e6, row["events"] >= 4_000_000
        measured = f"{rate:.1f} million on {row['events']:,} events"
        yield Outcome("S3 at 25 million events/s with counting, on 4 million events", measured, rate >= 25 and enough)


def _windows(rows: dict[str, Any]) -> Iterator[Outcome]:
    if {"S3' at T", "S3' at 100T"} <= rows.keys():
        yield _ratio("S3' at window 100T within 1.5 times of T", rows["S3' at 100T"], rows["S3' at T"], 1.5)


def _lengths(rows: dict[str, Any]) -> Iterator[Outcome]:
    if {"S3'", "S24'"} <= rows.keys():
        yield _ratio("S24' within 4 times of S3'", rows["S24'"], rows["S3'"], 4.0)


def _ratio(target: str, row: dict[str, Any], base: dict[str, Any], most: float) -> Outcome:
    update, count = (base[name] / row[name] for name in ("update_rate", "count_rate"))
    return Outcome(target, f"update {update:.2f}, counting {count:.2f} times", max(update, count) <= most)


def _growth(growth: Rows) -> Iterator[Outcome]:
    rows = sorted((row for row in growth if "error" not in row), key=lambda row: int(row["events"]))
    if len(rows) < 2:
        return
    rates = [row["count_rate"] for row in rows]
    spread = max(rates) / min(rates)
    yield Outcome(
        "time linear in the length of the stream", f"events/s differ by a factor of {spread:.2f} at most", spread < 1.25
    )
    short, long = rows[0], rows[-1]
    peaks = [f"{row['count_mb']:.0f} and {row['update_mb']:.0f} MB at {row['events']:,}" for row in (short, long)]
    flat = all(long[name] <= 1.25 * short[name] + 8 for name in ("count_mb", "update_mb"))
    yield Outcome("peak memory flat in the length of the stream", f"{peaks[0]}; {peaks[1]}", flat)


def _enumeration(rows: dict[str, Any]) -> Iterator[Outcome]:
    for name, row in rows.items():
        if row["group"] == "enumeration" and row["match_rate"] is not None:
            rate = row["match_rate"] / 1e6
            yield Outcome(f"{name}: 20 million matches/s into Arrow", f"{rate:.1f} million", rate >= 20)


def measure_outcomes(rows: Rows) -> list[Outcome]:
    """The target of measuring."""
    return [
        Outcome(f"{row['name']} measured at 10 million rows/s", f"{row['rate'] / 1e6:.1f} million", row["rate"] >= 10e6)
        for row in rows
    ]


def register_outcomes(workloads: Rows) -> list[Outcome]:
    """Every target of conditions across events that can be judged; elapsed time decides."""
    rows = {row["name"]: row for row in workloads if "error" not in row}
    return [*_register_windows(rows), *_register_enumeration(rows)]


def _register_windows(rows: dict[str, Any]) -> Iterator[Outcome]:
    for row in rows.values():
        wide = rows.get(f"stocks {row['pattern']} 30000")
        if row["name"] == f"stocks {row['pattern']} 500" and row["family"] in ("k", "kn") and wide is not None:
            ratio, used = (row[name] / wide[name] for name in ("count_rate", "count_cpu_rate"))
            target = f"{row['pattern']} on stocks: counting at 30,000 ms within 10 times of 500 ms"
            yield Outcome(target, f"{ratio:.1f} times, {used:.1f} in processor time", ratio <= 10)


def _register_enumeration(rows: dict[str, Any]) -> Iterator[Outcome]:
    row = rows.get("stocks k3 500")
    if row is not None and "arrow_rate" in row:
        rate, used = row["arrow_rate"] / 1e6, row["arrow_cpu_rate"] / 1e6
        measured = f"{rate:.1f} million on {row['events']:,} events, {used:.1f} in processor time"
        yield Outcome("k3 on stocks at 500 ms: 2 million events/s, all matches in Arrow", measured, rate >= 2)


def spark_outcomes(rows: Rows) -> list[Outcome]:
    """Counting in random order against the floor, in processor time, for every query on 10 million events or more."""
    return [
        Outcome(f"{row['processor']} in random order at most 2 times the floor", f"{times:.2f} times", times <= 2)
        for row in rows if "processor" in row and row["events"] >= 10_000_000
        for times in [sum(row["tasks"]) / sum(row["floor"])]
    ]  # fmt: skip


CUT = ("S3", "Q1", "k3")  # by time


def thread_outcomes(rows: Rows) -> list[Outcome]:
    """Two threads against one, for the queries whose streams are cut by time."""
    return [
        Outcome(f"{row['name']} counted by two threads at 1.8 times one", f"{row['count_times']:.2f} times", met)
        for row in rows if row["threads"] == 2 and row["name"] in CUT for met in [row["count_times"] >= 1.8]
    ]  # fmt: skip
