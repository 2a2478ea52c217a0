"""Finding matches with registers: the register counterpart of `engine.recogniser`, on the same tECS.

Invariants: as there. Matches of an event are enumerated before the nodes under them can be reclaimed; results do not
depend on where batches are cut; memory follows the window.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cerite.core.arrays import Ints, Longs
from cerite.core.errors import SnapshotError
from cerite.core.jit import inlined, inner, kernel
from cerite.engine.chains import packed
from cerite.engine.events.rows import Rows
from cerite.engine.output import MatchChunk
from cerite.engine.registers import layout as lay
from cerite.engine.registers.base import RegisterEngine
from cerite.engine.registers.index import FIRST, bucket, link, touched
from cerite.engine.registers.layout import (
    DONE,
    MARK,
    MORE_CELLS,
    MORE_NODES,
    N_MOVES,
    N_SETS,
    RESET,
    ROOTS_FULL,
    Events,
    Index,
    Scratch,
    Sets,
    Tables,
)
from cerite.engine.registers.moves import plan
from cerite.engine.registers.sets import NO_SET
from cerite.engine.registers.tables import Machine
from cerite.engine.slots import CONSUME, grown
from cerite.engine.snapshot import fingerprint, pack, unpack
from cerite.engine.subset.recogniser import give
from cerite.engine.tecs import nodes as tecs
from cerite.engine.tecs.compact import compact
from cerite.engine.tecs.finder import Finder
from cerite.engine.tecs.nodes import (
    MAX,
    N_CELLS,
    NEED,
    NEXT,
    NODES,
    OCCURRENCES,
    ROOTS,
    drop_list,
    extend,
    length,
    merge,
    new_bottom,
    new_cell,
)


class RegisterRecogniser(RegisterEngine, Finder):
    """Finds the matches of one automaton with registers in a stream given in batches."""

    def __init__(
        self, machine: Machine, *, consume: str = "none", limit: int | None = None, strategy: str = "all",
        shared_clock: bool = False,
    ) -> None:  # fmt: skip
        RegisterEngine.__init__(self, machine, maximal=strategy == "max", shared_clock=shared_clock)
        Finder.__init__(self, strategy, limit)
        self.consume = consume
        self.cell_node = np.zeros(0, np.int32)
        self._more_cells()

    def read(self, rows: Rows) -> Iterator[MatchChunk]:
        """Read a batch lazily; yields the matches that end in it, by ascending end."""
        self._begin()
        return self._read(self.events(rows))

    def snapshot(self) -> bytes:
        """The run state between two batches."""
        self._check_idle()
        self.reclaim()
        self.rebuild()
        self._pack()
        cells = self.cell_node[: self.regs[tecs.N_CELLS]]
        arrays = {**self.state(), "cell_node": cells, "nodes": self.nodes[: self.regs[tecs.NODES]]}
        return pack("register recogniser", {"fingerprint": self._fingerprint()}, arrays)

    def restore(self, data: bytes) -> None:
        """Continue, in a fresh recogniser of the same query, where a snapshot was taken."""
        meta, arrays = unpack(data, "register recogniser")
        if meta["fingerprint"] != self._fingerprint():
            raise SnapshotError("the snapshot was taken with another query")
        self.restore_state(arrays)
        self._take_nodes(arrays["nodes"])
        self._take_cells(arrays["cell_node"], arrays["cell_next"])

    def _fingerprint(self) -> str:
        options = {"consume": self.consume, "limit": self.limit, "strategy": self.strategy}
        return fingerprint(self.machine.automaton, **options)

    def _read(self, events: lay.Events) -> Iterator[MatchChunk]:
        self.regs[tecs.NEXT] = 0
        why = -1
        while why != lay.DONE:
            why = update(
                events, CONSUME[self.consume], self.tables, self.sets, self.index, self.scratch, self.head, self.nodes,
                self.cell_node, self.cell_next, self._root_event, self._root_node, self.lows, self.regs,
            )  # fmt: skip
            if why == lay.MORE_SCRATCH:
                self.more(why)
                continue
            yield from self._drain(events.low, events.position)
            if why in (lay.MORE_NODES, lay.MORE_SETS, lay.MORE_INDEX, lay.RESET):
                if self.shared_clock and self.regs[tecs.NEXT] < events.kept.size:
                    np.maximum(self.lows, events.low[events.kept[self.regs[tecs.NEXT]]], out=self.lows)
                self.reclaim()
            self.more(why)
        self._reading = False

    def reclaim(self) -> None:
        """Compact the tECS; sets that hold nothing any more are left to `rebuild`."""
        n, sets = self.nodes.shape[0], int(self.regs[lay.N_SETS])
        self.regs[tecs.N_FREE] = 0
        compact(
            self.nodes, np.arange(sets, dtype=np.int32), np.zeros(sets, np.int32), np.zeros(sets, np.int64),
            self.lows[self.sets.part[:sets]], self.head, self.cell_node, self.cell_next, np.empty(n, np.int64),
            np.empty(n, np.int32), self.regs,
        )  # fmt: skip
        self._fit_nodes()

    def forget(self, lows: Longs) -> None:
        """Let go of all that no event can bind any more; `lows` is by partition, for matches that end from now on."""
        self.raise_lows(lows)
        self.reclaim()
        self._pack()

    def _pack(self) -> None:
        """Keep only the cells in use, and room for as many more."""
        order, links = packed(self.head, self.cell_next)
        self._take_cells(self.cell_node[order], links)

    def _take_cells(self, cell_node: Ints, cell_next: Ints) -> None:
        """Cells that are all in use, and room for more."""
        self.cell_node, self.cell_next = cell_node, cell_next
        self.regs[tecs.FREE_CELL] = -1
        self._more_cells()

    def _more_cells(self) -> None:
        super()._more_cells()
        self.cell_node = grown(self.cell_node, self.cell_next.size)
        self._fit_roots()


# Algorithm 1 of CORE over sets of configurations: each holds one union-list, found through the index.
#
# As in `engine.update_kernel`: the lists of the sets that move are taken out and handled latest maximum-start first,
# a fresh bottom node before all. Acceptance belongs to the move, not to the set: what a marked event completes is
# noted as a root at once, and the final state is never stored.
#
# Invariant: `head[d, 0]` is the union-list of set d or -1. Room for the whole event is made sure of before anything
# is changed.

PARTITION, ANY = 1, 2  # CONSUME BY
MANY_SETS = 1 << 12


@inlined
def latest_first(n: int, low: int, head: Ints, nodes: Longs, cell_node: Ints, cell_next: Ints, scratch: Scratch,
                 regs: Longs) -> int:  # fmt: skip
    """Order scratch.moving[:n] by maximum-start; lists that left the window are dropped. How many are left."""
    kept = np.int64(0)  # of one type from the start: a literal would be compiled for apart
    for y in range(n):
        d = scratch.moving[y]
        start = nodes[cell_node[head[d, 0]], MAX]
        if start < low:
            drop_list(cell_next, head[d, 0], regs)
            head[d, 0] = -1
            continue
        at = kept
        while at > 0 and nodes[cell_node[head[scratch.moving[at - 1], 0]], MAX] < start:
            scratch.moving[at] = scratch.moving[at - 1]
            at -= 1
        scratch.moving[at] = d
        kept += 1
    return kept


@inlined
def needed(moving: int, head: Ints, cell_next: Ints, scratch: Scratch, regs: Longs) -> int:
    """How many nodes the event may need at most."""
    need = 1
    for y in range(moving):
        if scratch.span[y, 0] >= 0:
            need += length(cell_next, head[scratch.moving[y], 0])
    for m in range(regs[N_MOVES]):
        target = scratch.move[m, 2]
        need += 5 + (length(cell_next, head[target, 0]) if target >= 0 else 0)
    return need


@inlined
def note_root(i: int, node: int, root_event: Longs, root_node: Longs, regs: Longs) -> None:
    """An open match that event i completes."""
    root_event[regs[ROOTS]], root_node[regs[ROOTS]] = i, node
    regs[ROOTS] += 1


@inlined
def execute(y: int, taken: int, i: int, events: Events, head: Ints, nodes: Longs, cell_node: Ints, cell_next: Ints,
            root_event: Longs, root_node: Longs, index: Index, scratch: Scratch, regs: Longs) -> None:  # fmt: skip
    """EXECTRANS of Algorithm 1 for a list taken out of its set; label 0 comes last and may keep the list itself."""
    low, merged = events.low[i], -1
    for m in range(scratch.span[y, 0], scratch.span[y, 1]):
        label, target, accepts = scratch.move[m, 1], scratch.move[m, 2], scratch.move[m, 3]
        if label == 0:
            cell = taken
            while accepts and cell >= 0 and nodes[cell_node[cell], MAX] >= low:
                note_root(i, cell_node[cell], root_event, root_node, regs)
                cell = cell_next[cell]
            if target >= 0:
                if head[target, 0] < 0:
                    link(target, index.begin, index.key, index.place, index.linked, index.following)
                give(0, taken, low, head, target, nodes, cell_node, cell_next, regs)
                return
            continue
        if merged < 0:
            merged = merge(nodes, cell_node, cell_next, taken, low, regs)
        marked = extend(nodes, merged, events.position[i], label, regs)
        if accepts:
            note_root(i, marked, root_event, root_node, regs)
        if target >= 0:
            if head[target, 0] < 0:
                link(target, index.begin, index.key, index.place, index.linked, index.following)
            given = new_cell(cell_node, cell_next, marked, -1, regs)
            give(0, given, low, head, target, nodes, cell_node, cell_next, regs)
    drop_list(cell_next, taken, regs)


@inlined
def remember(part: int, sets: Sets, scratch: Scratch) -> None:
    """The partition's common sets after the event."""
    if sets.common.size:
        for k in range(scratch.following.size):
            sets.common[part, k] = scratch.following[k]


