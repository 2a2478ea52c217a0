"""Running `limb_kernel` over many events of one wide partition: from `WideSlot` to limbs and back.

Invariant: the slot afterwards, and what was counted, are what `WideSlot.step` over the same events would have given.
"""

import numpy as np
import numpy.typing as npt

from cerite.engine import limb_kernel as lk
from cerite.engine.count_wide import Vector, WideSlot
from cerite.engine.determinise import Determinised

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Counts = npt.NDArray[np.uint64]
BASE_BITS = 32


class LimbRun:
    """One partition's state as limbs, for the length of one batch."""

    def __init__(self, det: Determinised, slot: WideSlot, events: int) -> None:
        self._det, self._slot = det, slot
        self._limbs = 2
        room = events + len(slot.front) + len(slot.back) + 1
        self._back_class: Ints = np.zeros(room, np.int32)
        self._back_key: Longs = np.zeros(room, np.int64)
        self._front_key: Longs = np.zeros(room, np.int64)
        self._regs: Longs = np.zeros(9, np.int64)
        self._load()

    def count(self, events: Longs, classes: Ints, key: Longs, low: Longs, consume: bool) -> tuple[int, int]:
        """Read the events; returns matches and occurrences, and leaves the new state in the slot."""
        det, matches = self._det, 0
        why = lk.MISS
        while why != lk.DONE:
            total = np.zeros((1, 2 * self._limbs + 4), np.uint64)
            why = lk.count_limbs(
                events, classes, key, low, self._slot.windowed, consume, np.uint64((1 << 62) // det.fan_in),
                det.n_dstates, self._limbs, det.entry, det.touched, det.n_touched, det.succ, det.accepting,
                self._back_class, self._back_key, self._front_key, self._front_v,
                self._p, self._v, self._spare, self._r, total, self._regs,
            )  # fmt: skip
            matches += _number(total[0])
            if why == lk.MISS:
                self._store()
                det.fill(int(self._regs[lk.DSTATE]), int(self._regs[lk.CLASS]))
                self._load()
            elif why == lk.MORE_LIMBS:
                self._store()
                self._limbs += 1 + self._limbs // 2
                self._load()
        self._store()
        return matches, int(self._regs[lk.OCCURRENCES])

    def _load(self) -> None:
        size, slot = self._det.n_dstates, self._slot
        limbs = self._limbs = max(self._limbs, 2 + slot.largest().bit_length() // BASE_BITS)
        room = self._front_key.size if slot.windowed else 1
        self._p = np.zeros((size, size * limbs), np.uint64)
        self._r = np.zeros_like(self._p)
        self._spare = np.zeros((size + 1, size * limbs), np.uint64)
        self._v = np.zeros((size, limbs), np.uint64)
        self._front_v = np.zeros((room, size * limbs), np.uint64)
        for d, n in slot.v.items():
            self._v[d] = _limbs(n, limbs)
        for d, column in slot.image.items():
            for a, n in column.items():
                self._p[a, d * limbs : (d + 1) * limbs] = _limbs(n, limbs)
        for b, (c, key) in enumerate(slot.back):
            self._back_class[b], self._back_key[b] = c, key
        first = self._front_key.size - len(slot.front)
        for f, (key, vector) in enumerate(reversed(slot.front), first):
            self._front_key[f] = key
            for d, n in vector.items():
                self._front_v[f, d * limbs : (d + 1) * limbs] = _limbs(n, limbs)
        self._regs[[lk.B0, lk.B1, lk.F0, lk.F1]] = 0, len(slot.back), first, self._front_key.size

    def _store(self) -> None:
        limbs, slot, regs = self._limbs, self._slot, self._regs
        slot.v = {d: n for d, row in enumerate(self._v) if (n := _number(row))}
        slot.front = [
            (int(self._front_key[f]), _vector(self._front_v[f], limbs))
            for f in range(int(regs[lk.F1]) - 1, int(regs[lk.F0]) - 1, -1)
        ]
        slot.back.clear()
        for b in range(int(regs[lk.B0]), int(regs[lk.B1])):
            slot.back.append((int(self._back_class[b]), int(self._back_key[b])))
        slot.image = {}
        for a, row in enumerate(self._p):
            for d, n in _vector(row, limbs).items():
                slot.image.setdefault(d, {})[a] = n


def _limbs(n: int, limbs: int) -> Counts:
    return np.frombuffer(n.to_bytes(4 * limbs, "little"), np.uint32).astype(np.uint64)


def _number(row: Counts) -> int:
    if not row.any():
        return 0
    if (row <= lk.MASK).all():
        return int.from_bytes(row.astype(np.uint32).tobytes(), "little")
    return sum(int(limb) << BASE_BITS * k for k, limb in enumerate(row))


def _vector(row: Counts, limbs: int) -> Vector:
    numbers = row.reshape(-1, limbs)
    return {int(d): _number(numbers[d]) for d in np.flatnonzero(numbers.any(axis=1))}
