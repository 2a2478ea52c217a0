"""One partition's counting state in numbers of any size: the arrays that `limb_kernel` works on, and their growth.

A partition whose numbers near 2**62 is taken out of `count_kernel`'s arrays, and put back once they are small again.

Invariants: a number is `limbs` wide; arrays have room for `capacity` dstates, of which the kernel reads those that
exist. Without a window there is neither a front nor a product of matrices. What is counted does not depend on when
anything was taken out, put back or grown; `tests/engine_core/wide.py` is the same in Python's integers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cerite.budget import check_counting
from cerite.engine import count_kernel as ck
from cerite.engine import limb_kernel as lk
from cerite.engine.determinise import Determinised
from cerite.engine.partitions import grown

if TYPE_CHECKING:
    from cerite.engine.count import Counter

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Counts = npt.NDArray[np.uint64]
BASE_BITS = 32
_STATE = ("back_class", "back_key", "front_key", "front_v", "p", "v", "regs")


class LimbSlot:
    """The live starts of one partition, exactly counted."""

    def __init__(self, windowed: bool, capacity: int) -> None:
        self.windowed = windowed
        self.back_class: Ints = np.zeros(1, np.int32)
        self.back_key: Longs = np.zeros(1, np.int64)
        self.front_key: Longs = np.zeros(1, np.int64)
        self.regs: Longs = np.zeros(9, np.int64)
        self.regs[[lk.F0, lk.F1]] = 1
        self._check(capacity, 2)
        self.v: Counts = np.zeros((capacity, 2), np.uint64)
        squared = capacity if windowed else 1
        self.p: Counts = np.zeros((squared, squared, 2), np.uint64)
        self.front_v: Counts = np.zeros((1, squared, 2), np.uint64)
        self._scratch()

    @property
    def limbs(self) -> int:
        """The width of the numbers."""
        return int(self.v.shape[1])

    def count(
        self, det: Determinised, events: Longs, classes: Ints, key: Longs, low: Longs, consume: bool
    ) -> tuple[int, int]:
        """Read the events; returns matches and occurrences."""
        matches, why = 0, lk.MISS
        self.regs[[lk.NEXT, lk.OCCURRENCES]] = 0
        self._fit(det.capacity, self.limbs)
        self._make_room(events.size)
        while why != lk.DONE:
            limbs = self.limbs
            total = np.zeros((1, 2 * limbs + 4), np.uint64)
            why = lk.count_limbs(
                events, classes, key, low, self.windowed, consume, np.uint64((1 << 62) // det.fan_in),
                det.n_dstates, limbs, det.entry, det.touched, det.n_touched, det.succ, det.accepting,
                self.back_class, self.back_key, self.front_key, _flat(self.front_v),
                _flat(self.p), self.v, self._spare, self._r, total, self.regs,
            )  # fmt: skip
            matches += _number(total[0])
            if why == lk.MISS:
                det.fill(int(self.regs[lk.DSTATE]), int(self.regs[lk.CLASS]))
                self._fit(det.capacity, limbs)
            elif why == lk.MORE_LIMBS:
                self._fit(det.capacity, limbs + 1 + limbs // 2)
        return matches, int(self.regs[lk.OCCURRENCES])

    def below(self, bound: int) -> bool:
        """Whether all numbers are; the oldest front vector contains the others."""
        first = int(self.regs[lk.F0])
        if first == self.regs[lk.F1]:
            return _below(self.v, bound)
        lead = self.front_v[first]
        return _below(self.v, bound) and _below(lead, bound) and _below(self.p[:, lead.any(axis=1)], bound)

    def clear(self) -> None:
        """Forget every start."""
        self.regs[[lk.B0, lk.B1]] = 0
        self.regs[[lk.F0, lk.F1]] = self.front_key.size
        self.v[:] = 0

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The state, for a snapshot: of the two stacks what is alive."""
        back, front = slice(*self.regs[[lk.B0, lk.B1]]), slice(*self.regs[[lk.F0, lk.F1]])
        regs = self.regs.copy()
        regs[[lk.B0, lk.B1, lk.F0, lk.F1]] = 0, back.stop - back.start, 0, front.stop - front.start
        return {
            "back_class": self.back_class[back], "back_key": self.back_key[back], "front_key": self.front_key[front],
            "front_v": self.front_v[front], "p": self.p, "v": self.v, "regs": regs,
        }  # fmt: skip

    @staticmethod
    def of_arrays(windowed: bool, arrays: dict[str, npt.NDArray[Any]]) -> LimbSlot:
        """The inverse of `arrays`."""
        slot = LimbSlot(windowed, 1)
        for name in _STATE:
            setattr(slot, name, arrays[name])
        slot._scratch()
        return slot

    def _scratch(self) -> None:
        capacity, limbs = self.v.shape
        width = capacity * limbs if self.windowed else limbs
        self._r = np.zeros((capacity, width) if self.windowed else (1, 1), np.uint64)
        self._spare = np.zeros((capacity + 1, width), np.uint64)

    def _fit(self, capacity: int, limbs: int) -> None:
        """Room for so many dstates, in numbers of so many limbs."""
        if (capacity, limbs) == self.v.shape:
            return
        self._check(capacity, limbs)
        squared = capacity if self.windowed else 1
        self.v = _padded(self.v, (capacity, limbs))
        self.p = _padded(self.p, (squared, squared, limbs))
        front = np.zeros((self.front_v.shape[0], squared, limbs), np.uint64)
        alive = slice(int(self.regs[lk.F0]), int(self.regs[lk.F1]))
        front[alive] = _padded(self.front_v[alive], (alive.stop - alive.start, squared, limbs))
        self.front_v = front
        self._scratch()

    def _check(self, capacity: int, limbs: int) -> None:
        """Refuse what would take too much memory before it is asked for."""
        if self.windowed:
            held = int(self.regs[lk.F1] - self.regs[lk.F0] + self.regs[lk.B1] - self.regs[lk.B0])
            check_counting(capacity, 8 * limbs * capacity * (3 * capacity + held))

    def _make_room(self, events: int) -> None:
        """Room for so many more events in the back, and for all of it in the front."""
        if not self.windowed:
            return
        begin, end = int(self.regs[lk.B0]), int(self.regs[lk.B1])
        if end + events < self.back_key.size:
            return
        self.back_class[: end - begin] = self.back_class[begin:end].copy()
        self.back_key[: end - begin] = self.back_key[begin:end].copy()
        self.regs[[lk.B0, lk.B1]] = 0, end - begin
        room = max(end - begin + events + 1, 2 * (end - begin))
        if room > self.back_key.size:
            self.back_class, self.back_key = grown(self.back_class, room), grown(self.back_key, room)
            alive = slice(int(self.regs[lk.F0]), int(self.regs[lk.F1]))
            moved = slice(room - (alive.stop - alive.start), room)
            front_key, front_v = np.zeros(room, np.int64), np.zeros((room, *self.front_v.shape[1:]), np.uint64)
            front_key[moved], front_v[moved] = self.front_key[alive], self.front_v[alive]
            self.front_key, self.front_v = front_key, front_v
            self.regs[[lk.F0, lk.F1]] = moved.start, moved.stop


