"""Sets of partial matches: united, marked and multiplied, they are to finding what `numbers.py` is to counting.

An entry of a row or matrix is a set of words (marks of later and later events): `EMPTY`, `UNCHANGED` (only the word
without marks), or nodes. A start's entries hold whole partial matches, which begin with its event; a pending step's
entries hold what is to follow them. Their product joins every word of one to every word of the other, and is one node
(`JOIN`) however many these are; `enumerate` takes it apart again.

A node is a row of four: `KIND` (`UNION`, `JOIN`, `NOTHING`, `BOTTOM`, or the label > 0 of a mark), `LEFT` and `OTHER`
as in `tecs/nodes.py` (of a JOIN what comes first and what comes after it), and `RANK` of a union: how many unions there
are down its left side, itself included.

Invariants, in place of those of the tECS, whose nodes are in order of time:

- nodes never change, and children have smaller numbers than their parents;
- duplicate-free: both sides of a union have no word in common, and a JOIN's come from different times;
- NOTHING is node 0, and lies only below a mark, with at most unions in between: so every word of a node has a mark or a
  bottom, and every JOIN on a way down is paid for by a mark of the match that the way leads to;
- the rank of a union's left side is not above that of its right one (a leftist tree): ways to the left are logarithmic;
- all starts below a root were in the window of its event when it was noted: none has to be skipped.

So a match of k marks takes O(k log n) to walk to, n being the number of nodes, and all matches of an event take time
in proportion to their length: a union that is walked has matches on both sides.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cerite.core.arrays import Ints, Longs
from cerite.core.jit import inlined, inner
from cerite.engine.groups.steps import label_of, source_of
from cerite.engine.state.cursor import Cursor
from cerite.engine.tecs.nodes import BOTTOM, KIND, LEFT, OTHER, UNION, Roots

RANK = 3
JOIN, NOTHING = -2, -3
EMPTY, UNCHANGED = 0, 1  # entries: 2 (n + 1) for the words of node n, and 1 more if the word without marks is added
MOST_OF_A_TERM = 4  # the most nodes that it takes to join two entries and unite the result with a third


class Runs(NamedTuple):
    """The nodes, the roots noted among them, and room for what is carried down a tree; the cursor counts them."""

    nodes: Longs
    roots: Roots
    carried: Longs  # of three rows: by state, what is to follow; a copy; and what that becomes one level down
    cursor: Cursor


@inlined
def has_room(count: int, runs: Runs) -> bool:
    """Whether there is room for `count` nodes; if not, notes what is needed."""
    if runs.cursor.nodes + count <= runs.nodes.shape[0]:
        return True
    runs.cursor.need = count
    return False


@inlined
def new_node(kind: int, left: int, other: int, rank: int, runs: Runs) -> int:
    """Append a node; callers have ensured room."""
    nodes, n = runs.nodes, runs.cursor.nodes
    nodes[n, KIND], nodes[n, LEFT], nodes[n, OTHER], nodes[n, RANK] = kind, left, other, rank
    runs.cursor.nodes = n + 1
    return n


@inlined
def plain(node: int) -> int:
    """The entry of a node's words."""
    return 2 * (node + 1)


@inner
def united_nodes(a: int, b: int, runs: Runs) -> int:
    """A union of two nodes; -1 is none."""
    if a < 0 or b < 0:
        return a if b < 0 else b
    nodes = runs.nodes
    if nodes[a, RANK] > nodes[b, RANK]:
        a, b = b, a
    return new_node(UNION, a, b, nodes[a, RANK] + 1, runs)


@inner
def united(x: int, y: int, runs: Runs) -> int:
    """The words of both entries, which have no word in common."""
    if x == EMPTY or y == EMPTY:
        return x | y
    return plain(united_nodes((x >> 1) - 1, (y >> 1) - 1, runs)) | ((x | y) & 1)


@inner
def marked(x: int, label: int, position: int, runs: Runs) -> int:
    """All words of an entry with one more mark, or unchanged if the label says that there is no mark."""
    if x == EMPTY or label == 0:
        return x
    words = (x >> 1) - 1
    if x & 1:
        words = united_nodes(0, words, runs)
    return plain(new_node(label, words, position, 0, runs))


