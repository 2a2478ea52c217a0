"""The judge: every run of a CEA, straight from the definition (CORE section 3), over a short stream.

Slow and obviously right: runs are followed one by one, nothing is shared, and only the final sets remove duplicates.
"""

from dataclasses import dataclass

from cerite.automaton import TRUE, Automaton

Match = tuple[int, int, tuple[tuple[int, int], ...]]  # start, end, ((position, label), ...)


@dataclass(frozen=True)
class Event:
    holds: int
    key: int
    low: int
    position: int
    partition: int


def matches(automaton: Automaton, events: list[Event], consume: str = "none") -> list[set[Match]]:
    """For every event of the stream, the set of matches that end at it."""
    by_end: list[set[Match]] = [set() for _ in events]
    alive: list[tuple[int, Event, int, tuple[tuple[int, int], ...]]] = []  # partition, first event, state, marks
    for j, event in enumerate(events):
        runs = [run for run in alive if run[0] == event.partition and run[1].key >= event.low]  # `low` never decreases
        others = [run for run in alive if run[0] != event.partition]
        runs.append((event.partition, event, automaton.initial, ()))
        moved = []
        for partition, first, state, marks in runs:
            for t in automaton.transitions:
                if t.source == state and (t.condition == TRUE or event.holds >> t.condition & 1):
                    more = marks + (((event.position, t.label),) if t.label else ())
                    moved.append((partition, first, t.target, more))
                    if t.target in automaton.finals and first.key >= event.low:
                        by_end[j].add((first.position, event.position, more))
        alive = others + list(dict.fromkeys(moved))
        if by_end[j] and consume == "any":
            alive = []
        elif by_end[j] and consume == "partition":
            alive = others
    return by_end
