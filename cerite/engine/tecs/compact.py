"""Windowed compaction of the tECS: reclaims what no live union-list can report any more.

Children have smaller numbers than parents, so one downward sweep marks what is reachable inside the window and one
upward sweep moves it. A union node whose right side left the window is replaced by its left side, which keeps every
node safe: union nodes only disappear from paths. Called when nodes have doubled since the last time: amortised O(1).

Invariant: the matches of every list, inside its partition's window, and all invariants of `tecs` are unchanged. Roots
noted for enumeration do not survive: callers enumerate first.
"""

import numpy as np

from cerite.core.arrays import Ints, Longs
from cerite.core.jit import kernel
from cerite.engine.tecs.nodes import BOTTOM, KIND, LEFT, MAX, OTHER, UNION, Lists, Tecs, drop_list

DEAD = np.iinfo(np.int64).max


@kernel
def compact(tecs: Tecs, lists: Lists, bound: Longs, moved: Ints) -> None:
    """Compact in place; `bound` and `moved` are scratch of the size of `nodes`. Empty slots become free."""
    nodes, cell_node, cell_next, cursor = tecs.nodes, tecs.cell_node, tecs.cell_next, tecs.cursor
    slot_of, head, lows = lists.slot_of, lists.head, lists.lows
    bound[: cursor.nodes] = DEAD
    for part in range(slot_of.size):
        s = slot_of[part]
        if s < 0:
            continue
        alive = False
        for d in range(head.shape[1]):
            first = head[s, d]
            if first < 0:
                continue
            if lists.epochs[s] != cursor.epoch or nodes[cell_node[first], MAX] < lows[s]:
                drop_list(tecs, first)
                head[s, d] = -1
                continue
            alive = True
            cell = first
            while cell >= 0:
                bound[cell_node[cell]] = lows[s]
                following = cell_next[cell]
                if following >= 0 and nodes[cell_node[following], MAX] < lows[s]:
                    drop_list(tecs, following)
                    cell_next[cell] = -1
                    following = np.int32(-1)
                cell = following
        if not alive:
            slot_of[part] = -1
            lists.free[cursor.free_slots] = s
            cursor.free_slots += 1
    for n in range(cursor.nodes - 1, -1, -1):
        low = bound[n]
        if low == DEAD or nodes[n, KIND] == BOTTOM:
            continue
        bound[nodes[n, LEFT]] = low
        if nodes[n, KIND] == UNION and nodes[nodes[n, OTHER], MAX] >= low:
            bound[nodes[n, OTHER]] = low
    used = 0
    for n in range(cursor.nodes):
        if bound[n] == DEAD:
            continue
        kind, left, other = nodes[n, KIND], nodes[n, LEFT], nodes[n, OTHER]
        if kind != BOTTOM:
            left = moved[left]
        if kind == UNION:
            if bound[other] == DEAD:
                moved[n] = left
                continue
            other = moved[other]
        nodes[used, KIND], nodes[used, LEFT], nodes[used, OTHER], nodes[used, MAX] = kind, left, other, nodes[n, MAX]
        moved[n] = used
        used += 1
    cursor.nodes = used
    for s in range(head.shape[0]):
        for d in range(head.shape[1]):
            cell = head[s, d]
            while cell >= 0:
                cell_node[cell] = moved[cell_node[cell]]
                cell = cell_next[cell]
