"""Algorithm 2 of CORE: enumerate the matches under a root, with output-linear delay, into flat arrays.

A depth-first walk with an explicit stack, left child first, right child only when its maximum-start is in the window.
Positions come latest first, so the path is kept right-aligned and is ascending as it lies: a match is one copy.

When `selective`, only children that hold their parent's best set (see `select_kernel`) are walked, and the
best set of an event is chosen when its first root is reached: later windows may change what is remembered.

Invariant: `path[size - depth:]` are the marks between the root and the node at hand; every node on the stack has a
start inside the window, so every descent ends in a match. The walk stops between matches and resumes where it was.
"""

import numpy as np
import numpy.typing as npt

from cerite.engine.select_kernel import UNKNOWN, choose
from cerite.engine.tecs import BOTTOM, KIND, LEFT, MAX, OTHER, UNION
from cerite.jit import kernel

Longs = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32]

ROOT, STACK, MATCHES, MARKS, EMITTED, WINNER = range(6)  # registers; the last two are about the current event
FINISHED, CHUNK_FULL, DEEPER, MORE_SETS = range(4)


@kernel
def enumerate_roots(
    root_event: Longs,
    root_node: Longs,
    n_roots: int,
    low: Longs,
    position: Longs,
    limit: int,
    nodes: Longs,
    selective: bool,
    last: bool,
    best_set: Ints,
    best_start: Longs,
    table: Ints,
    set_position: Longs,
    set_before: Ints,
    sets_stack: Ints,
    sets: Longs,
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
    while True:
        if regs[STACK] == 0:
            if regs[ROOT] == n_roots:
                return FINISHED
            r = regs[ROOT]
            if r == 0 or root_event[r] != root_event[r - 1]:
                regs[EMITTED] = 0
                if selective:
                    regs[WINNER] = choose(root_event, root_node, r, n_roots, low[root_event[r]], last, nodes, best_set,
                                          best_start, table, set_position, set_before, sets_stack, sets)  # fmt: skip
                    if regs[WINNER] == UNKNOWN:
                        return MORE_SETS
            if (limit >= 0 and regs[EMITTED] >= limit) or (selective and best_set[root_node[r]] != regs[WINNER]):
                regs[ROOT] += 1
                continue
            stack_node[0], stack_depth[0] = root_node[r], 0
            regs[STACK] = 1
            regs[ROOT] += 1
        if regs[MATCHES] == starts.size or regs[MARKS] + size > positions.size:
            return CHUNK_FULL
        event = root_event[regs[ROOT] - 1]
        oldest = low[event]
        top = regs[STACK] - 1
        node, depth = stack_node[top], stack_depth[top]
        while nodes[node, KIND] != BOTTOM:
            if top + 1 >= stack_node.size or depth >= size:
                stack_node[top], stack_depth[top] = node, depth
                regs[STACK] = top + 1
                return DEEPER
            if nodes[node, KIND] == UNION:
                left, right = nodes[node, LEFT], nodes[node, OTHER]
                if selective and (best_set[left] != best_set[node] or best_start[left] < oldest):
                    node = right
                    continue
                if nodes[right, MAX] >= oldest and (
                    not selective or (best_set[right] == best_set[node] and best_start[right] >= oldest)
                ):
                    stack_node[top], stack_depth[top] = right, depth
                    top += 1
            else:
                depth += 1
                path_position[size - depth] = nodes[node, OTHER]
                path_label[size - depth] = nodes[node, KIND]
            node = nodes[node, LEFT]
        regs[STACK] = top
        m, k = regs[MATCHES], regs[MARKS]
        starts[m], ends[m] = nodes[node, OTHER], position[event]
        for y in range(depth):
            positions[k + y] = path_position[size - depth + y]
            labels[k + y] = path_label[size - depth + y]
        regs[MATCHES], regs[MARKS] = m + 1, k + depth
        offsets[m + 1] = k + depth
        regs[EMITTED] += 1
        if limit >= 0 and regs[EMITTED] >= limit:
            regs[STACK] = 0
