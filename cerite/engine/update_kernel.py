"""Algorithm 1 of CORE over event classes: T maps dstates to union-lists, one T per partition.

Only the dstates that move in the event's class are visited. Their lists are taken out and handled latest maximum-start
first, a fresh bottom node before all. A list goes unchanged to its unmarked successor and, merged and extended, to its
marked ones. At a target the contribution with the latest maximum-start is the base (its head is never a union node) and
the other is merged and inserted, whichever of the two was there first; so lists stay as short as the paper proves.

Invariant: `head[s, d]` is T[d] of slot s or -1; `head[s, 0]` is always -1. Room for the whole event is checked before
anything is changed, so that the kernel can return to Python for more and read the event again.
"""

import numpy as np
import numpy.typing as npt

from cerite.engine.determinise import MISSING
from cerite.engine.tecs import (
    CLASS,
    DSTATE,
    EPOCH,
    MAX,
    N_CELLS,
    N_FREE,
    NEED,
    NEXT,
    NODES,
    OCCURRENCES,
    ROOTS,
    extend,
    new_bottom,
)
from cerite.engine.ulist import drop_list, insert, length, merge, new_cell
from cerite.jit import inlined, inner, kernel

Longs = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32]

DONE, MISS, MORE_SLOTS, MORE_NODES, MORE_CELLS, ROOTS_FULL = range(6)


@inner
def clear_slot(head: Ints, s: int, cell_next: Ints, regs: Longs) -> None:
    """Forget every partial match of one partition."""
    for d in range(head.shape[1]):
        if head[s, d] >= 0:
            drop_list(cell_next, head[s, d], regs)
            head[s, d] = -1


@inlined
def gather(
    c: int,
    low: int,
    head: Ints,
    s: int,
    nodes: Longs,
    cell_node: Ints,
    cell_next: Ints,
    entry: Ints,
    touched: Ints,
    n_touched: Ints,
    succ: Ints,
    moving: Ints,
    regs: Longs,
) -> tuple[int, int]:
    """The dstates of T that move, latest maximum-start first, and how many nodes the event may need at most.

    Lists that left the window are dropped on the way. (-1, d) says that d's successors are missing.
    """
    n, need = 0, 0
    for x in range(n_touched[c]):
        d = touched[c, x]
        if head[s, d] < 0:
            continue
        start = nodes[cell_node[head[s, d]], MAX]
        if start < low:
            drop_list(cell_next, head[s, d], regs)
            head[s, d] = -1
            continue
        offset = entry[c, d]
        if offset == MISSING:
            return -1, d
        need += length(cell_next, head[s, d])
        for y in range(offset + 1, offset + 1 + 2 * succ[offset], 2):
            need += 4 + length(cell_next, head[s, succ[y + 1]])
        place = n
        while place > 0 and nodes[cell_node[head[s, moving[place - 1]]], MAX] < start:
            moving[place] = moving[place - 1]
            place -= 1
        moving[place] = d
        n += 1
    offset = entry[c, 0]
    for y in range(offset + 1, offset + 1 + 2 * succ[offset], 2):
        need += 5 + length(cell_next, head[s, succ[y + 1]])
    return n, need + 1


@inlined
def give(
    target: int, given: int, low: int, head: Ints, s: int, nodes: Longs, cell_node: Ints, cell_next: Ints, regs: Longs
) -> None:
    """ADD of Algorithm 1: combine the list `given` with what the target holds, the later maximum-start as the base."""
    held = int(head[s, target])
    if held < 0:
        head[s, target] = given
        return
    base, other = held, given
    if nodes[cell_node[held], MAX] < nodes[cell_node[given], MAX]:
        base, other = given, held
    head[s, target] = base
    if nodes[cell_node[other], MAX] >= low:
        insert(nodes, cell_node, cell_next, base, merge(nodes, cell_node, cell_next, other, low, regs), low, regs)
    drop_list(cell_next, other, regs)


