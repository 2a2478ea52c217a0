"""Random automata and streams for the engine's properties, and the arrays an engine is fed with."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from hypothesis import strategies as st

from cerite.automaton import TRUE, Automaton, Transition
from cerite.core.arrays import Longs
from tests.engine_core.oracle import Event


@dataclass(frozen=True)
class Case:
    automaton: Automaton
    events: list[Event]
    consume: str
    windowed: bool
    partitioned: bool
    cuts: list[int]

    def batches(self) -> list["Batch"]:
        bounds = [0, *self.cuts, len(self.events)]
        return [Batch(self, a, b) for a, b in pairwise(bounds)]


class Batch:
    """A slice of a case as arrays."""

    def __init__(self, case: Case, begin: int, end: int) -> None:
        events = case.events[begin:end]
        words = max(1, -(-len(case.automaton.conditions) // 64))
        mask = (1 << 64) - 1
        rows = [[e.holds >> 64 * w & mask for w in range(words)] for e in events]
        self.bits = np.array(rows, np.uint64).reshape(len(events), words)
        self.key = np.array([e.key for e in events], np.int64)
        self.low = np.array([e.low for e in events], np.int64)
        self.position = np.array([e.position for e in events], np.int64)
        self.partition: Longs | None = None
        if case.partitioned:
            self.partition = np.array([e.partition for e in events], np.int64)


@st.composite
def automata(draw: st.DrawFn, wide_conditions: bool = False) -> Automaton:
    states = draw(st.integers(2, 5))
    n_labels = draw(st.integers(1, 3))
    conditions = draw(st.integers(1, 3))
    offset = 130 if wide_conditions else 0
    labels = (frozenset(), *(frozenset({f"v{k}"}) for k in range(1, n_labels + 1)))
    transition = st.builds(
        Transition,
        source=st.integers(0, states - 1),
        condition=st.integers(TRUE, conditions - 1).map(lambda c: c if c == TRUE else c + offset),
        label=st.integers(0, n_labels),
        target=st.integers(1, states - 1),
    )
    chain = [
        Transition(q, draw(st.integers(0, conditions - 1)) + offset, draw(st.integers(0, n_labels)), q + 1)
        for q in range(states - 1)
    ]
    loops = [Transition(q, TRUE, 0, q) for q in range(1, states) if draw(st.booleans())]
    extra = draw(st.lists(transition, max_size=3))
    finals = frozenset(draw(st.sets(st.integers(1, states - 1), max_size=2))) | {states - 1}
    transitions = tuple(dict.fromkeys(chain + loops + extra))
    return Automaton(states, 0, finals, transitions, tuple(range(conditions + offset)), labels)


@st.composite
def cases(draw: st.DrawFn, max_events: int = 9, wide_conditions: bool = False) -> Case:
    automaton = draw(automata(wide_conditions))
    n = draw(st.integers(1, max_events))
    windowed = draw(st.booleans())
    partitioned = draw(st.booleans())
    width = draw(st.integers(0, 8))
    conditions = len(automaton.conditions)
    events, key, position = [], draw(st.integers(-3, 3)), 0
    choices = sorted({0, *(1 << t.condition for t in automaton.transitions if t.condition != TRUE)})
    for _ in range(n):
        key += draw(st.integers(0, 3))
        position += draw(st.integers(1, 2))
        holds = draw(st.sampled_from(choices)) | draw(st.sampled_from(choices))
        low = key - width if windowed else np.iinfo(np.int64).min
        partition = draw(st.integers(0, 2)) if partitioned else 0
        events.append(Event(holds & (1 << conditions) - 1, key, int(low), position, partition))
    cuts = sorted(draw(st.lists(st.integers(0, n), max_size=3)))
    consume = draw(st.sampled_from(["none", "none", "partition", "any"]))
    return Case(automaton, events, consume, windowed, partitioned, cuts)