def to_limbs(counter: Counter, slot: int, *, read: bool) -> LimbSlot:
    """Take a partition's state out of the kernel's arrays; `read`: the event at hand is read and not yet counted."""
    front, back = _chain(counter, counter.front, slot), _chain(counter, counter.back, slot)[::-1]
    limb = LimbSlot(counter.windowed, counter.det.capacity)
    limb._make_room(len(front) + len(back) + 1)
    limb.v[:] = _split(counter.v[slot])
    limb.back_class[: len(back)] = counter.node_class[back]
    limb.back_key[: len(back)] = counter.node_key[back]
    first = limb.front_key.size - len(front)
    if front:
        limb.front_key[first:] = counter.node_key[front]
        limb.front_v[first:] = _split(counter.node_v[front])
        limb.p[:] = _split(counter.p[slot])
    limb.regs[[lk.B1, lk.F0, lk.F1, lk.READ]] = len(back), first, limb.front_key.size, read
    for stack in (counter.front, counter.back):
        ck.free_chain(int(stack[slot]), counter.node_next, counter.regs)
        stack[slot] = -1
    counter.wide[slot] = True
    return limb


def to_kernel(counter: Counter, slot: int, limb: LimbSlot) -> None:
    """Put a partition's state, all numbers small again, back into the kernel's arrays."""
    regs, det = limb.regs, counter.det
    back = [
        (int(limb.back_class[b]), int(limb.back_key[b])) for b in range(int(regs[lk.B0]), int(regs[lk.B1]))
    ]  # oldest first
    starts = [key for c, key in back if det.successors(0, c)]
    counter.wide[slot] = False
    counter.starts[slot] = len(starts) if counter.windowed else int(limb.v.any())
    counter.oldest[slot] = starts[0] if starts else 0
    fronts = range(int(regs[lk.F1]) - 1, int(regs[lk.F0]) - 1, -1)  # newest first
    newest_front = [int(limb.front_key[f]) for f in fronts[:1]]
    counter.newest[slot] = max([*starts[-1:], *newest_front], default=0)
    counter.v[slot] = 0
    counter.v[slot, : limb.v.shape[0]] = _joined(limb.v)
    if fronts:
        lead = limb.front_v[fronts[-1]].any(axis=1)
        counter.p[slot] = 0
        counter.p[slot, : lead.size, : lead.size] = _joined(limb.p) * lead
    for f in fronts:
        node = _push(counter, counter.front, slot, int(limb.front_key[f]))
        counter.node_v[node] = 0
        counter.node_v[node, : limb.front_v.shape[1]] = _joined(limb.front_v[f])
    for c, key in back:
        node = _push(counter, counter.back, slot, key)
        counter.node_class[node] = c


