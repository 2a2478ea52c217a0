"""Finding matches with registers: the counterpart of `engine.subset.recogniser`, on the same tECS.

Invariants: results do not depend on where batches are cut; matches of an event are enumerated before the nodes under
them can be reclaimed; memory follows the window. `low` must not decrease inside a partition, nor, with `shared_clock`,
over the whole stream. A batch's chunks are read to the end before the next batch.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cerite.core.arrays import Flags, Ints, Longs
from cerite.core.jit import inlined, inner, kernel
from cerite.engine.events.keys import LEAST, MOST
from cerite.engine.events.rows import Rows
from cerite.engine.registers.base import RegisterEngine
from cerite.engine.registers.deadlines import (
    DONE_WITH,
    DUE,
    ROOT,
    STALE,
    Deadlines,
    clock_of,
    gather_due,
    nothing_noted,
    stop_clocks,
    time_at,
    wait_for,
)
from cerite.engine.registers.index import link, touched
from cerite.engine.registers.interpret import FLAGS, KNOWN, STATE, VALUES, Code
from cerite.engine.registers.layout import (
    LIST,
    MOVE_ACCEPTS,
    MOVE_LABEL,
    MOVE_TARGET,
    SPAN_BEGIN,
    SPAN_END,
    Configurations,
    Events,
    Scratch,
    Sets,
    Watching,
)
from cerite.engine.registers.moves import plan, starts
from cerite.engine.registers.sets import NO_SET
from cerite.engine.registers.tables import Machine
from cerite.engine.results.output import MatchChunk
from cerite.engine.state.cursor import Consumption, Stop, consumption
from cerite.engine.state.slots import raise_lows
from cerite.engine.state.snapshot import fingerprint, pack, unpack
from cerite.engine.subset.recogniser import give
from cerite.engine.tecs.compact import compact
from cerite.engine.tecs.enumerate import LAST_MARK
from cerite.engine.tecs.finder import Finder, Limited
from cerite.engine.tecs.nodes import (
    MAX,
    Cells,
    Lists,
    Roots,
    Tecs,
    drop_list,
    extend,
    length,
    merge,
    new_bottom,
    new_cell,
    note_root,
)


class RegisterRecogniser(RegisterEngine, Finder):
    """Finds the matches of one automaton with registers in a stream given in batches."""

    def __init__(
        self, machine: Machine, *, consume: str = "none", limit: int | None = None, strategy: str = "all",
        shared_clock: bool = False,
    ) -> None:  # fmt: skip
        Finder.__init__(self, strategy, limit)
        RegisterEngine.__init__(
            self, machine, maximal=strategy == "max", shared_clock=shared_clock, listed=consume == "partition"
        )
        self.consume = consume
        self._limited = None if limit is None else Limited(limit)
        self._wait()
        self._more_cells()

    def read(self, rows: Rows) -> Iterator[MatchChunk]:
        """Read a batch lazily; yields the matches that end in it, by ascending end."""
        self._begin()
        events = self.events(rows)
        return self._read(events)

    def decide(self, low: int = MOST, *, everywhere: bool = False) -> Iterator[MatchChunk]:
        """The matches whose windows are over if all events to come have this low or a greater one.

        This applies to the one clock that drives all partitions, or, with `everywhere`, to the clocks of all of them.
        """
        self._begin()
        return self._decide(low, everywhere=everywhere)

    def _decide(self, low: int, *, everywhere: bool = False) -> Iterator[MatchChunk]:
        if self.deadlines is not None:
            consume, why = consumption(self.consume), -1
            clock = stop_clocks(consume, self.head, self.sets, self.deadlines) if everywhere else 0
            while why != Stop.DONE:
                why = decide_until(
                    clock, low, consume, self.configurations, self.watching, self.tecs, self.roots, self.deadlines
                )
                yield from self._drain_decided()
        self._reading = False

    def _drain_decided(self) -> Iterator[MatchChunk]:
        """The matches under the roots noted so far, each of which has its own end."""
        assert self.deadlines is not None
        n, noted, limited = self.deadlines.progress[ROOT], self.deadlines.noted, self._limited
        ends = noted.ends[:n] if limited is None else np.arange(n)
        for chunk in self._drain(noted.lows[:n], ends):
            yield chunk if limited is None else limited.of(chunk, noted.ends, 2 * noted.by + (noted.row < 0))
        self.deadlines.progress[ROOT] = 0
        if self.cursor.need > self.roots.node.size:
            self._fewest_roots = self.cursor.need
            self._fit_roots()

    def _chosen(self, roots: Longs) -> Flags:
        """Which roots SUPPRESS reports."""
        assert self.suppressor is not None
        if self.deadlines is None:
            return Finder._chosen(self, roots)
        return self.suppressor.decided(self.deadlines.noted.row[roots], self.deadlines.noted.since[roots])

    def snapshot(self) -> bytes:
        """The run state between two batches."""
        self._check_idle()
        self.reclaim()
        self.rebuild()
        self._pack_cells()
        cells = self.cell_node[: self.cursor.cells]
        arrays = {**self.state(), "cell_node": cells, "nodes": self.nodes[: self.cursor.nodes]}
        return pack("register recogniser", {"fingerprint": self._fingerprint()}, arrays)

    def restore(self, data: bytes) -> None:
        """Continue, in a fresh recogniser of the same query, where a snapshot was taken."""
        _, arrays = unpack(data, "register recogniser", self._fingerprint())
        self.restore_state(arrays)
        self._take_nodes(arrays["nodes"])
        self._take_cells(arrays["cell_node"], arrays["cell_next"])
        self._wait()

    def still_needed(self) -> Longs:
        """The positions that matches to come may contain, and the ends of those that do not show their last event."""
        slot = self.machine.ended
        if slot < 0:
            return Finder.still_needed(self)
        rows = self.sets.rows[: self.cursor.rows]
        known = (rows[:, FLAGS] >> 2 * slot & 3) == KNOWN
        return np.union1d(Finder.still_needed(self), rows[known, VALUES + slot])

    def _start_keys(self, holding: Longs) -> Longs:
        return self.nodes[self.cell_node[self.head[holding, LIST]], MAX]

    def _fingerprint(self) -> str:
        options = {"consume": self.consume, "strategy": self.strategy}
        return fingerprint(self.machine.automaton, **options)

    def _read(self, events: Events) -> Iterator[MatchChunk]:
        self.cursor.next = 0
        why = -1
        while why != Stop.DONE:
            why = update(
                events, consumption(self.consume), self.configurations, self.code, self.watching, self.tecs, self.roots,
                self.deadlines,
            )  # fmt: skip
            self.refuse_beyond()
            if why == Stop.MORE_SCRATCH:
                self.more(why)
                continue
            yield from self._drain(events.low, events.position) if self.deadlines is None else self._drain_decided()
            if why in (Stop.MORE_NODES, Stop.MORE_SETS, Stop.MORE_INDEX, Stop.RESET):
                if self.shared_clock and self.cursor.next < events.selection.size:
                    np.maximum(self.lows, events.low[events.selection[self.cursor.next]], out=self.lows)
                self.reclaim()
            self.more(why)
        if self.deadlines is not None and self.shared_clock and events.low.size:
            yield from self._decide(self.last_time(events))  # by events that were passed over
        self._reading = False

    def reclaim(self) -> None:
        """Compact the tECS; sets that no longer hold anything are left to `rebuild`."""
        n, sets = self.nodes.shape[0], self.cursor.sets
        self.cursor.free_slots = 0
        every, cleared = np.arange(sets, dtype=np.int32), np.zeros(sets, np.int64)
        lists = Lists(every, np.zeros(sets, np.int32), cleared, self.lows[self.sets.part[:sets]], self.head)
        compact(self.tecs, lists, np.empty(n, np.int64), np.empty(n, np.int32))
        self.cursor.free_slots = 0  # there are no slots here: the same state gives the same snapshot
        self._fit_nodes()

    def forget(self, lows: Longs) -> None:
        """Forget all that no event can bind any more; `lows` is by partition, for matches that end from now on."""
        raise_lows(self.lows, lows)
        self.reclaim()
        self._pack_cells()

    def _more_cells(self) -> None:
        Finder._more_cells(self)
        self._fit_roots()

    def _fit_roots(self) -> None:
        Finder._fit_roots(self)
        if self.deadlines is not None:
            self.deadlines = self.deadlines._replace(noted=nothing_noted(self.roots.node.size))


# Algorithm 1 of CORE over sets of configurations: each holds one union-list, found through the index.
#
# As in `subset.recogniser`: the lists of the sets that move are taken out and handled latest maximum-start first,
# a fresh bottom node before all others. Acceptance belongs to the move, not to the set: what a marked event completes
# is noted as a root at once, and the final state is never stored.
#
# Invariant: `head[d, LIST]` is the union-list of set d or -1. Room for the whole event is ensured before anything
# is changed.

MANY_SETS = 1 << 12


@inlined
def latest_first(n: int, low: int, head: Ints, tecs: Tecs, scratch: Scratch) -> int:
    """Order scratch.moving[:n] by maximum-start, and drop lists that have left the window; returns how many remain."""
    nodes, cell_node = tecs.nodes, tecs.cell_node
    n_left = np.int64(0)  # of one type from the start: for a literal, a second version would be compiled
    for y in range(n):
        d = scratch.moving[y]
        start = nodes[cell_node[head[d, LIST]], MAX]
        if start < low:
            drop_list(tecs, head[d, LIST])
            head[d, LIST] = -1
            continue
        at = n_left
        while at > 0 and nodes[cell_node[head[scratch.moving[at - 1], LIST]], MAX] < start:
            scratch.moving[at] = scratch.moving[at - 1]
            at -= 1
        scratch.moving[at] = d
        n_left += 1
    return n_left


@inlined
def needed(moving: int, head: Ints, scratch: Scratch, tecs: Tecs) -> int:
    """How many nodes the event may need at most."""
    need = 1
    for y in range(moving):
        if scratch.span[y, SPAN_BEGIN] >= 0:
            need += length(tecs, head[scratch.moving[y], LIST])
    for m in range(tecs.cursor.moves):
        target = scratch.move[m, MOVE_TARGET]
        need += 5 + (length(tecs, head[target, LIST]) if target >= 0 else 0)
    return need


@inlined
def note_completed(i: int, node: int, events: Events, roots: Roots, tecs: Tecs, deadlines: Deadlines | None) -> None:
    """Note what event i completes; if other matches are decided later, with its low and its end."""
    if deadlines is None:
        note_root(i, node, roots, tecs.cursor)
        return
    root, noted = deadlines.progress[ROOT], deadlines.noted
    noted.ends[root], noted.lows[root] = events.position[i], events.low[i]
    noted.by[root], noted.since[root], noted.row[root] = events.position[i], 0, i
    deadlines.progress[ROOT] += 1
    note_root(root, node, roots, tecs.cursor)


@inlined
def execute(y: int, taken: int, i: int, events: Events, configs: Configurations, tecs: Tecs, roots: Roots,
            deadlines: Deadlines | None) -> None:  # fmt: skip
    """EXECTRANS of Algorithm 1 for a list taken out of its set; the last move, by label 0, may keep the list itself."""
    head, scratch = configs.head, configs.scratch
    low, merged = events.low[i], -1
    for m in range(scratch.span[y, SPAN_BEGIN], scratch.span[y, SPAN_END]):
        move = scratch.move[m]
        label, target, accepts = move[MOVE_LABEL], move[MOVE_TARGET], move[MOVE_ACCEPTS]
        if label == 0 and m == scratch.span[y, SPAN_END] - 1:
            cell = taken
            while accepts and cell >= 0 and tecs.nodes[tecs.cell_node[cell], MAX] >= low:
                note_completed(i, tecs.cell_node[cell], events, roots, tecs, deadlines)
                cell = tecs.cell_next[cell]
            if target >= 0:
                if head[target, LIST] < 0:
                    link(target, configs.entries)
                    if deadlines is not None:
                        wait_for(target, tecs.nodes[tecs.cell_node[taken], MAX], configs.sets, deadlines)
                give(LIST, taken, low, target, head, tecs)
                return
            continue
        if merged < 0:
            merged = merge(tecs, taken, low)
        marked = merged if label == 0 else extend(tecs, merged, events.position[i], label)
        if accepts:
            note_completed(i, marked, events, roots, tecs, deadlines)
        if target >= 0:
            if head[target, LIST] < 0:
                link(target, configs.entries)
                if deadlines is not None:
                    wait_for(target, tecs.nodes[marked, MAX], configs.sets, deadlines)
            give(LIST, new_cell(tecs, marked, -1), low, target, head, tecs)
    drop_list(tecs, taken)


@inlined
def remember(part: int, watching: Watching | None) -> None:
    """Take over the partition's common sets after the event."""
    if watching is not None and watching.common.size:
        for k in range(watching.following.size):
            watching.common[part, k] = watching.following[k]


