"""Taking back the slots of partitions that fell silent, when all partitions share one clock.

A partition notices that its window is empty only at its own next event. When keys are comparable over partitions (a
time, not a rank), whoever runs out of room first asks here which partitions have no start left in the current window.

Invariant: only partitions whose every start is older than `low` lose their slot; wide partitions stay.
"""

import numpy as np
import numpy.typing as npt

from cerite.engine.count_kernel import N_FREE, free_chain
from cerite.jit import kernel

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]


@kernel
def sweep(
    low: int,
    slot_of: Ints,
    free_slots: Ints,
    wide: npt.NDArray[np.bool_],
    front: Ints,
    back: Ints,
    newest: Longs,
    node_next: Ints,
    regs: Longs,
) -> int:
    """Free the slots without a start at or after `low`; returns how many."""
    freed = 0
    for part in range(slot_of.size):
        s = slot_of[part]
        if s >= 0 and not wide[s] and newest[s] < low:
            free_chain(front[s], node_next, regs)
            free_chain(back[s], node_next, regs)
            front[s], back[s] = -1, -1
            slot_of[part] = -1
            free_slots[regs[N_FREE]] = s
            regs[N_FREE] += 1
            freed += 1
    return freed
