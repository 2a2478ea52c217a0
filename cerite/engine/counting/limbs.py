"""The two stacks of `count_kernel` for one partition, over numbers of any size.

A number is a row of `limbs` uint64 in base 2**32, low limb first. Limbs may exceed the base: adding numbers is adding
rows, so the steps of `count_steps` serve unchanged, on rows as wide as all numbers together. Only when a limb nears the
limit are the carries propagated (`settle`), and only products need settled operands.

Invariants: no limb ever exceeds 2**62. The top limb never loses a carry: when, settled, it exceeds the base, the kernel
returns for more limbs with its state intact. `back_*[b0:b1]` are the events since the last flip, `front_*[f0:f1]` the
older starts, the oldest at f0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cerite.core.arrays import Ints, Longs
from cerite.core.budget import check_counting
from cerite.core.jit import inner, kernel
from cerite.engine.counting import kernel as ck
from cerite.engine.counting.steps import advance_matrix, retreat_matrix
from cerite.engine.slots import grown
from cerite.engine.subset.determinise import MISSING, Determinised

if TYPE_CHECKING:
    from cerite.engine.counting.counter import Counter


Counts = npt.NDArray[np.uint64]

NEXT, B0, B1, F0, F1, OCCURRENCES, DSTATE, CLASS, READ = range(9)  # READ: the next event is read, not yet counted
DONE, MISS, MORE_LIMBS, READ_AND_FULL = range(4)
SHIFT, MASK = np.uint64(32), np.uint64(0xFFFFFFFF)


@inner
def settle(rows: Counts, begin: int, end: int, width: int, limbs: int) -> bool:
    """Propagate carries in the numbers of some rows; whether a top limb has outgrown the base."""
    full = False
    for a in range(begin, end):
        for first in range(0, width, limbs):
            carry = np.uint64(0)
            for k in range(first, first + limbs - 1):
                value = rows[a, k] + carry
                rows[a, k] = value & MASK
                carry = value >> SHIFT
            rows[a, first + limbs - 1] += carry
            full |= rows[a, first + limbs - 1] > MASK
    return full


@inner
def is_zero(row: Counts, first: int, limbs: int) -> bool:
    """Whether one number is zero."""
    bits = np.uint64(0)
    for k in range(first, first + limbs):
        bits |= row[k]
    return bool(bits == 0)


@inner
def add_product(total: Counts, a: Counts, b: Counts, first: int, limbs: int) -> None:
    """total += a[first:] · b[first:] for two settled numbers; `total` stays unsettled."""
    for i in range(limbs):
        x = a[first + i]
        if x:
            for j in range(limbs):
                product = x * b[first + j]
                total[0, i + j] += product & MASK
                total[0, i + j + 1] += product >> SHIFT


@inner
def flip_limbs(
    size: int,
    limbs: int,
    limit: np.uint64,
    back_class: Ints,
    back_key: Longs,
    front_key: Longs,
    front_v: Counts,
    entry: Ints,
    touched: Ints,
    n_touched: Ints,
    succ: Ints,
    spare: Counts,
    r: Counts,
    regs: Longs,
) -> bool:
    """Move the back to the empty front; False, with the back intact, when more limbs are needed."""
    width = size * limbs
    r[:, :] = np.uint64(0)
    for d in range(size):
        r[d, d * limbs] = np.uint64(1)
    place = front_key.size
    suffix = spare[size : size + 1]
    suffix[:, :] = np.uint64(0)
    for b in range(regs[B1] - 1, regs[B0] - 1, -1):
        c = back_class[b]
        offset = entry[c, 0]
        for y in range(offset + 1, offset + 1 + 2 * succ[offset], 2):
            for k in range(width):
                suffix[0, k] += r[succ[y + 1], k]
        if succ[offset]:
            if settle(suffix, 0, 1, width, limbs):
                return False
            place -= 1
            front_key[place] = back_key[b]
            for k in range(width):
                front_v[place, k] = suffix[0, k]
        if retreat_matrix(r, width, c, entry, touched, n_touched, succ, spare) > limit and settle(
            r, 0, size, width, limbs
        ):
            return False
    regs[F0], regs[F1] = place, front_key.size
    regs[B0], regs[B1] = 0, 0
    return True


@inner
def read_event(
    c: int,
    now: int,
    oldest: int,
    windowed: bool,
    limit: np.uint64,
    size: int,
    limbs: int,
    entry: Ints,
    touched: Ints,
    n_touched: Ints,
    succ: Ints,
    back_class: Ints,
    back_key: Longs,
    front_key: Longs,
    front_v: Counts,
    p: Counts,
    v: Counts,
    spare: Counts,
    r: Counts,
    regs: Longs,
) -> int:
    """Expire, advance and start; a return of `MISS` or `MORE_LIMBS` has not read the event."""
    width = size * limbs
    if entry[c, 0] == MISSING:
        regs[DSTATE], regs[CLASS] = 0, c
        return MISS
    fresh = succ[entry[c, 0]]
    if windowed:
        while regs[F0] < regs[F1] and front_key[regs[F0]] < oldest:
            regs[F0] += 1
        if regs[F0] == regs[F1]:
            while regs[B0] < regs[B1] and succ[entry[back_class[regs[B0]], 0]] == 0:
                regs[B0] += 1
            if regs[B0] < regs[B1] and back_key[regs[B0]] < oldest:
                if not flip_limbs(size, limbs, limit, back_class, back_key, front_key, front_v, entry, touched,
                                  n_touched, succ, spare, r, regs):  # fmt: skip
                    return MORE_LIMBS
                p[:, :] = np.uint64(0)
                for d in range(size):
                    p[d, d * limbs] = np.uint64(1)
                v[:, :] = np.uint64(0)
                while regs[F0] < regs[F1] and front_key[regs[F0]] < oldest:
                    regs[F0] += 1
            elif regs[B0] == regs[B1]:
                regs[B0], regs[B1] = 0, 0
                v[:, :] = np.uint64(0)
    led = regs[F0] < regs[F1]
    for y in range(n_touched[c]):
        d = touched[c, y]
        if entry[c, d] == MISSING:
            occupied = not is_zero(v[d], 0, limbs)
            if led:
                for k in range(0, width, limbs):
                    occupied |= not is_zero(p[d], k, limbs) and not is_zero(front_v[regs[F0]], k, limbs)
            if occupied:
                regs[DSTATE], regs[CLASS] = d, c
                return MISS
    if windowed and (fresh or led or regs[B0] < regs[B1]):
        back_class[regs[B1]], back_key[regs[B1]] = c, now
        regs[B1] += 1
    full = advance_matrix(v, limbs, c, entry, touched, n_touched, succ, spare) > limit and settle(
        v, 0, size, limbs, limbs
    )
    if led and advance_matrix(p, width, c, entry, touched, n_touched, succ, spare) > limit:
        full |= settle(p, 0, size, width, limbs)
    for y in range(entry[c, 0] + 1, entry[c, 0] + 1 + 2 * fresh, 2):
        v[succ[y + 1], 0] += np.uint64(1)
    return READ_AND_FULL if full else DONE


@kernel
def count_limbs(
    events: Longs,
    classes: Ints,
    key: Longs,
    low: Longs,
    windowed: bool,
    consume: bool,
    limit: np.uint64,
    size: int,
    limbs: int,
    entry: Ints,
    touched: Ints,
    n_touched: Ints,
    succ: Ints,
    accepting: Ints,
    back_class: Ints,
    back_key: Longs,
    front_key: Longs,
    front_v: Counts,
    p: Counts,
    v: Counts,
    spare: Counts,
    r: Counts,
    total: Counts,
    regs: Longs,
) -> int:
    """Count over events[regs[NEXT]:] of one partition, adding all matches to `total`; returns why it stopped."""
    width = size * limbs
    for x in range(regs[NEXT], events.size):
        regs[NEXT] = x
        i = events[x]
        c = classes[i]
        if not regs[READ]:
            why = read_event(c, key[i], low[i], windowed, limit, size, limbs, entry, touched, n_touched, succ,
                             back_class, back_key, front_key, front_v, p, v, spare, r, regs)  # fmt: skip
            if why in (MISS, MORE_LIMBS):
                return why
            regs[READ] = 1
            if why == READ_AND_FULL:
                return MORE_LIMBS
        led = regs[F0] < regs[F1]
        full = False
        for a in accepting:
            full |= settle(v, a, a + 1, limbs, limbs)
            full |= led and settle(p, a, a + 1, width, limbs)
        if full:
            return MORE_LIMBS
        regs[READ] = 0
        found = False
        for a in accepting:
            if not is_zero(v[a], 0, limbs):
                found = True
                for k in range(limbs):
                    total[0, k] += v[a, k]
            if led:
                lead = front_v[regs[F0]]
                for k in range(0, width, limbs):
                    if not is_zero(p[a], k, limbs) and not is_zero(lead, k, limbs):
                        found = True
                        add_product(total, p[a], lead, k, limbs)
        if found:
            settle(total, 0, 1, total.shape[1], total.shape[1])
            regs[OCCURRENCES] += 1
            if consume:
                regs[B0], regs[B1], regs[F0], regs[F1] = 0, 0, 0, 0
                v[:, :] = np.uint64(0)
    regs[NEXT] = events.size
    return DONE


# One partition's counting state in numbers of any size: the arrays that `limb_kernel` works on, and their growth.
#
# A partition whose numbers near 2**62 is taken out of `count_kernel`'s arrays, and put back once they are small
# again.
#
# Invariants: a number is `limbs` wide; arrays have room for `capacity` dstates, of which the kernel reads those that
# exist. Without a window there is neither a front nor a product of matrices. What is counted does not depend on when
# anything was taken out, put back or grown; `tests/engine_core/wide.py` is the same in Python's integers.

BASE_BITS = 32
LEAST = int(np.iinfo(np.int64).min)
_STATE = ("back_class", "back_key", "front_key", "front_v", "p", "v", "regs")


class LimbSlot:
    """The live starts of one partition, exactly counted."""

    def __init__(self, windowed: bool, capacity: int) -> None:
        self.windowed = windowed
        self.back_class: Ints = np.zeros(1, np.int32)
        self.back_key: Longs = np.zeros(1, np.int64)
        self.front_key: Longs = np.zeros(1, np.int64)
        self.regs: Longs = np.zeros(9, np.int64)
        self.regs[[F0, F1]] = 1
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
        matches, why = 0, MISS
        self.regs[[NEXT, OCCURRENCES]] = 0
        self._fit(det.capacity, self.limbs)
        self._make_room(events.size)
        while why != DONE:
            limbs = self.limbs
            total = np.zeros((1, 2 * limbs + 4), np.uint64)
            why = count_limbs(
                events, classes, key, low, self.windowed, consume, np.uint64((1 << 62) // det.fan_in),
                det.n_dstates, limbs, det.entry, det.touched, det.n_touched, det.succ, det.accepting,
                self.back_class, self.back_key, self.front_key, _flat(self.front_v),
                _flat(self.p), self.v, self._spare, self._r, total, self.regs,
            )  # fmt: skip
            matches += _number(total[0])
            if why == MISS:
                det.fill(int(self.regs[DSTATE]), int(self.regs[CLASS]))
                self._fit(det.capacity, limbs)
            elif why == MORE_LIMBS:
                self._fit(det.capacity, limbs + 1 + limbs // 2)
        return matches, int(self.regs[OCCURRENCES])

    def below(self, bound: int) -> bool:
        """Whether all numbers are; the oldest front vector contains the others."""
        first = int(self.regs[F0])
        if first == self.regs[F1]:
            return _below(self.v, bound)
        lead = self.front_v[first]
        return _below(self.v, bound) and _below(lead, bound) and _below(self.p[:, lead.any(axis=1)], bound)

    @property
    def newest(self) -> int:
        """No start has a greater key than this."""
        if self.regs[B0] < self.regs[B1]:
            return int(self.back_key[self.regs[B1] - 1])
        return int(self.front_key[self.regs[F1] - 1]) if self.regs[F0] < self.regs[F1] else LEAST

    def clear(self) -> None:
        """Forget every start."""
        self.regs[[B0, B1]] = 0
        self.regs[[F0, F1]] = self.front_key.size
        self.v[:] = 0

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The state, for a snapshot: of the two stacks what is alive."""
        back, front = slice(*self.regs[[B0, B1]]), slice(*self.regs[[F0, F1]])
        regs = self.regs.copy()
        regs[[B0, B1, F0, F1]] = 0, back.stop - back.start, 0, front.stop - front.start
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
        alive = slice(int(self.regs[F0]), int(self.regs[F1]))
        front[alive] = _padded(self.front_v[alive], (alive.stop - alive.start, squared, limbs))
        self.front_v = front
        self._scratch()

    def _check(self, capacity: int, limbs: int) -> None:
        """Refuse what would take too much memory before it is asked for."""
        if self.windowed:
            held = int(self.regs[F1] - self.regs[F0] + self.regs[B1] - self.regs[B0])
            check_counting(capacity, 8 * limbs * capacity * (3 * capacity + held))

    def _make_room(self, events: int) -> None:
        """Room for so many more events in the back, and for all of it in the front."""
        if not self.windowed:
            return
        begin, end = int(self.regs[B0]), int(self.regs[B1])
        if end + events < self.back_key.size:
            return
        self.back_class[: end - begin] = self.back_class[begin:end].copy()
        self.back_key[: end - begin] = self.back_key[begin:end].copy()
        self.regs[[B0, B1]] = 0, end - begin
        room = max(end - begin + events + 1, 2 * (end - begin))
        if room > self.back_key.size:
            self.back_class, self.back_key = grown(self.back_class, room), grown(self.back_key, room)
            alive = slice(int(self.regs[F0]), int(self.regs[F1]))
            moved = slice(room - (alive.stop - alive.start), room)
            front_key, front_v = np.zeros(room, np.int64), np.zeros((room, *self.front_v.shape[1:]), np.uint64)
            front_key[moved], front_v[moved] = self.front_key[alive], self.front_v[alive]
            self.front_key, self.front_v = front_key, front_v
            self.regs[[F0, F1]] = moved.start, moved.stop


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
    limb.regs[[B1, F0, F1, READ]] = len(back), first, limb.front_key.size, read
    for stack in (counter.front, counter.back):
        ck.free_chain(int(stack[slot]), counter.node_next, counter.regs)
        stack[slot] = -1
    counter.wide[slot] = True
    return limb


def to_kernel(counter: Counter, slot: int, limb: LimbSlot) -> None:
    """Put a partition's state, all numbers small again, back into the kernel's arrays."""
    regs, det = limb.regs, counter.det
    back = [
        (int(limb.back_class[b]), int(limb.back_key[b])) for b in range(int(regs[B0]), int(regs[B1]))
    ]  # oldest first
    starts = [key for c, key in back if det.successors(0, c)]
    counter.wide[slot] = False
    counter.starts[slot] = len(starts) if counter.windowed else int(limb.v.any())
    counter.oldest[slot] = starts[0] if starts else 0
    fronts = range(int(regs[F1]) - 1, int(regs[F0]) - 1, -1)  # newest first
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
    return np.stack([numbers & MASK, numbers >> SHIFT], axis=-1)


def _joined(numbers: Counts) -> Counts:
    """The inverse of `_split`, for numbers that are known to be small."""
    return numbers[..., 0] + (numbers[..., 1] << SHIFT)


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
