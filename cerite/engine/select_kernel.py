"""NEXT and LAST (ICDT 2019, section 4) on the tECS, without enumerating the candidates.

Both orders compare sets of positions and do not change when the same later position joins both sets; so the best set
below a node follows from its children's: best(union) is the better of two, best(output) adds a position. This is
remembered per node with the latest start that reaches it. A memory is good as long as that start is in the window: a
window that moves on only takes other candidates away.

Sets are interned: number 0 is the empty set, set k is `set_before[k]` plus the later position `set_position[k]`; equal
sets have equal numbers; `sets[0]` is how many there are.

Invariant: `best_set[n]` is the winner among the open matches of n with start >= low whenever `known`.
"""

import numpy as np
import numpy.typing as npt

from cerite.engine.tecs import BOTTOM, KIND, LEFT, MAX, OTHER, UNION
from cerite.hashing import fold
from cerite.jit import kernel

Longs = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32]

UNKNOWN = -1


@kernel
def known(n: int, low: int, best_set: Ints, best_start: Longs) -> bool:
    """Whether what is remembered about a node is good for this window."""
    return bool(best_set[n] != UNKNOWN and best_start[n] >= low)


@kernel
def better(a: int, b: int, last: bool, set_position: Longs, set_before: Ints) -> bool:
    """Whether set a is strictly above set b: where they differ first (NEXT) or last (LAST), a has the position."""
    a_has = False
    while a != b:
        if b == 0 or (a != 0 and set_position[a] > set_position[b]):
            a_has = True
            a = set_before[a]
        elif a == 0 or set_position[a] < set_position[b]:
            a_has = False
            b = set_before[b]
        else:
            a, b = set_before[a], set_before[b]
            continue
        if last:
            return a_has
    return a_has


@kernel
def intern(before: int, position: int, table: Ints, set_position: Longs, set_before: Ints, sets: Longs) -> int:
    """The number of the set `before` plus `position`; callers have made sure of room."""
    mask = table.size - 1
    place = np.int64(fold(fold(np.uint64(0), np.uint64(before)), np.uint64(position))) & mask
    while table[place] > 0:
        k: int = table[place]
        if set_before[k] == before and set_position[k] == position:
            return k
        place = (place + 1) & mask
    k = int(sets[0])
    table[place] = k
    set_before[k], set_position[k] = before, position
    sets[0] = k + 1
    return k


@kernel
def rehash(table: Ints, set_position: Longs, set_before: Ints, sets: Longs) -> None:
    """Enter every set into a fresh, larger table."""
    n = sets[0]
    sets[0] = 1
    for k in range(1, n):
        intern(set_before[k], set_position[k], table, set_position, set_before, sets)


@kernel
def evaluate(
    root: int,
    low: int,
    last: bool,
    nodes: Longs,
    best_set: Ints,
    best_start: Longs,
    table: Ints,
    set_position: Longs,
    set_before: Ints,
    stack: Ints,
    sets: Longs,
) -> bool:
    """Make the best set of a node known; False when there is no room for more sets, and nothing is lost."""
    stack[0] = root
    top = 0
    while top >= 0:
        n = stack[top]
        if known(n, low, best_set, best_start):
            top -= 1
            continue
        kind, left, other = nodes[n, KIND], nodes[n, LEFT], nodes[n, OTHER]
        if kind == BOTTOM:
            best_set[n], best_start[n] = 0, nodes[n, MAX]
        elif not known(left, low, best_set, best_start):
            top += 1
            stack[top] = left
            continue
        elif kind != UNION:
            if sets[0] == set_before.size:
                return False
            best_set[n] = intern(best_set[left], other, table, set_position, set_before, sets)
            best_start[n] = best_start[left]
        elif nodes[other, MAX] < low:
            best_set[n], best_start[n] = best_set[left], best_start[left]
        elif not known(other, low, best_set, best_start):
            top += 1
            stack[top] = other
            continue
        elif best_set[left] == best_set[other]:
            best_set[n], best_start[n] = best_set[left], max(best_start[left], best_start[other])
        else:
            chosen = left if better(best_set[left], best_set[other], last, set_position, set_before) else other
            best_set[n], best_start[n] = best_set[chosen], best_start[chosen]
        top -= 1
    return True


@kernel
def choose(
    root_event: Longs,
    root_node: Longs,
    begin: int,
    n_roots: int,
    low: int,
    last: bool,
    nodes: Longs,
    best_set: Ints,
    best_start: Longs,
    table: Ints,
    set_position: Longs,
    set_before: Ints,
    stack: Ints,
    sets: Longs,
) -> int:
    """The best set among the roots of the event of root `begin`, or `UNKNOWN` when there is no room for more sets."""
    best = UNKNOWN
    for r in range(begin, n_roots):
        if root_event[r] != root_event[begin]:
            break
        if not evaluate(root_node[r], low, last, nodes, best_set, best_start, table, set_position, set_before, stack,
                        sets):  # fmt: skip
            return UNKNOWN
        candidate = best_set[root_node[r]]
        if best == UNKNOWN or (candidate != best and better(candidate, best, last, set_position, set_before)):
            best = candidate
    return best
