"""The index of active states by what they wait for: an event looks only at sets that may move.

Every state has *signatures*, derived from its transitions: it may move on any event, if a bit is set, unless a bit is
set, or if a leaf of the event equals a stored value (found by hash) or compares with it (found in a tree by order). A
set is entered under the signatures of its rows, once, when it is created; it is in the chains of its buckets while it
holds something (trees keep it until they are rebuilt). Trees are treaps, which keeps them balanced: priorities are
hashes, so any order of arrival, even a sorted one, gives depth O(log n).

Invariant: every set of the partition that the event could change is found; sets that do not change may be found, too.
"""

import numpy as np

from cerite.core.arrays import Ints, Longs
from cerite.core.hashing import fold
from cerite.core.jit import embedded, inlined, kernel
from cerite.engine.events.keys import MOST
from cerite.engine.registers import interpret as op
from cerite.engine.registers.interpret import FLAGS, KNOWN, STATE, VALUES
from cerite.engine.registers.layout import (
    ALWAYS,
    LIST,
    ORDER,
    PAST,
    SAME,
    STATES,
    UNLESS,
    WAKE_BIT,
    WAKE_FLOAT,
    WAKE_KIND,
    WAKE_LEAF,
    WAKE_OP,
    WAKE_SLOT,
    Events,
    Index,
    Scratch,
    Sets,
    Tables,
)
from cerite.engine.registers.sets import bit_of

PART, SIGNATURE, VALUE, FIRST_ENTRY = range(4)
NONE, FREE = -1, -2  # the first entry of an empty bucket, and of a place without a bucket


def new_index(entries: int, sets: int, buckets: int, *, equal: bool) -> Index:
    """An empty index with this much room; `equal` if some state waits for a value equal to a stored one."""
    key = np.zeros((1 << (2 * entries).bit_length() if equal else 2, 4), np.int64)
    key[:, FIRST_ENTRY] = FREE
    entry_set, following, right = (np.full(entries, NONE, np.int32) for _ in range(3))
    place, value = np.zeros(entries, np.int64), np.zeros(entries, np.int64)
    begin, linked = np.zeros(sets + 1, np.int64), np.zeros(entries, np.bool_)
    return Index(np.full(buckets, NONE, np.int32), key, begin, entry_set, place, linked, following, right, value)


@inlined
def sortable(payload: int, is_float: int) -> int:
    """The payload as an integer in the order of the values."""
    return payload ^ MOST if is_float and payload < 0 else payload


@inlined
def priority(entry: int) -> int:
    """What keeps the trees balanced."""
    return fold(np.uint64(0), np.uint64(entry + 1))


@embedded
def bucket(part: int, signature: int, value: int, key: Longs) -> int:
    """The place in `key` of a bucket of equal values, or the free place where it belongs."""
    h = fold(fold(fold(np.uint64(0), np.uint64(part)), np.uint64(value)), np.uint64(signature))
    mask = key.shape[0] - 1
    at = np.int64(h) & mask
    while key[at, FIRST_ENTRY] != FREE and not (
        key[at, PART] == part and key[at, SIGNATURE] == signature and key[at, VALUE] == value
    ):
        at = (at + 1) & mask
    return at


@embedded
def plant(at: int, entry: int, index: Index) -> None:
    """Insert an entry into the tree of a bucket of `first`."""
    value = index.value[entry]
    above, to_right, node = -1, False, index.first[at]
    while node >= 0 and priority(node) >= priority(entry):
        above, to_right = node, index.value[node] <= value
        node = index.right[node] if to_right else index.following[node]
    if above < 0:
        index.first[at] = entry
    elif to_right:
        index.right[above] = entry
    else:
        index.following[above] = entry
    smaller, larger = entry, entry  # where the parts of the old subtree are hung next
    while node >= 0:
        if index.value[node] <= value:
            if smaller == entry:
                index.following[smaller] = node
            else:
                index.right[smaller] = node
            smaller, node = node, index.right[node]
        else:
            if larger == entry:
                index.right[larger] = node
            else:
                index.following[larger] = node
            larger, node = node, index.following[node]
    if smaller == entry:
        index.following[smaller] = -1
    else:
        index.right[smaller] = -1
    if larger == entry:
        index.right[larger] = -1
    else:
        index.following[larger] = -1


@embedded
def enter(d: int, tables: Tables, sets: Sets, index: Index) -> bool:
    """Give a set entries under the signatures of its rows; False without room, and then it can be tried again."""
    states, cursor = tables.shape[STATES], sets.cursor
    index.begin[d], index.begin[d + 1] = cursor.entries, cursor.entries
    if sets.part[d] < 0:
        return True  # watched, not active
    for r in range(sets.begin[d], sets.begin[d] + sets.size[d]):
        q = sets.rows[r, STATE] % states
        for y in range(tables.wakes_first[q], tables.wakes_first[q + 1]):
            signature = tables.wakes[y]
            kind, slot = tables.signatures[signature, WAKE_KIND], tables.signatures[signature, WAKE_SLOT]
            value = np.int64(0)
            if kind in (SAME, ORDER, PAST):
                if (sets.rows[r, FLAGS] >> 2 * slot & 3) != KNOWN:
                    continue  # never equal to anything, nor below or above it
                value = sets.rows[r, VALUES + slot]
            if cursor.entries == index.entry_set.size or 2 * cursor.buckets >= index.key.shape[0]:
                return False
            at = sets.part[d] * tables.signatures.shape[0] + signature
            if kind == SAME:
                place = bucket(sets.part[d], signature, value, index.key)
                if index.key[place, FIRST_ENTRY] == FREE:
                    index.key[place, PART], index.key[place, SIGNATURE] = sets.part[d], signature
                    index.key[place, VALUE], index.key[place, FIRST_ENTRY] = value, NONE
                    cursor.buckets += 1
                at = -1 - place
            entry = np.int32(cursor.entries)
            cursor.entries += 1
            index.begin[d + 1] = cursor.entries
            index.entry_set[entry], index.place[entry], index.linked[entry] = d, at, kind in (ORDER, PAST)
            if kind in (ORDER, PAST):
                index.value[entry] = sortable(value, tables.signatures[signature, WAKE_FLOAT])
                plant(at, entry, index)
    return True


