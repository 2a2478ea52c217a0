"""From noted roots to chunks of matches, lazily: the Python side of `enumerate_kernel`.

Invariant: a chunk holds at most `CHUNK` matches; nothing is walked before it is asked for.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from cerite.engine import enumerate_kernel as ek
from cerite.engine.matches import Matches, alike
from cerite.engine.selector import Selector

Longs = npt.NDArray[np.int64]
CHUNK = 1 << 14


def enumerate_matches(
    events: Longs,
    roots: Longs,
    low: Longs,
    position: Longs,
    limit: int | None,
    nodes: Longs,
    selector: Selector,
) -> Iterator[Matches]:
    """The matches under `roots[k]`, which end at batch index `events[k]`; at most `limit` for one event."""
    selector.fit(nodes.shape[0])
    regs = np.zeros(8, np.int64)
    depth = 32
    path_position, path_label = np.zeros(depth, np.int64), np.zeros(depth, np.int32)
    stack_node, stack_depth = np.zeros(4 * depth, np.int64), np.zeros(4 * depth, np.int64)
    starts = ends = positions = np.empty(0, np.int64)
    offsets, labels = np.empty(0, np.int64), np.empty(0, np.int32)
    why = ek.CHUNK_FULL
    while why != ek.FINISHED:
        if why == ek.DEEPER:
            path_position = np.concatenate([np.zeros_like(path_position), path_position])
            path_label = np.concatenate([np.zeros_like(path_label), path_label])
            stack_node = np.concatenate([stack_node, np.zeros_like(stack_node)])
            stack_depth = np.concatenate([stack_depth, np.zeros_like(stack_depth)])
        elif why == ek.MORE_SETS:
            selector.more_sets()
        else:
            regs[[ek.MATCHES, ek.MARKS]] = 0
            starts, ends = np.empty(CHUNK, np.int64), np.empty(CHUNK, np.int64)
            positions = np.empty(max(16 * CHUNK, 2 * path_position.size), np.int64)
            if regs[ek.WIDTH] == ek.MIXED or labels.size < positions.size:
                offsets, labels = np.empty(CHUNK + 1, np.int64), np.empty(positions.size, np.int32)
        if positions.size < path_position.size:
            positions = np.concatenate([positions, np.empty(path_position.size, np.int64)])
            labels = np.concatenate([labels, np.empty(path_position.size, np.int32)])
        why = ek.enumerate_roots(
            events, roots, roots.size, low, position, -1 if limit is None else limit, nodes,
            selector.chooser, stack_node, stack_depth, path_position, path_label,
            starts, ends, offsets, positions, labels, regs,
        )  # fmt: skip
        if why in (ek.FINISHED, ek.CHUNK_FULL) and regs[ek.MATCHES]:
            m, k, width = int(regs[ek.MATCHES]), int(regs[ek.MARKS]), int(regs[ek.WIDTH])
            if width == ek.MIXED:
                yield Matches(starts[:m], ends[:m], offsets[: m + 1], positions[:k], labels[:k])
            else:
                yield alike(starts[:m], ends[:m], positions[:k], tuple(labels[:width].tolist()))
