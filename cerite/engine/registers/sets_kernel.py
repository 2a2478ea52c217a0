"""Deterministic states as interned sets of configurations (DESIGN 5.2), and their successors on one event.

A configuration is a row: state, flags, stored values. From a set, for every label the successor is the set of rows
reached by that label's transitions whose condition holds; label 0 leaves the event unmarked. Runs that mark the same
events under the same labels thus share one set, and no match is produced twice. With MAX a row's state also says
whether it belongs to this marking, to an equal one or to a larger one (see `determinise_max`).

Invariant: rows of a set are distinct and sorted; sets of equal partition and rows have one number.
"""

import numpy as np
import numpy.typing as npt

from cerite.engine.registers.layout import (
    FINAL,
    INITIAL,
    MAXIMAL,
    MORE_SCRATCH,
    MORE_SETS,
    N_MOVES,
    N_ROWS,
    N_SETS,
    STATES,
    STORED_VALUES,
    Events,
    Scratch,
    Sets,
    Tables,
)
from cerite.engine.registers.program_kernel import FLAGS, KNOWN, STATE, UNKNOWN, VALUES, holds
from cerite.engine.registers.tables import (
    ACTIONS,
    BIT,
    DROP,
    GROUPS,
    GROUPS_END,
    KEEP,
    LABEL,
    PROGRAMS,
    PROGRAMS_END,
    TARGET,
)
from cerite.jit import inlined, kernel

Longs = npt.NDArray[np.int64]
THIS, EQUAL, LARGER = range(3)
NO_SET = -1


@inlined
def bit_of(bits: npt.NDArray[np.uint64], i: int, bit: int) -> bool:
    """Whether a condition's bit is set for event i; bit -1 always is."""
    return bool(bit < 0 or (bits[i, bit >> 6] >> np.uint64(bit & 63)) & np.uint64(1))


@kernel
def enabled(x: int, row: Longs, i: int, events: Events, tables: Tables, scratch: Scratch) -> bool:
    """Whether transition x can be taken from the row on event i."""
    t = tables.t
    if not bit_of(events.bits, i, t[x, BIT]):
        return False
    values, nulls = events.values[i], np.int64(events.nulls[i])
    for k in range(t[x, PROGRAMS], t[x, PROGRAMS_END]):
        if not holds(tables.programs[k], row, values, nulls, tables.program_table, tables.code, tables.constants,
                     events.string_order, scratch.stack, scratch.unknown):  # fmt: skip
            return False
    for g in range(t[x, GROUPS], t[x, GROUPS_END]):
        every = bit_of(events.bits, i, tables.groups[g, 0])
        for k in range(tables.groups[g, 1], tables.groups[g, 2]):
            every = every and holds(
                tables.programs[k], row, values, nulls, tables.program_table, tables.code, tables.constants,
                events.string_order, scratch.stack, scratch.unknown,
            )  # fmt: skip
        if every:
            return False
    return True


@kernel
def follow(x: int, row: Longs, made: Longs, i: int, events: Events, tables: Tables) -> None:
    """The row after transition x on event i."""
    flags = np.int64(0)
    actions = tables.actions[tables.t[x, ACTIONS]]
    for s in range(tables.shape[STORED_VALUES]):
        action = actions[s]
        value, kept = np.int64(0), np.int64(0)
        if action == KEEP:
            value, kept = row[VALUES + s], row[FLAGS] >> 2 * s & 3
        elif action != DROP:
            null = np.int64(events.nulls[i]) >> action & 1
            value, kept = events.values[i, action], np.int64(UNKNOWN if null else KNOWN)
        made[VALUES + s] = value
        flags |= kept << 2 * s
    made[FLAGS] = flags
    made[STATE] = tables.t[x, TARGET]


@kernel
def less(rows: Longs, label: Longs, a: int, b: int) -> bool:
    """The order in which scratch rows are grouped: by label, the largest first, then by content."""
    if label[a] != label[b]:
        return bool(label[a] > label[b])
    for k in range(rows.shape[1]):
        if rows[a, k] != rows[b, k]:
            return bool(rows[a, k] < rows[b, k])
    return False


@kernel
def same_row(rows: Longs, a: int, others: Longs, b: int) -> bool:
    """Whether two rows are equal."""
    for k in range(rows.shape[1]):
        if rows[a, k] != others[b, k]:
            return False
    return True


@kernel
def place(n: int, scratch: Scratch) -> None:
    """Insert scratch row n into the order of those before it."""
    at = n
    while at > 0 and less(scratch.rows, scratch.label, n, scratch.order[at - 1]):
        scratch.order[at] = scratch.order[at - 1]
        at -= 1
    scratch.order[at] = n


@kernel
def reach(rows: Longs, begin: int, end: int, i: int, events: Events, tables: Tables, scratch: Scratch) -> int:
    """All rows reached from rows[begin:end] on event i, in scratch, ordered by label; how many, -1 without room."""
    n = 0
    states = tables.shape[STATES]
    for r in range(begin, end):
        q = rows[r, STATE]
        if q >= states:
            continue  # not of this marking
        for x in range(tables.first[q], tables.first[q + 1]):
            if enabled(x, rows[r], i, events, tables, scratch):
                if n == scratch.order.size:
                    return -1
                follow(x, rows[r], scratch.rows[n], i, events, tables)
                scratch.label[n] = tables.t[x, LABEL]
                place(n, scratch)
                n += 1
    return compared(rows, begin, end, i, n, events, tables, scratch) if tables.shape[MAXIMAL] and n else n


