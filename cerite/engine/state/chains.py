"""Packs chains of cells in one arena, so that the arena holds nothing else.

Arenas grow by doubling, and their free cells form a chain, too. A burst of partial matches therefore leaves a large
arena behind, which would be part of every later snapshot.

Invariant: packing keeps every chain's cells and their order; heads and links get new numbers, payloads are gathered
by the caller in the order that `packed` returns.
"""

import numpy as np

from cerite.core.arrays import Ints
from cerite.core.jit import kernel


def packed(heads: Ints, following: Ints) -> tuple[Ints, Ints]:
    """Number the cells chain by chain from 0 on, also in `heads`; returns old numbers in the new order, and links."""
    order = np.empty(following.size, np.int32)
    order = order[: number_cells(heads, following, order)].copy()
    links = np.arange(1, order.size + 1, dtype=np.int32)
    links[following[order] < 0] = -1
    return order, links


@kernel
def number_cells(heads: Ints, following: Ints, order: Ints) -> int:
    """Write the cells of all chains, one chain after the other, to `order`, and where each begins to `heads`."""
    n = 0
    for s in range(heads.shape[0]):
        for d in range(heads.shape[1]):
            cell = heads[s, d]
            if cell >= 0:
                heads[s, d] = n
            while cell >= 0:
                order[n] = cell
                n += 1
                cell = following[cell]
    return n
