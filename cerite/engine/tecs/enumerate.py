"""Algorithm 2 of CORE: enumerate the matches under a root, with output-linear delay, into flat arrays.

A depth-first walk with an explicit stack, left child first, right child only if its maximum-start is in the window.
Positions come latest first, so the path is kept right-aligned and is ascending in memory: a match is a single copy.

As long as all matches of a chunk have the same labels, only the labels of the first are written, and no offsets:
`width` is their number. The walk knows this without comparing matches, since only marks that are new in the path can
differ. When a match differs, the labels and offsets of those before it are written (`spread`), and `width` is `MIXED`
from there on.

With a `chooser`, only children that hold their parent's best set (see `select`) are walked, and the best set of
an event is chosen when its first root is reached: later windows may change what is remembered. Without one (None),
Numba compiles a kernel that knows nothing about it.

Invariant: the last `depth` places of the path are the marks between the root and the node at hand; every node on the
stack has a start inside the window, so every descent ends in a match. The walk stops between matches and resumes there.
"""

from collections.abc import Iterator
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from cerite.core.arrays import Ints, Longs, Pool
from cerite.core.jit import inlined, inner, kernel
from cerite.engine.results.output import MatchChunk, alike
from cerite.engine.state.cursor import Stop, Walk, fresh
from cerite.engine.state.slots import doubled
from cerite.engine.tecs.nodes import BOTTOM, KIND, LEFT, MAX, OTHER, UNION, Roots
from cerite.engine.tecs.select import UNKNOWN, Chooser, Selector, choose

S = TypeVar("S", bound=np.generic)

MIXED = -1
LAST_MARK = np.iinfo(np.int64).min  # in place of the event's position: a match ends at its last mark
ONE = np.uint64(1)


class Trail(NamedTuple):
    """Nodes still to be walked, with the depth of each, and the marks down to the node at hand, right-aligned."""

    stack_node: Longs
    stack_depth: Longs
    path_position: Longs
    path_label: Ints


class Room(NamedTuple):
    """Where the matches of a chunk are written."""

    starts: Longs
    ends: Longs
    offsets: Longs
    positions: Longs
    labels: Ints


@inner
def spread(width: int, matches: int, offsets: Longs, labels: Ints) -> None:
    """Write the offsets and labels of matches that all have the labels of the first."""
    for m in range(matches):
        offsets[m] = m * width
        for y in range(width):
            labels[m * width + y] = labels[y]
    offsets[matches] = matches * width


@inlined
def copy_tail(source: Longs | Ints, begin: int, target: Longs | Ints, at: int) -> None:
    """`target[at:]` gets `source[begin:]`; unsigned and by hand, which is fastest for the few marks of a match."""
    s, t = np.uint64(begin), np.uint64(at)
    while s < np.uint64(source.size):
        target[t] = source[s]
        s += ONE
        t += ONE


@inlined
def note(top: int, m: int, k: int, width: int, same: bool, walk: Walk) -> None:
    """Note where the walk is."""
    walk.stack, walk.matches, walk.marks, walk.width, walk.same = top, m, k, width, same


