"""Where a set of configurations goes on one event: for every label, the set of rows that its transitions reach.

Where parts are decided later, what is complete but not decided is a separate set (`APART`) from what goes on, so that
it can be decided as a whole: all its rows belong to one match. If one row is decided at once, so are all of them.

With MAX, a row's state also says whether it belongs to this marking, to an equal one or to a larger one (see
`MaxDeterminised`); only rows of this marking cause a move, and it is not accepted if a larger marking completes.
"""

import numpy as np

from cerite.core.arrays import Buffers, Longs
from cerite.core.jit import embedded, inlined, inner
from cerite.engine.events.masks import Masks, relevant_events
from cerite.engine.events.rows import Rows
from cerite.engine.registers.index import enter
from cerite.engine.registers.interpret import STATE, VALUES, Code
from cerite.engine.registers.layout import (
    FINAL,
    INITIAL,
    LATE,
    MAXIMAL,
    MOVE_ACCEPTS,
    MOVE_LABEL,
    MOVE_TARGET,
    MOVE_WIDTH,
    SPAN_BEGIN,
    SPAN_END,
    STATES,
    STORED_VALUES,
    WATCHERS,
    Configurations,
    Events,
    Moment,
    Scratch,
    Sets,
    Tables,
    Watching,
)  # fmt: skip
from cerite.engine.registers.sets import NO_SET, bit_of, copy_row, enabled, follow, intern, place, same_row
from cerite.engine.registers.tables import APART, BIT, EARLY, FIXED, LABEL, OPS, OPS_END
from cerite.engine.registers.watch import advance_common, beside_others, watch
from cerite.engine.state.cursor import Stop

THIS, LIKE_THIS, LARGER = range(3)  # markings
MOST_KNOWN = 2  # moves of one set: to stay, and to go on
COUNT, BITS, FIRST_KNOWN = range(3)
KNOWN_MOVES = FIRST_KNOWN + MOVE_WIDTH * MOST_KNOWN  # columns of `Sets.known`: how many, bits; then those of each move


@inlined
def reach(rows: Longs, begin: int, end: int, now: Moment, configs: Configurations, code: Code | None,
          watching: Watching | None) -> int:  # fmt: skip
    """Write all rows reached from rows[begin:end] now to scratch, ordered by label; how many, or -what is missing."""
    tables, scratch, events, i = configs.tables, configs.scratch, now.events, now.i
    n = np.int64(0)
    states = tables.shape[STATES]
    for r in range(begin, end):
        q = rows[r, STATE]
        if q >= states:
            continue  # not of this marking
        for x in range(tables.first[q], tables.first[q + 1]):
            if tables.t[x, EARLY] or not enabled(x, rows[r], i, events, tables, code):
                continue
            if n == scratch.order.size:
                return -Stop.MORE_SCRATCH
            follow(x, rows[r], scratch.rows[n], i, events, tables)
            if watching is not None and tables.t[x, OPS] < tables.t[x, OPS_END]:
                watched = watch(x, rows[r], scratch.rows[n], now, configs, code, watching)
                if watched < 0:
                    return watched
                if not watched:
                    continue
            scratch.label[n] = 2 * tables.t[x, LABEL] + tables.t[x, APART]
            place(n, scratch.rows, scratch.label, scratch.order)
            n += 1
    if watching is not None and tables.shape[MAXIMAL] and n:
        return compared(rows, begin, end, n, now, configs, code, watching)
    return n


@inner
def compared(rows: Longs, begin: int, end: int, n: int, now: Moment, configs: Configurations, code: Code | None,
             watching: Watching) -> int:  # fmt: skip
    """Add, for every label of this marking, the rows of equal and of larger markings (`MaxDeterminised`)."""
    tables, scratch, events, i = configs.tables, configs.scratch, now.events, now.i
    states = tables.shape[STATES]
    mine = n
    for r in range(begin, end):
        tag, q = rows[r, STATE] // states, rows[r, STATE] % states
        if tag == THIS:
            continue
        for x in range(tables.first[q], tables.first[q + 1]):
            if tables.t[x, EARLY] or not enabled(x, rows[r], i, events, tables, code):
                continue
            marked = tables.t[x, LABEL] > 0
            for y in range(mine):
                label = scratch.label[y]
                first = True
                for z in range(y):
                    first = first and scratch.label[z] != label
                if not first or (label > 1 and not marked):
                    continue
                if n == scratch.order.size:
                    return -Stop.MORE_SCRATCH
                follow(x, rows[r], scratch.rows[n], i, events, tables)
                watched = watch(x, rows[r], scratch.rows[n], now, configs, code, watching)
                if watched <= 0:
                    if watched < 0:
                        return watched
                    continue
                scratch.rows[n, STATE] += states * (LIKE_THIS if tag == LIKE_THIS and marked == (label > 1) else LARGER)
                scratch.label[n] = label
                place(n, scratch.rows, scratch.label, scratch.order)
                n += 1
    return n


