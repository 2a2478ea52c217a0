"""Enumerating what `runs` holds: Algorithm 2 of CORE with products, into flat arrays.

A depth-first walk as in `tecs/enumerate.py`, latest marks first. What comes before the later part of a JOIN waits in a
chain of cells: where a word of the later part ends (`NOTHING`), the walk goes on with what waits. The same waits for
both sides of a union, so for the side that is walked later it is noted where its chain begins, and how many cells there
were: cells created after that belong to the side that is walked first.

Invariant: every descent ends in a match, since nodes are never empty and everything below a root is in its window.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from cerite.core.arrays import Ints, Longs, Pool
from cerite.core.jit import kernel
from cerite.engine.groups.runs import JOIN, NOTHING
from cerite.engine.results.output import MatchChunk
from cerite.engine.state.cursor import Stop, Walk
from cerite.engine.state.slots import doubled
from cerite.engine.tecs.enumerate import (
    FEWEST_MARKS,
    MIXED,
    Room,
    chunks,
    copy_tail,
    doubled_left,
    note,
    spread,
)
from cerite.engine.tecs.nodes import BOTTOM, KIND, LEFT, OTHER, UNION, Roots

NODE, DEPTH, WAITING, CELLS = range(4)  # of what is walked later: marks and cells so far, and the first cell that waits
NEXT = 1  # of a cell, after its NODE


class Trail(NamedTuple):
    """What is walked later, what waits, and the marks down to the node at hand, right-aligned."""

    later: Longs
    cells: Longs
    path_position: Longs
    path_label: Ints


@kernel
def enumerate_runs(roots: Roots, position: Longs, limit: int, nodes: Longs, trail: Trail, room: Room,
                   walk: Walk) -> int:  # fmt: skip
    """Fill one chunk; returns `DONE`, or why to call it again. `position` is by events of the batch."""
    later, cells, path_position, path_label = trail.later, trail.cells, trail.path_position, trail.path_label
    size = path_position.size
    top, m, k, width, same = walk.stack, walk.matches, walk.marks, walk.width, walk.same == 1
    end = position[roots.event[max(walk.root - 1, 0)]]
    while True:
        if top == 0:
            r = walk.root
            if r == roots.event.size:
                note(top, m, k, width, same, walk)
                return Stop.DONE
            walk.emitted = 0
            walk.root += 1
            end = position[roots.event[r]]
            later[0, NODE], later[0, DEPTH], later[0, WAITING], later[0, CELLS] = roots.node[r], 0, -1, 0
            top = 1
        if m == room.starts.size or k + size > room.positions.size:
            note(top, m, k, width, same, walk)
            return Stop.CHUNK_FULL
        top -= 1
        node, depth, waiting, used = later[top, NODE], later[top, DEPTH], later[top, WAITING], later[top, CELLS]
        while True:
            kind = nodes[node, KIND]
            if kind == BOTTOM:
                break
            if top + 1 >= later.shape[0] or depth >= size or used >= cells.shape[0]:
                later[top, NODE], later[top, DEPTH], later[top, WAITING], later[top, CELLS] = node, depth, waiting, used
                note(top + 1, m, k, width, same, walk)
                return Stop.DEEPER
            if kind == NOTHING:
                node, waiting = cells[waiting, NODE], cells[waiting, NEXT]
                continue
            if kind == JOIN:
                cells[used, NODE], cells[used, NEXT] = nodes[node, LEFT], waiting
                waiting = used
                used += 1
                node = nodes[node, OTHER]
                continue
            if kind == UNION:
                later[top, NODE], later[top, DEPTH] = nodes[node, OTHER], depth
                later[top, WAITING], later[top, CELLS] = waiting, used
                top += 1
            else:
                depth += 1
                path_position[size - depth] = nodes[node, OTHER]
                if path_label[size - depth] != kind:
                    path_label[size - depth] = kind
                    same = False
            node = nodes[node, LEFT]
        room.starts[m], room.ends[m] = nodes[node, OTHER], end
        if m == 0:
            width, same = depth, True
        elif width != MIXED and (depth != width or not same):
            spread(width, m, room.offsets, room.labels)
            width = MIXED
        copy_tail(path_position, size - depth, room.positions, k)
        if m == 0 or width == MIXED:
            copy_tail(path_label, size - depth, room.labels, k)
            room.offsets[m + 1] = k + depth
        m += 1
        k += depth
        walk.emitted += 1
        if 0 <= limit <= walk.emitted:
            top = 0


class _RunWalker:
    """`enumerate_runs` with the arrays that it walks on."""

    def __init__(self, roots: Roots, position: Longs, limit: int, nodes: Longs) -> None:
        self._given = roots, position, limit, nodes
        depth = FEWEST_MARKS
        self._trail = Trail(
            later=np.zeros((4 * depth, 4), np.int64), cells=np.zeros((depth, 2), np.int64),
            path_position=np.zeros(depth, np.int64), path_label=np.zeros(depth, np.int32),
        )  # fmt: skip

    @property
    def marks(self) -> int:
        return self._trail.path_position.size

    def advance(self, room: Room, walk: Walk) -> int:
        return enumerate_runs(*self._given, self._trail, room, walk)

    def make_room(self, why: int) -> None:
        del why
        later, cells, positions, labels = self._trail
        self._trail = Trail(doubled(later), doubled(cells), doubled_left(positions), doubled_left(labels))


def matches_of(roots: Roots, position: Longs, limit: int | None, nodes: Longs, pool: Pool) -> Iterator[MatchChunk]:
    """The matches under the roots, at most one root for every event; at most `limit` matches for one event."""
    return chunks(_RunWalker(roots, position, -1 if limit is None else limit, nodes), pool)