@inlined
def exec_trans(
    offset: int,
    taken: int,
    position: int,
    low: int,
    head: Ints,
    s: int,
    nodes: Longs,
    cell_node: Ints,
    cell_next: Ints,
    succ: Ints,
    regs: Longs,
) -> None:
    """EXECTRANS of Algorithm 1 for a list taken out of T; label 0 comes last and may keep the list itself."""
    merged = -1
    given = int(taken)
    for y in range(offset + 1, offset + 1 + 2 * succ[offset], 2):
        label, target = succ[y], succ[y + 1]
        if label:
            if merged < 0:
                merged = int(merge(nodes, cell_node, cell_next, taken, low, regs))
            marked = extend(nodes, merged, position, label, regs)
            given = int(new_cell(cell_node, cell_next, marked, -1, regs))
        else:
            given = int(taken)
        give(target, given, low, head, s, nodes, cell_node, cell_next, regs)
        if label == 0:
            return
    drop_list(cell_next, taken, regs)


@kernel
def update(
    kept: Longs,
    classes: Ints,
    key: Longs,
    low: Longs,
    position: Longs,
    partition: Longs,
    consume: int,
    entry: Ints,
    touched: Ints,
    n_touched: Ints,
    succ: Ints,
    accepting: Ints,
    slot_of: Ints,
    free_slots: Ints,
    epochs: Longs,
    lows: Longs,
    head: Ints,
    nodes: Longs,
    cell_node: Ints,
    cell_next: Ints,
    root_event: Longs,
    root_node: Longs,
    moving: Ints,
    regs: Longs,
) -> int:
    """Read kept[regs[NEXT]:], noting the roots of every occurrence; returns why it stopped."""
    for x in range(regs[NEXT], kept.size):
        regs[NEXT] = x
        i = kept[x]
        c = classes[i]
        part = partition[i] if partition.size else 0
        s = slot_of[part]
        start = entry[c, 0]
        if start == MISSING:
            regs[DSTATE], regs[CLASS] = 0, c
            return MISS
        if s < 0:
            if succ[start] == 0:
                continue
            if regs[N_FREE] == 0:
                return MORE_SLOTS
            regs[N_FREE] -= 1
            s = free_slots[regs[N_FREE]]
            slot_of[part] = s
            epochs[s] = regs[EPOCH]
        if epochs[s] != regs[EPOCH]:
            clear_slot(head, s, cell_next, regs)
            epochs[s] = regs[EPOCH]
        lows[s] = low[i]
        n, need = gather(c, low[i], head, s, nodes, cell_node, cell_next, entry, touched, n_touched, succ, moving, regs)
        if n < 0:
            regs[DSTATE], regs[CLASS] = need, c
            return MISS
        if regs[NODES] + need > nodes.shape[0]:
            regs[NEED] = need
            return MORE_NODES
        if regs[N_CELLS] + need > cell_node.size:
            return MORE_CELLS
        if regs[ROOTS] + regs[N_CELLS] + need > root_node.size:
            return ROOTS_FULL
        for y in range(n):
            d = moving[y]
            moving[n + y] = head[s, d]
            head[s, d] = -1
        for y in range(-1, n):  # the start first; one call, because it is compiled into every place that it stands in
            if y >= 0:
                offset, taken = int(entry[c, moving[y]]), int(moving[n + y])
            elif succ[start]:
                bottom = new_bottom(nodes, position[i], key[i], regs)
                offset, taken = int(start), int(new_cell(cell_node, cell_next, bottom, -1, regs))
            else:
                continue
            exec_trans(offset, taken, position[i], low[i], head, s, nodes, cell_node, cell_next, succ, regs)
        before = regs[ROOTS]
        for a in accepting:
            cell = head[s, a]
            while cell >= 0 and nodes[cell_node[cell], MAX] >= low[i]:
                root_event[regs[ROOTS]], root_node[regs[ROOTS]] = i, cell_node[cell]
                regs[ROOTS] += 1
                cell = cell_next[cell]
        if regs[ROOTS] > before:
            regs[OCCURRENCES] += 1
            if consume == 1:
                clear_slot(head, s, cell_next, regs)
            elif consume == 2:
                regs[EPOCH] += 1
    regs[NEXT] = kept.size
    return DONE