@inner
def consumed(how: int, part: int, listed: int, head: Ints, cell_next: Ints, sets: Sets, index: Index,
             regs: Longs) -> None:  # fmt: skip
    """Forget the partial matches of a partition, or all."""
    if sets.common.size:
        if how == ANY:
            sets.common[:, :] = NO_SET
        else:
            sets.common[part, :] = NO_SET
    if how == ANY:
        for d in range(regs[N_SETS]):
            drop_list(cell_next, head[d, 0], regs)
            head[d, 0] = -1
        return
    entry = index.key[bucket(part, listed, 0, index.key), FIRST]
    while entry >= 0:
        d = index.entry_set[entry]
        drop_list(cell_next, head[d, 0], regs)
        head[d, 0] = -1
        entry = index.following[entry]


@kernel
def update(events: Events, consume: int, tables: Tables, sets: Sets, index: Index, scratch: Scratch, head: Ints,
           nodes: Longs, cell_node: Ints, cell_next: Ints, root_event: Longs, root_node: Longs, lows: Longs,
           regs: Longs) -> int:  # fmt: skip
    """Read events.kept[regs[NEXT]:], noting the roots of every occurrence; returns why it stopped."""
    for x in range(regs[NEXT], events.kept.size):
        regs[NEXT] = x
        i = events.kept[x]
        part = events.part[i] if events.part.size else 0
        low = events.low[i]
        lows[part] = low
        regs[MARK] += 1
        n = touched(i, part, regs[MARK], head, events, tables, index, scratch)
        n = latest_first(n, low, head, nodes, cell_node, cell_next, scratch, regs)
        why = plan(i, part, n, events, tables, sets, index, scratch, regs)
        if why != DONE:
            return why
        if n == 0 and regs[N_MOVES] == 0:
            remember(part, sets, scratch)
            continue
        need = needed(n, head, cell_next, scratch, regs)
        if regs[NODES] + need > nodes.shape[0]:
            regs[NEED] = need
            return MORE_NODES
        if regs[N_CELLS] + need > cell_node.size:
            return MORE_CELLS
        if regs[ROOTS] + regs[N_CELLS] + need > root_node.size:
            return ROOTS_FULL
        for y in range(n):
            if scratch.span[y, 0] >= 0:
                scratch.taken[y] = head[scratch.moving[y], 0]
                head[scratch.moving[y], 0] = -1
        before = regs[ROOTS]
        remember(part, sets, scratch)
        if scratch.span[n, 0] < scratch.span[n, 1]:
            bottom = new_bottom(nodes, events.position[i], events.key[i], regs)
            scratch.taken[n] = new_cell(cell_node, cell_next, bottom, -1, regs)
        for z in range(n + 1):
            y = n if z == 0 else z - 1  # the start first, then by maximum-start
            if scratch.span[y, 0] >= 0 and (y < n or scratch.span[y, 0] < scratch.span[y, 1]):
                execute(y, scratch.taken[y], i, events, head, nodes, cell_node, cell_next, root_event, root_node,
                        index, scratch, regs)  # fmt: skip
        if regs[ROOTS] > before:
            regs[OCCURRENCES] += 1
            if consume:
                consumed(consume, part, tables.signatures.shape[0] - 1, head, cell_next, sets, index, regs)
                if consume == ANY and regs[N_SETS] > MANY_SETS:
                    regs[NEXT] = x + 1
                    return RESET
    regs[NEXT] = events.kept.size
    return DONE
