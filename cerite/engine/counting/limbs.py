"""The stacks of `two_stacks` for one partition, over numbers of any size.

A number is a row of `limbs` uint64 in base 2**32, low limb first. Limbs may exceed the base: adding numbers is adding
rows, so those of `steps` serve unchanged, on rows as wide as all numbers together. Only when a limb nears the
limit are the carries propagated (`settle`), and only products need settled operands.

Invariants: no limb ever exceeds 2**62. The top limb never loses a carry: when, settled, it exceeds the base, the kernel
returns for more limbs with its state intact. In the back, the places from `cursor.back` to `cursor.back_end` are the
events since the last flip; in the front, those from `cursor.front` to `cursor.front_end` are the older starts, oldest
first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cerite.core.arrays import Arrays, Ints, Longs, Words
from cerite.core.budget import check_counting
from cerite.core.jit import inner, kernel
from cerite.engine.counting.steps import CountedStates, Steps, advance_matrix, retreat_matrix
from cerite.engine.counting.two_stacks import Scratch, free_chain
from cerite.engine.events.keys import LEAST
from cerite.engine.state.cursor import Cursor, Stop, new_cursor, of_longs, to_longs
from cerite.engine.state.slots import grown
from cerite.engine.subset.base import Batch
from cerite.engine.subset.determinise import INITIAL, MISSING

if TYPE_CHECKING:
    from cerite.engine.counting.counter import Counter


class Stacks(NamedTuple):
    """The live starts of one partition."""

    back_class: Ints
    back_key: Longs
    front_key: Longs
    front_v: Words
    p: Words
    v: Words
    cursor: Cursor


SHIFT, MASK = np.uint64(32), np.uint64(0xFFFFFFFF)


@inner
def settle(rows: Words, begin: int, end: int, width: int, limbs: int) -> bool:
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
def is_zero(row: Words, first: int, limbs: int) -> bool:
    """Whether one number is zero."""
    bits = np.uint64(0)
    for k in range(first, first + limbs):
        bits |= row[k]
    return bool(bits == 0)


@inner
def add_product(total: Words, a: Words, b: Words, first: int, limbs: int) -> None:
    """total += a[first:] · b[first:] for two settled numbers; `total` stays unsettled."""
    for i in range(limbs):
        x = a[first + i]
        if x:
            for j in range(limbs):
                product = x * b[first + j]
                total[0, i + j] += product & MASK
                total[0, i + j + 1] += product >> SHIFT


@inner
def flip_limbs(size: int, limbs: int, limit: np.uint64, steps: Steps, stacks: Stacks, scratch: Scratch) -> bool:
    """Move the back to the empty front; False, with the back intact, when more limbs are needed."""
    entry, succ, r, cursor = steps.entry, steps.succ, scratch.r, stacks.cursor
    width = size * limbs
    r[:, :] = np.uint64(0)
    for d in range(size):
        r[d, d * limbs] = np.uint64(1)
    place = stacks.front_key.size
    suffix = scratch.spare[size : size + 1]
    suffix[:, :] = np.uint64(0)
    for b in range(cursor.back_end - 1, cursor.back - 1, -1):
        c = stacks.back_class[b]
        offset = entry[c, INITIAL]
        for y in range(offset + 1, offset + 1 + 2 * succ[offset], 2):
            for k in range(width):
                suffix[0, k] += r[succ[y + 1], k]
        if succ[offset]:
            if settle(suffix, 0, 1, width, limbs):
                return False
            place -= 1
            stacks.front_key[place] = stacks.back_key[b]
            for k in range(width):
                stacks.front_v[place, k] = suffix[0, k]
        if retreat_matrix(r, 0, width, c, steps, scratch.spare) > limit and settle(r, 0, size, width, limbs):
            return False
    cursor.front, cursor.front_end = place, stacks.front_key.size
    cursor.back, cursor.back_end = 0, 0
    return True


@inner
def prepare(c: int, oldest: int, windowed: bool, limit: np.uint64, size: int, limbs: int, steps: Steps, stacks: Stacks,
            scratch: Scratch) -> int:  # fmt: skip
    """Drop what has left the window, and check that all is there to count and move; if not, nothing is counted."""
    entry, succ, cursor, p, v = steps.entry, steps.succ, stacks.cursor, stacks.p, stacks.v
    width = size * limbs
    if entry[c, INITIAL] == MISSING:
        cursor.dstate, cursor.event_class = INITIAL, c
        return Stop.MISS
    if windowed:
        while cursor.front < cursor.front_end and stacks.front_key[cursor.front] < oldest:
            cursor.front += 1
        if cursor.front == cursor.front_end:
            while cursor.back < cursor.back_end and succ[entry[stacks.back_class[cursor.back], INITIAL]] == 0:
                cursor.back += 1
            if cursor.back < cursor.back_end and stacks.back_key[cursor.back] < oldest:
                if not flip_limbs(size, limbs, limit, steps, stacks, scratch):
                    return Stop.MORE_LIMBS
                p[:, :] = np.uint64(0)
                for d in range(size):
                    p[d, d * limbs] = np.uint64(1)
                v[:, :] = np.uint64(0)
                while cursor.front < cursor.front_end and stacks.front_key[cursor.front] < oldest:
                    cursor.front += 1
            elif cursor.back == cursor.back_end:
                cursor.back, cursor.back_end = 0, 0
                v[:, :] = np.uint64(0)
    led = cursor.front < cursor.front_end
    for y in range(steps.n_touched[c]):
        d = steps.touched[c, y]
        if entry[c, d] == MISSING:
            occupied = not is_zero(v[d], 0, limbs)
            if led:
                lead = stacks.front_v[cursor.front]
                for k in range(0, width, limbs):
                    occupied |= not is_zero(p[d], k, limbs) and not is_zero(lead, k, limbs)
            if occupied:
                cursor.dstate, cursor.event_class = d, c
                return Stop.MISS
    full = False
    for y in range(steps.n_gaining[c]):
        d = steps.gaining[c, y]
        full |= settle(v, d, d + 1, limbs, limbs)
        full |= led and settle(p, d, d + 1, width, limbs)
    return Stop.MORE_LIMBS if full else Stop.DONE


@inner
def add_completed(c: int, width: int, limbs: int, steps: Steps, stacks: Stacks, total: Words) -> bool:
    """total += the matches that the event completes; whether there are any. Products are of settled numbers."""
    cursor, p, v = stacks.cursor, stacks.p, stacks.v
    completes = steps.gain[c, INITIAL] > 0
    total[0, 0] += np.uint64(steps.gain[c, INITIAL])
    for y in range(steps.n_gaining[c]):
        d = steps.gaining[c, y]
        for _ in range(steps.gain[c, d]):
            if not is_zero(v[d], 0, limbs):
                completes = True
                for k in range(limbs):
                    total[0, k] += v[d, k]
            if cursor.front < cursor.front_end:
                lead = stacks.front_v[cursor.front]
                for k in range(0, width, limbs):
                    if not is_zero(p[d], k, limbs) and not is_zero(lead, k, limbs):
                        completes = True
                        add_product(total, p[d], lead, k, limbs)
            settle(total, 0, 1, total.shape[1], total.shape[1])
    return bool(completes)


@inner
def move(c: int, now: int, windowed: bool, limit: np.uint64, size: int, limbs: int, steps: Steps, stacks: Stacks,
         scratch: Scratch) -> bool:  # fmt: skip
    """Advance and start; whether a number needs more limbs now."""
    succ, cursor, p, v = steps.succ, stacks.cursor, stacks.p, stacks.v
    start = steps.entry[c, INITIAL]
    led = cursor.front < cursor.front_end
    moves = succ[start] or (steps.n_touched[c] and (led or cursor.back < cursor.back_end))
    if windowed and moves:
        stacks.back_class[cursor.back_end], stacks.back_key[cursor.back_end] = c, now
        cursor.back_end += 1
    full = advance_matrix(v, 0, limbs, c, steps, scratch.spare) > limit and settle(v, 0, size, limbs, limbs)
    if led and advance_matrix(p, 0, size * limbs, c, steps, scratch.spare) > limit:
        full |= settle(p, 0, size, size * limbs, limbs)
    for y in range(start + 1, start + 1 + 2 * succ[start], 2):
        v[succ[y + 1], 0] += np.uint64(1)
    return bool(full)


@kernel
def count_limbs(batch: Batch, windowed: bool, consume: bool, limit: np.uint64, size: int, limbs: int, steps: Steps,
                stacks: Stacks, scratch: Scratch) -> int:  # fmt: skip
    """Count over batch.selection[cursor.next:] of one partition, adding to scratch.total; returns why it stopped."""
    cursor = stacks.cursor
    for x in range(cursor.next, batch.selection.size):
        cursor.next = x
        i = batch.selection[x]
        c = batch.classes[i]
        why = prepare(c, batch.low[i], windowed, limit, size, limbs, steps, stacks, scratch)
        if why != Stop.DONE:
            return why
        if add_completed(c, size * limbs, limbs, steps, stacks, scratch.total):
            cursor.occurrences += 1
            if consume:
                cursor.back, cursor.back_end, cursor.front, cursor.front_end = 0, 0, 0, 0
                stacks.v[:, :] = np.uint64(0)
                continue
        if move(c, batch.key[i], windowed, limit, size, limbs, steps, stacks, scratch):
            cursor.next = x + 1
            return Stop.MORE_LIMBS
    cursor.next = batch.selection.size
    return Stop.DONE


# One partition's counting state in numbers of any size: the arrays that `count_limbs` works on, and their growth.
#
# A partition whose numbers near 2**62 is taken out of `count_events`' arrays, and put back once they are small
# again.
#
# Invariants: a number is `limbs` wide; arrays have room for `capacity` dstates, of which the kernel reads those that
# exist. Without a window there is neither a front nor a product of matrices. What is counted does not depend on when
# anything was taken out, put back or grown; `tests/engine_core/wide.py` does the same with Python's integers.

BASE_BITS = 32
_STATE = ("back_class", "back_key", "front_key", "front_v", "p", "v")


class LimbSlot:
    """The live starts of one partition, counted exactly."""

    def __init__(self, windowed: bool, capacity: int) -> None:
        self.windowed = windowed
        self.back_class: Ints = np.zeros(1, np.int32)
        self.back_key: Longs = np.zeros(1, np.int64)
        self.front_key: Longs = np.zeros(1, np.int64)
        self.cursor = new_cursor()
        self.cursor.front = self.cursor.front_end = 1
        self._check(capacity, 2)
        self.v: Words = np.zeros((capacity, 2), np.uint64)
        squared = capacity if windowed else 1
        self.p: Words = np.zeros((squared, squared, 2), np.uint64)
        self.front_v: Words = np.zeros((1, squared, 2), np.uint64)
        self._fit_scratch()

    @property
    def limbs(self) -> int:
        """The width of the numbers."""
        return int(self.v.shape[1])

    def count(self, det: CountedStates, batch: Batch, consume: bool) -> tuple[int, int]:
        """Read the relevant events, all of this partition; returns matches and occurrences."""
        matches = 0
        why: int = Stop.MISS
        self.cursor.next = self.cursor.occurrences = 0
        self._fit(det.capacity, self.limbs)
        self._make_room(batch.selection.size)
        while why != Stop.DONE:
            limbs = self.limbs
            limit = (1 << 62) // det.fan_in
            scratch = Scratch(self._spare, self._r, np.zeros((1, 2 * limbs + 4), np.uint64))
            why = count_limbs(
                batch, self.windowed, consume, np.uint64(limit), det.n_dstates, limbs, det.counting_steps,
                self._stacks, scratch,
            )  # fmt: skip
            matches += whole(scratch.total[0])
            if why == Stop.MISS:
                det.fill(self.cursor.dstate, self.cursor.event_class)
                self._fit(det.capacity, limbs)
            elif why == Stop.MORE_LIMBS:
                self._fit(det.capacity, limbs + 1 + limbs // 2)
        return matches, self.cursor.occurrences

    @property
    def _stacks(self) -> Stacks:
        front_v, p = _flat(self.front_v), _flat(self.p)
        return Stacks(self.back_class, self.back_key, self.front_key, front_v, p, self.v, self.cursor)

    @property
    def _back(self) -> slice:
        return slice(self.cursor.back, self.cursor.back_end)

    @property
    def _front(self) -> slice:
        return slice(self.cursor.front, self.cursor.front_end)

    def below(self, bound: int) -> bool:
        """Whether all numbers are below a bound; the oldest front vector contains the others."""
        if self.cursor.front == self.cursor.front_end:
            return _below(self.v, bound)
        lead = self.front_v[self.cursor.front]
        return _below(self.v, bound) and _below(lead, bound) and _below(self.p[:, lead.any(axis=1)], bound)

    @property
    def newest(self) -> int:
        """No start has a greater key than this."""
        for keys in (self.back_key[self._back], self.front_key[self._front]):
            if keys.size:
                return int(keys[-1])
        return LEAST

    def clear(self) -> None:
        """Forget every start."""
        self.cursor.back = self.cursor.back_end = 0
        self.cursor.front = self.cursor.front_end = self.front_key.size
        self.v[:] = 0

    def arrays(self) -> Arrays:
        """The state, for a snapshot: what is alive of the two stacks."""
        back, front = self._back, self._front
        cursor = of_longs(Cursor, to_longs(self.cursor))
        cursor.back, cursor.back_end = 0, back.stop - back.start
        cursor.front, cursor.front_end = 0, front.stop - front.start
        return {
            "back_class": self.back_class[back], "back_key": self.back_key[back], "front_key": self.front_key[front],
            "front_v": self.front_v[front], "p": self.p, "v": self.v, "cursor": to_longs(cursor),
        }  # fmt: skip

    @staticmethod
    def of_arrays(windowed: bool, arrays: Arrays) -> LimbSlot:
        """The inverse of `arrays`."""
        slot = LimbSlot(windowed, 1)
        for name in _STATE:
            setattr(slot, name, arrays[name])
        slot.cursor = of_longs(Cursor, arrays["cursor"])
        slot._fit_scratch()
        return slot

    def _fit_scratch(self) -> None:
        capacity, limbs = self.v.shape
        width = capacity * limbs if self.windowed else limbs
        self._r = np.zeros((capacity, width) if self.windowed else (1, 1), np.uint64)
        self._spare = np.zeros((capacity + 1, width), np.uint64)

    def _fit(self, capacity: int, limbs: int) -> None:
        """Make room for `capacity` dstates, in numbers of `limbs` limbs."""
        if (capacity, limbs) == self.v.shape:
            return
        self._check(capacity, limbs)
        squared = capacity if self.windowed else 1
        self.v = _padded(self.v, (capacity, limbs))
        self.p = _padded(self.p, (squared, squared, limbs))
        front = np.zeros((self.front_v.shape[0], squared, limbs), np.uint64)
        alive = self._front
        front[alive] = _padded(self.front_v[alive], (alive.stop - alive.start, squared, limbs))
        self.front_v = front
        self._fit_scratch()

    def _check(self, capacity: int, limbs: int) -> None:
        """Refuse what would take too much memory before it is allocated."""
        if self.windowed:
            at = self.cursor
            alive = at.front_end - at.front + at.back_end - at.back
            check_counting(capacity, 8 * limbs * capacity * (3 * capacity + alive))

    def _make_room(self, events: int) -> None:
        """Make room for so many more events in the back, and for all of the back in the front.

        After a restore each stack is only as long as what is alive in it, so the front may be the longer one.
        """
        if not self.windowed:
            return
        begin, end = self.cursor.back, self.cursor.back_end
        if end + events < self.back_key.size:
            return
        self.back_class[: end - begin] = self.back_class[begin:end].copy()
        self.back_key[: end - begin] = self.back_key[begin:end].copy()
        self.cursor.back, self.cursor.back_end = 0, end - begin
        alive = self._front
        room = max(end - begin + events + 1, 2 * (end - begin), alive.stop - alive.start)
        if room > self.back_key.size:
            self.back_class, self.back_key = grown(self.back_class, room), grown(self.back_key, room)
            moved = slice(room - (alive.stop - alive.start), room)
            front_key, front_v = np.zeros(room, np.int64), np.zeros((room, *self.front_v.shape[1:]), np.uint64)
            front_key[moved], front_v[moved] = self.front_key[alive], self.front_v[alive]
            self.front_key, self.front_v = front_key, front_v
            self.cursor.front, self.cursor.front_end = moved.start, moved.stop


def to_limbs(counter: Counter, slot: int) -> LimbSlot:
    """Take a partition's state out of the kernel's arrays."""
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
    at = limb.cursor
    at.back_end, at.front, at.front_end = len(back), first, limb.front_key.size
    for stack in (counter.front, counter.back):
        free_chain(int(stack[slot]), counter.queue)
        stack[slot] = -1
    counter.wide[slot] = True
    return limb


def to_kernel(counter: Counter, slot: int, limb: LimbSlot) -> None:
    """Put a partition's state, whose numbers are all small again, back into the kernel's arrays."""
    at, det = limb.cursor, counter.det
    classes, keys = limb.back_class[limb._back].tolist(), limb.back_key[limb._back].tolist()
    back = list(zip(classes, keys, strict=True))  # oldest first
    starts = [key for c, key in back if det.successors(0, c)]
    counter.wide[slot] = False
    counter.starts[slot] = len(starts) if counter.windowed else int(limb.v.any())
    counter.oldest[slot] = starts[0] if starts else 0
    fronts = range(at.front_end - 1, at.front - 1, -1)  # newest first
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
    if counter.cursor.free_node < 0:
        counter.more_nodes()
    node = counter.cursor.free_node
    counter.cursor.free_node = int(counter.node_next[node])
    counter.node_key[node], counter.node_next[node] = key, stack[slot]
    stack[slot] = node
    return node


def _split(numbers: Words) -> Words:
    """Numbers of one word each as numbers of two limbs."""
    return np.stack([numbers & MASK, numbers >> SHIFT], axis=-1)


def _joined(numbers: Words) -> Words:
    """The inverse of `_split`, for numbers that are known to be small."""
    return numbers[..., 0] + (numbers[..., 1] << SHIFT)


def _below(numbers: Words, bound: int) -> bool:
    """Whether every number is below a bound of less than 62 bits, settled or not."""
    high = np.uint64(bound >> BASE_BITS)
    small = (numbers[..., 0] < np.uint64(bound)) & (numbers[..., 1] <= high) & ~numbers[..., 2:].any(axis=-1)
    return bool(small.all()) and bool((_joined(numbers) < np.uint64(bound)).all())


def _padded(numbers: Words, shape: tuple[int, ...]) -> Words:
    """The numbers in a larger array of zeros."""
    larger = np.zeros(shape, np.uint64)
    larger[tuple(slice(n) for n in numbers.shape)] = numbers
    return larger


def _flat(numbers: Words) -> Words:
    """Rows of numbers as rows of limbs."""
    return numbers.reshape(numbers.shape[0], numbers.shape[1] * numbers.shape[2])


def whole(number: Words) -> int:
    """The integer that one number is; its limbs may exceed the base."""
    return sum(limb << BASE_BITS * k for k, limb in enumerate(number.tolist()))


def widened(rows: Words, limbs: int, more: int) -> Words:
    """Rows of numbers with `more` limbs instead of `limbs`; the last one they have may have run over."""
    old = rows.reshape(rows.shape[0], -1, limbs)
    new = np.zeros((*old.shape[:2], more), np.uint64)
    new[:, :, : limbs - 1] = old[:, :, :-1]
    new[:, :, limbs - 1], new[:, :, limbs] = old[:, :, -1] & MASK, old[:, :, -1] >> SHIFT
    return new.reshape(rows.shape[0], -1)