@inner
def consumed(consume: int, part: int, configs: Configurations, cells: Cells, watching: Watching | None) -> None:
    """Forget the partial matches of a partition, or all."""
    head, index, listed = configs.head, configs.entries, configs.tables.signatures.shape[0] - 1
    if watching is not None:
        if consume == Consumption.ANY:
            watching.common[:, :] = NO_SET
        elif watching.common.size:
            watching.common[part, :] = NO_SET
    if consume == Consumption.ANY:
        for d in range(cells.cursor.sets):
            drop_list(cells, head[d, LIST])
            head[d, LIST] = -1
        return
    entry = index.first[part * (listed + 1) + listed]
    while entry >= 0:
        d = index.entry_set[entry]
        drop_list(cells, head[d, LIST])
        head[d, LIST] = -1
        entry = index.following[entry]


@inner
def note_decided(d: int, head: Ints, sets: Sets, tecs: Tecs, roots: Roots, deadlines: Deadlines) -> bool:
    """Note what a set whose window is over holds, once for each end that its runs in tails have; False without room."""
    begin, end = sets.begin[d], sets.begin[d] + sets.size[d]
    cursor, cells = tecs.cursor, length(tecs, head[d, LIST])
    if cursor.roots + cells * (end - begin) > roots.node.size:
        cursor.need = cells * (end - begin)
        return False
    ended = deadlines.end_slot
    for r in range(begin, end):
        if not deadlines.tails[sets.rows[r, STATE]]:
            continue
        last, seen = LAST_MARK if ended < 0 else sets.rows[r, VALUES + ended], False
        for before in range(begin, r):
            same = ended < 0 or sets.rows[before, VALUES + ended] == last
            seen = seen or (same and deadlines.tails[sets.rows[before, STATE]])
        if seen:
            continue
        root, noted = deadlines.progress[ROOT], deadlines.noted
        noted.ends[root], noted.lows[root] = last, LEAST
        noted.by[root], noted.since[root], noted.row[root] = deadlines.start[d], deadlines.key[d], -1 - sets.part[d]
        deadlines.progress[ROOT] += 1
        cell = head[d, LIST]
        while cell >= 0:
            note_root(root, tecs.cell_node[cell], roots, cursor)
            cell = tecs.cell_next[cell]
    return True


