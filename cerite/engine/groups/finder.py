"""Finding matches whose runs are moved in groups: an event costs the window's logarithm, however many runs it moves.

`GroupFinder` owns the trees that `kernel` works on, with sets of partial matches (`runs`) where counting has numbers,
and takes the place of `registers.recogniser.RegisterRecogniser` unless `grouping.moved_one_by_one` names an obstacle.

Nodes that no start refers to any more are reclaimed when there is no room for more: the nodes that starts in the window
refer to were created after the oldest of these began, so memory follows the window.

Invariants: matches of an event are enumerated before the nodes under them can be reclaimed; results do not depend on
where batches are cut or on when nodes were reclaimed.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cerite.core.arrays import Arrays, Longs
from cerite.engine.events.rows import Rows
from cerite.engine.groups import base
from cerite.engine.groups.base import BY_START, Groups, room_for
from cerite.engine.groups.enumerate import matches_of
from cerite.engine.groups.grouping import Grouping
from cerite.engine.groups.kernel import compact_groups, expire_all, read_groups
from cerite.engine.groups.runs import JOIN, NOTHING, Runs
from cerite.engine.groups.tree import NONE
from cerite.engine.registers.layout import Events
from cerite.engine.results.output import MatchChunk
from cerite.engine.state.cursor import Stop, consumption
from cerite.engine.state.slots import raise_lows
from cerite.engine.state.snapshot import pack, unpack
from cerite.engine.tecs.finder import Finder
from cerite.engine.tecs.nodes import KIND, OTHER, UNION, Roots

MOST_ROOTS = 1 << 16  # events whose matches wait to be enumerated; tests let fewer wait
_CHAINS = ("left", "right", "after")
_BY_PARTITION = ("root", "oldest", "newest")


class GroupFinder(Groups, Finder):
    """Finds the matches of one automaton with registers in a stream given in batches."""

    kind = "group finder"  # of its snapshots
    _entries = np.int64

    def __init__(
        self, grouping: Grouping, *, consume: str = "none", limit: int | None = None, shared_clock: bool = False
    ) -> None:
        Finder.__init__(self, "all", limit)
        Groups.__init__(self, grouping, consume=consume, shared_clock=shared_clock, labelled=True)
        self.nodes[0] = NOTHING, NONE, NONE, 0
        self.cursor.nodes = 1
        self.roots = Roots(np.zeros(MOST_ROOTS, np.int64), np.zeros(MOST_ROOTS, np.int64))
        self._carried = np.zeros((3, len(grouping.states)), np.int64)

    @property
    def occurrences(self) -> int:
        """Events so far at which a match ended."""
        return self.forest.place.occurrences

    @property
    def runs(self) -> Runs:
        """The sets of partial matches, as kernels read them."""
        return Runs(self.nodes, self.roots, self._carried, self.cursor)

    def read(self, rows: Rows) -> Iterator[MatchChunk]:
        """Read a batch lazily; yields the matches that end in it, by ascending end."""
        self._begin()
        return self._read(self._events(rows))

    def _read(self, events: Events) -> Iterator[MatchChunk]:
        place, why = self.forest.place, -1
        place.next = 0
        while why != Stop.DONE:
            why = read_groups(
                events, consumption(self.consume), self.steps.tables, self.forest, self._room, self.lows, None,
                self.runs,
            )  # fmt: skip
            if why == Stop.MISS:
                self.steps.meet(place.bits, place.code)
                continue
            yield from self._drain(events.low, events.position)
            if why == Stop.MORE_NODES:
                self.reclaim()
            elif why == Stop.MORE_STARTS:
                self._more_starts(events)
        self._reading = False

    def _enumerated(self, roots: Roots, low: Longs, position: Longs, limit: int | None) -> Iterator[MatchChunk]:
        return matches_of(roots, position, limit, self.nodes, self._pool)

    def still_needed(self) -> Longs:
        """The positions that matches to come may contain, as of the last compaction."""
        nodes = self.nodes[1 : self.cursor.nodes]
        return np.unique(nodes[(nodes[:, KIND] != UNION) & (nodes[:, KIND] != JOIN), OTHER])

    def reclaim(self) -> None:
        """Keep the nodes that starts still refer to; what was noted for enumeration does not survive."""
        starts, _ = self._alive()
        compact_groups(starts, np.empty(self.nodes.shape[0], np.int32), self.forest, self.runs)
        self._fit_nodes()

    def forget(self, lows: Longs) -> None:
        """Forget all that no event can bind any more; `lows` is by partition, for matches that end from now on."""
        raise_lows(self.lows, lows)
        self._expire()
        self.reclaim()
        if self.forest.left.size > max(base.FEWEST_STARTS, 4 * self.forest.place.nodes):
            self._take(self._packed())

    def _expire(self) -> None:
        while expire_all(self.lows, self.forest, self._room, None, self.runs) != Stop.DONE:
            self.reclaim()

    # ------------------------------------------------------------ snapshots
    def snapshot(self) -> bytes:
        """The run state between two batches."""
        self._check_idle()
        self.reclaim()
        nodes = self.nodes[: self.cursor.nodes]
        arrays = {**self._packed(), "lows": self.lows, "nodes": nodes}
        return pack(self.kind, {"fingerprint": self._fingerprint()}, arrays)

    def restore(self, data: bytes) -> None:
        """Continue, in a fresh finder of the same query, where a snapshot was taken."""
        _, arrays = unpack(data, self.kind, self._fingerprint())
        self.lows = arrays["lows"]
        self._take(arrays)
        self._take_nodes(arrays["nodes"])
        self.cursor.nodes = arrays["nodes"].shape[0]

    def _packed(self) -> Arrays:
        """The trees with all starts in the order in which they came, and without room for more."""
        forest, (starts, _) = self.forest, self._alive()
        number = np.full(forest.left.size + 1, NONE, np.int64)  # its last place is that of NONE
        number[starts] = np.arange(starts.size)
        arrays: Arrays = {name: getattr(forest, name)[starts] for name in BY_START}
        arrays["pending"][~arrays["tagged"]] = 0
        arrays |= {name: number[arrays[name]] for name in _CHAINS}
        arrays |= {name: number[getattr(forest, name)] for name in _BY_PARTITION}
        return {**arrays, "numbers": np.array([forest.place.occurrences, forest.place.born])}

    def _take(self, arrays: Arrays) -> None:
        """Take over trees as `_packed` returns them, with room for about as many more starts."""
        count = arrays["value"].size
        forest = self._new_forest(room_for(count), 1, 1)
        for name in BY_START:
            getattr(forest, name)[:count] = arrays[name]
        place = forest.place
        place.free, place.nodes = count, count
        place.occurrences, place.born = (int(each) for each in arrays["numbers"])
        self.forest = forest._replace(root=arrays["root"], oldest=arrays["oldest"], newest=arrays["newest"])
