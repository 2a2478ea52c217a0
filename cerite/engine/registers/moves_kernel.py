"""Where a set of configurations goes on one event: for every label, the set of rows that its transitions reach.

With MAX a row's state also says whether it belongs to this marking, to an equal one or to a larger one (see
`determinise_max`); only rows of this marking make a move, and a larger one that completes forbids to accept.
"""

import numpy as np
import numpy.typing as npt

from cerite.engine.registers.layout import (
    FINAL,
    INITIAL,
    LATE,
    MAXIMAL,
    MORE_SCRATCH,
    MORE_SETS,
    N_MOVES,
    STATES,
    STORED_VALUES,
    WATCHERS,
    Events,
    Scratch,
    Sets,
    Tables,
)  # fmt: skip
from cerite.engine.registers.program_kernel import STATE, VALUES
from cerite.engine.registers.sets_kernel import NO_SET, copy_row, enabled, follow, intern, place, same_row
from cerite.engine.registers.tables import EARLY, LABEL, OPS, OPS_END
from cerite.engine.registers.watch_kernel import watch
from cerite.jit import inlined, inner

Longs = npt.NDArray[np.int64]
THIS, EQUAL, LARGER = range(3)


@inlined
def reach(rows: Longs, begin: int, end: int, i: int, part: int, events: Events, tables: Tables, sets: Sets,
          scratch: Scratch, regs: Longs) -> int:  # fmt: skip
    """All rows reached from rows[begin:end] on event i, in scratch, ordered by label; how many, or -what is missing."""
    n = np.int64(0)
    states = tables.shape[STATES]
    for r in range(begin, end):
        q = rows[r, STATE]
        if q >= states:
            continue  # not of this marking
        for x in range(tables.first[q], tables.first[q + 1]):
            if tables.t[x, EARLY] or not enabled(x, rows[r], i, events, tables, scratch):
                continue
            if n == scratch.order.size:
                return -MORE_SCRATCH
            follow(x, rows[r], scratch.rows[n], i, events.values, events.nulls, tables.t, tables.actions,
                   tables.shape)  # fmt: skip
            watched = 1
            if tables.t[x, OPS] < tables.t[x, OPS_END]:
                watched = watch(x, rows[r], scratch.rows[n], part, i, events, tables, sets, scratch, regs)
            if watched < 0:
                return watched
            if watched:
                scratch.label[n] = tables.t[x, LABEL]
                place(n, scratch.rows, scratch.label, scratch.order)
                n += 1
    if tables.shape[MAXIMAL] and n:
        return compared(rows, begin, end, i, n, part, events, tables, sets, scratch, regs)
    return n


@inner
def compared(rows: Longs, begin: int, end: int, i: int, n: int, part: int, events: Events, tables: Tables, sets: Sets,
             scratch: Scratch, regs: Longs) -> int:  # fmt: skip
    """Add, for every label of this marking, the rows of equal and of larger markings (`determinise_max`)."""
    states = tables.shape[STATES]
    mine = n
    for r in range(begin, end):
        tag, q = rows[r, STATE] // states, rows[r, STATE] % states
        if tag == THIS:
            continue
        for x in range(tables.first[q], tables.first[q + 1]):
            if tables.t[x, EARLY] or not enabled(x, rows[r], i, events, tables, scratch):
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
                    return -MORE_SCRATCH
                follow(x, rows[r], scratch.rows[n], i, events.values, events.nulls, tables.t, tables.actions,
                   tables.shape)  # fmt: skip
                watched = watch(x, rows[r], scratch.rows[n], part, i, events, tables, sets, scratch, regs)
                if watched <= 0:
                    if watched < 0:
                        return watched
                    continue
                scratch.rows[n, STATE] += states * (EQUAL if tag == EQUAL and marked == (label > 0) else LARGER)
                scratch.label[n] = label
                place(n, scratch.rows, scratch.label, scratch.order)
                n += 1
    return n


@inlined
def moves(source: int, part: int, rows: Longs, begin: int, end: int, i: int, events: Events, tables: Tables,
          sets: Sets, scratch: Scratch, regs: Longs) -> int:  # fmt: skip
    """Note where the set rows[begin:end] goes on event i, label 0 last; 0, or what there is no room for.

    A move is (source, label, target, accepts); nothing is noted where the set just stays.
    """
    n = reach(rows, begin, end, i, part, events, tables, sets, scratch, regs)
    if n < 0:
        return -n
    states, final = tables.shape[STATES], tables.shape[FINAL]
    at = np.int64(0)
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


@inlined
def start_rows(part: int, tables: Tables, sets: Sets, rows: Longs) -> int:
    """The configurations in which runs begin, with MAX also as equal markings; how many, or -`MORE_SCRATCH`."""
    waiting = np.int64(NO_SET)
    if tables.shape[LATE]:
        waiting = sets.common[part, tables.shape[WATCHERS]]
    count = 1 + (sets.size[waiting] if waiting >= 0 else 0)
    if 2 * count >= rows.shape[0]:  # the last row is for what is watched
        return -MORE_SCRATCH
    rows[0, :] = 0
    stored = VALUES + tables.shape[STORED_VALUES]
    rows[0, stored:] = NO_SET
    rows[0, STATE] = tables.shape[INITIAL]
    for r in range(count - 1):
        copy_row(sets.rows, sets.begin[waiting] + r, rows, 1 + r)
    if not tables.shape[MAXIMAL]:
        return count
    for r in range(count):
        copy_row(rows, r, rows, count + r)
        rows[count + r, STATE] += tables.shape[STATES]
    return 2 * count
