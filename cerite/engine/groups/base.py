"""What counting and finding by groups share: the trees of a run, one for each partition, and room for them.

Invariant: results do not depend on where batches are cut or on the sizes of arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cerite.core.arrays import Buffers, Longs, distinct, picked
from cerite.engine.events.keys import LEAST
from cerite.engine.events.rows import Rows
from cerite.engine.groups.grouping import MOST_COMPARISONS, Grouping
from cerite.engine.groups.kernel import list_starts
from cerite.engine.groups.steps import StepTables
from cerite.engine.groups.tree import DEEPEST, NONE, STEP, Forest, Place, Room
from cerite.engine.registers.compile import tables
from cerite.engine.registers.layout import Events
from cerite.engine.registers.moves import laid_out
from cerite.engine.state.cursor import fresh
from cerite.engine.state.slots import grown
from cerite.engine.state.snapshot import fingerprint

FEWEST_STARTS = 1 << 6  # room to begin with; tests begin with less
BY_START = ("left", "right", "after", "value", "null", "born", "key", "own", "sums", "pending", "tagged")


class Groups:
    """The starts of a run with one stored value each."""

    _entries: type[np.uint64] | type[np.int64] = np.uint64  # what trees hold for a state: numbers, or sets of runs

    def __init__(self, grouping: Grouping, *, consume: str, shared_clock: bool, labelled: bool) -> None:
        self.grouping, self.machine = grouping, grouping.machine
        self.consume, self.shared_clock = consume, shared_clock
        self.steps = StepTables(grouping, labelled=labelled)
        _, self._masks = tables(self.machine, maximal=False, listed=False)
        self.lows: Longs = np.full(1, LEAST, np.int64)
        self._buffers = Buffers()
        self.relevant: Longs = np.zeros(0, np.int64)  # the events of the last batch that can move or start anything
        self.forest = self._new_forest(FEWEST_STARTS, 1, 1)
        self._make_room()

    @property
    def active(self) -> int:
        """Starts that hold partial matches now."""
        return self.forest.place.nodes

    def keep(self, partitions: Longs | None, strings: Longs) -> None:
        """Number these partitions and strings from 0 on; nothing that is kept belongs to the others."""
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
        """How much there is to look through when something is to be forgotten."""
        return self.forest.place.nodes + self.lows.size

    def _fingerprint(self) -> str:
        states = [sorted(state) for state in self.grouping.states]
        return fingerprint(self.machine.automaton, consume=self.consume, states=states)

    # ------------------------------------------------------------ a batch
    def _events(self, rows: Rows) -> Events:
        events = laid_out(rows, self._masks, self._buffers)
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
    def _new_forest(self, starts: int, limbs: int, partitions: int) -> Forest:
        """Empty trees with room for `starts` starts, all of it free."""
        states = len(self.grouping.states)
        self._check(starts, limbs)
        width = states * limbs
        place = fresh(Place)
        place.free = 0
        after = np.arange(1, starts + 1)
        after[-1] = NONE
        left, right = (np.full(starts, NONE, np.int64) for _ in range(2))
        value, born, key = (np.zeros(starts, np.int64) for _ in range(3))
        null, tagged = (np.zeros(starts, np.bool_) for _ in range(2))
        own, sums = (np.zeros((starts, width), self._entries) for _ in range(2))
        root, oldest, newest = (np.full(partitions, NONE, np.int64) for _ in range(3))
        return Forest(
            left, right, after, value, null, born, key, own, sums, np.zeros((starts, states * width), self._entries),
            tagged, root, oldest, newest, states, limbs, place,
        )  # fmt: skip

    def _make_room(self) -> None:
        states, width = self.forest.states, self.forest.states * self.forest.limbs
        self._room = Room(
            np.zeros(DEEPEST, np.int64), np.zeros(2 * (states + 2) * width, self._entries),
            np.zeros(states * width, self._entries), np.zeros(MOST_COMPARISONS, np.int64),
            np.zeros((2 * MOST_COMPARISONS + 2, STEP + 1), np.int64),
        )  # fmt: skip

    def _check(self, starts: int, limbs: int) -> None:
        """Refuse what would take too much memory before it is allocated."""

    def _expire(self) -> None:
        """Take out all starts that have left their windows."""
        raise NotImplementedError

    def _more_starts(self, events: Events) -> None:
        """Make room for twice as many starts, unless enough of them, in silent partitions, have left their windows."""
        if self.shared_clock and events.part.size:
            np.maximum(self.lows, events.low[events.selection[self.forest.place.next]], out=self.lows)
            self._expire()
            if 2 * self.forest.place.nodes < self.forest.left.size:
                return
        forest = self.forest
        old = forest.left.size
        self._check(2 * old, forest.limbs)
        more: dict[str, Any] = {name: grown(getattr(forest, name), 2 * old) for name in BY_START}
        self.forest = forest._replace(**more)
        self.forest.after[old:-1] = np.arange(old + 1, 2 * old)
        self.forest.after[-1] = forest.place.free
        forest.place.free = old

    # ------------------------------------------------------------ all starts, as a list
    def _alive(self) -> tuple[Longs, Longs]:
        """The starts, by partition and in the order in which they came, and their partitions."""
        starts, part = (np.zeros(self.forest.place.nodes, np.int64) for _ in range(2))
        list_starts(starts, part, self.forest)
        return starts, part

    def _known(self) -> Longs:
        """The starts whose values are not NULL."""
        starts, _ = self._alive()
        return starts[~self.forest.null[starts]]


def room_for(starts: int) -> int:
    """How many starts to have room for if there are this many."""
    return 1 << (max(FEWEST_STARTS, 2 * starts) - 1).bit_length()