@inner
def decide(clock: int, low: int, consume: int, configs: Configurations, watching: Watching | None, tecs: Tecs,
           roots: Roots, deadlines: Deadlines) -> int:  # fmt: skip
    """Note the matches of a clock whose windows are over, in the order in which they end; `DONE`, or `ROOTS_FULL`."""
    sets, head = configs.sets, configs.head
    progress, due, cursor = deadlines.progress, deadlines.due, tecs.cursor
    while True:
        if progress[DUE] == progress[DONE_WITH]:
            progress[DONE_WITH] = 0
            progress[DUE] = gather_due(clock, low, head, sets, deadlines)
            if progress[DUE] == 0:
                return Stop.DONE
        while progress[DONE_WITH] < progress[DUE]:
            y = progress[DONE_WITH]
            if not note_decided(np.int64(due[y]), head, sets, tecs, roots, deadlines):
                return Stop.ROOTS_FULL
            if y == 0 or deadlines.start[due[y]] != deadlines.start[due[y - 1]]:
                cursor.occurrences += 1
            drop_list(tecs, head[due[y], LIST])
            head[due[y], LIST] = -1
            progress[DONE_WITH] += 1
        for y in range(progress[DUE] if consume else 0):
            if y == 0 or consume == Consumption.PARTITION:
                consumed(consume, sets.part[due[y]], configs, tecs, watching)
        if consume == Consumption.ANY and cursor.sets > MANY_SETS:
            progress[STALE] = 1


