"""What events do to groups, as tables for the kernels: filled as classes of events and comparisons come.

A step is a sparse matrix over deterministic states, as in `counting/steps.py`, together with the states from which it
completes matches. An event's class says which guards hold; if its comparisons say different things about different
stored values, there is a step for each case (`step_of`, by the code of what they say).

For finding matches, a source comes with the label that runs from there get (`source_of`, `label_of`); for counting,
labels do not matter, and all are 0, the label of an event that is passed over.

Invariant: step 0 changes nothing and completes nothing; equal steps have one number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cerite.automaton.guards import Guard
from cerite.core.arrays import Flags, Ints, Longs
from cerite.core.jit import inlined
from cerite.engine.groups.grouping import Grouping, Move
from cerite.engine.state.slots import grown

MISSING, NOTHING = -1, -1
CODE_BITS = 2  # of what one comparison says
SOURCE_BITS = 8  # of a state, below its label

Step = tuple[tuple[tuple[int, tuple[int, ...]], ...], tuple[int, ...]]  # targets with their sources, and accepting ones


class Steps(NamedTuple):
    """The steps, as kernels read them."""

    class_of: Ints  # by the bits of the guards; -1: not met yet
    depends: Flags  # by class: whether comparisons matter
    step_of: Ints  # by class and code; -1: not met yet
    opening_of: Ints  # by class: the number of what its events begin, or -1
    openings: Longs  # from openings_at[number] on: how often the event alone matches, whether its value is kept, states
    openings_at: Longs
    single: Longs  # from single_at[number] on: the labels of matches of one event
    single_at: Longs
    changed: Longs  # from changed_at[step] on: target, how many sources, sources
    changed_at: Longs
    accepting: Longs  # from accepting_at[step] on: states, once for every way to complete a match
    accepting_at: Longs
    operations: Longs  # of the comparisons
    leaves: Longs
    stored: int  # the leaf that a start stores
    is_float: bool  # whether that is a float


@inlined
def source_of(marked: int) -> int:
    """The state of a source that comes with its label."""
    return marked & ((1 << SOURCE_BITS) - 1)


@inlined
def label_of(marked: int) -> int:
    """The label of a source."""
    return marked >> SOURCE_BITS


class StepTables:
    """The steps met so far."""

    def __init__(self, grouping: Grouping, *, labelled: bool = False) -> None:
        self.grouping, self._labelled = grouping, labelled
        self._number = {state: number for number, state in enumerate(grouping.states)}
        self._guards = {guard: bit for bit, guard in enumerate(grouping.machine.guards)}
        self._holds: list[int] = []
        self._steps: dict[Step, int] = {((), ()): 0}
        self._openings: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
        labels = len(grouping.machine.automaton.labels)
        self.fan_in = max(1, len(grouping.states)) * labels  # no number gains more terms at once
        comparisons = grouping.comparisons
        empty = np.zeros(0, np.int64)
        self.tables = Steps(
            np.full(1 << len(self._guards), MISSING, np.int32), np.zeros(0, np.bool_),
            np.zeros((0, 1 << CODE_BITS * len(comparisons)), np.int32), np.zeros(0, np.int32),
            empty, np.zeros(1, np.int64), empty, np.zeros(1, np.int64), empty, np.zeros(2, np.int64), empty,
            np.zeros(2, np.int64),
            np.array([each.op for each in comparisons], np.int64),
            np.array([each.leaf for each in comparisons], np.int64),
            grouping.leaf, grouping.is_float,
        )  # fmt: skip

    def meet(self, bits: int, code: int) -> None:
        """Work out what events do for which these guards hold and whose comparisons say this."""
        tables = self.tables
        number = int(tables.class_of[bits])
        if number < 0:
            number = self._introduce(bits)
        if self.tables.step_of[number, code] == MISSING:
            self.tables.step_of[number, code] = self._step(bits, code)

    def _introduce(self, bits: int) -> int:
        number = len(self._holds)
        self._holds.append(bits)
        holds = _Holding(bits, self._guards)
        opening = self._opening(self.grouping.begun(holds))
        tables = self.tables
        tables.class_of[bits] = number
        self.tables = tables._replace(
            depends=np.append(tables.depends, self.grouping.depends(holds)),
            step_of=grown(tables.step_of, number + 1, MISSING),
            opening_of=np.append(tables.opening_of, np.int32(opening)),
        )
        return number

    def _opening(self, moves: list[Move]) -> int:
        states = [move for move in moves if move.target is not None]
        single = tuple(self._marked(0, move) for move in moves if move.accepts)
        if not states and not single:
            return NOTHING
        kept = any(known for move in states for _, known in move.target or ())
        numbers = (self._marked(self._number[move.target], move) for move in states if move.target is not None)
        opening = (len(single), int(kept), *numbers)
        if (opening, single) not in self._openings:
            self._openings[opening, single] = len(self._openings)
            tables = self.tables
            self.tables = tables._replace(
                openings=np.append(tables.openings, np.array(opening, np.int64)),
                openings_at=np.append(tables.openings_at, tables.openings.size + len(opening)),
                single=np.append(tables.single, np.array(single, np.int64)),
                single_at=np.append(tables.single_at, tables.single.size + len(single)),
            )
        return self._openings[opening, single]

    def _marked(self, state: int, move: Move) -> int:
        """A state with the label of a move that leaves or enters it."""
        return state | move.label << SOURCE_BITS if self._labelled else state

    def _step(self, bits: int, code: int) -> int:
        holds = _Holding(bits, self._guards)
        mask = (1 << CODE_BITS) - 1
        answers = tuple(code >> CODE_BITS * k & mask for k in range(len(self.grouping.comparisons)))
        sources: dict[int, list[int]] = {number: [] for number in self._number.values()}
        accepting: list[int] = []
        for state, number in self._number.items():
            for move in self.grouping.moves(state, holds, answers):
                if move.target is not None:
                    sources[self._number[move.target]].append(self._marked(number, move))
                if move.accepts:
                    accepting.append(self._marked(number, move))
        changed = tuple((target, tuple(each)) for target, each in sources.items() if each != [target])
        return self._numbered((changed, tuple(accepting)))

    def _numbered(self, step: Step) -> int:
        if step in self._steps:
            return self._steps[step]
        self._steps[step] = number = len(self._steps)
        changed, accepting = step
        flat = [value for target, sources in changed for value in (target, len(sources), *sources)]
        tables = self.tables
        self.tables = tables._replace(
            changed=np.append(tables.changed, np.array(flat, np.int64)),
            changed_at=np.append(tables.changed_at, tables.changed.size + len(flat)),
            accepting=np.append(tables.accepting, np.array(accepting, np.int64)),
            accepting_at=np.append(tables.accepting_at, tables.accepting.size + len(accepting)),
        )
        return number


class _Holding:
    """Which guards hold for an event, by its bits; the guard without tests holds for every event."""

    def __init__(self, bits: int, numbers: dict[Guard, int]) -> None:
        self._bits, self._numbers = bits, numbers

    def __call__(self, guard: Guard) -> bool:
        return guard == Guard() or bool(self._bits >> self._numbers[guard] & 1)