@inlined
def link(d: int, index: Index) -> None:
    """Put a set that again holds something back into the chains that it was taken out of."""
    for entry in range(index.begin[d], index.begin[d + 1]):
        if not index.linked[entry]:
            index.linked[entry] = True
            at = index.place[entry]
            if at >= 0:
                index.following[entry] = index.first[at]
                index.first[at] = entry
            else:
                index.following[entry] = index.key[-1 - at, FIRST_ENTRY]
                index.key[-1 - at, FIRST_ENTRY] = entry


@kernel
def empty(index: Index, entries: int) -> None:
    """Empty the buckets of `entries` entries."""
    for entry in range(entries):
        at = index.place[entry]
        if at >= 0:
            index.first[at] = NONE
        else:
            index.key[-1 - at, FIRST_ENTRY] = FREE


@embedded
def uproot(at: int, low: int, head: Ints, index: Index) -> int:
    """Take sets that hold nothing out of a tree, from the least value on: their windows are over. Returns its root.

    A set whose window is over holds something only until the event that ends the window, and never again.
    """
    while True:
        above, node = -1, index.first[at]
        while node >= 0 and index.following[node] >= 0:
            above, node = node, index.following[node]
        if node < 0 or index.value[node] >= low or head[index.entry_set[node], LIST] >= 0:
            return int(index.first[at])
        if above < 0:
            index.first[at] = index.right[node]
        else:
            index.following[above] = index.right[node]


@embedded
def wake_tree(first: int, n: int, how: int, value: int, mark: int, head: Ints, index: Index, scratch: Scratch) -> int:
    """Note the sets that hold something and whose stored value s satisfies `value how s`."""
    left, right, stack, stamp = index.following, index.right, scratch.tree, scratch.stamp
    top = 0
    stack[0] = first
    below = how in (op.MORE, op.AT_LEAST)  # whether values below the event's are wanted
    while top >= 0:
        node = stack[top]
        top -= 1
        while node >= 0:
            stored = index.value[node]
            beyond = stored < value if below else stored > value
            if beyond or (stored == value and how in (op.AT_LEAST, op.AT_MOST)):
                d = index.entry_set[node]
                if head[d, LIST] >= 0 and stamp[d] != mark:
                    stamp[d] = mark
                    scratch.moving[n] = d
                    n += 1
                top += 1
                stack[top] = left[node] if below else right[node]
                node = right[node] if below else left[node]
            else:
                node = left[node] if below else right[node]
    return n


@embedded
def touched(i: int, part: int, mark: int, head: Ints, events: Events, tables: Tables, index: Index,
            scratch: Scratch) -> int:  # fmt: skip
    """Write the partition's sets that event i may move to scratch.moving; how many. Empty sets leave their chains."""
    n = np.int64(0)
    for signature in range(tables.signatures.shape[0] - 1):
        kind, bit = tables.signatures[signature, WAKE_KIND], tables.signatures[signature, WAKE_BIT]
        if kind != ALWAYS and bit_of(events.bits, i, bit) == (kind == UNLESS):
            continue
        value, leaf = np.int64(0), tables.signatures[signature, WAKE_LEAF]
        if kind in (SAME, ORDER, PAST):
            if np.int64(events.nulls[i]) >> leaf & 1:
                continue
            value = events.values[i, leaf]
        at = part * tables.signatures.shape[0] + signature
        if kind == SAME:
            at = -1 - bucket(part, signature, value, index.key)
        entry = index.first[at] if at >= 0 else index.key[-1 - at, FIRST_ENTRY]
        if kind == PAST:
            entry = uproot(at, value, head, index)
        if kind in (ORDER, PAST):
            if entry >= 0:
                value = sortable(value, tables.signatures[signature, WAKE_FLOAT])
                n = wake_tree(entry, n, tables.signatures[signature, WAKE_OP], value, mark, head, index, scratch)
            continue
        before = NONE
        while entry >= 0:
            following = index.following[entry]
            d = index.entry_set[entry]
            if head[d, LIST] < 0:
                index.linked[entry] = False
                if before >= 0:
                    index.following[before] = following
                elif at >= 0:
                    index.first[at] = following
                else:
                    index.key[-1 - at, FIRST_ENTRY] = following
            else:
                before = entry
                if scratch.stamp[d] != mark:
                    scratch.stamp[d] = mark
                    scratch.moving[n] = d
                    n += 1
            entry = following
    return n
