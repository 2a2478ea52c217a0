"""The stream that everything here is done to: payments by card, out of order, in files that are micro-batches.

Invariants: an event has a number `n` of its own, so that a match is known by the numbers of its events; files are
what the source delivers, one a micro-batch, so that which events are late is known beforehand (`late`).
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import cerite

QUERY = """
SELECT small, large FROM Payments
WHERE PAY AS small ; NOT LOGIN ; PAY AS large
FILTER small[amount < 10.0] AND large[amount > 900.0 AND shop != small.shop]
PARTITION BY [card]
WITHIN 60 seconds
"""
SCHEMA = "n bigint, type string, card bigint, shop string, amount double, at timestamp"
DELAY = timedelta(seconds=20)  # how far an event may lie behind the latest one
START = datetime(2026, 1, 1, tzinfo=timezone.utc)
HOUR = timedelta(hours=1)

Reported = tuple[tuple[str, tuple[int, ...]], ...]  # a match: the numbers of the events of every variable


@dataclass(frozen=True)
class Event:
    """One payment or login, and when it arrives; `at` is None in a record that has no usable time."""

    n: int
    type: str
    card: int | None
    shop: str
    amount: float | None
    at: datetime | None
    arrives: datetime

    @property
    def line(self) -> str:
        """As a line of JSON."""
        fields = {name: getattr(self, name) for name in ("n", "type", "card", "shop", "amount")}
        return json.dumps(fields | {"at": None if self.at is None else self.at.isoformat()})


def payments(count: int, seed: int, *, cards: int = 40, disorder: timedelta = DELAY * 0.9) -> list[Event]:
    """Events a third of a second apart, each arriving up to `disorder` after it happened."""
    rng = np.random.default_rng(seed)
    amounts = np.where(rng.random(count) < 0.5, rng.uniform(1, 12, count), rng.uniform(800, 1200, count)).round(2)
    at = START
    events = []
    for n in range(count):
        at += timedelta(milliseconds=int(rng.integers(1, 600)))
        kind = "LOGIN" if rng.random() < 0.2 else "PAY"
        arrives = at + disorder * float(rng.random())
        shop = f"shop {rng.integers(6)}"
        events.append(Event(n, kind, int(rng.integers(cards)), shop, float(amounts[n]), at, arrives))
    return events


def files(events: Iterable[Event], number: int) -> list[list[Event]]:
    """The events in the order of arrival, in so many files of equal size."""
    arrived = sorted(events, key=lambda event: (event.arrives, event.n))
    return [list(part) for part in np.array_split(np.array(arrived, object), number)]


def closing(events: Iterable[Event]) -> Event:
    """A payment that matches nothing, an hour later: when it has been seen, everything before it is decided."""
    last = max(event.at for event in events if event.at is not None)
    return Event(-1, "PAY", 0, "the end", 500.0, last + HOUR, last + HOUR)


def deliver(batches: Sequence[Sequence[Event]], folder: Path, *, extra: Sequence[str] = ()) -> None:
    """Write the files; each is newer than the one before, because that is the order in which Spark takes them.

    `extra` lines, which need not be JSON, go into the second file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for number, batch in enumerate(batches):
        draft = folder / f".{number:05}"
        draft.write_text("".join(f"{line}\n" for line in [each.line for each in batch] + [*extra] * (number == 1)))
        when = 1_700_000_000 + 10 * number
        os.utime(draft, (when, when))
        draft.rename(folder / f"{number:05}.json")


def late(batches: Iterable[Iterable[Event]]) -> set[int]:
    """The numbers of the events that lie behind the watermark when they, or copies of them, arrive."""
    return {n for n, behind in arrivals(batches) if behind}


def missed(batches: Iterable[Iterable[Event]]) -> set[int]:
    """The numbers of the events of which no copy arrives in time."""
    every = list(arrivals(batches))
    return {n for n, behind in every if behind} - {n for n, behind in every if not behind}


def arrivals(batches: Iterable[Iterable[Event]]) -> Iterator[tuple[int, bool]]:
    """Every event with a time, as it arrives, and whether it lies behind the watermark: the definition, as a loop."""
    watermark: datetime | None = None
    for batch in batches:
        timed = [(event.n, event.at) for event in batch if event.at is not None]
        yield from ((n, watermark is not None and at < watermark) for n, at in timed)
        if timed:
            reached = max(at for _, at in timed) - DELAY
            watermark = reached if watermark is None else max(watermark, reached)


def expected(events: Iterable[Event], without: set[int]) -> Counter[Reported]:
    """The matches of the same events at rest, sorted, by the engine in this process."""
    timely = [event for event in events if event.n not in without and event.at is not None]
    timely.sort(key=lambda event: (event.at, event.n))
    columns: dict[str, Any] = {name: [getattr(each, name) for each in timely] for name in ("type", "card", "shop")}
    columns["amount"] = pa.array([each.amount for each in timely], pa.float64())
    columns["at"] = pa.array([each.at for each in timely], pa.timestamp("us", "UTC"))
    matches = cerite.query(QUERY).run(pa.table(columns), time="at")
    return Counter(
        tuple((name, tuple(timely[position].n for position in positions)) for name, positions in sorted(match.bindings))
        for match in matches
    )


def again(events: Iterable[Event], seed: int) -> list[Event]:
    """Every event and, for half of them, the same once more, a little later: mostly, not always, in time if it was."""
    rng = np.random.default_rng(seed)
    once = list(events)
    copies = [each for each in once if rng.random() < 0.5 and each.at is not None]
    return once + [replace(each, arrives=each.arrives + DELAY * 0.05 * float(rng.random())) for each in copies]