@kernel
def compared(rows: Longs, begin: int, end: int, i: int, n: int, events: Events, tables: Tables,
             scratch: Scratch) -> int:  # fmt: skip
    """Add, for every label of this marking, the rows of equal and of larger markings (`determinise_max`)."""
    states = tables.shape[STATES]
    mine = n
    for r in range(begin, end):
        tag, q = rows[r, STATE] // states, rows[r, STATE] % states
        if tag == THIS:
            continue
        for x in range(tables.first[q], tables.first[q + 1]):
            if not enabled(x, rows[r], i, events, tables, scratch):
                continue
            marked = tables.t[x, LABEL] > 0
            for y in range(mine):
                label = scratch.label[y]
                first = True
                for z in range(y):
                    first = first and scratch.label[z] != label
                if not first or (label > 0 and not marked):
                    continue
                if n == scratch.order.size:
                    return -1
                follow(x, rows[r], scratch.rows[n], i, events, tables)
                scratch.rows[n, STATE] += states * (EQUAL if tag == EQUAL and marked == (label > 0) else LARGER)
                scratch.label[n] = label
                place(n, scratch)
                n += 1
    return n


@kernel
def digest(rows: Longs, order: Longs, begin: int, end: int, part: int) -> int:
    """A hash of a set."""
    h = np.uint64(part) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(end - begin)
    for x in range(begin, end):
        r = order[x]
        for k in range(rows.shape[1]):
            h = (h ^ np.uint64(rows[r, k])) * np.uint64(0xFF51AFD7ED558CCD)
            h ^= h >> np.uint64(32)
    return np.int64(h >> np.uint64(1))


@kernel
def intern(rows: Longs, order: Longs, begin: int, end: int, part: int, sets: Sets, regs: Longs) -> int:
    """The number of the set of rows[order[begin:end]]; a new one if `regs[N_SETS]` grows; -1 without room."""
    h = digest(rows, order, begin, end, part)
    mask = sets.table.size - 1
    at = h & mask
    while sets.table[at] >= 0:
        d = sets.table[at]
        if sets.code[d] == h and sets.part[d] == part and sets.size[d] == end - begin:
            equal = True
            for x in range(end - begin):
                if equal and not same_row(sets.rows, sets.begin[d] + x, rows, order[begin + x]):
                    equal = False
            if equal:
                return np.int64(d)
        at = (at + 1) & mask
    d = np.int32(regs[N_SETS])
    if d == sets.begin.size or regs[N_ROWS] + end - begin > sets.rows.shape[0]:
        return -1
    first = regs[N_ROWS]
    for x in range(end - begin):
        sets.rows[first + x] = rows[order[begin + x]]
    sets.begin[d], sets.size[d], sets.part[d], sets.code[d] = first, end - begin, part, h
    sets.table[at] = d
    regs[N_SETS] += 1
    regs[N_ROWS] += end - begin
    return np.int64(d)


@kernel
def moves(source: int, part: int, rows: Longs, begin: int, end: int, i: int, events: Events, tables: Tables,
          sets: Sets, scratch: Scratch, regs: Longs) -> int:  # fmt: skip
    """Note where the set rows[begin:end] goes on event i, label 0 last; 0, or what there is no room for.

    A move is (source, label, target, accepts); nothing is noted where the set just stays.
    """
    n = reach(rows, begin, end, i, events, tables, scratch)
    if n < 0:
        return MORE_SCRATCH
    states, final = tables.shape[STATES], tables.shape[FINAL]
    before = regs[N_MOVES]
    at = 0
    while at < n:
        label = scratch.label[scratch.order[at]]
        kept, stop, mine, accepts, larger = at, at, 0, 0, 0
        while stop < n and scratch.label[scratch.order[stop]] == label:
            r = scratch.order[stop]
            q, tag = scratch.rows[r, STATE] % states, scratch.rows[r, STATE] // states
            if q == final:
                accepts |= int(tag == THIS)
                larger |= int(tag == LARGER)
            elif kept == at or not same_row(scratch.rows, r, scratch.rows, scratch.order[kept - 1]):
                mine += int(tag == THIS)
                scratch.order[kept] = r
                kept += 1
            stop += 1
        target = np.int64(NO_SET)
        if mine:
            target = intern(scratch.rows, scratch.order, at, kept, part, sets, regs)
            if target < 0:
                return MORE_SETS
        if larger:
            accepts = 0
        if target >= 0 or accepts:
            if regs[N_MOVES] == scratch.move.shape[0]:
                return MORE_SCRATCH
            m = scratch.move[regs[N_MOVES]]
            m[0], m[1], m[2], m[3] = source, label, target, accepts
            regs[N_MOVES] += 1
        at = stop
    return 0


@kernel
def start_rows(rows: Longs, tables: Tables) -> int:
    """The configuration in which every run begins; with MAX also as an equal marking."""
    rows[:2, :] = 0
    rows[0, STATE] = tables.shape[INITIAL]
    if not tables.shape[MAXIMAL]:
        return 1
    rows[1, STATE] = tables.shape[STATES] + tables.shape[INITIAL]
    return 2
