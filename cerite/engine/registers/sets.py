"""Deterministic states as interned sets of configurations (docs/architecture.md, *Registers*).

A configuration is a row: state, flags, stored values, watched sets. Runs that mark the same events under the same
labels share one set, so that no match is produced twice.

Invariant: rows of a set are distinct and sorted; sets of equal partition and rows have one number. Watched sets belong
to no partition (-1) and have smaller numbers than the sets whose rows name them.
"""

import numpy as np

from cerite.core.arrays import Longs, Words
from cerite.core.hashing import fold
from cerite.core.jit import embedded, inlined
from cerite.engine.registers.interpret import FLAGS, KNOWN, STATE, UNKNOWN, VALUES, Code, accumulated, holds
from cerite.engine.registers.layout import (
    GROUP_BEGIN,
    GROUP_BIT,
    GROUP_END,
    RAN_OVER,
    STORED_VALUES,
    WATCHERS,
    Events,
    Sets,
    Tables,
)
from cerite.engine.registers.tables import (
    ACTIONS,
    BIT,
    GROUPS,
    GROUPS_END,
    KEEP,
    PROGRAMS,
    PROGRAMS_END,
    RENEW,
    TARGET,
    UPDATE,
)  # fmt: skip

NO_SET = -1


@inlined
def bit_of(bits: Words, i: int, bit: int) -> bool:
    """Whether a condition's bit is set for event i; bit -1 always is."""
    return bool(bit < 0 or (bits[i, bit >> 6] >> np.uint64(bit & 63)) & np.uint64(1))


@inlined
def enabled(x: int, row: Longs, i: int, events: Events, tables: Tables, code: Code | None) -> bool:
    """Whether transition x can be taken from the row on event i."""
    possible = bit_of(events.bits, i, tables.t[x, BIT])
    if possible:
        nulls = np.int64(events.nulls[i])
        for k in range(tables.t[x, PROGRAMS], tables.t[x, PROGRAMS_END]):
            possible = possible and holds(tables.programs[k], row, events.values[i], nulls, tables.program_table, code)
        if possible and tables.t[x, GROUPS] < tables.t[x, GROUPS_END]:
            possible = not excluded(x, row, i, events, tables, code)
    return possible


@embedded
def excluded(x: int, row: Longs, i: int, events: Events, tables: Tables, code: Code | None) -> bool:
    """Whether one of the negated groups of transition x holds."""
    for g in range(tables.t[x, GROUPS], tables.t[x, GROUPS_END]):
        every = bit_of(events.bits, i, tables.groups[g, GROUP_BIT])
        for k in range(tables.groups[g, GROUP_BEGIN], tables.groups[g, GROUP_END]):
            every = every and holds(
                tables.programs[k], row, events.values[i], np.int64(events.nulls[i]), tables.program_table, code
            )
        if every:
            return True
    return False


@inlined
def follow(x: int, row: Longs, to: Longs, i: int, events: Events, tables: Tables) -> None:
    """The row after transition x on event i, with watched sets unchanged.

    It is compiled into its callers, as `digest` is: passing the arrays takes longer than what it does with them.
    """
    values, nulls, actions = events.values, events.nulls, tables.actions
    flags = np.int64(0)
    number = tables.t[x, ACTIONS]
    stored = tables.shape[STORED_VALUES]
    for s in range(stored):
        action = actions[number, s]
        value, flag = np.int64(0), np.int64(0)
        if action == KEEP or UPDATE <= action < RENEW:
            value, flag = row[VALUES + s], row[FLAGS] >> 2 * s & 3
        if action >= UPDATE:
            leaf = action % UPDATE
            if not np.int64(nulls[i]) >> leaf & 1:
                value, lost = accumulated(
                    action % RENEW // UPDATE - 1, value, flag == KNOWN, values[i, leaf], tables.string_order
                )
                flag = np.int64(KNOWN)
                tables.beyond[RAN_OVER] |= lost
        elif action >= 0:
            null = np.int64(nulls[i]) >> action & 1
            value, flag = values[i, action], np.int64(UNKNOWN if null else KNOWN)
        to[VALUES + s] = value
        flags |= flag << 2 * s
    for k in range(stored, stored + tables.shape[WATCHERS]):
        to[VALUES + k] = row[VALUES + k] if actions[number, k] == KEEP else NO_SET
    to[FLAGS] = flags
    to[STATE] = tables.t[x, TARGET]


@embedded
def less(rows: Longs, label: Longs, a: int, b: int) -> bool:
    """The order in which scratch rows are grouped: by label, the largest first, then by content."""
    if label[a] != label[b]:
        return bool(label[a] > label[b])
    for k in range(rows.shape[1]):
        if rows[a, k] != rows[b, k]:
            return bool(rows[a, k] < rows[b, k])
    return False


@embedded
def same_row(rows: Longs, a: int, others: Longs, b: int) -> bool:
    """Whether two rows are equal."""
    equal = True
    for k in range(rows.shape[1]):
        equal = equal and rows[a, k] == others[b, k]
    return equal


@inlined
def copy_row(rows: Longs, a: int, to: Longs, b: int) -> None:
    """to[b] = rows[a]; assigning a whole row would first check whether they overlap."""
    for k in range(rows.shape[1]):
        to[b, k] = rows[a, k]


@embedded
def place(n: int, rows: Longs, label: Longs, order: Longs) -> None:
    """Insert row n into the order of those before it."""
    at = n
    while at > 0 and less(rows, label, n, order[at - 1]):
        order[at] = order[at - 1]
        at -= 1
    order[at] = n


@inlined
def digest(rows: Longs, order: Longs, begin: int, end: int, part: int) -> int:
    """A hash of a set."""
    h = fold(fold(np.uint64(0), np.uint64(part)), np.uint64(end - begin))
    for x in range(begin, end):
        r = order[x]
        for k in range(rows.shape[1]):
            h = fold(h, np.uint64(rows[r, k]))
    return np.int64(h >> np.uint64(1))


@embedded
def intern(rows: Longs, order: Longs, begin: int, end: int, part: int, sets: Sets) -> int:
    """The number of the set of rows[order[begin:end]], which is new if there are more sets then; -1 without room."""
    cursor = sets.cursor
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
    d = np.int32(cursor.sets)
    if d == sets.begin.size or cursor.rows + end - begin > sets.rows.shape[0]:
        return -1
    first = cursor.rows
    for x in range(end - begin):
        copy_row(rows, order[begin + x], sets.rows, first + x)
    sets.begin[d], sets.size[d], sets.part[d], sets.code[d] = first, end - begin, part, h
    sets.table[at] = d
    cursor.sets += 1
    cursor.rows += end - begin
    return np.int64(d)
