"""How the events of a stream arrive, and what a live run must do with them, in plain Python over lists.

`Plain` says which events are late, duplicate, or read, and in which order.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from cerite.pattern import Size
from tests import strategies as random
from tests.aggregates import aggregate_patterns
from tests.properties.agreement import Rows

REGISTERS = random.queries(random.register_patterns(3) | aggregate_patterns()).map(
    lambda query: query if query.within is not None else replace(query, within=Size.events(7))
)
RANDOM = st.randoms(use_true_random=True)


@dataclass
class Plain:
    """The rules of live streams, over lists: the watermark is the greatest time less the delay, and never goes back."""

    delay: int
    tied: bool
    unique: bool
    watermark: int | None = None
    seen: int | None = None
    waiting: Rows = field(default_factory=list)
    read: Rows = field(default_factory=list)
    late: Rows = field(default_factory=list)
    twice: int = 0

    def push(self, rows: Rows) -> None:
        before = self.watermark
        for row in rows:
            if before is not None and row["at"] < before:
                self.late.append({**row, "late_by": before - row["at"]})
                continue
            known = {each["n"] for each in self.waiting + self.read if before is None or each["at"] >= before}
            if self.unique and row["n"] in known:
                self.twice += 1
                continue
            self.waiting.append(row)
        if rows:
            self.seen = (
                max(row["at"] for row in rows) if self.seen is None else max(self.seen, *(r["at"] for r in rows))
            )
            self.advance(self.seen - self.delay)

    def advance(self, time: int) -> None:
        self.watermark = time if self.watermark is None else max(self.watermark, time)
        self._read([row for row in self.waiting if row["at"] < self.watermark])

    def close(self) -> None:
        self._read(self.waiting)

    def _read(self, rows: Rows) -> None:
        self.read += sorted(rows, key=lambda row: (row["at"], row["n"] if self.tied else 0))
        self.waiting = [row for row in self.waiting if row not in rows]


def arriving(rows: Rows, delay: int, rng: Any, *, beyond: bool) -> Rows:
    """The events in an order of arrival that the watermark allows for, or, if `beyond`, one that may exceed it."""
    jitter = delay if not beyond else 2 * delay + 3
    return sorted(rows, key=lambda row: (row["at"] + rng.uniform(0, jitter), rng.random()))
