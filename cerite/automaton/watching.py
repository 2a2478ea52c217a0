"""Watchers: sets of configurations that a run carries along, to know of other ways through the same events.

Negation, complement and the selection strategies ask what *no* way does. Where the watched pattern has no memory the
subset construction answers that beforehand (`determine`); else a run carries the set of the watched pattern's
configurations, step by step (the SRT report's determinisation, algorithms 7 and 8, on the fly instead of unrolled).

A `PLAIN` watcher follows a pattern that must not complete. One of a strategy follows the other ways through the same
part, each with how it compares so far with the way of the run itself; it must not complete with a better one
(docs/semantics.md, *Selection strategies*): for NEXT what differs first decides, for LAST what differs last, for MAX
only supersets count.
"""

from __future__ import annotations

from dataclasses import dataclass

PLAIN, NEXT, LAST, MAX = range(4)


@dataclass(frozen=True, slots=True)
class Op:
    """What one step does to a watched set."""

    watcher: int
    resets: bool = False  # nothing is watched yet
    starts: bool = False  # what was watched before is forgotten; a strategy begins with all earlier ways
    spawns: bool = False  # a way of the watched pattern may begin at this event
    forbids: bool = False  # the step is impossible where the watched pattern (or a better way) completes
    marks: bool = False  # the step marks the event


@dataclass(frozen=True, slots=True)
class Watcher:
    """A watched pattern: its kind and the state in which it begins; it completes where it enters the final state."""

    kind: int
    entry: int
