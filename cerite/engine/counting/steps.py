"""The linear algebra of counting: one event class is a sparse 0/1 matrix M over dstates, one start a vector s.

The number of runs of one start in each dstate evolves by v ← M v, so a window's totals are sums of matrix products. The
monoid is (P, v) ∘ (P', v') = (P' P, P' v + v'); `advance_vector` and `advance_matrix` apply M on the left of a vector
or of every column of a matrix, `retreat_matrix` on the right of a transposed matrix. The matches that an event
completes are g · v, where g, the `gain`, has one number per dstate: so a final state without outgoing transitions is
part of no dstate, and most events of a sequence move nothing.

Invariant: every number stays below 2**62: callers stop at `limit`, which is 2**62 divided by the most terms that a
number can gain at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cerite.automaton import Automaton
from cerite.core.arrays import Ints, Words
from cerite.core.jit import embedded
from cerite.engine.subset.determinise import MISSING, Determinised


class Steps(NamedTuple):
    """The tables of a deterministic automaton for counting, as kernels read them."""

    entry: Ints
    touched: Ints
    n_touched: Ints
    succ: Ints
    gain: Ints  # matches that one run completes, by class and dstate
    gaining: Ints  # by class, the dstates > 0 for which that is not 0
    n_gaining: Ints


class CountedStates(Determinised):
    """As `Determinised`, over subsets without the final states that have no outgoing transitions."""

    def __init__(self, automaton: Automaton) -> None:
        left = {t.source for t in automaton.transitions}
        self._ended = automaton.finals - left
        super().__init__(automaton)
        self.gain, self.gaining = np.zeros_like(self.entry), np.zeros_like(self.entry)
        self.n_gaining: Ints = np.zeros_like(self.n_touched)

    @property
    def counting_steps(self) -> Steps:
        """The tables as they are now."""
        return Steps(
            self.entry, self.touched, self.n_touched, self.succ, self.gain, self.gaining, self.n_gaining,
        )  # fmt: skip

    def fill(self, d: int, c: int) -> None:
        """Compute the missing entry of dstate d in class c, and how many matches a run there completes."""
        reached = self._moves(self.subsets[d], self._class_bits[c])
        gain = sum(bool(states & self.automaton.finals) for states in reached.values())
        super().fill(d, c)
        self.gain[c, d] = gain
        if gain and d:
            self.gaining[c, self.n_gaining[c]] = d
            self.n_gaining[c] += 1

    def _reached(self, subset: frozenset[int], holds: int) -> dict[int, set[int]]:
        reached = super()._reached(subset, holds)
        return {label: states - self._ended for label, states in reached.items() if states - self._ended}

    def _grow(self, classes: int, dstates: int) -> None:
        more = classes - self.entry.shape[0], dstates - self.entry.shape[1]
        super()._grow(classes, dstates)
        self.gain, self.gaining = (np.pad(each, [(0, size) for size in more]) for each in (self.gain, self.gaining))
        self.n_gaining = np.pad(self.n_gaining, (0, more[0]))


@embedded
def advance_vector(v: Words, c: int, steps: Steps, spare: Words) -> np.uint64:
    """v ← M_c v in place; returns the largest number written."""
    entry, touched, n_touched, succ = steps.entry, steps.touched, steps.n_touched, steps.succ
    top = np.uint64(0)
    n = n_touched[c]
    for x in range(n):
        d = touched[c, x]
        spare[x] = v[d]
        v[d] = np.uint64(0)
    for x in range(n):
        value = spare[x]
        if value:
            offset = entry[c, touched[c, x]]
            for y in range(offset + 1, offset + 1 + 2 * succ[offset], 2):
                target = succ[y + 1]
                v[target] += value
                top = max(top, v[target])
    return top


@embedded
def advance_matrix(p: Words, first: int, size: int, c: int, steps: Steps, spare: Words) -> np.uint64:
    """P ← M_c P in place, in the columns from `first` on; returns the largest number written."""
    entry, touched, n_touched, succ = steps.entry, steps.touched, steps.n_touched, steps.succ
    top = np.uint64(0)
    n = n_touched[c]
    for x in range(n):
        d = touched[c, x]
        for k in range(first, size):
            spare[x, k] = p[d, k]
            p[d, k] = np.uint64(0)
    for x in range(n):
        offset = entry[c, touched[c, x]]
        if offset == MISSING:
            continue
        for y in range(offset + 1, offset + 1 + 2 * succ[offset], 2):
            target = succ[y + 1]
            for k in range(first, size):
                value = p[target, k] + spare[x, k]
                p[target, k] = value
                top = max(top, value)
    return top


@embedded
def retreat_matrix(r: Words, first: int, size: int, c: int, steps: Steps, spare: Words) -> np.uint64:
    """R ← R M_c with R given transposed (row d holds R's column d), as above; returns the largest number written."""
    entry, touched, n_touched, succ = steps.entry, steps.touched, steps.n_touched, steps.succ
    top = np.uint64(0)
    n = n_touched[c]
    for x in range(n):
        offset = entry[c, touched[c, x]]
        for k in range(first, size):
            spare[x, k] = np.uint64(0)
        if offset == MISSING:
            continue
        for y in range(offset + 1, offset + 1 + 2 * succ[offset], 2):
            target = succ[y + 1]
            for k in range(first, size):
                spare[x, k] += r[target, k]
    for x in range(n):
        d = touched[c, x]
        for k in range(first, size):
            r[d, k] = spare[x, k]
            top = max(top, spare[x, k])
    return top


@embedded
def set_identity(p: Words, size: int) -> None:
    """P ← I."""
    for a in range(size):
        for b in range(size):
            p[a, b] = np.uint64(a == b)


@embedded
def unknown_state(c: int, v: Words, p: Words, front: Words, has_front: bool, size: int, steps: Steps) -> int:
    """A dstate that holds runs and whose successors in class c are missing, or -1."""
    for x in range(steps.n_touched[c]):
        d: int = steps.touched[c, x]
        if steps.entry[c, d] == MISSING:
            if v[d]:
                return d
            if has_front:
                for k in range(1, size):
                    if p[d, k] and front[k]:
                        return d
    return -1
