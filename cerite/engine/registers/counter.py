"""Counting matches with registers, exactly and without enumerating them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cerite.core.arrays import Ints, Longs, Words
from cerite.core.jit import embedded, inlined, inner, kernel
from cerite.engine.counting.counter import Count
from cerite.engine.counting.limbs import MASK, SHIFT, whole, widened
from cerite.engine.events.keys import MOST
from cerite.engine.events.rows import Rows
from cerite.engine.registers.base import RegisterEngine
from cerite.engine.registers.deadlines import (
    STALE,
    Deadlines,
    clock_of,
    ends_of,
    gather_due,
    stop_clocks,
    time_at,
    wait_for,
)
from cerite.engine.registers.index import link, touched
from cerite.engine.registers.interpret import Code
from cerite.engine.registers.layout import (
    LIST,
    MOVE_ACCEPTS,
    MOVE_TARGET,
    SPAN_BEGIN,
    SPAN_END,
    Configurations,
    Events,
    Scratch,
    Watching,
)
from cerite.engine.registers.moves import plan, starts
from cerite.engine.registers.recogniser import MANY_SETS, consumed, remember
from cerite.engine.registers.tables import Machine
from cerite.engine.state.chains import packed
from cerite.engine.state.cursor import Consumption, Cursor, Stop, consumption, new_cursor
from cerite.engine.state.slots import grown, raise_lows
from cerite.engine.state.snapshot import fingerprint, pack, unpack
from cerite.engine.tecs.nodes import drop_list, length, more_cells


class Counts(NamedTuple):
    """What the sets hold: lists of cells by descending start key, each with its number in limbs; and the `total`."""

    cell_key: Longs
    cell_next: Ints
    numbers: Words
    total: Words
    cursor: Cursor


class RegisterCounter(RegisterEngine):
    """Counts the matches of one automaton with registers in a stream given in batches."""

    def __init__(self, machine: Machine, *, windowed: bool, consume: str = "none", shared_clock: bool = False) -> None:
        self.cursor = new_cursor()
        self.cell_key: Longs = np.zeros(0, np.int64)
        self.cell_next: Ints = np.zeros(0, np.int32)
        self.numbers: Words = np.zeros((0, 2), np.uint64)
        self._total: Words = np.zeros(0, np.uint64)
        super().__init__(machine, shared_clock=shared_clock, listed=consume == "partition")
        self.windowed, self.consume = windowed, consume
        self._more_cells()
        self._wait()

    def read(self, rows: Rows) -> Count:
        """Read a batch; returns how many matches end in it."""
        events = self.events(rows)
        self._total = np.zeros(self.numbers.shape[1] + 2, np.uint64)
        before = self.cursor.occurrences
        self.cursor.next = 0
        why = -1
        while why != Stop.DONE:
            why = count(
                events, consumption(self.consume), self.windowed, self.configurations, self.code, self.watching,
                self.counts, self.deadlines,
            )  # fmt: skip
            self.refuse_beyond()
            if why == Stop.MORE_LIMBS:
                self._widen()
                self._total = np.append(self._total, np.uint64(0))
            elif why in (Stop.MORE_SETS, Stop.MORE_INDEX, Stop.MORE_CELLS, Stop.RESET):
                used = self.cursor.cells
                if self.shared_clock and self.cursor.next < events.selection.size:
                    np.maximum(self.lows, events.low[events.selection[self.cursor.next]], out=self.lows)
                self._trim()
                if why != Stop.MORE_CELLS or 2 * (used - self.cursor.cells) < self.cell_key.size:
                    self.more(why)
            else:
                self.more(why)
        number = Count(whole(self._total), self.cursor.occurrences - before)
        if self.deadlines is not None and self.shared_clock and events.low.size:
            number += self.decide(self.last_time(events))  # by events that were passed over
        return number

    def decide(self, low: int = MOST, *, everywhere: bool = False) -> Count:
        """How many matches have windows that are over; arguments as for `RegisterRecogniser.decide`."""
        if self.deadlines is None:
            return Count(0, 0)
        consume = consumption(self.consume)
        clock = stop_clocks(consume, self.head, self.sets, self.deadlines) if everywhere else 0
        self._total = np.zeros(self.numbers.shape[1] + 2, np.uint64)
        before = self.cursor.occurrences
        decide_until(clock, low, consume, self.configurations, self.watching, self.counts, self.deadlines)
        return Count(whole(self._total), self.cursor.occurrences - before)

    def _start_keys(self, holding: Longs) -> Longs:
        return self.cell_key[self.head[holding, LIST]]

    @property
    def counts(self) -> Counts:
        """What the sets hold, as kernels read it."""
        return Counts(self.cell_key, self.cell_next, self.numbers, self._total, self.cursor)

    def snapshot(self) -> bytes:
        """The run state between two batches."""
        self._trim()
        self.rebuild()
        cells = self._pack()
        arrays = {**self.state(), "cell_key": self.cell_key[:cells], "numbers": self.numbers[:cells]}
        return pack("register counter", {"fingerprint": self._fingerprint()}, arrays)

    def restore(self, data: bytes) -> None:
        """Continue, in a fresh counter of the same query, where a snapshot was taken."""
        _, arrays = unpack(data, "register counter", self._fingerprint())
        self.restore_state(arrays)
        self._take_cells(arrays["cell_key"], arrays["numbers"], arrays["cell_next"])
        self._wait()

    def _fingerprint(self) -> str:
        return fingerprint(self.machine.automaton, consume=self.consume, windowed=self.windowed)

    def forget(self, lows: Longs) -> None:
        """Forget all that no event can bind any more; `lows` is by partition, for matches that end from now on."""
        raise_lows(self.lows, lows)
        self._trim()
        self._pack()

    def _pack(self) -> int:
        """Keep only the cells in use, and room for as many more; returns how many are in use."""
        order, links = packed(self.head, self.cell_next)
        self._take_cells(self.cell_key[order], self.numbers[order], links)
        return order.size

    def _take_cells(self, cell_key: Longs, numbers: Words, cell_next: Ints) -> None:
        """Take over cells that are all in use, and make room for more."""
        self.cell_key, self.numbers, self.cell_next = cell_key, numbers, cell_next
        self.cursor.free_cell = -1
        self._more_cells()

    def _trim(self) -> None:
        trim(self.lows, self.sets.part, self.head, self.counts)

    def _widen(self) -> None:
        """Give every number one more limb."""
        limbs = self.numbers.shape[1]
        self.numbers = widened(self.numbers, limbs, limbs + 1)
        self.cursor.wide = 0

    def _more_cells(self) -> None:
        self.cell_next = more_cells(self.cell_next, self.cursor)
        self.cell_key = grown(self.cell_key, self.cell_next.size)
        self.numbers = grown(self.numbers, self.cell_next.size)


# Counting over sets of configurations: each holds, for every start in the window, the number of its runs.
#
# A set's counts are a chain of cells by descending start key; starts with equal keys leave the window together and
# share a cell, and without a window there is one cell for all. A move adds the source's counts to the target's, so for
# each set it moves, an event costs the starts in the window, however many runs there are. Numbers are exact: they have
# `limbs` digits of 32 bits, the last of which may run over until Python adds one more.
#
# Invariant: a cell's number is the number of partial matches of that start key whose run is in that set.


@embedded
def add(to: Words, more: Words) -> bool:
    """to += more, where `to` has at least as many limbs; returns whether the last one ran over."""
    carry = np.uint64(0)
    last = to.size - 1
    for k in range(last + 1):
        value = to[k] + carry
        if k < more.size:
            value += more[k]
        if k < last:
            carry = value >> SHIFT
            value &= MASK
        to[k] = value
    return bool(to[last] > MASK)


@inlined
def new_cell(key: int, after: int, counts: Counts) -> int:
    """A cell with the number 0; callers have ensured room."""
    cell = counts.cursor.free_cell
    counts.cursor.free_cell = counts.cell_next[cell]
    counts.cursor.cells += 1
    counts.cell_key[cell], counts.cell_next[cell] = key, after
    for k in range(counts.numbers.shape[1]):  # an assignment to the whole row takes longer
        counts.numbers[cell, k] = np.uint64(0)
    return cell


@embedded
def add_list(source: int, target: int, low: int, head: Ints, counts: Counts) -> None:
    """Add the counts of a list to those of a set."""
    cell_key, cell_next, numbers = counts.cell_key, counts.cell_next, counts.numbers
    before, at = -1, head[target, LIST]
    while source >= 0 and cell_key[source] >= low:
        key = cell_key[source]
        while at >= 0 and cell_key[at] > key:
            before, at = at, cell_next[at]
        if at >= 0 and cell_key[at] < low:
            drop_list(counts, at)
            at = np.int32(-1)
        if at < 0 or cell_key[at] != key:
            cell = np.int32(new_cell(key, at, counts))
            if before < 0:
                head[target, LIST] = cell
            else:
                cell_next[before] = cell
            at = cell
        counts.cursor.wide |= add(numbers[at], numbers[source])
        source = cell_next[source]


@inlined
def alive(n: int, low: int, head: Ints, counts: Counts, scratch: Scratch) -> int:
    """Keep, of scratch.moving[:n], the sets with a start in the window; returns how many these are."""
    n_left = np.int64(0)  # of one type from the start: for a literal, a second version would be compiled
    for y in range(n):
        d = scratch.moving[y]
        if counts.cell_key[head[d, LIST]] < low:
            drop_list(counts, head[d, LIST])
            head[d, LIST] = -1
        else:
            scratch.moving[n_left] = d
            n_left += 1
    return n_left


@inlined
def needed(n: int, head: Ints, counts: Counts, scratch: Scratch) -> int:
    """How many cells the event may need at most."""
    need = 1 + scratch.span[n, SPAN_END] - scratch.span[n, SPAN_BEGIN]
    for y in range(n):
        if scratch.span[y, SPAN_BEGIN] >= 0:
            moves = scratch.span[y, SPAN_END] - scratch.span[y, SPAN_BEGIN]
            need += moves * length(counts, head[scratch.moving[y], LIST])
    return need


@inlined
def execute(y: int, taken: int, low: int, configs: Configurations, counts: Counts, deadlines: Deadlines | None) -> bool:
    """Carry out the moves of one set; returns whether a match was completed."""
    head, scratch = configs.head, configs.scratch
    completed = False
    last = scratch.span[y, SPAN_END] - 1
    for m in range(scratch.span[y, SPAN_BEGIN], last + 1):
        target = scratch.move[m, MOVE_TARGET]
        if scratch.move[m, MOVE_ACCEPTS]:
            completed = True
            cell = taken
            while cell >= 0 and counts.cell_key[cell] >= low:
                add(counts.total, counts.numbers[cell])
                cell = counts.cell_next[cell]
        if target < 0:
            continue
        if head[target, LIST] < 0:
            link(target, configs.entries)
            if deadlines is not None:
                wait_for(target, counts.cell_key[taken], configs.sets, deadlines)
            if m == last:
                head[target, LIST] = taken
                return completed
        add_list(taken, target, low, head, counts)
    drop_list(counts, taken)
    return completed


@kernel
def trim(low: Longs, part: Longs, head: Ints, counts: Counts) -> None:
    """Return the cells of starts that have left the window to the arena."""
    for d in range(counts.cursor.sets):
        before, at = -1, head[d, LIST]
        while at >= 0 and counts.cell_key[at] >= low[part[d]]:
            before, at = at, counts.cell_next[at]
        drop_list(counts, at)
        if before < 0:
            head[d, LIST] = -1
        else:
            counts.cell_next[before] = -1


@inner
def decide(clock: int, low: int, consume: int, configs: Configurations, watching: Watching | None, counts: Counts,
           deadlines: Deadlines) -> None:  # fmt: skip
    """Add the matches of a clock whose windows are over, in the order in which they end."""
    sets, head, due, cursor = configs.sets, configs.head, deadlines.due, counts.cursor
    while True:
        n = gather_due(clock, low, head, sets, deadlines)
        if n == 0:
            return
        for y in range(n):
            d = np.int64(due[y])
            for _ in range(ends_of(d, sets, deadlines)):
                cell = head[d, LIST]
                while cell >= 0:
                    add(counts.total, counts.numbers[cell])
                    cell = counts.cell_next[cell]
            if y == 0 or deadlines.start[d] != deadlines.start[due[y - 1]]:
                cursor.occurrences += 1
            drop_list(counts, head[d, LIST])
            head[d, LIST] = -1
        for y in range(n if consume else 0):
            if y == 0 or consume == Consumption.PARTITION:
                consumed(consume, sets.part[due[y]], configs, counts, watching)
        if consume == Consumption.ANY and cursor.sets > MANY_SETS:
            deadlines.progress[STALE] = 1


@kernel
def decide_until(first: int, low: int, consume: int, configs: Configurations, watching: Watching | None,
                 counts: Counts, deadlines: Deadlines) -> None:  # fmt: skip
    """`decide` between two batches, for all clocks from this one on."""
    for clock in range(first, deadlines.first.size):
        decide(clock, low, consume, configs, watching, counts, deadlines)


@kernel
def count(events: Events, consume: int, windowed: bool, configs: Configurations, code: Code | None,
          watching: Watching | None, counts: Counts, deadlines: Deadlines | None) -> int:  # fmt: skip
    """Read events.selection[cursor.next:], adding all matches to the total; returns why it stopped."""
    tables, scratch, head = configs.tables, configs.scratch, configs.head
    cursor = counts.cursor
    for x in range(cursor.next, events.selection.size):
        cursor.next = x
        i = events.selection[x]
        part = events.part[i] if events.part.size else 0
        low = events.low[i]
        if deadlines is not None:
            clock, now = clock_of(part, deadlines), time_at(i, events, deadlines)
            decide(clock, now, consume, configs, watching, counts, deadlines)
            if deadlines.progress[STALE]:
                deadlines.progress[STALE] = 0
                return Stop.RESET
        configs.lows[part] = low
        cursor.mark += 1
        n = touched(i, part, cursor.mark, head, events, tables, configs.entries, scratch)
        n = alive(n, low, head, counts, scratch)
        if watching is None and n == 0 and not starts(i, events, tables):
            continue
        why = plan(i, part, n, events, configs, code, watching)
        if why != Stop.DONE:
            return why
        if n == 0 and cursor.moves == 0:
            remember(part, watching)
            continue
        if cursor.cells + needed(n, head, counts, scratch) + 1 > counts.cell_key.size:
            return Stop.MORE_CELLS
        for y in range(n):
            if scratch.span[y, SPAN_BEGIN] >= 0:
                scratch.taken[y] = head[scratch.moving[y], LIST]
                head[scratch.moving[y], LIST] = -1
        completed = False
        remember(part, watching)
        if scratch.span[n, SPAN_BEGIN] < scratch.span[n, SPAN_END]:
            first = new_cell(events.key[i] if windowed else 0, -1, counts)
            counts.numbers[first, 0] = np.uint64(1)
            scratch.taken[n] = first
        for y in range(n + 1):
            if scratch.span[y, SPAN_BEGIN] >= 0 and (y < n or scratch.span[y, SPAN_BEGIN] < scratch.span[y, SPAN_END]):
                completed |= execute(y, scratch.taken[y], low, configs, counts, deadlines)
        if completed:
            cursor.occurrences += 1
            if consume:
                consumed(consume, part, configs, counts, watching)
        if cursor.wide or (completed and consume == Consumption.ANY and cursor.sets > MANY_SETS):
            cursor.next = x + 1
            return Stop.MORE_LIMBS if cursor.wide else Stop.RESET
    cursor.next = events.selection.size
    return Stop.DONE
