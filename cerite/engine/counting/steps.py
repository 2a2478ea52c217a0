"""The linear algebra of counting: one event class is a sparse 0/1 matrix M over dstates, one start a vector s.

The number of runs of one start in each dstate evolves by v ← M v, so a window's totals are sums of matrix products. The
monoid is (P, v) ∘ (P', v') = (P' P, P' v + v'); `advance` applies M on the left of a vector or of every column of a
matrix, `retreat` on the right of a transposed matrix.

Invariant: every number stays below 2**62: callers stop at `limit`, 2**62 over the most terms a number can gain at once.
"""

import numpy as np

from cerite.core.arrays import Words
from cerite.core.jit import inner
from cerite.engine.subset.determinise import MISSING, Steps


@inner
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


@inner
def advance_matrix(p: Words, size: int, c: int, steps: Steps, spare: Words) -> np.uint64:
    """P ← M_c P in place; returns the largest number written."""
    entry, touched, n_touched, succ = steps.entry, steps.touched, steps.n_touched, steps.succ
    top = np.uint64(0)
    n = n_touched[c]
    for x in range(n):
        d = touched[c, x]
        for k in range(size):
            spare[x, k] = p[d, k]
            p[d, k] = np.uint64(0)
    for x in range(n):
        offset = entry[c, touched[c, x]]
        if offset == MISSING:
            continue
        for y in range(offset + 1, offset + 1 + 2 * succ[offset], 2):
            target = succ[y + 1]
            for k in range(size):
                value = p[target, k] + spare[x, k]
                p[target, k] = value
                top = max(top, value)
    return top


@inner
def retreat_matrix(r: Words, size: int, c: int, steps: Steps, spare: Words) -> np.uint64:
    """R ← R M_c with R given transposed (row d holds R's column d); returns the largest number written."""
    entry, touched, n_touched, succ = steps.entry, steps.touched, steps.n_touched, steps.succ
    top = np.uint64(0)
    n = n_touched[c]
    for x in range(n):
        offset = entry[c, touched[c, x]]
        for k in range(size):
            spare[x, k] = np.uint64(0)
        if offset == MISSING:
            continue
        for y in range(offset + 1, offset + 1 + 2 * succ[offset], 2):
            target = succ[y + 1]
            for k in range(size):
                spare[x, k] += r[target, k]
    for x in range(n):
        d = touched[c, x]
        for k in range(size):
            r[d, k] = spare[x, k]
            top = max(top, spare[x, k])
    return top


@inner
def set_identity(p: Words, size: int) -> None:
    """P ← I."""
    for a in range(size):
        for b in range(size):
            p[a, b] = np.uint64(a == b)


@inner
def unknown_state(c: int, v: Words, p: Words, front: Words, has_front: bool, size: int, steps: Steps) -> int:
    """A dstate that holds runs and whose successors in class c are missing, or -1."""
    for x in range(steps.n_touched[c]):
        d: int = steps.touched[c, x]
        if steps.entry[c, d] == MISSING:
            if v[d]:
                return d
            if has_front:
                for k in range(size):
                    if p[d, k] and front[k]:
                        return d
    return -1
