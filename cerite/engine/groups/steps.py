"""What events do to groups, as tables for the kernels: filled as classes of events and comparisons come.

A step is a sparse matrix over deterministic states, as in `counting/steps.py`, and the states from which it completes
matches. An event's class says which guards hold; where its comparisons say different things of different stored values,
there is a step for each (`step_of`, by the code of what they say).

Invariant: step 0 changes nothing and completes nothing; equal steps have one number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cerite.automaton.guards import Guard
from cerite.core.arrays import Flags, Ints, Longs
from cerite.engine.groups.grouping import Grouping, Move
from cerite.engine.slots import grown

MISSING, NOTHING = -1, -1
CODE_BITS = 2  # of what one comparison says

Step = tuple[tuple[tuple[int, tuple[int, ...]], ...], tuple[int, ...]]  # targets with their sources, and accepting ones


class Steps(NamedTuple):
    """As kernels read them."""

    class_of: Ints  # by the bits of the guards; -1: not met yet
    depends: Flags  # by class: whether comparisons matter
    step_of: Ints  # by class and code; -1: not met yet
    begins: Ints  # by class: the number of the states in which runs begin, or -1
    begun: Longs  # from begun_at[number] on: how often one event is a match, whether the value is kept, and the states
    begun_at: Longs
    changed: Longs  # from changed_at[step] on: target, how many sources, sources
    changed_at: Longs
    accepting: Longs  # from accepting_at[step] on: states, once for every way to complete a match
    accepting_at: Longs
    operations: Longs  # of the comparisons
    leaves: Longs
    leaf: Longs  # of one number: what a start stores; and whether it is a float


class StepTables:
    """The steps met so far."""

    def __init__(self, grouping: Grouping) -> None:
        self.grouping = grouping
        self._number = {state: number for number, state in enumerate(grouping.states)}
        self._guards = {guard: bit for bit, guard in enumerate(grouping.machine.guards)}
        self._holds: list[int] = []
        self._steps: dict[Step, int] = {((), ()): 0}
        self._begun: dict[tuple[int, ...], int] = {}
        labels = len(grouping.machine.automaton.labels)
        self.fan_in = max(1, len(grouping.states)) * labels  # no number gains more terms at once
        comparisons = grouping.comparisons
        empty = np.zeros(0, np.int64)
        self.tables = Steps(
            np.full(1 << len(self._guards), MISSING, np.int32), np.zeros(0, np.bool_),
            np.zeros((0, 1 << CODE_BITS * len(comparisons)), np.int32), np.zeros(0, np.int32),
            empty, np.zeros(1, np.int64), empty, np.zeros(2, np.int64), empty, np.zeros(2, np.int64),
            np.array([each.op for each in comparisons], np.int64),
            np.array([each.leaf for each in comparisons], np.int64),
            np.array([grouping.leaf, grouping.is_float], np.int64),
        )  # fmt: skip

    def meet(self, bits: int, code: int) -> None:
        """Work out what events of these guards do, where their comparisons say this."""
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
        begins = self._beginning(self.grouping.begun(holds))
        tables = self.tables
        tables.class_of[bits] = number
        self.tables = tables._replace(
            depends=np.append(tables.depends, self.grouping.depends(holds)),
            step_of=grown(tables.step_of, number + 1, MISSING),
            begins=np.append(tables.begins, np.int32(begins)),
        )
        return number

    def _beginning(self, moves: list[Move]) -> int:
        states = [move.target for move in moves if move.target is not None]
        single = sum(move.accepts for move in moves)
        if not states and not single:
            return NOTHING
        kept = any(known for state in states for _, known in state)
        begun = (single, int(kept), *(self._number[state] for state in states))
        if begun not in self._begun:
            self._begun[begun] = len(self._begun)
            at = np.append(self.tables.begun_at, self.tables.begun.size + len(begun))
            self.tables = self.tables._replace(
                begun=np.append(self.tables.begun, np.array(begun, np.int64)), begun_at=at
            )
        return self._begun[begun]

    def _step(self, bits: int, code: int) -> int:
        holds = _Holding(bits, self._guards)
        mask = (1 << CODE_BITS) - 1
        said = tuple(code >> CODE_BITS * k & mask for k in range(len(self.grouping.comparisons)))
        sources: dict[int, list[int]] = {number: [] for number in self._number.values()}
        accepting: list[int] = []
        for state, number in self._number.items():
            for move in self.grouping.moves(state, holds, said):
                if move.target is not None:
                    sources[self._number[move.target]].append(number)
                accepting += [number] * move.accepts
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
    """Which guards hold of an event, by its bits; the guard without tests holds of every one."""

    def __init__(self, bits: int, numbers: dict[Guard, int]) -> None:
        self._bits, self._numbers = bits, numbers

    def __call__(self, guard: Guard) -> bool:
        return guard == Guard() or bool(self._bits >> self._numbers[guard] & 1)
