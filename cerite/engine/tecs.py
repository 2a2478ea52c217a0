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
import numpy.typing as npt

from cerite.jit import inlined, inner

Longs = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32]

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
