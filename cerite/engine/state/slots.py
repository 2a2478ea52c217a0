"""Which slot of the run state belongs to which partition: created on demand, taken back when nothing is alive in it.

Invariant: `slot_of[p]` is -1 or a slot no other partition has; `free[:n_free]` are the unused slots. Kernels take and
return slots themselves; growth happens here, and so does its opposite: `pack` numbers the slots in use from 0 on.
"""

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from cerite.core.arrays import Ints, Longs

S = TypeVar("S", bound=np.generic)

FEWEST = 1 << 10  # up to so many slots are not worth saving


def grown(array: npt.NDArray[S], size: int, fill: int = 0) -> npt.NDArray[S]:
    """`array` with its first axis lengthened to `size`, new places holding `fill`."""
    more = np.full((size - array.shape[0], *array.shape[1:]), fill, array.dtype)
    return np.concatenate([array, more])


def doubled(array: npt.NDArray[S]) -> npt.NDArray[S]:
    """`array` with twice the room along its first axis; its contents stay at the front."""
    return grown(array, 2 * array.shape[0])


def raise_lows(known: Longs, lows: Longs) -> None:
    """Let no match start before these keys, by partition; partitions that are not known have none."""
    lows = lows[: known.size]
    np.maximum(known[: lows.size], lows, out=known[: lows.size])


class Slots:
    """The partition → slot map and the stack of free slots."""

    def __init__(self) -> None:
        self.slot_of: Ints = np.full(1, -1, np.int32)
        self.free: Ints = np.zeros(1, np.int32)
        self.n_slots = 1
        self.n_free = 1

    def cover(self, partition: Longs) -> None:
        """Make room in the map for every partition of a batch."""
        top = int(partition.max()) + 1 if partition.size else 1
        if top > self.slot_of.size:
            self.slot_of = grown(self.slot_of, max(top, 2 * self.slot_of.size), -1)

    @property
    def too_few(self) -> bool:
        """Whether adding slots costs less than searching for free ones, which looks at every partition."""
        return 16 * self.n_slots < self.slot_of.size or self.n_slots < min(FEWEST, self.slot_of.size)

    def double(self) -> int:
        """Twice as many slots, the new ones free; returns their number."""
        old, self.n_slots = self.n_slots, 2 * self.n_slots
        fresh = np.arange(self.n_slots - 1, old - 1, -1, dtype=np.int32)
        self.free = grown(np.concatenate([self.free[: self.n_free], fresh]), self.n_slots)
        self.n_free += fresh.size
        return self.n_slots

    def pack(self) -> Ints:
        """Number the slots in use by partition, with room for as many more; returns them in their new order."""
        owners = np.flatnonzero(self.slot_of >= 0)
        used = self.slot_of[owners]
        n = owners.size
        self.slot_of[owners] = np.arange(n)
        self.n_slots = 1 << (max(1, n) - 1).bit_length() + (n > 1)
        self.n_free = self.n_slots - n
        self.free = grown(np.arange(self.n_slots - 1, n - 1, -1, dtype=np.int32), self.n_slots)
        return used

    @property
    def owned(self) -> Ints:
        """The map without the partitions after the last that has a slot."""
        owners = np.flatnonzero(self.slot_of >= 0)
        return self.slot_of[: int(owners[-1]) + 1 if owners.size else 1]

    def restore(self, slot_of: Ints) -> None:
        """Take over the map of a snapshot, whose slots were packed."""
        self.slot_of = slot_of
        self.pack()
