"""Which operator runs a query on Spark, and why: S&P, T-CER and R-CER of the DEBS 2024 paper as physical plans.

| operator | when | in Spark |
| --- | --- | --- |
| S&P + R-CER | PARTITION BY | rows hashed by key, sorted by key and time; state is carried along each key |
| S&P + T-CER | a window, no partition | chunks of time that overlap by the window, each recognised alone |
| S&P + R-CER, one task | neither, CONSUME BY ANY, or SUPPRESS over the whole stream | one ordered task |

A hot key under a window is cut like an unpartitioned stream, by its own ranks if the window counts events. Invariant:
chunks are used only where a match is decided by the events inside its window alone (`Plan.beyond_window`), partitions
only where they are independent of each other (`Plan.across_partitions`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cerite.engine.plan import Plan

Operator = Literal["partitions", "chunks", "sequence"]


@dataclass(frozen=True)
class Choice:
    """An operator, why it was chosen, and whether a hot partition may be cut into chunks."""

    operator: Operator
    why: str
    cut: bool = False


def choose(plan: Plan, clock: str | None) -> Choice:
    """The operator for a plan; `clock` is the column that chunks would be cut by."""
    across, beyond = plan.across_partitions, plan.beyond_window
    if across is not None:
        return Choice("sequence", across.reason)
    if plan.partition:
        by_events = plan.window is not None and plan.window.unit == "events"
        cut = beyond is None and (by_events or clock is not None)
        return Choice("partitions", "PARTITION BY: partitions are independent of each other", cut=cut)
    if beyond is not None:
        return Choice("sequence", beyond.reason)
    if clock is None:
        return Choice("sequence", "a window over events, and no time or position to cut the stream by")
    return Choice("chunks", "a window: a match is decided by the events inside it")


def choose_live(plan: Plan, clock: str | None, time: str | None) -> Choice:
    """The operator for a live stream: its events are not numbered, so only time, which all have, is cut into chunks."""
    at_rest = choose(plan, clock)
    if at_rest.operator != "chunks" or plan.window is None:
        return at_rest
    if plan.window.unit == "events":
        return Choice("sequence", "a window over events and no partition: ranks count from the first event on")
    if clock != time:
        return Choice("sequence", f"a window over `{clock}` and no partition: only time is cut into chunks")
    return at_rest