@inlined
def moves(rows: Longs, begin: int, end: int, now: Moment, configs: Configurations, code: Code | None,
          watching: Watching | None) -> int:  # fmt: skip
    """Note where the set rows[begin:end] goes now, label 0 last; 0, or what there is no room for.

    A move is (label, target, accepts); nothing is noted where the set just stays.
    """
    tables, sets, scratch = configs.tables, configs.sets, configs.scratch
    cursor = sets.cursor
    n = reach(rows, begin, end, now, configs, code, watching)
    if n < 0:
        return -n
    states, final = tables.shape[STATES], tables.shape[FINAL]
    at, noted = np.int64(0), cursor.moves
    while at < n:
        label = scratch.label[scratch.order[at]]
        distinct, stop, mine, accepts, larger = at, at, 0, 0, 0
        while stop < n and scratch.label[scratch.order[stop]] == label:
            r = scratch.order[stop]
            q, tag = scratch.rows[r, STATE] % states, scratch.rows[r, STATE] // states
            if q == final:
                accepts |= int(tag == THIS)
                larger |= int(tag == LARGER)
            elif distinct == at or not same_row(scratch.rows, r, scratch.rows, scratch.order[distinct - 1]):
                mine += int(tag == THIS)
                scratch.order[distinct] = r
                distinct += 1
            stop += 1
        target = np.int64(NO_SET)
        if mine:
            target = intern(scratch.rows, scratch.order, at, distinct, now.part, sets)
            if target < 0:
                return Stop.MORE_SETS
        if larger:
            accepts = 0
        if target >= 0 or accepts:
            if accepts and cursor.moves > noted and scratch.move[cursor.moves - 1, MOVE_LABEL] == label // 2:
                cursor.moves -= 1  # what would be decided later is decided here
            if cursor.moves == scratch.move.shape[0]:
                return Stop.MORE_SCRATCH
            m = scratch.move[cursor.moves]
            m[MOVE_LABEL], m[MOVE_TARGET], m[MOVE_ACCEPTS] = label // 2, target, accepts
            cursor.moves += 1
        at = stop
    return 0


@inlined
def start_rows(part: int, tables: Tables, sets: Sets, rows: Longs, watching: Watching | None) -> int:
    """Write the configurations in which runs begin, for MAX also as equal markings; how many, or -`MORE_SCRATCH`."""
    waiting = np.int64(NO_SET)
    if watching is not None and tables.shape[LATE]:
        waiting = watching.common[part, tables.shape[WATCHERS]]
    count = 1 + (sets.size[waiting] if waiting >= 0 else 0)
    if 2 * count > rows.shape[0]:
        return -Stop.MORE_SCRATCH
    rows[0, :] = 0
    stored = VALUES + tables.shape[STORED_VALUES]
    rows[0, stored:] = NO_SET
    rows[0, STATE] = tables.shape[INITIAL]
    if watching is not None:
        beside_others(rows[0], part, tables, watching)
    for r in range(count - 1):
        copy_row(sets.rows, sets.begin[waiting] + r, rows, 1 + r)
    if not tables.shape[MAXIMAL]:
        return count
    for r in range(count):
        copy_row(rows, r, rows, count + r)
        rows[count + r, STATE] += tables.shape[STATES]
    return 2 * count


# One event, before anything changes: which sets move, and where.
#
# Both engines, the one that finds matches and the one that counts them, begin an event here. Sets are interned and
# indexed on the way; nothing else is written, so that a kernel that runs out of room begins the event again.


def laid_out(rows: Rows, masks: Masks | None, buffers: Buffers) -> Events:
    """A batch for the kernels, which read its relevant events; it is overwritten by the next one."""
    assert rows.stored is not None
    bits = np.require(rows.bits, np.uint64, ["C", "W"])
    selection = relevant_events(bits, masks, buffers)
    part = np.zeros(0, np.int64) if rows.partition is None else np.require(rows.partition, np.int64, ["C", "W"])
    first = rows.places
    places = buffers.steps("position", bits.shape[0], first) if isinstance(first, int) else first
    key, low, position = (np.require(each, np.int64, ["C", "W"]) for each in (rows.key, rows.low, places))
    return Events(selection, bits, rows.stored.values, rows.stored.nulls, key, low, position, part)


