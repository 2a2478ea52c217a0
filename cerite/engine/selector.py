"""The Python side of `select_kernel`: what is remembered about the tECS's nodes, and its growth.

Invariant: memories belong to node numbers, so compaction forgets them all (`forget`).
"""

import numpy as np
import numpy.typing as npt

from cerite.engine import select_kernel as sk

Longs = npt.NDArray[np.int64]


class Selector:
    """What enumeration needs to walk to the NEXT- or LAST-greatest sets only; idle for any other strategy."""

    def __init__(self, strategy: str) -> None:
        self.active = strategy in ("next", "last")
        self.last = strategy == "last"
        self.forget()

    def forget(self) -> None:
        """Start anew, with other nodes."""
        self.best_set = np.zeros(0, np.int32)
        self.best_start: Longs = np.zeros(0, np.int64)
        self.stack = np.zeros(0, np.int32)
        self.set_position: Longs = np.zeros(1 << 10, np.int64)
        self.set_before = np.zeros(1 << 10, np.int32)
        self.table = np.zeros(1 << 12, np.int32)
        self.sets: Longs = np.ones(1, np.int64)

    def fit(self, nodes: int) -> None:
        """Make room for a tECS with room for `nodes` nodes."""
        if self.active and self.best_set.size != nodes:
            self.forget()
            self.best_set = np.full(nodes, sk.UNKNOWN, np.int32)
            self.best_start = np.zeros(nodes, np.int64)
            self.stack = np.zeros(nodes + 1, np.int32)

    def more_sets(self) -> None:
        """Make room for twice as many sets."""
        self.set_position = np.concatenate([self.set_position, np.zeros_like(self.set_position)])
        self.set_before = np.concatenate([self.set_before, np.zeros_like(self.set_before)])
        self.table = np.zeros(2 * self.table.size, np.int32)
        sk.rehash(self.table, self.set_position, self.set_before, self.sets)
