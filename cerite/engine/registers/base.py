"""What the two register engines share: tables, the arena of sets, its index, and their growth.

Invariant: results do not depend on the sizes of arrays, or on when they were rebuilt.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cerite.automaton.automaton import PLAIN
from cerite.core.arrays import Arrays, Buffers, Flags, Ints, Longs, distinct, picked
from cerite.core.budget import check_sums
from cerite.core.errors import sum_too_large
from cerite.core.jit import kernel, maker
from cerite.engine.events.keys import LEAST
from cerite.engine.events.rows import Rows
from cerite.engine.registers import layout as lay
from cerite.engine.registers.compile import code_of, tables, watches
from cerite.engine.registers.deadlines import Deadlines, nothing_noted, wait_for_all
from cerite.engine.registers.description import ADVICE, sums_of_choices
from cerite.engine.registers.index import NONE, empty, enter, link, new_index
from cerite.engine.registers.interpret import FLAGS, KNOWN, SUM_WHOLE, VALUES, run
from cerite.engine.registers.leaves import Running, Value
from cerite.engine.registers.moves import KNOWN_MOVES, compared, laid_out
from cerite.engine.registers.sets import NO_SET, copy_row, digest
from cerite.engine.registers.tables import Machine
from cerite.engine.registers.watch import advance_common, watch
from cerite.engine.state.cursor import Cursor, Stop, of_longs, to_longs
from cerite.engine.state.slots import grown

FEWEST_SETS = 1 << 10  # room to begin with; more would not stay in the cache, and tests begin with less
FEWEST_ROWS = 1 << 6


def unneeded(machine: Machine, *, maximal: bool = False) -> tuple[object, ...]:
    """The kernels that the engine calls for other machines but never for this one: they are not compiled."""
    of_programs = () if code_of(machine, maximal=maximal) is not None else (run,)
    return of_programs if watches(machine, maximal=maximal) else (*of_programs, watch, compared, advance_common)


class RegisterEngine:
    """A machine, its sets and its index; a subclass first sets up what the sets hold, in lists of cells."""

    cursor: Cursor
    cell_next: Ints

    def __init__(
        self, machine: Machine, *, maximal: bool = False, shared_clock: bool = False, listed: bool = True
    ) -> None:
        self.machine = machine
        self.shared_clock = shared_clock
        self.tables, self._masks = tables(machine, maximal=maximal, listed=listed)
        self.code = code_of(machine, maximal=maximal)
        self.head = np.full((FEWEST_SETS, 1), -1, np.int32)
        self.lows: Longs = np.full(1, LEAST, np.int64)
        watchers = machine.automaton.watchers
        self._width = VALUES + len(machine.slots) + len(watchers)
        commons = any(each.kind != PLAIN for each in watchers) or bool(machine.automaton.before)
        self.common: Longs = np.full((1, len(watchers) + 1 if commons else 0), NO_SET, np.int64)
        self._levels = max(machine.automaton.depth, int(watches(machine, maximal=maximal)))
        self._sums = sums_of_choices(machine)
        self.sets = self._new_sets(FEWEST_SETS, FEWEST_SETS)
        self._entries = 4 * FEWEST_SETS
        self._spare = FEWEST_SETS
        self._stuck = -1
        self._buffers = Buffers()
        self.relevant: Longs = np.zeros(0, np.int64)  # the events of the last batch that can move or start anything
        self.deadlines: Deadlines | None = None
        self.index = new_index(0, 0, 0, equal=False)
        self._index()
        self._scratch(FEWEST_ROWS)

    @property
    def configurations(self) -> lay.Configurations:
        """The runs, as kernels read them."""
        return lay.Configurations(self.tables, self.sets, self.index, self.scratch, self.head, self.lows)

    @property
    def active(self) -> int:
        """Deterministic states that hold partial matches now."""
        return int((self.head[: self.cursor.sets, lay.LIST] >= 0).sum())

    def events(self, rows: Rows) -> lay.Events:
        """A batch for the kernels, with the events that matter."""
        events = laid_out(rows, self._masks, self._buffers)
        self.relevant = events.selection
        if self.machine.automaton.tails and not self.shared_clock:  # each is a tick of its partition's clock
            events = events._replace(selection=np.arange(events.low.size, dtype=np.int64))
        top = int(events.part.max()) + 1 if events.part.size else 1
        if top > self.lows.size:
            self.lows = grown(self.lows, max(top, 2 * self.lows.size), LEAST)
            self.common = grown(self.common, self.lows.size, NO_SET)
            self.index = self.index._replace(first=grown(self.index.first, self._buckets, NONE))
            self._watch()
            if self.deadlines is not None and not self.shared_clock:
                first = grown(self.deadlines.first, self.lows.size, -1)
                self.deadlines = self.deadlines._replace(first=first)
        if rows.stored is not None:
            order = rows.stored.string_order
            self.tables = self.tables._replace(string_order=order)
            self.code = None if self.code is None else self.code._replace(string_order=order)
        return events

    def last_time(self, events: lay.Events) -> int:
        """The low of the last event, in the window that decides what waits."""
        leaf = self.machine.tick
        return int(events.low[-1] if leaf < 0 else events.values[-1, leaf])

    def refuse_beyond(self) -> None:
        """Refuse the batch if a sum has left 64 bits in it: from there on it would be a wrong number."""
        if self.tables.beyond[lay.RAN_OVER] or (self.code is not None and self.code.beyond[lay.RAN_OVER]):
            sums = [
                leaf.text(register.strip("\N{PRIME}0123456789"))
                for register, leaf in self.machine.slots
                if isinstance(leaf, Running) and leaf.how == SUM_WHOLE
            ]
            named = " or ".join(f"`{each}`" for each in sums)
            raise sum_too_large(named)

    def more(self, why: int) -> None:
        """Make room for that of which a kernel has run out."""
        if why == Stop.MORE_SCRATCH:
            self._scratch(2 * self.scratch.order.size)
        elif why == Stop.MORE_INDEX:
            self._entries *= 2
            self.rebuild()
        elif why == Stop.RESET:
            self.rebuild()
        elif why == Stop.MORE_SETS:
            if self._stuck == self.cursor.next:
                self._spare *= 2  # one event alone needs more than there was
            self._stuck = self.cursor.next
            self.rebuild()
        elif why == Stop.MORE_CELLS:
            self._more_cells()

    def _more_cells(self) -> None:
        raise NotImplementedError

    def rebuild(self, partitions: Longs | None = None, strings: Longs | None = None) -> None:
        """Keep the sets that hold something, with room for about as many more, and index them anew.

        The partitions or strings that are left, if given, are numbered from 0 on, in their order, so rows stay sorted.
        """
        live, sets = self._live(), self.sets
        if partitions is not None:
            self.lows, self.common = picked(self.lows, partitions, LEAST), picked(self.common, partitions, NO_SET)
            part = sets.part[: self.cursor.sets]
            part[:] = np.where(part < 0, part, np.searchsorted(partitions, part))
        _squeeze(live, sets, self.head)
        rows = sets.rows[: self.cursor.rows]
        if strings is not None:
            for slot, known in self._strings_in(rows):
                column = rows[:, VALUES + slot]
                column[known] = np.searchsorted(strings, column[known])
        if self._levels:
            self._rename(live, rows)
        if self._levels or partitions is not None or strings is not None:
            _fill_codes(sets, live.size)
        self._fit()
        self._index()
        if self.scratch.stamp.size == self.sets.begin.size:
            self.scratch.stamp[:] = self.cursor.mark = 0
            self._watch()
        else:
            self._scratch(self.scratch.order.size)
        self._wait()

    def _fit(self) -> None:
        """Take larger or smaller arrays if the present ones do not suit the sets, and hash the sets by content."""
        n, rows = self.cursor.sets, self.cursor.rows
        old = self.sets
        least, fewest = 2 * n + self._spare, 2 * rows + self._spare + self.scratch.order.size
        if not (least <= old.begin.size <= 4 * least and fewest <= old.rows.shape[0] <= 4 * fewest):
            self.sets = self._new_sets(_power(least), 2 * fewest)
            for name in ("begin", "size", "part", "code"):
                getattr(self.sets, name)[:n] = getattr(old, name)[:n]
            self.sets.rows[:rows] = old.rows[:rows]
            self.head = grown(self.head[:n], self.sets.begin.size, -1)
        else:
            old.table[:] = old.known[:] = -1
        _fill_table(self.sets, n)

    def keep(self, partitions: Longs | None, strings: Longs) -> None:
        """Number these partitions and strings from 0 on; nothing that is kept belongs to the others."""
        self._entries = max(4 * FEWEST_SETS, _power(2 * self.cursor.entries))
        self.rebuild(partitions, strings)

    @property
    def partitions(self) -> Longs:
        """The partitions of sets that hold something, and those with runs that all later ones are compared with."""
        holding = self.sets.part[: self.cursor.sets][self.head[: self.cursor.sets, lay.LIST] >= 0]
        return distinct(holding, np.flatnonzero((self.common >= 0).any(axis=1)))

    @property
    def strings(self) -> Longs:
        """The numbers of the strings that are stored."""
        live = self._live()
        sizes = self.sets.size[live]
        begins = np.cumsum(sizes) - sizes
        rows = self.sets.rows[np.repeat(self.sets.begin[live] - begins, sizes) + np.arange(int(sizes.sum()))]
        numbers = [rows[known, VALUES + slot] for slot, known in self._strings_in(rows)]
        return distinct(*numbers)

    @property
    def size(self) -> int:
        """How much there is to look through when something is to be forgotten."""
        return self.cursor.rows + self.cursor.entries + self.cursor.cells + self.lows.size

    def _strings_in(self, rows: Longs) -> Iterator[tuple[int, Flags]]:
        """The stored values that are numbers of strings, and which rows have one."""
        for slot, (_, leaf) in enumerate(self.machine.slots):
            if isinstance(leaf, (Value, Running)) and leaf.is_text:
                yield slot, (rows[:, FLAGS] >> 2 * slot & 3) == KNOWN

    def _live(self) -> Longs:
        """The sets that hold something or are common, and those that are watched in one of these."""
        n = self.cursor.sets
        alive = self.head[:n, lay.LIST] >= 0
        alive[self.common[self.common >= 0]] = True
        if self.machine.automaton.watchers:
            _keep_watched(alive, self.sets, self._width - len(self.machine.automaton.watchers))
        return np.flatnonzero(alive)

    def _rename(self, live: Longs, rows: Longs) -> None:
        """Give watched sets their new numbers in the rows; these rise with the old ones, so rows stay sorted."""
        number = np.full(self.sets.begin.size + 1, NO_SET, np.int64)
        number[live] = np.arange(live.size)
        watched = rows[:, self._width - len(self.machine.automaton.watchers) :]
        watched[:] = number[watched]
        self.common = number[self.common]

    def state(self) -> Arrays:
        """What a snapshot keeps of the sets, the cells packed."""
        n, rows = self.cursor.sets, self.cursor.rows
        sets = self.sets
        return {
            "cursor": to_longs(self.cursor), "lows": self.lows, "head": self.head[:n],
            "begin": sets.begin[:n], "size": sets.size[:n], "part": sets.part[:n], "code": sets.code[:n],
            "rows": sets.rows[:rows], "common": self.common, "cell_next": self.cell_next[: self.cursor.cells],
        }  # fmt: skip

    def restore_state(self, arrays: Arrays) -> None:
        """Take the sets of a snapshot."""
        self.cursor, self.lows = of_longs(Cursor, arrays["cursor"]), arrays["lows"]
        n, rows = arrays["begin"].size, arrays["rows"].shape[0]
        self.sets = self._new_sets(n, rows)
        for name in ("begin", "size", "part", "code", "rows"):
            getattr(self.sets, name)[:] = arrays[name]
        self.common, self.head = arrays["common"], arrays["head"].astype(np.int32)
        self._fit()
        self._index()
        self._scratch(self.scratch.order.size)

    def _new_sets(self, sets: int, rows: int) -> lay.Sets:
        if self._sums:
            check_sums(self._sums, self.cursor.sets, 8 * (sets * (KNOWN_MOVES + 5) + rows * self._width), ADVICE)
        begin, size, part, code = (np.zeros(sets, np.int64) for _ in range(4))
        table, known = np.full(2 * sets, -1, np.int32), np.full((sets, KNOWN_MOVES), -1, np.int64)
        return lay.Sets(begin, size, part, code, np.zeros((rows, self._width), np.int64), table, known, self.cursor)

    def _index(self) -> None:
        """Enter every set into a new index with room for `_entries` entries or more."""
        while True:
            old, sizes = self.index, (self._entries, self.sets.begin.size, self._buckets)
            if (old.place.size, old.begin.size - 1, old.first.size) == sizes:
                empty(old, self.cursor.entries)
            else:
                self.index = new_index(*sizes, equal=bool((self.tables.signatures[:, lay.WAKE_KIND] == lay.SAME).any()))
            self.cursor.buckets = self.cursor.entries = self.cursor.entered = 0
            if _enter_all(self.tables, self.sets, self.index, self.head):
                return
            self._entries *= 2

    @property
    def _buckets(self) -> int:
        return int(self.lows.size * self.tables.signatures.shape[0])

    def _wait(self) -> None:
        """Enter every set that waits for the end of its window into the heap of its clock."""
        machine, sets = self.machine, self.sets.begin.size
        if not machine.automaton.tails:
            return
        old, clocks = self.deadlines, 1 if self.shared_clock else self.lows.size
        if old is not None and (old.first.size, old.waiting.size) == (clocks, sets):
            old.first[:], old.waiting[:] = -1, False
        else:
            tails = np.zeros(machine.automaton.n_states, np.bool_)
            tails[list(machine.automaton.tails)] = True
            first, child, sibling, due = (np.full(size, -1, np.int32) for size in (clocks, sets, sets, sets))
            start, key = np.zeros(sets, np.int64), np.zeros(sets, np.int64)
            progress, noted = np.zeros(4, np.int64), nothing_noted(0)
            if old is not None:
                progress, noted = old.progress, old.noted
            self.deadlines = Deadlines(
                tails, np.array(machine.waits, np.int64), np.array(machine.began, np.int64),
                np.array(machine.sooner, np.int64), machine.begun, machine.ended, machine.tick,
                len(set(machine.sooner)), self.shared_clock, first, np.zeros(sets, np.bool_), start, key,
                child, sibling, due, progress, noted,
            )  # fmt: skip
        holding = np.flatnonzero(self.head[: self.cursor.sets, lay.LIST] >= 0)
        if holding.size and self.deadlines is not None:
            wait_for_all(self.sets, holding, self._start_keys(holding), self.deadlines)

    def _start_keys(self, holding: Longs) -> Longs:
        """The window key of the start of each of these sets, which hold runs of one start."""
        raise NotImplementedError

    def _scratch(self, size: int) -> None:
        sets = self.sets.begin.size
        longs = [np.zeros(size, np.int64) for _ in range(2)]
        self.scratch = lay.Scratch(
            rows=np.zeros((size, self._width), np.int64), label=longs[0], order=longs[1],
            tree=np.zeros(1 << 10, np.int64),
            moving=np.zeros(sets, np.int32),
            move=np.zeros((max(4 * sets, size), lay.MOVE_WIDTH), np.int64), stamp=np.zeros(sets, np.int64),
            span=np.zeros((sets + 1, 2), np.int64), taken=np.zeros(sets + 1, np.int32),
            start=np.zeros((size + 4, self._width), np.int64),
        )  # fmt: skip
        self.cursor.mark = 0
        self._watch()

    def _watch(self) -> None:
        """Make room for one watched set per level, of as many rows as there is scratch for, if the query needs any."""
        size = self.scratch.order.size
        self.watching: lay.Watching | None = None
        if self._levels:
            self.watching = lay.Watching(
                common=self.common, following=np.full(self.common.shape[1], NO_SET, np.int64),
                rows=np.zeros((self._levels, size, self._width), np.int64), label=np.zeros(size, np.int64),
                order=np.zeros((self._levels, size), np.int64), fresh=np.zeros((self._levels, self._width), np.int64),
            )  # fmt: skip


@kernel
def _squeeze(live: Longs, sets: lay.Sets, head: Ints) -> None:
    """Number the live sets from 0 on, in place: each moves towards the front, and so do its rows."""
    cursor, at = sets.cursor, 0
    for y in range(live.size):
        d = live[y]
        first = sets.begin[d]
        sets.begin[y], sets.size[y], sets.part[y], sets.code[y] = at, sets.size[d], sets.part[d], sets.code[d]
        head[y, lay.LIST] = head[d, lay.LIST]
        for r in range(sets.size[y]):
            copy_row(sets.rows, first + r, sets.rows, at + r)
        at += sets.size[y]
    head[live.size : cursor.sets, lay.LIST] = -1
    cursor.sets, cursor.rows = live.size, at


@kernel
def _enter_all(tables: lay.Tables, sets: lay.Sets, index: lay.Index, head: Ints) -> bool:
    cursor = sets.cursor
    while cursor.entered < cursor.sets:
        d = cursor.entered
        if not enter(d, tables, sets, index):
            return False
        if head[d, lay.LIST] >= 0:
            link(d, index)
        cursor.entered += 1
    return True


@kernel
def _keep_watched(alive: Flags, sets: lay.Sets, first: int) -> None:
    for d in range(alive.size - 1, -1, -1):
        if alive[d]:
            for r in range(sets.begin[d], sets.begin[d] + sets.size[d]):
                for k in range(first, sets.rows.shape[1]):
                    if sets.rows[r, k] >= 0:
                        alive[sets.rows[r, k]] = True


@maker
def _fill_codes(sets: lay.Sets, n: int) -> None:
    order = np.arange(sets.rows.shape[0])
    for d in range(n):
        sets.code[d] = digest(sets.rows, order, sets.begin[d], sets.begin[d] + sets.size[d], sets.part[d])


@kernel
def _fill_table(sets: lay.Sets, n: int) -> None:
    mask = sets.table.size - 1
    for d in range(n):
        at = sets.code[d] & mask
        while sets.table[at] >= 0:
            at = (at + 1) & mask
        sets.table[at] = d


def _power(least: int) -> int:
    """The least power of two that is not smaller."""
    return 1 << max(0, least - 1).bit_length()