@inlined
def starts(i: int, events: Events, tables: Tables) -> bool:
    """Whether a run may begin at event i, as far as the event alone can tell."""
    initial = tables.shape[INITIAL]
    possible = tables.shape[LATE] == 1
    for x in range(tables.first[initial], tables.first[initial + 1]):
        possible = possible or bit_of(events.bits, i, tables.t[x, BIT])
    return possible


# What a set does on an event follows from the event's bits alone where no condition that could hold reads a stored
# value and nothing of the event is stored. Most sets are moved by events with the same bits again and again, so a set
# remembers its moves on the last such event, until sets get other numbers.


@inlined
def recall(d: int, i: int, events: Events, sets: Sets, scratch: Scratch) -> bool:
    """Note the moves of set d if they are known for an event with these bits."""
    known, cursor = sets.known, sets.cursor
    count = known[d, COUNT]
    if count < 0 or known[d, BITS] != np.int64(events.bits[i, 0]) or cursor.moves + count > scratch.move.shape[0]:
        return False
    for k in range(FIRST_KNOWN, FIRST_KNOWN + MOVE_WIDTH * count, MOVE_WIDTH):
        m = scratch.move[cursor.moves]
        m[MOVE_LABEL], m[MOVE_TARGET] = known[d, k + MOVE_LABEL], known[d, k + MOVE_TARGET]
        m[MOVE_ACCEPTS] = known[d, k + MOVE_ACCEPTS]
        cursor.moves += 1
    return True


@inlined
def learn(d: int, before: int, i: int, events: Events, tables: Tables, sets: Sets, scratch: Scratch) -> None:
    """Remember the moves of set d on event i, scratch.move[before:], if the event's bits alone decide them."""
    count = sets.cursor.moves - before
    fixed = count <= MOST_KNOWN and events.bits.shape[1] == 1
    for r in range(sets.begin[d], sets.begin[d] + sets.size[d] if fixed else 0):
        q = sets.rows[r, STATE]
        for x in range(tables.first[q], tables.first[q + 1]):
            fixed = fixed and (tables.t[x, FIXED] == 1 or not bit_of(events.bits, i, tables.t[x, BIT]))
    if fixed:
        sets.known[d, COUNT], sets.known[d, BITS] = count, np.int64(events.bits[i, 0])
        for k in range(count):
            for column in range(MOVE_WIDTH):
                sets.known[d, FIRST_KNOWN + MOVE_WIDTH * k + column] = scratch.move[before + k, column]


@embedded
def plan(i: int, part: int, moving: int, events: Events, configs: Configurations, code: Code | None,
         watching: Watching | None) -> int:  # fmt: skip
    """Note the moves of scratch.moving[:moving], then of the start (span[moving]); `DONE`, or what is missing."""
    tables, sets, scratch, now = configs.tables, configs.sets, configs.scratch, Moment(events, i, part)
    cursor = sets.cursor
    cursor.moves = 0
    for y in range(moving + 1):
        before = cursor.moves
        recalled = False
        if y < moving:
            d = np.int64(scratch.moving[y])
            if watching is None:
                recalled = recall(d, i, events, sets, scratch)
            rows, begin, end = sets.rows, sets.begin[d], sets.begin[d] + sets.size[d]
        else:
            d = np.int64(NO_SET)
            rows, begin, end = scratch.start, np.int64(0), np.int64(0)
            if starts(i, events, tables):
                end = np.int64(start_rows(part, tables, sets, scratch.start, watching))
                if end < 0:
                    return -end
        if not recalled:
            why = moves(rows, begin, end, now, configs, code, watching)
            if why != Stop.DONE:
                return why
            if watching is None and y < moving:
                learn(d, before, i, events, tables, sets, scratch)
        after = cursor.moves
        scratch.span[y, SPAN_BEGIN], scratch.span[y, SPAN_END] = before, after
        if after == before + 1:
            m = scratch.move[before]
            if y < moving and m[MOVE_LABEL] == 0 and m[MOVE_TARGET] == d and m[MOVE_ACCEPTS] == 0:
                scratch.span[y, SPAN_BEGIN] = -1
                cursor.moves = before
    if watching is not None and watching.common.size:
        why = advance_common(now, configs, code, watching)
        if why != Stop.DONE:
            return why
    while cursor.entered < cursor.sets:
        if not enter(cursor.entered, tables, sets, configs.entries):
            return Stop.MORE_INDEX
        cursor.entered += 1
    return Stop.DONE
