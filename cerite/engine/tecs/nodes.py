"""The timed enumerable compact set (tECS) of CORE section 4.1-4.2, in one flat array of nodes.

A node is a row of four int64: `KIND` (`UNION`, `BOTTOM`, or the label > 0 of an output node), `LEFT` (next(o) of an
output node, left(u) of a union node), `OTHER` (pos of a bottom or output node, right(u) of a union node) and `MAX`, the
maximum-start. The start of a run is represented by the window key of its first event, so MAX compares with `low`
directly; keys do not decrease with position, so ordering by key is ordering by time.

Invariants (paper, section 4.2): time-ordered, MAX(left) >= MAX(right); 3-bounded, at most three union nodes on a
leftmost path before an output or bottom node; duplicate-free, no two full paths from a node mean the same. Children
have smaller numbers than their parents. All operations return *safe* nodes: non-union, or of output-depth 1 with a
right child of output-depth at most 2. Nodes never change, so an old root stays enumerable until the next compaction.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from cerite.core.arrays import Ints, Longs
from cerite.core.jit import embedded, inlined
from cerite.engine.state.cursor import Cursor
from cerite.engine.state.slots import grown

KIND, LEFT, OTHER, MAX = range(4)
UNION, BOTTOM = -1, 0


class Tecs(NamedTuple):
    """The nodes, and the cells of all union-lists; the cursor knows how many are in use."""

    nodes: Longs
    cell_node: Ints
    cell_next: Ints
    cursor: Cursor


class Cells(Protocol):
    """Cells of linked lists, whatever they hold."""

    @property
    def cell_next(self) -> Ints: ...
    @property
    def cursor(self) -> Cursor: ...


class Lists(NamedTuple):
    """T of Algorithm 1: `head[s, d]` is the list of dstate d in slot s, or -1; a partition's slot is `slot_of[part]`.

    `epochs` and `lows` say when each slot was last cleared, and where its window begins.
    """

    slot_of: Ints
    free: Ints
    epochs: Longs
    lows: Longs
    head: Ints


class Roots(NamedTuple):
    """The nodes under which an event's matches lie: `event` is its index in the batch."""

    event: Longs
    node: Longs


@inlined
def add_node(tecs: Tecs, kind: int, left: int, other: int, start: int) -> int:
    """Append a node; callers have ensured room."""
    nodes = tecs.nodes
    n = tecs.cursor.nodes
    nodes[n, KIND], nodes[n, LEFT], nodes[n, OTHER], nodes[n, MAX] = kind, left, other, start
    tecs.cursor.nodes = n + 1
    return n


@inlined
def new_bottom(tecs: Tecs, position: int, key: int) -> int:
    """new-bottom(i)."""
    return add_node(tecs, BOTTOM, -1, position, key)


@inlined
def extend(tecs: Tecs, n: int, position: int, label: int) -> int:
    """extend(n, j), with the label of the mark."""
    return add_node(tecs, label, n, position, tecs.nodes[n, MAX])


@inlined
def link(tecs: Tecs, left: int, right: int) -> int:
    """A union node over two children with MAX(left) >= MAX(right)."""
    return add_node(tecs, UNION, left, right, tecs.nodes[left, MAX])


@embedded
def union(tecs: Tecs, a: int, b: int) -> int:
    """union(n1, n2) of safe nodes with equal MAX: the gadgets (a) to (d) of Figure 5."""
    nodes = tecs.nodes
    if nodes[a, KIND] != UNION:
        return link(tecs, a, b)
    if nodes[b, KIND] != UNION:
        return link(tecs, b, a)
    right_a, right_b = nodes[a, OTHER], nodes[b, OTHER]
    if nodes[right_a, MAX] < nodes[right_b, MAX]:
        right_a, right_b = right_b, right_a
    u2 = link(tecs, right_a, right_b)
    return link(tecs, nodes[a, LEFT], link(tecs, nodes[b, LEFT], u2))


