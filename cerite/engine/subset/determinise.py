"""On-the-fly I/O-determinisation (CORE sections 3 and 4.4) of a valuation CEA, as flat tables for the kernels.

A deterministic state (dstate) is the set of CEA states that runs with the same start and the same labelled positions
occupy; for each label, 0 included, its successor is the set reached by that label's transitions whose condition holds
in the event class. Runs that mark the same events thus share one dstate, and no match is ever produced twice.

Invariants of the tables: dstate 0 is {initial}; `entry[c, d]` is `MISSING` until it is needed, `STILL` when the only
successor of d in class c is d itself unmarked, else an offset into `succ`, where the number of successors and then
(label, target) pairs lie, label 0 last. `touched[c, :n_touched[c]]` holds exactly the dstates d > 0 whose entry in
class c is not `STILL`: what a kernel must look at. Tables only grow; a kernel that meets `MISSING` returns and resumes.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from cerite.automaton import TRUE, Automaton
from cerite.core.arrays import Ints
from cerite.core.budget import check_states, most_states

MISSING = -1
STILL = -2
INITIAL = 0  # the dstate in which runs begin


class Steps(NamedTuple):
    """The tables of a deterministic automaton, as kernels read them."""

    entry: Ints
    touched: Ints
    n_touched: Ints
    succ: Ints
    accepting: Ints


class Determinised:
    """The growing deterministic automaton of one query."""

    def __init__(self, automaton: Automaton) -> None:
        self.automaton = automaton
        self.most = most_states()
        self.subsets: list[frozenset[int]] = []
        self._number: dict[frozenset[int], int] = {}
        self._outgoing: list[list[tuple[int, int, int]]] = [[] for _ in range(automaton.n_states)]
        for t in automaton.transitions:
            self._outgoing[t.source].append((t.condition, t.label, t.target))
        self._class_bits: list[int] = []
        self._pairs: dict[tuple[int, int], list[tuple[int, int]]] = {}
        self.entry: Ints = np.full((4, 4), MISSING, np.int32)
        self.touched: Ints = np.zeros((4, 4), np.int32)
        self.n_touched: Ints = np.zeros(4, np.int32)
        self.succ: Ints = np.zeros(64, np.int32)
        self._succ_used = 0
        self.accepting: Ints = np.zeros(0, np.int32)
        self.fan_in = 2
        self._dstate(self._first())

    @property
    def steps(self) -> Steps:
        """The tables as they are now."""
        return Steps(self.entry, self.touched, self.n_touched, self.succ, self.accepting)

    @property
    def n_dstates(self) -> int:
        return len(self.subsets)

    @property
    def capacity(self) -> int:
        """Dstates that fit in the tables now; run state indexed by dstate is allocated to this size."""
        return int(self.entry.shape[1])

    @property
    def filled(self) -> list[tuple[int, int]]:
        """The (dstate, class) pairs known so far: a flip of the counter relies on all that were ever met."""
        return list(self._pairs)

    @property
    def ended(self) -> Ints:
        """The dstates that no event can take any further: what they hold has been reported already."""
        return np.array([d for d, each in enumerate(self.subsets) if self._ends(each)], np.int32)

    def add_class(self, holds: int) -> None:
        """Introduce the next event class; bit c of `holds` says whether condition c holds in it."""
        c = len(self._class_bits)
        self._class_bits.append(holds)
        if c == self.entry.shape[0]:
            self._grow(2 * c, self.capacity)
        self.touched[c, : self.n_dstates - 1] = np.arange(1, self.n_dstates)
        self.n_touched[c] = self.n_dstates - 1

    def successors(self, d: int, c: int) -> list[tuple[int, int]]:
        """The (label, target) pairs of dstate d in class c, label 0 last; computed on first use."""
        pairs = self._pairs.get((d, c))
        if pairs is None:
            self.fill(d, c)
            pairs = self._pairs[d, c]
        return pairs

    def fill(self, d: int, c: int) -> None:
        """Compute the missing entry of dstate d in class c."""
        holds = self._class_bits[c]
        reached = self._reached(self.subsets[d], holds)
        order = sorted(reached, reverse=True)
        pairs = [(label, self._dstate(frozenset(reached[label]))) for label in order]
        self._pairs[d, c] = pairs
        if pairs == [(0, d)]:
            self.entry[c, d] = STILL
            row = self.touched[c, : self.n_touched[c]]
            row[np.flatnonzero(row == d)[0]] = row[-1]
            self.n_touched[c] -= 1
            return
        flat = [len(pairs)] + [x for pair in pairs for x in pair]
        while self._succ_used + len(flat) > self.succ.size:
            self.succ = np.concatenate([self.succ, np.zeros_like(self.succ)])
        self.succ[self._succ_used : self._succ_used + len(flat)] = flat
        self.entry[c, d] = self._succ_used
        self._succ_used += len(flat)
        self.fan_in += len(pairs)

    def restore(self, subsets: list[list[int]]) -> None:
        """Recreate the dstates of a snapshot, in their old numbering."""
        for subset in subsets:
            self._dstate(frozenset(subset))

    def _moves(self, states: Iterable[int], holds: int) -> dict[int, set[int]]:
        """For each label, the CEA states that it reaches from `states` in an event of this class."""
        reached: dict[int, set[int]] = {}
        for q in states:
            for condition, label, target in self._outgoing[q]:
                if condition == TRUE or holds >> condition & 1:
                    reached.setdefault(label, set()).add(target)
        return reached

    def _first(self) -> frozenset[int]:
        return frozenset({self.automaton.initial})

    def _reached(self, subset: frozenset[int], holds: int) -> dict[int, set[int]]:
        return self._moves(subset, holds)

    def _accepts(self, subset: frozenset[int]) -> bool:
        return bool(subset & self.automaton.finals)

    def _ends(self, subset: frozenset[int]) -> bool:
        return not any(self._outgoing[q] for q in subset)

    def _dstate(self, subset: frozenset[int]) -> int:
        known = self._number.get(subset)
        if known is not None:
            return known
        d = self.n_dstates
        check_states(d + 1, self.most)
        if d == self.capacity:
            self._grow(self.entry.shape[0], 2 * d)
        self._number[subset] = d
        self.subsets.append(subset)
        if d > 0:
            classes = np.arange(len(self._class_bits))
            self.touched[classes, self.n_touched[classes]] = d
            self.n_touched[classes] += 1
        if self._accepts(subset):
            self.accepting = np.append(self.accepting, np.int32(d))
        return d

    def _grow(self, classes: int, dstates: int) -> None:
        old = self.entry.shape
        entry = np.full((classes, dstates), MISSING, np.int32)
        entry[: old[0], : old[1]] = self.entry
        touched = np.zeros((classes, dstates), np.int32)
        touched[: old[0], : old[1]] = self.touched
        n_touched = np.zeros(classes, np.int32)
        n_touched[: old[0]] = self.n_touched
        self.entry, self.touched, self.n_touched = entry, touched, n_touched


# Determinisation for MAX: only the markings that no other marking with the same start strictly contains accept.
#
# Besides the states S of this marking, a dstate holds the states E of the markings of the same positions (under any
# labels) and the states B of the markings of strictly more positions. B gains from E whenever this marking skips an
# event that another marks. A match of this marking is maximal among those of its start iff some state of S and none
# of B is final (docs/architecture.md, *Selection strategies*, after ICDT 2019, theorem 5). Starts are compared with
# each other at the occurrence: see `maximal`.
#
# Invariant: a dstate is the set S ∪ (E + n) ∪ (B + 2n), n the number of CEA states.


class MaxDeterminised(Determinised):
    """As `Determinised`, over triples."""

    def _first(self) -> frozenset[int]:
        return frozenset({self.automaton.initial, self.automaton.n_states + self.automaton.initial})

    def _reached(self, subset: frozenset[int], holds: int) -> dict[int, set[int]]:
        this, equal, more = (self._moves(part, holds) for part in self._parts(subset))
        n = self.automaton.n_states
        marked_equal, marked_more = _marked(equal), _marked(more)
        reached = {}
        for label, states in this.items():
            same = marked_equal if label else equal.get(0, set())
            larger = marked_more if label else marked_more | more.get(0, set()) | marked_equal
            reached[label] = states | {n + q for q in same} | {2 * n + q for q in larger}
        return reached

    def _accepts(self, subset: frozenset[int]) -> bool:
        this, _, more = self._parts(subset)
        return bool(this & self.automaton.finals) and not more & self.automaton.finals

    def _ends(self, subset: frozenset[int]) -> bool:
        return super()._ends(self._parts(subset)[0])

    def _parts(self, subset: frozenset[int]) -> tuple[frozenset[int], frozenset[int], frozenset[int]]:
        n = self.automaton.n_states
        this, equal, more = (frozenset(q - k * n for q in subset if q // n == k) for k in range(3))
        return this, equal, more


def _marked(moves: dict[int, set[int]]) -> set[int]:
    return {q for label, states in moves.items() if label for q in states}
