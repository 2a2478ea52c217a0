"""The timed enumerable compact set (tECS) of CORE section 4.1-4.2, in one flat array of nodes.

A node is a row of four int64: `KIND` (`UNION`, `BOTTOM`, or the label > 0 of an output node), `LEFT` (next(o) of an
output node, left(u) of a union node), `OTHER` (pos of a bottom or output node, right(u) of a union node) and `MAX`, the
maximum-start. The start of a run is known by the window key of its first event, so MAX compares with `low` directly;
keys do not decrease with position, so ordering by key is ordering by time.

Invariants (paper, section 4.2): time-ordered, MAX(left) >= MAX(right); 3-bounded, at most three union nodes on a
leftmost path before an output or bottom node; duplicate-free, no two full paths from a node mean the same. Children
have smaller numbers than their parents. All operations return *safe* nodes: non-union, or of output-depth 1 with a
right child of output-depth at most 2. Nodes never change, so an old root stays enumerable until the next compaction.
"""

import numpy as np

from cerite.core.arrays import Ints, Longs
from cerite.core.jit import inlined, inner
from cerite.engine.slots import grown

KIND, LEFT, OTHER, MAX = range(4)
UNION, BOTTOM = -1, 0

# Registers shared by kernels and Python: nodes in use, head of the free cells, and what `update` needs to resume.
NODES, FREE_CELL, N_CELLS, NEXT, N_FREE, EPOCH, ROOTS, DSTATE, CLASS, OCCURRENCES, NEED = range(11)


@inlined
def add_node(nodes: Longs, kind: int, left: int, other: int, start: int, regs: Longs) -> int:
    """Append a node; callers have made sure of room."""
    n: int = regs[NODES]
    nodes[n, KIND], nodes[n, LEFT], nodes[n, OTHER], nodes[n, MAX] = kind, left, other, start
    regs[NODES] = n + 1
    return n


@inlined
def new_bottom(nodes: Longs, position: int, key: int, regs: Longs) -> int:
    """new-bottom(i)."""
    return add_node(nodes, BOTTOM, -1, position, key, regs)


@inlined
def extend(nodes: Longs, n: int, position: int, label: int, regs: Longs) -> int:
    """extend(n, j), with the label of the mark."""
    return add_node(nodes, label, n, position, nodes[n, MAX], regs)


@inlined
def link(nodes: Longs, left: int, right: int, regs: Longs) -> int:
    """A union node over two children, MAX(left) >= MAX(right)."""
    return add_node(nodes, UNION, left, right, nodes[left, MAX], regs)


@inner
def union(nodes: Longs, a: int, b: int, regs: Longs) -> int:
    """union(n1, n2) of safe nodes with equal MAX: the gadgets (a) to (d) of Figure 5."""
    if nodes[a, KIND] != UNION:
        return link(nodes, a, b, regs)
    if nodes[b, KIND] != UNION:
        return link(nodes, b, a, regs)
    right_a, right_b = nodes[a, OTHER], nodes[b, OTHER]
    if nodes[right_a, MAX] >= nodes[right_b, MAX]:
        u2 = link(nodes, right_a, right_b, regs)
    else:
        u2 = link(nodes, right_b, right_a, regs)
    return link(nodes, nodes[a, LEFT], link(nodes, nodes[b, LEFT], u2, regs), regs)


# Union-lists (CORE section 4.2): what T[q] holds, as linked cells in one arena.
#
# Invariants: n0 is not a union node; MAX(n0) >= MAX(n1) > MAX(n2) > ...; all nodes are safe; a cell belongs to one
# list. Nodes whose starts all left the window (MAX < low) may be forgotten anywhere but at the head: `low` never
# decreases.

FEWEST_CELLS = 1 << 10  # in the smallest arena; tests begin with less


def more_cells(cell_next: Ints, regs: Longs) -> Ints:
    """An arena of cells with twice the room, the new ones free."""
    old = cell_next.size
    n = max(FEWEST_CELLS, 2 * old)
    larger = grown(cell_next, n)
    larger[old:] = np.arange(old + 1, n + 1)
    larger[-1] = regs[FREE_CELL]
    regs[FREE_CELL] = old
    return larger


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