@kernel
def decide_until(first: int, low: int, consume: int, configs: Configurations, watching: Watching | None, tecs: Tecs,
                 roots: Roots, deadlines: Deadlines) -> int:  # fmt: skip
    """`decide` between two batches, for all clocks from this one on."""
    for clock in range(first, deadlines.first.size):
        why = decide(clock, low, consume, configs, watching, tecs, roots, deadlines)
        if why != Stop.DONE:
            return why
    return Stop.DONE


@kernel
def update(events: Events, consume: int, configs: Configurations, code: Code | None, watching: Watching | None,
           tecs: Tecs, roots: Roots, deadlines: Deadlines | None) -> int:  # fmt: skip
    """Read events.selection[cursor.next:], noting the roots of every occurrence; returns why it stopped."""
    tables, scratch, head = configs.tables, configs.scratch, configs.head
    cursor = tecs.cursor
    for x in range(cursor.next, events.selection.size):
        cursor.next = x
        i = events.selection[x]
        part = events.part[i] if events.part.size else 0
        low = events.low[i]
        if deadlines is not None:
            clock, now = clock_of(part, deadlines), time_at(i, events, deadlines)
            why = decide(clock, now, consume, configs, watching, tecs, roots, deadlines)
            if why != Stop.DONE:
                return why
            if deadlines.progress[STALE]:
                deadlines.progress[STALE] = 0
                return Stop.RESET
        configs.lows[part] = low
        cursor.mark += 1
        n = touched(i, part, cursor.mark, head, events, tables, configs.entries, scratch)
        n = latest_first(n, low, head, tecs, scratch)
        if watching is None and n == 0 and not starts(i, events, tables):
            continue
        why = plan(i, part, n, events, configs, code, watching)
        if why != Stop.DONE:
            return why
        if n == 0 and cursor.moves == 0:
            remember(part, watching)
            continue
        need = needed(n, head, scratch, tecs)
        if cursor.nodes + need > tecs.nodes.shape[0]:
            cursor.need = need
            return Stop.MORE_NODES
        if cursor.cells + need > tecs.cell_node.size:
            return Stop.MORE_CELLS
        if cursor.roots + cursor.cells + need > roots.node.size:
            return Stop.ROOTS_FULL
        for y in range(n):
            if scratch.span[y, SPAN_BEGIN] >= 0:
                scratch.taken[y] = head[scratch.moving[y], LIST]
                head[scratch.moving[y], LIST] = -1
        before = cursor.roots
        remember(part, watching)
        if scratch.span[n, SPAN_BEGIN] < scratch.span[n, SPAN_END]:
            scratch.taken[n] = new_cell(tecs, new_bottom(tecs, events.position[i], events.key[i]), -1)
        for z in range(n + 1):
            y = n if z == 0 else z - 1  # the start first, then by maximum-start
            if scratch.span[y, SPAN_BEGIN] >= 0 and (y < n or scratch.span[y, SPAN_BEGIN] < scratch.span[y, SPAN_END]):
                execute(y, np.int64(scratch.taken[y]), i, events, configs, tecs, roots, deadlines)
        if cursor.roots > before:
            cursor.occurrences += 1
            if consume:
                consumed(consume, part, configs, tecs, watching)
                if consume == Consumption.ANY and cursor.sets > MANY_SETS:
                    cursor.next = x + 1
                    return Stop.RESET
    cursor.next = events.selection.size
    return Stop.DONE
