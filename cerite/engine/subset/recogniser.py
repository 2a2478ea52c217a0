"""Recognition over batches: Algorithm 1 updates the tECS, Algorithm 2 enumerates, the window bounds the memory.

`Recogniser` owns the run state: the tECS, T of every partition, the determinised automaton and the event classes.

Invariants: results do not depend on where batches are cut; matches of an event are enumerated before the nodes under
them can be reclaimed. `low` must not decrease inside a partition, nor, with `shared_clock`, over the whole stream. A
batch's chunks are read to the end before the next batch.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from cerite.automaton import Automaton
from cerite.core.arrays import Ints, Longs, bit_rows, long_column, partition_ids
from cerite.core.jit import inlined, inner, kernel
from cerite.engine.events.rows import Deferred, Rows
from cerite.engine.results.output import MatchChunk
from cerite.engine.state.cursor import Consumption, Cursor, Stop, consumption, of_longs, to_longs
from cerite.engine.state.slots import grown
from cerite.engine.state.snapshot import fingerprint, pack, unpack
from cerite.engine.subset.base import Batch, SubsetEngine
from cerite.engine.subset.classes import EventClasses
from cerite.engine.subset.determinise import INITIAL, MISSING, Determinised, MaxDeterminised, Steps
from cerite.engine.tecs.compact import compact
from cerite.engine.tecs.finder import Finder
from cerite.engine.tecs.nodes import (
    MAX,
    Lists,
    Roots,
    Tecs,
    drop_list,
    extend,
    insert,
    length,
    merge,
    new_bottom,
    new_cell,
    note_root,
)

STRATEGIES = ("all", "next", "last", "max")
_BY_SLOT = {"epochs": 0, "lows": 0, "head": -1}  # what an unused slot holds


class Recogniser(SubsetEngine[Determinised], Finder):
    """Finds the matches of one automaton in a stream given in batches."""

    def __init__(
        self,
        automaton: Automaton,
        *,
        consume: str = "none",
        limit: int | None = None,
        strategy: str = "all",
        shared_clock: bool = False,
    ) -> None:
        if strategy not in STRATEGIES:
            raise ValueError(f"strategy must be one of {', '.join(STRATEGIES)}, not {strategy!r}")
        trimmed = automaton.trim()
        determinised = MaxDeterminised(trimmed) if strategy == "max" else Determinised(trimmed)
        SubsetEngine.__init__(self, trimmed, determinised, EventClasses(trimmed, determinised))
        Finder.__init__(self, strategy, limit)
        self.consume = consume
        self.shared_clock = shared_clock
        self.epochs: Longs = np.zeros(1, np.int64)
        self.lows: Longs = np.zeros(1, np.int64)
        self.head = np.full((1, self.det.capacity), -1, np.int32)
        self._more_cells()

    @property
    def active(self) -> int:
        """Deterministic states, over all partitions, that hold partial matches now."""
        return int((self.head >= 0).sum())

    def feed(
        self,
        bits: npt.ArrayLike,
        key: npt.ArrayLike,
        low: npt.ArrayLike,
        position: npt.ArrayLike,
        partition: npt.ArrayLike | None = None,
    ) -> Iterator[MatchChunk]:
        """Read a batch lazily; yields the matches that end in it, by ascending end."""
        self._begin()
        rows = bit_rows(bits)
        n = rows.shape[0]
        ids = partition_ids(partition, n)
        keys, lows = long_column(key, n, "key"), long_column(low, n, "low")
        positions = long_column(position, n, "position")
        self.slots.cover(ids)
        classes, self.relevant = self.classes.batch(rows, ids)
        return self._read(Batch(self.relevant, classes, keys, lows, ids), positions)

    def read(self, rows: Rows) -> Iterator[MatchChunk]:
        """`feed` for a batch of the intake."""
        coded = self.classes.coded(rows.given.lookup) if isinstance(rows.given, Deferred) else None
        if coded is None:
            return self.feed(rows.bits, rows.key, rows.low, rows.position, rows.partition)
        self._begin()
        classes, self.relevant = coded
        return self._read(Batch(self.relevant, classes, rows.key, rows.low, rows.key[:0]), rows.position)

    def snapshot(self) -> bytes:
        """The run state between two batches."""
        self._check_idle()
        self.reclaim()
        self._pack()
        meta, arrays = self.common_state()
        meta["fingerprint"] = self._fingerprint()
        used, cells = self.slots.n_slots - self.slots.n_free, self.cursor.cells
        arrays |= {name: getattr(self, name)[:used] for name in _BY_SLOT}
        arrays |= {"cell_node": self.cell_node[:cells], "cell_next": self.cell_next[:cells]}
        arrays |= {"cursor": to_longs(self.cursor), "nodes": self.nodes[: self.cursor.nodes]}
        return pack("recogniser", meta, arrays)

    def restore(self, data: bytes) -> None:
        """Continue, in a fresh recogniser of the same query, where a snapshot was taken."""
        meta, arrays = unpack(data, "recogniser", self._fingerprint())
        self.restore_common(meta, arrays)
        for name, fill in _BY_SLOT.items():
            setattr(self, name, grown(arrays[name], self.slots.n_slots, fill))
        self._take_nodes(arrays["nodes"])
        self.cursor = of_longs(Cursor, arrays["cursor"])
        self._take_cells(arrays["cell_node"], arrays["cell_next"])

    def _fingerprint(self) -> str:
        return fingerprint(self.automaton, consume=self.consume, strategy=self.strategy)

    def _read(self, batch: Batch, position: Longs) -> Iterator[MatchChunk]:
        self.cursor.next = 0
        why: int = Stop.MISS
        while why != Stop.DONE:
            why = self._update(batch, position)
            if why == Stop.MISS:
                self.det.fill(self.cursor.dstate, self.cursor.event_class)
                self._fit_dstates()
                continue
            yield from self._drain(batch.low, position)
            if why in (Stop.MORE_SLOTS, Stop.MORE_NODES) and self.shared_clock:
                np.maximum(self.lows, batch.low[batch.selection[self.cursor.next]], out=self.lows)
            if why == Stop.MORE_CELLS:
                self._more_cells()
            elif why == Stop.MORE_NODES:
                self.reclaim()
            elif why == Stop.MORE_SLOTS:
                if self.shared_clock and not self.slots.too_few:
                    self.reclaim()
                if 4 * self.slots.n_free <= self.slots.n_slots:
                    self._more_slots()
        self._reading = False

    def _update(self, batch: Batch, position: Longs) -> int:
        self.cursor.free_slots = self.slots.n_free
        why = update(
            batch, position, consumption(self.consume), self.det.steps, self.lists, self.tecs, self.roots, self._moving
        )
        self.slots.n_free = self.cursor.free_slots
        return why

    @property
    def lists(self) -> Lists:
        """T of every partition."""
        return Lists(self.slots.slot_of, self.slots.free, self.epochs, self.lows, self.head)

    def reclaim(self) -> None:
        """Compact the tECS, and the slots with it."""
        n = self.nodes.shape[0]
        self.cursor.free_slots = self.slots.n_free
        compact(self.tecs, self.lists, np.empty(n, np.int64), np.empty(n, np.int32))
        self.slots.n_free = self.cursor.free_slots
        self._fit_nodes()

    def forget(self, lows: Longs) -> None:
        """Forget all that no event can bind any more; `lows` is by partition, for matches that end from now on."""
        slots = self.slots.slot_of[: lows.size]
        owners = np.flatnonzero(slots >= 0)
        self.lows[slots[owners]] = np.maximum(self.lows[slots[owners]], lows[owners])
        drop_columns(self.head, self.det.ended, self.tecs)
        self.reclaim()
        self._pack()

    @property
    def size(self) -> int:
        """How much there is to look through when something is to be forgotten."""
        return self.cursor.nodes + self.head.size + self.slots.slot_of.size

    def _pack(self) -> None:
        """Keep only the slots and cells in use, and room for as many more."""
        used = self.slots.pack()
        self.cursor.free_slots = self.slots.n_free
        for name, fill in _BY_SLOT.items():
            setattr(self, name, grown(getattr(self, name)[used], self.slots.n_slots, fill))
        self._pack_cells()

    def _fit_dstates(self) -> None:
        more = self.det.capacity - self.head.shape[1]
        if more > 0:
            self.head = np.pad(self.head, ((0, 0), (0, more)), constant_values=-1)
            self._moving = np.zeros(2 * self.det.capacity, np.int32)

    def _more_slots(self) -> None:
        n = self.slots.double()
        self.epochs, self.lows = grown(self.epochs, n), grown(self.lows, n)
        self.head = grown(self.head, n, -1)

    def _more_cells(self) -> None:
        super()._more_cells()
        self._fit_scratch()

    def _fit_scratch(self) -> None:
        self._fit_roots()
        self._moving = np.zeros(2 * self.det.capacity, np.int32)


# Algorithm 1 of CORE over event classes: T maps dstates to union-lists, one T per partition.
#
# Only the dstates that move in the event's class are visited. Their lists are taken out and handled latest maximum-
# start first, a fresh bottom node before all others. A list goes unchanged to its unmarked successor and, merged and
# extended, to its marked ones. At a target the contribution with the latest maximum-start is the base (its head is
# never a union node) and the other is merged and inserted, whichever of the two was there first; so lists stay as
# short as the paper proves.
#
# Invariant: `head[s, d]` is T[d] of slot s or -1; `head[s, 0]` is always -1. Room for the whole event is checked
# before anything is changed, so that the kernel can return to Python for more and read the event again.


@inner
def clear_slot(s: int, head: Ints, tecs: Tecs) -> None:
    """Forget every partial match of one partition."""
    for d in range(head.shape[1]):
        if head[s, d] >= 0:
            drop_list(tecs, head[s, d])
            head[s, d] = -1


@kernel
def drop_columns(head: Ints, columns: Ints, tecs: Tecs) -> None:
    """Forget what some dstates hold, in every slot."""
    for s in range(head.shape[0]):
        for d in columns:
            drop_list(tecs, head[s, d])
            head[s, d] = -1


@inlined
def gather(c: int, low: int, s: int, head: Ints, steps: Steps, tecs: Tecs, moving: Ints) -> tuple[int, int]:
    """The dstates of T that move, latest maximum-start first, and how many nodes the event may need at most.

    Lists that left the window are dropped on the way. (-1, d) says that d's successors are missing.
    """
    nodes, cell_node, entry, succ = tecs.nodes, tecs.cell_node, steps.entry, steps.succ
    n, need = 0, 0
    for x in range(steps.n_touched[c]):
        d = steps.touched[c, x]
        if head[s, d] < 0:
            continue
        start = nodes[cell_node[head[s, d]], MAX]
        if start < low:
            drop_list(tecs, head[s, d])
            head[s, d] = -1
            continue
        offset = entry[c, d]
        if offset == MISSING:
            return -1, d
        need += length(tecs, head[s, d])
        for y in range(offset + 1, offset + 1 + 2 * succ[offset], 2):
            need += 4 + length(tecs, head[s, succ[y + 1]])
        place = n
        while place > 0 and nodes[cell_node[head[s, moving[place - 1]]], MAX] < start:
            moving[place] = moving[place - 1]
            place -= 1
        moving[place] = d
        n += 1
    offset = entry[c, INITIAL]
    for y in range(offset + 1, offset + 1 + 2 * succ[offset], 2):
        need += 5 + length(tecs, head[s, succ[y + 1]])
    return n, need + 1


@inlined
def give(target: int, given: int, low: int, s: int, head: Ints, tecs: Tecs) -> None:
    """ADD of Algorithm 1: combine the list `given` with what the target holds, the later maximum-start as the base."""
    nodes, cell_node = tecs.nodes, tecs.cell_node
    present = int(head[s, target])
    if present < 0:
        head[s, target] = given
        return
    base, other = present, given
    if nodes[cell_node[present], MAX] < nodes[cell_node[given], MAX]:
        base, other = given, present
    head[s, target] = base
    if nodes[cell_node[other], MAX] >= low:
        insert(tecs, base, merge(tecs, other, low), low)
    drop_list(tecs, other)


@inlined
def exec_trans(offset: int, taken: int, position: int, low: int, s: int, head: Ints, steps: Steps, tecs: Tecs) -> None:
    """EXECTRANS of Algorithm 1 for a list taken out of T; label 0 comes last and may keep the list itself."""
    succ = steps.succ
    merged = -1
    given = int(taken)
    for y in range(offset + 1, offset + 1 + 2 * succ[offset], 2):
        label, target = succ[y], succ[y + 1]
        if label:
            if merged < 0:
                merged = int(merge(tecs, taken, low))
            given = int(new_cell(tecs, extend(tecs, merged, position, label), -1))
        else:
            given = int(taken)
        give(target, given, low, s, head, tecs)
        if label == 0:
            return
    drop_list(tecs, taken)


@kernel
def update(batch: Batch, positions: Longs, consume: int, steps: Steps, lists: Lists, tecs: Tecs, roots: Roots,
           moving: Ints) -> int:  # fmt: skip
    """Read batch.selection[cursor.next:], noting the roots of every occurrence; returns why it stopped."""
    head, cursor, entry, succ = lists.head, tecs.cursor, steps.entry, steps.succ
    for x in range(cursor.next, batch.selection.size):
        cursor.next = x
        i = batch.selection[x]
        c, key, low, position = batch.classes[i], batch.key[i], batch.low[i], positions[i]
        part = batch.partition[i] if batch.partition.size else 0
        s = lists.slot_of[part]
        start = entry[c, INITIAL]
        if start == MISSING:
            cursor.dstate, cursor.event_class = INITIAL, c
            return Stop.MISS
        if s < 0:
            if succ[start] == 0:
                continue
            if cursor.free_slots == 0:
                return Stop.MORE_SLOTS
            cursor.free_slots -= 1
            s = lists.free[cursor.free_slots]
            lists.slot_of[part] = s
            lists.epochs[s] = cursor.epoch
        if lists.epochs[s] != cursor.epoch:
            clear_slot(s, head, tecs)
            lists.epochs[s] = cursor.epoch
        lists.lows[s] = low
        n, need = gather(c, low, s, head, steps, tecs, moving)
        if n < 0:
            cursor.dstate, cursor.event_class = need, c
            return Stop.MISS
        if cursor.nodes + need > tecs.nodes.shape[0]:
            cursor.need = need
            return Stop.MORE_NODES
        if cursor.cells + need > tecs.cell_node.size:
            return Stop.MORE_CELLS
        if cursor.roots + cursor.cells + need > roots.node.size:
            return Stop.ROOTS_FULL
        for y in range(n):
            d = moving[y]
            moving[n + y] = head[s, d]
            head[s, d] = -1
        for y in range(-1, n):  # the start first; only one call, because it is compiled into every place of a call
            if y >= 0:
                offset, taken = int(entry[c, moving[y]]), int(moving[n + y])
            elif succ[start]:
                offset, taken = int(start), int(new_cell(tecs, new_bottom(tecs, position, key), -1))
            else:
                continue
            exec_trans(offset, taken, position, low, s, head, steps, tecs)
        before = cursor.roots
        for a in steps.accepting:
            cell = head[s, a]
            while cell >= 0 and tecs.nodes[tecs.cell_node[cell], MAX] >= low:
                note_root(i, tecs.cell_node[cell], roots, cursor)
                cell = tecs.cell_next[cell]
        if cursor.roots > before:
            cursor.occurrences += 1
            if consume == Consumption.PARTITION:
                clear_slot(s, head, tecs)
            elif consume == Consumption.ANY:
                cursor.epoch += 1
    cursor.next = batch.selection.size
    return Stop.DONE