def _chain(counter: Counter, stack: Ints, slot: int) -> list[int]:
    """The nodes of a stack, from its head on."""
    nodes, node = [], int(stack[slot])
    while node >= 0:
        nodes.append(node)
        node = int(counter.node_next[node])
    return nodes


def _push(counter: Counter, stack: Ints, slot: int, key: int) -> int:
    if counter.regs[ck.FREE_NODE] < 0:
        counter.more_nodes()
    node = int(counter.regs[ck.FREE_NODE])
    counter.regs[ck.FREE_NODE] = counter.node_next[node]
    counter.node_key[node], counter.node_next[node] = key, stack[slot]
    stack[slot] = node
    return node


def _split(numbers: Counts) -> Counts:
    """Numbers of one word each as numbers of two limbs."""
    return np.stack([numbers & lk.MASK, numbers >> lk.SHIFT], axis=-1)


def _joined(numbers: Counts) -> Counts:
    """The inverse of `_split`, for numbers that are known to be small."""
    return numbers[..., 0] + (numbers[..., 1] << lk.SHIFT)


def _below(numbers: Counts, bound: int) -> bool:
    """Whether every number is below a bound of less than 62 bits, settled or not."""
    high = np.uint64(bound >> BASE_BITS)
    small = (numbers[..., 0] < np.uint64(bound)) & (numbers[..., 1] <= high) & ~numbers[..., 2:].any(axis=-1)
    return bool(small.all()) and bool((_joined(numbers) < np.uint64(bound)).all())


def _padded(numbers: Counts, shape: tuple[int, ...]) -> Counts:
    """The numbers in a larger array of zeros."""
    larger = np.zeros(shape, np.uint64)
    larger[tuple(slice(n) for n in numbers.shape)] = numbers
    return larger


def _flat(numbers: Counts) -> Counts:
    """Rows of numbers as rows of limbs."""
    return numbers.reshape(numbers.shape[0], numbers.shape[1] * numbers.shape[2])


def _number(row: Counts) -> int:
    """One number; its limbs may exceed the base."""
    return sum(int(limb) << BASE_BITS * k for k, limb in enumerate(row.tolist()))