@inlined
def write_siblings(
    node: int, depth: int, end: int, oldest: int, m: int, k: int, nodes: Longs, trail: Trail, room: Room
) -> tuple[int, int, int]:
    """Write the matches at hand that differ in their first mark only; returns the node to walk next or -1, `m` and `k`.

    They lie under a chain of union nodes whose left children are one mark over a bottom node: most matches of most
    patterns. All have the labels of the path. Room for one more match is left.
    """
    path, starts, ends, positions = trail.path_position, room.starts, room.ends, room.positions
    first, after = np.uint64(path.size - depth), np.uint64(path.size)
    label = trail.path_label[first - ONE]
    fit = min(starts.size - 1 - m, (positions.size - path.size - k) // (depth + 1))
    x, y, stop = np.uint64(m), np.uint64(k), np.uint64(m + fit)
    while x < stop:
        parent = leaf = np.uint64(node)
        node = -1
        if nodes[parent, KIND] == UNION:
            leaf = np.uint64(nodes[parent, LEFT])
            node = nodes[parent, OTHER]
        bottom = np.uint64(max(nodes[leaf, LEFT], 0))
        if nodes[leaf, KIND] != label or nodes[bottom, KIND] != BOTTOM:
            node = int(np.int64(parent))
            break
        starts[x], ends[x], positions[y] = nodes[bottom, OTHER], end, nodes[leaf, OTHER]
        x += ONE
        y += ONE
        for mark in range(first, after):
            positions[y] = path[mark]
            y += ONE
        if node < 0 or nodes[np.uint64(node), MAX] < oldest:
            node = -1
            break
    return node, int(np.int64(x)), int(np.int64(y))


@kernel
def enumerate_roots(
    roots: Roots,
    low: Longs,
    position: Longs,
    limit: int,
    nodes: Longs,
    chooser: Chooser | None,
    trail: Trail,
    room: Room,
    walk: Walk,
) -> int:
    """Fill one chunk; returns `DONE`, or why to call it again. `low` and `position` are by events of the batch."""
    stack_node, stack_depth = trail.stack_node, trail.stack_depth
    path_position, path_label = trail.path_position, trail.path_label
    size = path_position.size
    top, m, k, width, same = walk.stack, walk.matches, walk.marks, walk.width, walk.same == 1
    event = roots.event[max(walk.root - 1, 0)]
    oldest, end = low[event], position[event]
    while True:
        if top == 0:
            if walk.root == roots.event.size:
                note(top, m, k, width, same, walk)
                return Stop.DONE
            r = walk.root
            if r == 0 or roots.event[r] != roots.event[r - 1]:
                walk.emitted = 0
                if chooser is not None:
                    walk.winner = choose(roots, r, low[roots.event[r]], nodes, chooser)
                    if walk.winner == UNKNOWN:
                        note(top, m, k, width, same, walk)
                        return Stop.CHOOSER_FULL
            walk.root += 1
            if limit >= 0 and walk.emitted >= limit:
                continue
            if chooser is not None and chooser.best_set[roots.node[r]] != walk.winner:
                continue
            oldest, end = low[roots.event[r]], position[roots.event[r]]
            stack_node[0], stack_depth[0] = roots.node[r], 0
            top = 1
        if m == room.starts.size or k + size > room.positions.size:
            note(top, m, k, width, same, walk)
            return Stop.CHUNK_FULL
        top -= 1
        node, depth = stack_node[top], stack_depth[top]
        while True:
            if chooser is None and limit < 0 and same and m > 0 and depth > 0 and width == depth + 1:
                last = path_position[size - 1] if end == LAST_MARK else end
                node, m, k = write_siblings(node, depth, last, oldest, m, k, nodes, trail, room)
                if node < 0:
                    break
            kind = nodes[node, KIND]
            if kind == BOTTOM:
                break
            if top + 1 >= stack_node.size or depth >= size:
                stack_node[top], stack_depth[top] = node, depth
                note(top + 1, m, k, width, same, walk)
                return Stop.DEEPER
            if kind == UNION:
                left, right = nodes[node, LEFT], nodes[node, OTHER]
                walked = nodes[right, MAX] >= oldest
                if chooser is not None:
                    best_set, best_start = chooser.best_set, chooser.best_start
                    if best_set[left] != best_set[node] or best_start[left] < oldest:
                        node = right
                        continue
                    walked &= best_set[right] == best_set[node] and best_start[right] >= oldest
                if walked:
                    stack_node[top], stack_depth[top] = right, depth
                    top += 1
            else:
                depth += 1
                path_position[size - depth] = nodes[node, OTHER]
                if path_label[size - depth] != kind:
                    path_label[size - depth] = kind
                    same = False
            node = nodes[node, LEFT]
        if node < 0:
            continue
        room.starts[m], room.ends[m] = nodes[node, OTHER], path_position[size - 1] if end == LAST_MARK else end
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
        if limit >= 0:
            walk.emitted += 1
            if walk.emitted >= limit:
                top = 0


# From noted roots to chunks of matches, lazily: the Python side of `enumerate_roots`, and of any other walk.
#
# Invariant: a chunk holds at most `CHUNK` matches; nothing is walked before it is requested.

CHUNK = 1 << 14
FEWEST_MARKS = 32  # the marks of a match that there is room for at first


class Walker(Protocol):
    """Something that walks to matches and writes them."""

    @property
    def marks(self) -> int:
        """The most marks of a match that there is room for."""

    def advance(self, room: Room, walk: Walk) -> int:
        """Fill one chunk; `DONE`, `CHUNK_FULL` or what there is no room for."""

    def make_room(self, why: int) -> None:
        """Make room for what `advance` had no room for."""


class _RootWalker:
    """`enumerate_roots` with the arrays that it walks on."""

    def __init__(self, roots: Roots, low: Longs, position: Longs, limit: int, nodes: Longs, selector: Selector) -> None:
        self._given = roots, low, position, limit, nodes
        self._selector = selector
        depth = FEWEST_MARKS
        self._trail = Trail(
            stack_node=np.zeros(4 * depth, np.int64), stack_depth=np.zeros(4 * depth, np.int64),
            path_position=np.zeros(depth, np.int64), path_label=np.zeros(depth, np.int32),
        )  # fmt: skip

    @property
    def marks(self) -> int:
        return self._trail.path_position.size

    def advance(self, room: Room, walk: Walk) -> int:
        return enumerate_roots(*self._given, self._selector.chooser, self._trail, room, walk)

    def make_room(self, why: int) -> None:
        if why == Stop.CHOOSER_FULL:
            self._selector.more_sets()
            return
        nodes, depths, positions, labels = self._trail
        self._trail = Trail(doubled(nodes), doubled(depths), doubled_left(positions), doubled_left(labels))


def enumerate_matches(
    roots: Roots, low: Longs, position: Longs, limit: int | None, nodes: Longs, selector: Selector, pool: Pool
) -> Iterator[MatchChunk]:
    """The matches under the roots, each with its event's index in the batch; at most `limit` for one event."""
    selector.fit(nodes.shape[0])
    return chunks(_RootWalker(roots, low, position, -1 if limit is None else limit, nodes, selector), pool)


def chunks(walker: Walker, pool: Pool) -> Iterator[MatchChunk]:
    """The matches that a walk leads to, some at a time, in memory of the pool."""
    walk = fresh(Walk)
    none = np.empty(0, np.int64)
    room = Room(none, none, none, none, np.empty(0, np.int32))
    why: int = Stop.CHUNK_FULL
    while why != Stop.DONE:
        if why == Stop.CHUNK_FULL:
            walk.matches = walk.marks = 0
            room = _emptied(room, walk.width == MIXED, max(16 * CHUNK, 2 * walker.marks), pool)
        else:
            walker.make_room(why)
            room = _longer(room, walker.marks)
        why = walker.advance(room, walk)
        _, _, m, k, _, _, width, _ = walk.item()  # all fields at once: there are many chunks
        if why not in (Stop.DONE, Stop.CHUNK_FULL) or not m:
            continue
        starts, ends, positions = room.starts[:m], room.ends[:m], room.positions[:k]
        if width == MIXED:
            yield MatchChunk(starts, ends, room.offsets[: m + 1], positions, room.labels[:k])
        else:
            yield alike(starts, ends, positions, tuple(room.labels[:width].tolist()))


def doubled_left(path: npt.NDArray[S]) -> npt.NDArray[S]:
    """The path with twice the room; its contents stay at the right."""
    return np.concatenate([np.zeros_like(path), path])


def _longer(room: Room, marks: int) -> Room:
    """The room, enlarged for a match of so many marks."""
    if room.positions.size >= marks:
        return room
    positions, labels = np.empty(marks, np.int64), np.empty(marks, np.int32)
    return room._replace(
        positions=np.concatenate([room.positions, positions]), labels=np.concatenate([room.labels, labels])
    )


def _emptied(room: Room, mixed: bool, marks: int, pool: Pool) -> Room:
    """Arrays for the next chunk; offsets and labels that no match of the last one refers to are reused."""
    offsets, labels = room.offsets, room.labels
    if mixed or labels.size < marks:
        offsets, labels = np.empty(CHUNK + 1, np.int64), np.empty(marks, np.int32)
    memory = pool.take(2 * CHUNK + marks)
    return Room(memory[:CHUNK], memory[CHUNK : 2 * CHUNK], offsets, memory[2 * CHUNK :], labels)