@inner
def joined(x: int, y: int, runs: Runs) -> int:
    """Every word of x followed by every word of y."""
    if x == EMPTY or y == EMPTY:
        return EMPTY
    if x == UNCHANGED or y == UNCHANGED:
        return y if x == UNCHANGED else x
    first, later = (x >> 1) - 1, (y >> 1) - 1
    words = -1
    if first >= 0 and later >= 0:
        words = new_node(JOIN, first, later, 0, runs)
    if y & 1:
        words = united_nodes(words, first, runs)
    if x & 1:
        words = united_nodes(words, later, runs)
    return plain(words) | (x & y & 1)


@inner
def new_bottom(position: int, runs: Runs) -> int:
    """The partial match that has begun at an event and has no marks yet."""
    return plain(new_node(BOTTOM, -1, position, 0, runs))


@inner
def multiplied(matrix: Longs, x: int, rows: Longs, y: int, size: int, columns: int, out: Longs, at: int,
               runs: Runs) -> None:  # fmt: skip
    """out[at:] ← rows[y] followed by matrix[x], of `columns` columns, like `numbers.narrow_product`."""
    for t in range(size):
        for c in range(columns):
            value = EMPTY
            for s in range(size):
                step = matrix[x, t * size + s]
                if step != EMPTY:
                    value = united(value, joined(rows[y, s * columns + c], step, runs), runs)
            out[at + t * columns + c] = value


@inner
def moved(
    entries: Longs, sources: Longs, first: int, end: int, width: int, column: int, position: int, runs: Runs
) -> int:
    """What an entry becomes by a step: the marked words of all its sources."""
    value = EMPTY
    for s in range(first, end):
        entry = entries[source_of(sources[s]) * width + column]
        value = united(value, marked(entry, label_of(sources[s]), position, runs), runs)
    return value


@inner
def completed(rows: Longs, x: int, sources: Longs, first: int, end: int, position: int, runs: Runs) -> int:
    """The matches that a row's partial matches become where a step accepts."""
    return moved(rows[x], sources, first, end, 1, 0, position, runs)


# ------------------------------------------------------------ compaction
DEAD = -1


@inner
def keep_entries(rows: Longs, x: int, target: Ints) -> None:
    """Note the nodes of a row as alive."""
    for j in range(rows.shape[1]):
        entry = rows[x, j]
        if entry > UNCHANGED:
            target[(entry >> 1) - 1] = 0


@inner
def move_entries(rows: Longs, x: int, target: Ints) -> None:
    """Give the nodes in a row their new numbers."""
    for j in range(rows.shape[1]):
        entry = rows[x, j]
        if entry > UNCHANGED:
            rows[x, j] = 2 * (np.int64(target[(entry >> 1) - 1]) + 1) | (entry & 1)


@inner
def compact_nodes(target: Ints, runs: Runs) -> None:
    """Keep the nodes that are alive and all nodes below them; target[n] becomes the new number of node n."""
    nodes, cursor = runs.nodes, runs.cursor
    target[0] = 0
    for n in range(cursor.nodes - 1, -1, -1):
        kind = nodes[n, KIND]
        if target[n] == DEAD or kind in (BOTTOM, NOTHING):
            continue
        target[nodes[n, LEFT]] = 0
        if kind in (UNION, JOIN):
            target[nodes[n, OTHER]] = 0
    used = 0
    for n in range(cursor.nodes):
        if target[n] == DEAD:
            continue
        kind, left, other = nodes[n, KIND], nodes[n, LEFT], nodes[n, OTHER]
        nodes[used, KIND], nodes[used, RANK] = kind, nodes[n, RANK]
        nodes[used, LEFT] = left if kind in (BOTTOM, NOTHING) else np.int64(target[left])
        nodes[used, OTHER] = np.int64(target[other]) if kind in (UNION, JOIN) else other
        target[n] = used
        used += 1
    cursor.nodes = used
