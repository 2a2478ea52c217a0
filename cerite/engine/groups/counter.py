"""Counting matches whose runs are moved in groups: exact, and at a cost per event that follows the window's logarithm.

`GroupCounter` owns the trees that `kernel` works on, makes room when it asks, and widens the numbers when one no longer
fits. It takes the place of `registers.counter.RegisterCounter` where `grouping.grouped` says that it can.

Invariant: results do not depend on where batches are cut, on the sizes of arrays, nor on when numbers were
widened.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cerite.core.arrays import Longs, Words, distinct, picked
from cerite.core.budget import check_counting
from cerite.core.errors import SnapshotError
from cerite.engine.counting.counter import Count
from cerite.engine.counting.limbs import MASK, SHIFT
from cerite.engine.cursor import DONE, MISS, MORE_LIMBS, fresh
from cerite.engine.events.rows import Rows
from cerite.engine.groups.grouping import MOST_COMPARISONS, Grouping
from cerite.engine.groups.kernel import count_groups, expire_all, hand_down_all, list_starts, plant_all
from cerite.engine.groups.numbers import NARROW_BITS
from cerite.engine.groups.steps import StepTables
from cerite.engine.groups.tree import DEEPEST, NONE, Forest, Place, Room
from cerite.engine.registers.base import LEAST
from cerite.engine.registers.compile import tables
from cerite.engine.registers.layout import Events
from cerite.engine.registers.moves import laid_out
from cerite.engine.slots import CONSUME, grown
from cerite.engine.snapshot import Arrays, fingerprint, pack, unpack

FEWEST_NODES = 1 << 6  # room to begin with; tests begin with less
_BY_NODE = ("left", "right", "after", "value", "null", "born", "key", "own", "sums", "pending", "tagged")
_OF_A_START = ("value", "null", "born", "key", "own")  # in a snapshot


class GroupCounter:
    """Counts the matches of one automaton with registers in a stream given in batches."""

    def __init__(self, grouping: Grouping, *, consume: str = "none", shared_clock: bool = False) -> None:
        self.grouping, self.machine = grouping, grouping.machine
        self.consume, self.shared_clock = consume, shared_clock
        self.steps = StepTables(grouping)
        _, self._masks = tables(self.machine, maximal=False, listed=False)
        self.lows: Longs = np.full(1, LEAST, np.int64)
        self.relevant: Longs = np.zeros(0, np.int64)  # the events of the last batch that can move or start anything
        self.forest = self._new_forest(FEWEST_NODES, 1, 1)
        self._make_room()

    @property
    def active(self) -> int:
        """Starts that hold partial matches now."""
        return self.forest.place.nodes

    def read(self, rows: Rows) -> Count:
        """Read a batch; how many matches end in it."""
        events = self._events(rows)
        total: Words = np.zeros(self._limbs + 4, np.uint64)
        place = self.forest.place
        before, place.next, why = place.occurrences, 0, -1
        while why != DONE:
            why = count_groups(
                events, CONSUME[self.consume], self.steps.tables, self.forest, self._room, total, self.lows
            )
            if why == MISS:
                self.steps.meet(place.bits, place.code)
            elif why == MORE_LIMBS:
                self._widen()
                total = grown(total, self._limbs + 4)
            elif why != DONE:
                self._more_nodes(events)
        return Count(sum(int(limb) << 32 * k for k, limb in enumerate(total)), place.occurrences - before)

    def snapshot(self) -> bytes:
        """The run state between two batches."""
        part, starts = self._starts()
        place, limbs = self.forest.place, np.array([self._limbs])
        numbers = np.array([place.occurrences, place.born])
        arrays = {"part": part, "lows": self.lows, "limbs": limbs, "numbers": numbers, **starts}
        return pack("group counter", {"fingerprint": self._fingerprint()}, arrays)

    def restore(self, data: bytes) -> None:
        """Continue, in a fresh counter of the same query, where a snapshot was taken."""
        meta, arrays = unpack(data, "group counter")
        if meta["fingerprint"] != self._fingerprint():
            raise SnapshotError("the snapshot was taken with another query")
        self.lows = arrays["lows"]
        self._plant(arrays["part"], {name: arrays[name] for name in _OF_A_START}, int(arrays["limbs"][0]))
        self.forest.place.occurrences, self.forest.place.born = (int(each) for each in arrays["numbers"])

    def forget(self, lows: Longs) -> None:
        """Let go of all that no event can bind any more; `lows` is by partition, for matches that end from now on."""
        known = lows[: self.lows.size]
        self.lows[: known.size] = np.maximum(self.lows[: known.size], known)
        self._expire()
        if self.forest.left.size > max(FEWEST_NODES, 4 * self.forest.place.nodes) or self._limbs > 1:
            self._pack()

    def keep(self, partitions: Longs | None, strings: Longs) -> None:
        """Number these partitions and strings from 0 on; nothing that is left is of the others."""
        forest = self.forest
        if self.grouping.is_text:
            known = self._known()
            forest.value[known] = np.searchsorted(strings, forest.value[known])
        if partitions is not None:
            self.lows = picked(self.lows, partitions, LEAST)
            self.forest = forest._replace(
                root=picked(forest.root, partitions, NONE), oldest=picked(forest.oldest, partitions, NONE),
                newest=picked(forest.newest, partitions, NONE),
            )  # fmt: skip

    @property
    def partitions(self) -> Longs:
        """The partitions that hold partial matches."""
        return np.flatnonzero(self.forest.root >= 0)

    @property
    def strings(self) -> Longs:
        """The numbers of the strings that are stored."""
        return distinct(self.forest.value[self._known()]) if self.grouping.is_text else np.zeros(0, np.int64)

    @property
    def size(self) -> int:
        """How much there is to look at when something is forgotten."""
        return self.forest.place.nodes + self.lows.size

    @property
    def _limbs(self) -> int:
        return int(self.forest.size[1])

    def _fingerprint(self) -> str:
        states = [sorted(state) for state in self.grouping.states]
        return fingerprint(self.machine.automaton, consume=self.consume, states=states)

    def _events(self, rows: Rows) -> Events:
        events = laid_out(rows, self._masks)
        self.relevant = events.selection
        top = int(events.part.max()) + 1 if events.part.size else 1
        if top > self.lows.size:
            self.lows = grown(self.lows, max(top, 2 * self.lows.size), LEAST)
        if self.lows.size > self.forest.root.size:
            self._cover(self.lows.size)
        return events

    def _cover(self, partitions: int) -> None:
        forest = self.forest
        self.forest = forest._replace(
            root=grown(forest.root, partitions, NONE), oldest=grown(forest.oldest, partitions, NONE),
            newest=grown(forest.newest, partitions, NONE),
        )  # fmt: skip

    # ------------------------------------------------------------ room
    def _new_forest(self, nodes: int, limbs: int, partitions: int) -> Forest:
        """Empty trees with room for so many starts, all of it free."""
        states = len(self.grouping.states)
        self._check(nodes, limbs)
        width = states * limbs
        place = fresh(Place)
        place.free = 0
        after = np.arange(1, nodes + 1)
        after[-1] = NONE
        left, right = (np.full(nodes, NONE, np.int64) for _ in range(2))
        value, born, key = (np.zeros(nodes, np.int64) for _ in range(3))
        null, tagged = (np.zeros(nodes, np.bool_) for _ in range(2))
        own, sums = (np.zeros((nodes, width), np.uint64) for _ in range(2))
        root, oldest, newest = (np.full(partitions, NONE, np.int64) for _ in range(3))
        return Forest(
            left, right, after, value, null, born, key, own, sums, np.zeros((nodes, states * width), np.uint64),
            tagged, root, oldest, newest, np.array([states, limbs]), np.zeros(1, np.uint64), place,
        )  # fmt: skip

    def _make_room(self) -> None:
        states, limbs = (int(each) for each in self.forest.size)
        width = states * limbs
        low, high = (np.zeros(2 * limbs + 2, np.uint64) for _ in range(2))
        self._room = Room(
            np.zeros(DEEPEST, np.int64), np.zeros(2 * (states + 2) * width, np.uint64),
            np.zeros(states * width, np.uint64), low, high, np.zeros(states * states, np.int64),
            np.zeros(MOST_COMPARISONS, np.int64), np.zeros((2 * MOST_COMPARISONS + 2, 5), np.int64),
        )  # fmt: skip
        self.forest.limit[0] = (1 << NARROW_BITS) // self.steps.fan_in

    def _check(self, nodes: int, limbs: int) -> None:
        """Refuse what would take too much memory before it is asked for."""
        states = len(self.grouping.states)
        check_counting(states, 8 * nodes * (states * (states + 2) * limbs + 6))

    def _more_nodes(self, events: Events) -> None:
        """Twice as many nodes, unless there are enough starts whose windows are over in silent partitions."""
        if self.shared_clock and events.part.size:
            np.maximum(self.lows, events.low[events.selection[self.forest.place.next]], out=self.lows)
            self._expire()
            if 2 * self.forest.place.nodes < self.forest.left.size:
                return
        forest = self.forest
        old = forest.left.size
        self._check(2 * old, self._limbs)
        more: dict[str, Any] = {name: grown(getattr(forest, name), 2 * old) for name in _BY_NODE}
        self.forest = forest._replace(**more)
        self.forest.after[old:-1] = np.arange(old + 1, 2 * old)
        self.forest.after[-1] = forest.place.free
        forest.place.free = old

    def _expire(self) -> None:
        while expire_all(self.lows, self.forest, self._room) != DONE:
            self._widen()

    def _widen(self) -> None:
        """Give every number more limbs."""
        limbs = self._limbs
        more = 3 if limbs == 1 else limbs + max(1, limbs // 4)
        forest = self.forest
        self._check(forest.left.size, more)
        forest.size[1], forest.place.wide = more, 0
        self.forest = forest._replace(
            own=_widened(forest.own, limbs, more), sums=_widened(forest.sums, limbs, more),
            pending=_widened(forest.pending, limbs, more),
        )  # fmt: skip
        self._make_room()

    # ------------------------------------------------------------ all starts, as a list
    def _alive(self) -> tuple[Longs, Longs]:
        """The nodes in use, by partition and in the order in which they came, and their partitions."""
        nodes, part = (np.zeros(self.forest.place.nodes, np.int64) for _ in range(2))
        list_starts(nodes, part, self.forest)
        return nodes, part

    def _known(self) -> Longs:
        """The nodes in use whose values are not NULL."""
        nodes, _ = self._alive()
        return nodes[~self.forest.null[nodes]]

    def _starts(self) -> tuple[Longs, Arrays]:
        """Of every start its partition and what there is to know of it."""
        order = np.zeros(self.forest.place.nodes, np.int64)
        while hand_down_all(order, self.forest, self._room) != DONE:
            self._widen()
        nodes, part = self._alive()
        return part, {name: getattr(self.forest, name)[nodes] for name in _OF_A_START}

    def _plant(self, part: Longs, starts: Arrays, limbs: int) -> None:
        """Trees of these starts and no others, in numbers as short as they allow."""
        count, old = part.size, self.forest.place
        own, limbs = _shortened(starts["own"], limbs, (1 << NARROW_BITS) // self.steps.fan_in)
        self.forest = self._new_forest(1 << (max(FEWEST_NODES, 2 * count) - 1).bit_length(), limbs, self.lows.size)
        self._make_room()
        for name in ("value", "null", "born", "key"):
            getattr(self.forest, name)[:count] = starts[name]
        self.forest.own[:count] = own
        plant_all(part, self.forest, self._room)
        self.forest.place.occurrences, self.forest.place.born = old.occurrences, old.born

    def _pack(self) -> None:
        """Room for what there is and about as much more."""
        self._plant(*self._starts(), self._limbs)


def _widened(rows: Words, limbs: int, more: int) -> Words:
    """Numbers with more limbs; the last one they have may have run over."""
    old = rows.reshape(rows.shape[0], -1, limbs)
    new = np.zeros((*old.shape[:2], more), np.uint64)
    new[:, :, : limbs - 1] = old[:, :, :-1]
    new[:, :, limbs - 1], new[:, :, limbs] = old[:, :, -1] & MASK, old[:, :, -1] >> SHIFT
    return new.reshape(rows.shape[0], -1)


def _shortened(rows: Words, limbs: int, limit: int) -> tuple[Words, int]:
    """Numbers in as few limbs as hold the sum of all of them, and how many these are."""
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
