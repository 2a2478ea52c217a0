"""Recognition over batches: Algorithm 1 updates the tECS, Algorithm 2 enumerates, the window bounds the memory.

`Recogniser` owns the run state: the tECS, T of every partition, the determinised automaton and the event classes.

Invariants: results do not depend on where batches are cut; matches of an event are enumerated before the nodes under
them can be reclaimed. `low` must not decrease inside a partition, nor, with `shared_clock`,
over the whole stream. A batch's chunks are read to the end before the next
batch.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cerite.automaton import Automaton
from cerite.core.arrays import Ints, Longs, bit_rows, long_column, partition_ids, picked
from cerite.core.errors import SnapshotError
from cerite.core.jit import inlined, inner, kernel
from cerite.engine.chains import packed
from cerite.engine.events.rows import Rows
from cerite.engine.output import MatchChunk
from cerite.engine.slots import CONSUME, Slots, grown
from cerite.engine.snapshot import fingerprint, pack, unpack
from cerite.engine.subset.classes import EventClasses, common_state, restore_common
from cerite.engine.subset.determinise import MISSING, Determinised, MaxDeterminised
from cerite.engine.tecs import nodes as tecs
from cerite.engine.tecs.compact import compact
from cerite.engine.tecs.finder import Finder
from cerite.engine.tecs.nodes import (
    CLASS,
    DSTATE,
    EPOCH,
    MAX,
    N_CELLS,
    N_FREE,
    NEED,
    NEXT,
    NODES,
    OCCURRENCES,
    ROOTS,
    drop_list,
    extend,
    insert,
    length,
    merge,
    new_bottom,
    new_cell,
)


@dataclass(frozen=True)
class Batch:
    """The kept events of a batch, as the kernels read them."""

    kept: Longs
    classes: npt.NDArray[np.int32]
    key: Longs
    low: Longs
    position: Longs
    ids: Longs


STRATEGIES = ("all", "next", "last", "max")
_BY_SLOT = {"epochs": 0, "lows": 0, "head": -1}  # what an unused slot holds


class Recogniser(Finder):
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
        super().__init__(strategy, limit)
        self.automaton = automaton.trim()
        self.consume = consume
        self.shared_clock = shared_clock
        self.det = (MaxDeterminised if strategy == "max" else Determinised)(self.automaton)
        self.classes = EventClasses(self.automaton, self.det)
        self.slots = Slots()
        self.regs: Longs = np.zeros(11, np.int64)
        self.regs[tecs.FREE_CELL] = -1
        self.epochs: Longs = np.zeros(1, np.int64)
        self.lows: Longs = np.zeros(1, np.int64)
        self.head = np.full((1, self.det.capacity), -1, np.int32)
        self.cell_node = np.zeros(0, np.int32)
        self.cell_next = np.zeros(0, np.int32)
        self._more_cells()

    @property
    def occurrences(self) -> int:
        """Events so far at which a match ended."""
        return int(self.regs[tecs.OCCURRENCES])

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
        classes, kept = self.classes.batch(rows, ids)
        return self._read(Batch(kept, classes, keys, lows, positions, ids))

    def read(self, rows: Rows) -> Iterator[MatchChunk]:
        """`feed` for a batch of the intake."""
        return self.feed(rows.bits, rows.key, rows.low, rows.position, rows.partition)

    def snapshot(self) -> bytes:
        """The run state between two batches."""
        self._check_idle()
        self.reclaim()
        self._pack()
        meta, arrays = common_state(self.det, self.classes, self.slots)
        meta["fingerprint"] = self._fingerprint()
        used, cells = self.slots.n_slots - self.slots.n_free, int(self.regs[tecs.N_CELLS])
        arrays |= {name: getattr(self, name)[:used] for name in _BY_SLOT}
        arrays |= {"cell_node": self.cell_node[:cells], "cell_next": self.cell_next[:cells], "regs": self.regs}
        arrays["nodes"] = self.nodes[: self.regs[tecs.NODES]]
        return pack("recogniser", meta, arrays)

    def restore(self, data: bytes) -> None:
        """Continue, in a fresh recogniser of the same query, where a snapshot was taken."""
        meta, arrays = unpack(data, "recogniser")
        if meta["fingerprint"] != self._fingerprint():
            raise SnapshotError("the snapshot was taken with another query")
        restore_common(self.det, self.classes, self.slots, meta, arrays)
        for name, fill in _BY_SLOT.items():
            setattr(self, name, grown(arrays[name], self.slots.n_slots, fill))
        self._take_nodes(arrays["nodes"])
        self.regs = arrays["regs"]
        self._take_cells(arrays["cell_node"], arrays["cell_next"])

    def _fingerprint(self) -> str:
        return fingerprint(self.automaton, consume=self.consume, limit=self.limit, strategy=self.strategy)

    def _read(self, batch: Batch) -> Iterator[MatchChunk]:
        self.regs[tecs.NEXT] = 0
        why = MISS
        while why != DONE:
            why = self._update(batch)
            if why == MISS:
                self.det.fill(int(self.regs[tecs.DSTATE]), int(self.regs[tecs.CLASS]))
                self._fit_dstates()
                continue
            yield from self._drain(batch.low, batch.position)
            if why in (MORE_SLOTS, MORE_NODES) and self.shared_clock:
                np.maximum(self.lows, batch.low[batch.kept[self.regs[tecs.NEXT]]], out=self.lows)
            if why == MORE_CELLS:
                self._more_cells()
            elif why == MORE_NODES:
                self.reclaim()
            elif why == MORE_SLOTS:
                if self.shared_clock and not self.slots.too_few:
                    self.reclaim()
                if 4 * self.slots.n_free <= self.slots.n_slots:
                    self._more_slots()
        self._reading = False

    def _update(self, batch: Batch) -> int:
        det, slots = self.det, self.slots
        self.regs[tecs.N_FREE] = slots.n_free
        why = update(
            batch.kept, batch.classes, batch.key, batch.low, batch.position, batch.ids, CONSUME[self.consume],
            det.entry, det.touched, det.n_touched, det.succ, det.accepting,
            slots.slot_of, slots.free, self.epochs, self.lows, self.head,
            self.nodes, self.cell_node, self.cell_next, self._root_event, self._root_node, self._moving, self.regs,
        )  # fmt: skip
        slots.n_free = int(self.regs[tecs.N_FREE])
        return why

    def reclaim(self) -> None:
        """Compact the tECS, and the slots with it."""
        n = self.nodes.shape[0]
        self.regs[tecs.N_FREE] = self.slots.n_free
        compact(
            self.nodes, self.slots.slot_of, self.slots.free, self.epochs, self.lows, self.head,
            self.cell_node, self.cell_next, np.empty(n, np.int64), np.empty(n, np.int32), self.regs,
        )  # fmt: skip
        self.slots.n_free = int(self.regs[tecs.N_FREE])
        self._fit_nodes()

    def forget(self, lows: Longs) -> None:
        """Let go of all that no event can bind any more; `lows` is by partition, for matches that end from now on."""
        slots = self.slots.slot_of[: lows.size]
        owners = np.flatnonzero(slots >= 0)
        self.lows[slots[owners]] = np.maximum(self.lows[slots[owners]], lows[owners])
        drop_columns(self.head, self.det.ended, self.cell_next, self.regs)
        self.reclaim()
        self._pack()

    @property
    def partitions(self) -> Longs:
        """The partitions that hold partial matches, as far as `forget` found out."""
        return np.flatnonzero(self.slots.slot_of >= 0)

    def keep(self, partitions: Longs) -> None:
        """Number these partitions from 0 on; the others hold nothing."""
        self.slots.slot_of = picked(self.slots.slot_of, partitions, -1)
        self.classes.keep(partitions)

    @property
    def size(self) -> int:
        """How much there is to look at when something is forgotten."""
        return int(self.regs[tecs.NODES]) + self.head.size + self.slots.slot_of.size

    def _pack(self) -> None:
        """Keep of slots and cells only those in use, and room for as many more."""
        used = self.slots.pack()
        for name, fill in _BY_SLOT.items():
            setattr(self, name, grown(getattr(self, name)[used], self.slots.n_slots, fill))
        order, links = packed(self.head, self.cell_next)
        self._take_cells(self.cell_node[order], links)

    def _take_cells(self, cell_node: Ints, cell_next: Ints) -> None:
        """Cells that are all in use, and room for more."""
        self.cell_node, self.cell_next = cell_node, cell_next
        self.regs[tecs.FREE_CELL] = -1
        self._more_cells()

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
        self.cell_next = tecs.more_cells(self.cell_next, self.regs)
        self.cell_node = grown(self.cell_node, self.cell_next.size)
        self._fit_scratch()

    def _fit_scratch(self) -> None:
        self._fit_roots()
        self._moving = np.zeros(2 * self.det.capacity, np.int32)


# Algorithm 1 of CORE over event classes: T maps dstates to union-lists, one T per partition.
#
# Only the dstates that move in the event's class are visited. Their lists are taken out and handled latest maximum-
# start first, a fresh bottom node before all. A list goes unchanged to its unmarked successor and, merged and
# extended, to its marked ones. At a target the contribution with the latest maximum-start is the base (its head is
# never a union node) and the other is merged and inserted, whichever of the two was there first; so lists stay as
# short as the paper proves.
#
# Invariant: `head[s, d]` is T[d] of slot s or -1; `head[s, 0]` is always -1. Room for the whole event is checked
# before anything is changed, so that the kernel can return to Python for more and read the event again.


DONE, MISS, MORE_SLOTS, MORE_NODES, MORE_CELLS, ROOTS_FULL = range(6)


@inner
def clear_slot(head: Ints, s: int, cell_next: Ints, regs: Longs) -> None:
    """Forget every partial match of one partition."""
    for d in range(head.shape[1]):
        if head[s, d] >= 0:
            drop_list(cell_next, head[s, d], regs)
            head[s, d] = -1


@kernel
def drop_columns(head: Ints, columns: Ints, cell_next: Ints, regs: Longs) -> None:
    """Forget what some dstates hold, in every slot."""
    for s in range(head.shape[0]):
        for d in columns:
            drop_list(cell_next, head[s, d], regs)
            head[s, d] = -1


@inlined
def gather(
    c: int,
    low: int,
    head: Ints,
    s: int,
    nodes: Longs,
    cell_node: Ints,
    cell_next: Ints,
    entry: Ints,
    touched: Ints,
    n_touched: Ints,
    succ: Ints,
    moving: Ints,
    regs: Longs,
) -> tuple[int, int]:
    """The dstates of T that move, latest maximum-start first, and how many nodes the event may need at most.

    Lists that left the window are dropped on the way. (-1, d) says that d's successors are missing.
    """
    n, need = 0, 0
    for x in range(n_touched[c]):
        d = touched[c, x]
        if head[s, d] < 0:
            continue
        start = nodes[cell_node[head[s, d]], MAX]
        if start < low:
            drop_list(cell_next, head[s, d], regs)
            head[s, d] = -1
            continue
        offset = entry[c, d]
        if offset == MISSING:
            return -1, d
        need += length(cell_next, head[s, d])
        for y in range(offset + 1, offset + 1 + 2 * succ[offset], 2):
            need += 4 + length(cell_next, head[s, succ[y + 1]])
        place = n
        while place > 0 and nodes[cell_node[head[s, moving[place - 1]]], MAX] < start:
            moving[place] = moving[place - 1]
            place -= 1
        moving[place] = d
        n += 1
    offset = entry[c, 0]
    for y in range(offset + 1, offset + 1 + 2 * succ[offset], 2):
        need += 5 + length(cell_next, head[s, succ[y + 1]])
    return n, need + 1


@inlined
def give(
    target: int, given: int, low: int, head: Ints, s: int, nodes: Longs, cell_node: Ints, cell_next: Ints, regs: Longs
) -> None:
    """ADD of Algorithm 1: combine the list `given` with what the target holds, the later maximum-start as the base."""
    held = int(head[s, target])
    if held < 0:
        head[s, target] = given
        return
    base, other = held, given
    if nodes[cell_node[held], MAX] < nodes[cell_node[given], MAX]:
        base, other = given, held
    head[s, target] = base
    if nodes[cell_node[other], MAX] >= low:
        insert(nodes, cell_node, cell_next, base, merge(nodes, cell_node, cell_next, other, low, regs), low, regs)
    drop_list(cell_next, other, regs)


@inlined
def exec_trans(
    offset: int,
    taken: int,
    position: int,
    low: int,
    head: Ints,
    s: int,
    nodes: Longs,
    cell_node: Ints,
    cell_next: Ints,
    succ: Ints,
    regs: Longs,
) -> None:
    """EXECTRANS of Algorithm 1 for a list taken out of T; label 0 comes last and may keep the list itself."""
    merged = -1
    given = int(taken)
    for y in range(offset + 1, offset + 1 + 2 * succ[offset], 2):
        label, target = succ[y], succ[y + 1]
        if label:
            if merged < 0:
                merged = int(merge(nodes, cell_node, cell_next, taken, low, regs))
            marked = extend(nodes, merged, position, label, regs)
            given = int(new_cell(cell_node, cell_next, marked, -1, regs))
        else:
            given = int(taken)
        give(target, given, low, head, s, nodes, cell_node, cell_next, regs)
        if label == 0:
            return
    drop_list(cell_next, taken, regs)


@kernel
def update(
    kept: Longs,
    classes: Ints,
    key: Longs,
    low: Longs,
    position: Longs,
    partition: Longs,
    consume: int,
    entry: Ints,
    touched: Ints,
    n_touched: Ints,
    succ: Ints,
    accepting: Ints,
    slot_of: Ints,
    free_slots: Ints,
    epochs: Longs,
    lows: Longs,
    head: Ints,
    nodes: Longs,
    cell_node: Ints,
    cell_next: Ints,
    root_event: Longs,
    root_node: Longs,
    moving: Ints,
    regs: Longs,
) -> int:
    """Read kept[regs[NEXT]:], noting the roots of every occurrence; returns why it stopped."""
    for x in range(regs[NEXT], kept.size):
        regs[NEXT] = x
        i = kept[x]
        c = classes[i]
        part = partition[i] if partition.size else 0
        s = slot_of[part]
        start = entry[c, 0]
        if start == MISSING:
            regs[DSTATE], regs[CLASS] = 0, c
            return MISS
        if s < 0:
            if succ[start] == 0:
                continue
            if regs[N_FREE] == 0:
                return MORE_SLOTS
            regs[N_FREE] -= 1
            s = free_slots[regs[N_FREE]]
            slot_of[part] = s
            epochs[s] = regs[EPOCH]
        if epochs[s] != regs[EPOCH]:
            clear_slot(head, s, cell_next, regs)
            epochs[s] = regs[EPOCH]
        lows[s] = low[i]
        n, need = gather(c, low[i], head, s, nodes, cell_node, cell_next, entry, touched, n_touched, succ, moving, regs)
        if n < 0:
            regs[DSTATE], regs[CLASS] = need, c
            return MISS
        if regs[NODES] + need > nodes.shape[0]:
            regs[NEED] = need
            return MORE_NODES
        if regs[N_CELLS] + need > cell_node.size:
            return MORE_CELLS
        if regs[ROOTS] + regs[N_CELLS] + need > root_node.size:
            return ROOTS_FULL
        for y in range(n):
            d = moving[y]
            moving[n + y] = head[s, d]
            head[s, d] = -1
        for y in range(-1, n):  # the start first; one call, because it is compiled into every place that it stands in
            if y >= 0:
                offset, taken = int(entry[c, moving[y]]), int(moving[n + y])
            elif succ[start]:
                bottom = new_bottom(nodes, position[i], key[i], regs)
                offset, taken = int(start), int(new_cell(cell_node, cell_next, bottom, -1, regs))
            else:
                continue
            exec_trans(offset, taken, position[i], low[i], head, s, nodes, cell_node, cell_next, succ, regs)
        before = regs[ROOTS]
        for a in accepting:
            cell = head[s, a]
            while cell >= 0 and nodes[cell_node[cell], MAX] >= low[i]:
                root_event[regs[ROOTS]], root_node[regs[ROOTS]] = i, cell_node[cell]
                regs[ROOTS] += 1
                cell = cell_next[cell]
        if regs[ROOTS] > before:
            regs[OCCURRENCES] += 1
            if consume == 1:
                clear_slot(head, s, cell_next, regs)
            elif consume == 2:
                regs[EPOCH] += 1
    regs[NEXT] = kept.size
    return DONE
