"""Counting matches whose runs are moved in groups: exact, and at a cost per event that follows the window's logarithm.

`GroupCounter` owns the trees that `kernel` works on, makes room when it asks, and widens the numbers when one no longer
fits. It takes the place of `registers.counter.RegisterCounter` where `grouping.grouped` allows it.

Invariant: results do not depend on where batches are cut, on the sizes of arrays, or on when numbers were widened.
"""

from __future__ import annotations

import numpy as np

from cerite.core.arrays import Arrays, Longs, Words
from cerite.core.budget import check_counting
from cerite.engine.counting.counter import Count
from cerite.engine.counting.limbs import SHIFT, whole, widened
from cerite.engine.events.rows import Rows
from cerite.engine.groups import base
from cerite.engine.groups.base import Groups, room_for
from cerite.engine.groups.grouping import Grouping
from cerite.engine.groups.kernel import expire_all, hand_down_all, plant_all, read_groups
from cerite.engine.groups.numbers import NARROW_BITS, Numbers
from cerite.engine.state.cursor import Stop, consumption
from cerite.engine.state.slots import grown, raise_lows
from cerite.engine.state.snapshot import pack, unpack

_OF_A_START = ("value", "null", "born", "key", "own")  # in a snapshot


class GroupCounter(Groups):
    """Counts the matches of one automaton with registers in a stream given in batches."""

    kind = "group counter"  # of its snapshots

    def __init__(self, grouping: Grouping, *, consume: str = "none", shared_clock: bool = False) -> None:
        unused, none = np.zeros(0, np.uint64), np.zeros(0, np.int64)
        self._numbers = Numbers(unused, np.uint64(0), unused, unused, none)
        super().__init__(grouping, consume=consume, shared_clock=shared_clock, labelled=False)

    def read(self, rows: Rows) -> Count:
        """Read a batch; how many matches end in it."""
        events = self._events(rows)
        self._numbers = self._numbers._replace(total=np.zeros(self._limbs + 4, np.uint64))
        place = self.forest.place
        before, place.next, why = place.occurrences, 0, -1
        while why != Stop.DONE:
            why = read_groups(
                events, consumption(self.consume), self.steps.tables, self.forest, self._room, self.lows, self._numbers,
                None,
            )  # fmt: skip
            if why == Stop.MISS:
                self.steps.meet(place.bits, place.code)
            elif why == Stop.MORE_LIMBS:
                self._widen()
            elif why != Stop.DONE:
                self._more_starts(events)
        return Count(whole(self._numbers.total), place.occurrences - before)

    def snapshot(self) -> bytes:
        """The run state between two batches."""
        part, starts = self._starts()
        place, limbs = self.forest.place, np.array([self._limbs])
        numbers = np.array([place.occurrences, place.born])
        arrays = {"part": part, "lows": self.lows, "limbs": limbs, "numbers": numbers, **starts}
        return pack(self.kind, {"fingerprint": self._fingerprint()}, arrays)

    def restore(self, data: bytes) -> None:
        """Continue, in a fresh counter of the same query, where a snapshot was taken."""
        _, arrays = unpack(data, self.kind, self._fingerprint())
        self.lows = arrays["lows"]
        self._plant(arrays["part"], {name: arrays[name] for name in _OF_A_START}, int(arrays["limbs"][0]))
        self.forest.place.occurrences, self.forest.place.born = (int(each) for each in arrays["numbers"])

    def forget(self, lows: Longs) -> None:
        """Forget all that no event can bind any more; `lows` is by partition, for matches that end from now on."""
        raise_lows(self.lows, lows)
        self._expire()
        if self.forest.left.size > max(base.FEWEST_STARTS, 4 * self.forest.place.nodes) or self._limbs > 1:
            self._pack()

    @property
    def _limbs(self) -> int:
        return self.forest.limbs

    # ------------------------------------------------------------ room
    def _make_room(self) -> None:
        super()._make_room()
        states, limbs = self.forest.states, self.forest.limbs
        limit = np.uint64((1 << NARROW_BITS) // self.steps.fan_in)
        low, high = (np.zeros(2 * limbs + 2, np.uint64) for _ in range(2))
        total = grown(self._numbers.total, max(self._numbers.total.size, limbs + 4))
        self._numbers = Numbers(total, limit, low, high, np.zeros(states * states, np.int64))

    def _check(self, starts: int, limbs: int) -> None:
        states = len(self.grouping.states)
        check_counting(states, 8 * starts * (states * (states + 2) * limbs + 6))

    def _expire(self) -> None:
        while expire_all(self.lows, self.forest, self._room, self._numbers, None) != Stop.DONE:
            self._widen()

    def _widen(self) -> None:
        """Give every number more limbs."""
        limbs = self._limbs
        more = 3 if limbs == 1 else limbs + max(1, limbs // 4)
        forest = self.forest
        self._check(forest.left.size, more)
        forest.place.wide = 0
        self.forest = forest._replace(
            own=widened(forest.own, limbs, more), sums=widened(forest.sums, limbs, more),
            pending=widened(forest.pending, limbs, more), limbs=more,
        )  # fmt: skip
        self._make_room()

    def _starts(self) -> tuple[Longs, Arrays]:
        """The partition of every start, and everything that is stored about it."""
        order = np.zeros(self.forest.place.nodes, np.int64)
        while hand_down_all(order, self.forest, self._room, self._numbers) != Stop.DONE:
            self._widen()
        nodes, part = self._alive()
        return part, {name: getattr(self.forest, name)[nodes] for name in _OF_A_START}

    def _plant(self, part: Longs, starts: Arrays, limbs: int) -> None:
        """Plant trees of these starts and no others, with numbers as short as possible."""
        count, old = part.size, self.forest.place
        own, limbs = _shortened(starts["own"], limbs, (1 << NARROW_BITS) // self.steps.fan_in)
        self.forest = self._new_forest(room_for(count), limbs, self.lows.size)
        self._make_room()
        for name in ("value", "null", "born", "key"):
            getattr(self.forest, name)[:count] = starts[name]
        self.forest.own[:count] = own
        plant_all(part, self.forest, self._room, self._numbers)
        self.forest.place.occurrences, self.forest.place.born = old.occurrences, old.born

    def _pack(self) -> None:
        """Make room for the starts that there are and about as many more."""
        self._plant(*self._starts(), self._limbs)


def _shortened(rows: Words, limbs: int, limit: int) -> tuple[Words, int]:
    """Numbers in as few limbs as can hold the sum of all of them, and how many limbs these are."""
    if not rows.size or limbs == 1:
        return rows, limbs
    numbers = rows.reshape(rows.shape[0], -1, limbs)
    used = np.flatnonzero(numbers.any(axis=(0, 1)))
    top = int(used[-1]) if used.size else 0
    bound = (int(numbers[:, :, top].max()) + 1 << 32 * top) * rows.shape[0]
    if bound <= limit:
        return numbers[:, :, 0] | numbers[:, :, 1] << SHIFT, 1
    fewest = max(2, -(-bound.bit_length() // 32))
    if fewest >= limbs:
        return rows, limbs
    return np.ascontiguousarray(numbers[:, :, :fewest]).reshape(rows.shape[0], -1), fewest
