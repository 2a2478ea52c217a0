"""Algorithm 2 of CORE: enumerate the matches under a root, with output-linear delay, into flat arrays.

A depth-first walk with an explicit stack, left child first, right child only when its maximum-start is in the window.
Positions come latest first, so the path is kept right-aligned and is ascending as it lies: a match is one copy.

As long as all matches of a chunk have the same labels, those of the first are written and no offsets: `WIDTH` says how
many they are. The path knows it without comparing matches, since only marks that are new in it can differ. The first
match that differs has the labels and offsets of those before it written (`spread`), and `WIDTH` is `MIXED` from there.

With a `chooser`, only children that hold their parent's best set (see `select_kernel`) are walked, and the best set of
an event is chosen when its first root is reached: later windows may change what is remembered. Without one (None) Numba
compiles a kernel that knows nothing of it.

Invariant: `path[size - depth:]` are the marks between the root and the node at hand; every node on the stack has a
start inside the window, so every descent ends in a match. The walk stops between matches and resumes where it was.
"""

from collections.abc import Iterator

import numpy as np

from cerite.core.arrays import Ints, Longs
from cerite.core.jit import inlined, inner, kernel
from cerite.engine.output import MatchChunk, alike
from cerite.engine.tecs.nodes import BOTTOM, KIND, LEFT, MAX, OTHER, UNION
from cerite.engine.tecs.select import UNKNOWN, Chooser, Selector, choose

# Registers; EMITTED and WINNER are about the current event, SAME says that the path has the labels of the first match.
ROOT, STACK, MATCHES, MARKS, EMITTED, WINNER, WIDTH, SAME = range(8)
MIXED = -1
ONE = np.uint64(1)
FINISHED, CHUNK_FULL, DEEPER, MORE_SETS = range(4)


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
def note(top: int, m: int, k: int, width: int, same: bool, regs: Longs) -> None:
    """Note where the walk is."""
    regs[STACK], regs[MATCHES], regs[MARKS], regs[WIDTH], regs[SAME] = top, m, k, width, same


@kernel
def enumerate_roots(
    root_event: Longs,
    root_node: Longs,
    n_roots: int,
    low: Longs,
    position: Longs,
    limit: int,
    nodes: Longs,
    chooser: Chooser | None,
    stack_node: Longs,
    stack_depth: Longs,
    path_position: Longs,
    path_label: Ints,
    starts: Longs,
    ends: Longs,
    offsets: Longs,
    positions: Longs,
    labels: Ints,
    regs: Longs,
) -> int:
    """Fill one chunk; returns `FINISHED`, or why it must be called again."""
    size = path_position.size
    top, m, k, width, same = regs[STACK], regs[MATCHES], regs[MARKS], regs[WIDTH], regs[SAME] == 1
    event = root_event[max(regs[ROOT] - 1, 0)]
    oldest, end = low[event], position[event]
    while True:
        if top == 0:
            if regs[ROOT] == n_roots:
                note(top, m, k, width, same, regs)
                return FINISHED
            r = regs[ROOT]
            if r == 0 or root_event[r] != root_event[r - 1]:
                regs[EMITTED] = 0
                if chooser is not None:
                    regs[WINNER] = choose(root_event, root_node, r, n_roots, low[root_event[r]], nodes, chooser)
                    if regs[WINNER] == UNKNOWN:
                        note(top, m, k, width, same, regs)
                        return MORE_SETS
            regs[ROOT] += 1
            if limit >= 0 and regs[EMITTED] >= limit:
                continue
            if chooser is not None and chooser.best_set[root_node[r]] != regs[WINNER]:
                continue
            oldest, end = low[root_event[r]], position[root_event[r]]
            stack_node[0], stack_depth[0] = root_node[r], 0
            top = 1
        if m == starts.size or k + size > positions.size:
            note(top, m, k, width, same, regs)
            return CHUNK_FULL
        top -= 1
        node, depth = stack_node[top], stack_depth[top]
        while True:
            kind = nodes[node, KIND]
            if kind == BOTTOM:
                break
            if top + 1 >= stack_node.size or depth >= size:
                stack_node[top], stack_depth[top] = node, depth
                note(top + 1, m, k, width, same, regs)
                return DEEPER
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
        starts[m], ends[m] = nodes[node, OTHER], end
        if m == 0:
            width, same = depth, True
        elif width != MIXED and (depth != width or not same):
            spread(width, m, offsets, labels)
            width = MIXED
        copy_tail(path_position, size - depth, positions, k)
        if m == 0 or width == MIXED:
            copy_tail(path_label, size - depth, labels, k)
            offsets[m + 1] = k + depth
        m += 1
        k += depth
        if limit >= 0:
            regs[EMITTED] += 1
            if regs[EMITTED] >= limit:
                top = 0


# From noted roots to chunks of matches, lazily: the Python side of `enumerate_kernel`.
#
# Invariant: a chunk holds at most `CHUNK` matches; nothing is walked before it is asked for.

CHUNK = 1 << 14
FEWEST_MARKS = 32  # of a match that there is room for to begin with


def enumerate_matches(
    events: Longs,
    roots: Longs,
    low: Longs,
    position: Longs,
    limit: int | None,
    nodes: Longs,
    selector: Selector,
) -> Iterator[MatchChunk]:
    """The matches under `roots[k]`, which end at batch index `events[k]`; at most `limit` for one event."""
    selector.fit(nodes.shape[0])
    regs = np.zeros(8, np.int64)
    depth = FEWEST_MARKS
    path_position, path_label = np.zeros(depth, np.int64), np.zeros(depth, np.int32)
    stack_node, stack_depth = np.zeros(4 * depth, np.int64), np.zeros(4 * depth, np.int64)
    starts = ends = positions = np.empty(0, np.int64)
    offsets, labels = np.empty(0, np.int64), np.empty(0, np.int32)
    why = CHUNK_FULL
    while why != FINISHED:
        if why == DEEPER:
            path_position = np.concatenate([np.zeros_like(path_position), path_position])
            path_label = np.concatenate([np.zeros_like(path_label), path_label])
            stack_node = np.concatenate([stack_node, np.zeros_like(stack_node)])
            stack_depth = np.concatenate([stack_depth, np.zeros_like(stack_depth)])
        elif why == MORE_SETS:
            selector.more_sets()
        else:
            regs[[MATCHES, MARKS]] = 0
            starts, ends = np.empty(CHUNK, np.int64), np.empty(CHUNK, np.int64)
            positions = np.empty(max(16 * CHUNK, 2 * path_position.size), np.int64)
            if regs[WIDTH] == MIXED or labels.size < positions.size:
                offsets, labels = np.empty(CHUNK + 1, np.int64), np.empty(positions.size, np.int32)
        if positions.size < path_position.size:
            positions = np.concatenate([positions, np.empty(path_position.size, np.int64)])
            labels = np.concatenate([labels, np.empty(path_position.size, np.int32)])
        why = enumerate_roots(
            events, roots, roots.size, low, position, -1 if limit is None else limit, nodes,
            selector.chooser, stack_node, stack_depth, path_position, path_label,
            starts, ends, offsets, positions, labels, regs,
        )  # fmt: skip
        if why in (FINISHED, CHUNK_FULL) and regs[MATCHES]:
            m, k, width = int(regs[MATCHES]), int(regs[MARKS]), int(regs[WIDTH])
            if width == MIXED:
                yield MatchChunk(starts[:m], ends[:m], offsets[: m + 1], positions[:k], labels[:k])
            else:
                yield alike(starts[:m], ends[:m], positions[:k], tuple(labels[:width].tolist()))
