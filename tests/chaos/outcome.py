"""What a sink holds in the end, against what it should: matches lost, reported twice, or never there.

The sink is read as Spark reads it, through its own log: a killed job leaves files behind that never became part of it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow.parquet as pq
from rich.table import Table

from tests.chaos.payments import Event, Reported, expected, late, missed

VARIABLES = ("large", "small")


@dataclass(frozen=True)
class Sink:
    """Matches by what they consist of, their ids, and the numbers of the events reported as late."""

    matches: Counter[Reported]
    ids: Counter[str]
    late: frozenset[int]


@dataclass(frozen=True)
class Outcome:
    """One row of the table."""

    scenario: str
    faults: str
    events: int
    late: int
    matches: int
    lost: int
    twice: int
    wrong: int
    remark: str = ""

    @property
    def good(self) -> bool:
        """Whether the sink holds exactly what it should."""
        return not (self.lost or self.twice or self.wrong)


def judged(scenario: str, faults: str, batches: list[list[Event]], folder: Path, remark: str = "") -> Outcome:
    """The sink of a scenario against the batch result without the events that were reported as late.

    An event of which one copy is in time counts, though another may be reported as late. An event that is reported
    without being late is wrong, too; so is an id that two matches share.
    """
    events = list({event.n: event for batch in batches for event in batch}.values())
    written = sink(folder / "sink")
    should = expected(events, set(written.late & missed(batches)))
    more = written.matches - should
    twice = sum(count for reported, count in more.items() if reported in should)
    shared = len(written.matches) - len(written.ids)
    early = written.late - late(batches) - {event.n for event in events if event.at is None}
    wrong = sum(more.values()) - twice + abs(shared) + len(early)
    lost = sum((should - written.matches).values())
    return Outcome(
        scenario, faults, len(events), len(written.late), sum(written.matches.values()), lost, twice, wrong, remark
    )


def sink(folder: Path) -> Sink:
    """What Spark would read there."""
    rows: list[dict[str, Any]] = []
    for file in committed(folder):
        rows += pq.read_table(file, partitioning=None).to_pylist()
    matches = [row for row in rows if row["match"] is not None]
    reported = Counter(tuple((name, tuple(event["n"] for event in row[name])) for name in VARIABLES) for row in matches)
    late = frozenset(row["late"]["event"]["n"] for row in rows if row["late"] is not None)
    return Sink(reported, Counter(row["match"] for row in matches), late)


def committed(folder: Path) -> Iterable[Path]:
    """The files that a file sink's log names; a compacted log stands for all before it."""
    logs = {path.stem: path for path in (folder / "_spark_metadata").glob("[0-9]*")}
    named: dict[Path, str] = {}
    for _, log in sorted(logs.items(), key=lambda each: int(each[0])):
        if log.suffix == ".compact":
            named.clear()
        for line in log.read_text("utf-8").splitlines()[1:]:
            entry = json.loads(line)
            named[Path(unquote(urlparse(entry["path"]).path))] = entry["action"]
    return [path for path, action in named.items() if action == "add"]


def table(outcomes: Iterable[Outcome]) -> Table:
    """All outcomes for a terminal."""
    shown = Table(title="Live streams under faults: the sink against the batch result without the reported late events")
    for name in ("scenario", "faults"):
        shown.add_column(name)
    for name in ("events", "late", "matches", "lost", "twice", "wrong"):
        shown.add_column(name, justify="right")
    shown.add_column("remark")
    for each in outcomes:
        numbers = (each.events, each.late, each.matches, each.lost, each.twice, each.wrong)
        style = None if each.good else "bold red"
        shown.add_row(each.scenario, each.faults, *(f"{number:,}" for number in numbers), each.remark, style=style)
    return shown
