"""Union-lists (CORE section 4.2): what T[q] holds, as linked cells in one arena.

Invariants: n0 is not a union node; MAX(n0) >= MAX(n1) > MAX(n2) > ...; all nodes are safe; a cell belongs to one list.
Nodes whose starts all left the window (MAX < low) may be forgotten anywhere but at the head: `low` never decreases.
"""

import numpy as np
import numpy.typing as npt

from cerite.engine.tecs import FREE_CELL, MAX, N_CELLS, link, union
from cerite.jit import inlined, inner

Longs = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32]


@inlined
def new_cell(cell_node: Ints, cell_next: Ints, node: int, following: int, regs: Longs) -> int:
    """new-ulist(n) when `following` is -1; callers have made sure of room."""
    cell: int = regs[FREE_CELL]
    regs[FREE_CELL] = cell_next[cell]
    regs[N_CELLS] += 1
    cell_node[cell], cell_next[cell] = node, following
    return cell


@inlined
def drop_list(cell_next: Ints, head: int, regs: Longs) -> None:
    """Return a list's cells to the arena."""
    while head >= 0:
        following = cell_next[head]
        cell_next[head] = regs[FREE_CELL]
        regs[FREE_CELL] = head
        regs[N_CELLS] -= 1
        head = following


@inlined
def length(cell_next: Ints, head: int) -> int:
    """Number of nodes in a list."""
    n = 0
    while head >= 0:
        n += 1
        head = cell_next[head]
    return n


@inner
def merge_tail(nodes: Longs, cell_node: Ints, cell_next: Ints, cell: int, low: int, regs: Longs) -> int:
    """The chain u1 = (n1, u2), u2 = (n2, ...) of Figure 5 (e), without what left the window; -1 if nothing is left."""
    if cell < 0 or nodes[cell_node[cell], MAX] < low:
        return -1
    rest = merge_tail(nodes, cell_node, cell_next, cell_next[cell], low, regs)
    return cell_node[cell] if rest < 0 else link(nodes, cell_node[cell], rest, regs)


@inner
def merge(nodes: Longs, cell_node: Ints, cell_next: Ints, head: int, low: int, regs: Longs) -> int:
    """merge(ul): one safe node for the whole list."""
    rest = merge_tail(nodes, cell_node, cell_next, cell_next[head], low, regs)
    return cell_node[head] if rest < 0 else link(nodes, cell_node[head], rest, regs)


@inner
def insert(nodes: Longs, cell_node: Ints, cell_next: Ints, head: int, node: int, low: int, regs: Longs) -> None:
    """insert(ul, n) for a safe node with MAX(n) <= MAX(n0)."""
    before = head
    start = nodes[node, MAX]
    while cell_next[before] >= 0 and nodes[cell_node[cell_next[before]], MAX] > start:
        before = cell_next[before]
    after = cell_next[before]
    if after >= 0 and nodes[cell_node[after], MAX] < low:
        drop_list(cell_next, after, regs)
        after = -1
        cell_next[before] = -1
    if after >= 0 and nodes[cell_node[after], MAX] == start:
        cell_node[after] = union(nodes, cell_node[after], node, regs)
    else:
        cell_next[before] = new_cell(cell_node, cell_next, node, after, regs)
