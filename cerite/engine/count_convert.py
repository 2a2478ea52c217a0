"""A partition's counting state, from the kernel's arrays to Python integers and back.

Invariant: `to_kernel(counter, slot, to_wide(counter, slot))` changes no later result.
"""

from collections import deque
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from cerite.engine import count_kernel as ck
from cerite.engine.count_wide import Vector, WideSlot

if TYPE_CHECKING:
    from cerite.engine.count import Counter


def to_wide(counter: "Counter", slot: int) -> WideSlot:
    """Take a partition's state out of the arrays."""
    wide = WideSlot(counter.windowed, v=_sparse(counter.v[slot]))
    node = int(counter.front[slot])
    while node >= 0:
        wide.front.append((int(counter.node_key[node]), _sparse(counter.node_v[node])))
        node = int(counter.node_next[node])
    wide.front.reverse()
    node = int(counter.back[slot])
    backwards = []
    while node >= 0:
        backwards.append((int(counter.node_class[node]), int(counter.node_key[node])))
        node = int(counter.node_next[node])
    wide.back = deque(reversed(backwards))
    if wide.front:
        wide.image = {d: _sparse(counter.p[slot, :, d]) for d in wide.front[-1][1]}
    _drop_chains(counter, slot)
    counter.wide[slot] = True
    return wide


def to_kernel(counter: "Counter", slot: int, wide: WideSlot) -> None:
    """Put a partition's state, all numbers small again, back into the arrays."""
    starts = [key for c, key in wide.back if counter.det.successors(0, c)]
    counter.wide[slot] = False
    counter.starts[slot] = len(starts) if counter.windowed else int(bool(wide.v))
    counter.oldest[slot] = starts[0] if starts else 0
    counter.newest[slot] = max([*starts[-1:], *(key for key, _ in wide.front[:1])], default=0)
    counter.v[slot] = 0
    counter.p[slot] = 0
    _store(counter.v[slot], wide.v)
    for d, column in wide.image.items():
        _store(counter.p[slot, :, d], column)
    for key, vector in wide.front:
        node = _push(counter, counter.front, slot, key)
        counter.node_v[node] = 0
        _store(counter.node_v[node], vector)
    for c, key in wide.back:
        node = _push(counter, counter.back, slot, key)
        counter.node_class[node] = c


def _push(counter: "Counter", stack: npt.NDArray[np.int32], slot: int, key: int) -> int:
    if counter.regs[ck.FREE_NODE] < 0:
        counter.more_nodes()
    node = int(counter.regs[ck.FREE_NODE])
    counter.regs[ck.FREE_NODE] = counter.node_next[node]
    counter.node_key[node], counter.node_next[node] = key, stack[slot]
    stack[slot] = node
    return node


def _drop_chains(counter: "Counter", slot: int) -> None:
    for stack in (counter.front, counter.back):
        ck.free_chain(int(stack[slot]), counter.node_next, counter.regs)
        stack[slot] = -1


def _sparse(row: npt.NDArray[np.uint64]) -> Vector:
    return {int(d): int(row[d]) for d in np.flatnonzero(row)}


def _store(row: npt.NDArray[np.uint64], vector: Vector) -> None:
    for d, n in vector.items():
        row[d] = n