# Union-lists (CORE section 4.2): what T[q] holds, as linked cells in one arena.
#
# Invariants: n0 is not a union node; MAX(n0) >= MAX(n1) > MAX(n2) > ...; all nodes are safe; a cell belongs to one
# list. Nodes whose starts all left the window (MAX < low) may be forgotten anywhere but at the head: `low` never
# decreases.

FEWEST_CELLS = 1 << 10  # in the smallest arena; tests begin with fewer


def more_cells(cell_next: Ints, cursor: Cursor) -> Ints:
    """An arena of cells with twice the room, the new ones free."""
    old = cell_next.size
    n = max(FEWEST_CELLS, 2 * old)
    larger = grown(cell_next, n)
    larger[old:] = np.arange(old + 1, n + 1)
    larger[-1] = cursor.free_cell
    cursor.free_cell = old
    return larger


@inlined
def new_cell(tecs: Tecs, node: int, following: int) -> int:
    """new-ulist(n) when `following` is -1; callers have ensured room."""
    cell = tecs.cursor.free_cell
    tecs.cursor.free_cell = tecs.cell_next[cell]
    tecs.cursor.cells += 1
    tecs.cell_node[cell], tecs.cell_next[cell] = node, following
    return cell


@inlined
def drop_list(cells: Cells, head: int) -> None:
    """Return a list's cells to the arena."""
    while head >= 0:
        following = cells.cell_next[head]
        cells.cell_next[head] = cells.cursor.free_cell
        cells.cursor.free_cell = head
        cells.cursor.cells -= 1
        head = following


@inlined
def note_root(event: int, node: int, roots: Roots, cursor: Cursor) -> None:
    """Note an open match that the event completes."""
    roots.event[cursor.roots], roots.node[cursor.roots] = event, node
    cursor.roots += 1


@inlined
def length(cells: Cells, head: int) -> int:
    """Number of nodes in a list."""
    n = 0
    while head >= 0:
        n += 1
        head = cells.cell_next[head]
    return n


@embedded
def merge(tecs: Tecs, head: int, low: int) -> int:
    """merge(ul): one safe node for the list without what has left the window, the chain of Figure 5 (e).

    Its union nodes are u0 = (n0, u1), u1 = (n1, u2), …; the last comes first, so that children have smaller numbers.
    """
    nodes, cell_node, cell_next = tecs.nodes, tecs.cell_node, tecs.cell_next
    n, cell = 0, cell_next[head]
    while cell >= 0 and nodes[cell_node[cell], MAX] >= low:
        n += 1
        cell = cell_next[cell]
    if n == 0:
        return int(cell_node[head])
    first = tecs.cursor.nodes
    tecs.cursor.nodes = first + n
    cell = head
    for u in range(first + n - 1, first - 1, -1):
        left = cell_node[cell]
        cell = cell_next[cell]
        right = cell_node[cell] if u == first else u - 1
        nodes[u, KIND], nodes[u, LEFT], nodes[u, OTHER], nodes[u, MAX] = UNION, left, right, nodes[left, MAX]
    return first + n - 1


@embedded
def insert(tecs: Tecs, head: int, node: int, low: int) -> None:
    """insert(ul, n) for a safe node with MAX(n) <= MAX(n0)."""
    nodes, cell_node, cell_next = tecs.nodes, tecs.cell_node, tecs.cell_next
    before = head
    start = nodes[node, MAX]
    while cell_next[before] >= 0 and nodes[cell_node[cell_next[before]], MAX] > start:
        before = cell_next[before]
    after = cell_next[before]
    if after >= 0 and nodes[cell_node[after], MAX] < low:
        drop_list(tecs, after)
        after = -1
        cell_next[before] = -1
    if after >= 0 and nodes[cell_node[after], MAX] == start:
        cell_node[after] = union(tecs, cell_node[after], node)
    else:
        cell_next[before] = new_cell(tecs, node, after)
