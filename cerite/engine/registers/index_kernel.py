"""The index of active states by what they wait for (DESIGN 5.4): an event looks only at sets that may move.

Every state has *signatures*, worked out from its transitions: it may move on any event, when a bit is set, unless one
is, when a leaf of the event equals a stored value (found by hash) or compares with it (found in a tree by order). A
set is entered under the signatures of its rows, once, when it is made. A treap keeps the trees balanced: priorities are
hashes, so any order of arrival, also a sorted one, gives depth O(log n).

Invariant: every set of the partition that the event could change is found; some that stay as they are may be, too.
"""

import numpy as np
import numpy.typing as npt

from cerite.engine.registers import programs as op
from cerite.engine.registers.layout import (
    ALWAYS,
    KIND,
    LISTED,
    N_BUCKETS,
    N_ENTRIES,
    ORDER,
    SAME,
    STATES,
    UNLESS,
    WAKE_BIT,
    WAKE_FLOAT,
    WAKE_LEAF,
    WAKE_OP,
    WAKE_SLOT,
    Events,
    Index,
    Scratch,
    Sets,
    Tables,
)
from cerite.engine.registers.program_kernel import FLAGS, KNOWN, STATE, VALUES
from cerite.engine.registers.sets_kernel import bit_of
from cerite.jit import inlined, kernel

Longs = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32]
PART, SIGNATURE, VALUE, FIRST = range(4)
MOST = np.iinfo(np.int64).max


@inlined
def sortable(payload: int, is_float: int) -> int:
    """The payload as an integer in the order of the values."""
    return payload ^ MOST if is_float and payload < 0 else payload


@inlined
def priority(entry: int) -> int:
    """What keeps the trees balanced."""
    return (np.uint64(entry + 1) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)


@kernel
def bucket(part: int, signature: int, value: int, index: Index) -> int:
    """The place of a bucket, or of the free place where it belongs."""
    h = (np.uint64(part) * np.uint64(0x9E3779B97F4A7C15)) ^ (np.uint64(value) * np.uint64(0xC2B2AE3D27D4EB4F))
    h = (h ^ (h >> np.uint64(29)) ^ np.uint64(signature)) * np.uint64(0xFF51AFD7ED558CCD)
    mask = index.key.shape[0] - 1
    at = np.int64(h >> np.uint64(33)) & mask
    while index.key[at, FIRST] >= 0 and not (
        index.key[at, PART] == part and index.key[at, SIGNATURE] == signature and index.key[at, VALUE] == value
    ):
        at = (at + 1) & mask
    return at


@kernel
def plant(at: int, entry: int, index: Index) -> None:
    """Insert an entry into the tree of a bucket."""
    value = index.value[entry]
    above, to_right, node = -1, False, index.key[at, FIRST]
    while node >= 0 and priority(node) >= priority(entry):
        above, to_right = node, index.value[node] <= value
        node = index.right[node] if to_right else index.following[node]
    if above < 0:
        index.key[at, FIRST] = entry
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


@kernel
def enter(d: int, tables: Tables, sets: Sets, index: Index, regs: Longs) -> bool:
    """Enter a set under the signatures of its rows; False without room, and nothing is lost by entering it again."""
    states = tables.shape[STATES]
    if sets.part[d] < 0:
        return True  # watched, not active
    for r in range(sets.begin[d], sets.begin[d] + sets.size[d]):
        q = sets.rows[r, STATE] % states
        for y in range(tables.wakes_first[q], tables.wakes_first[q + 1]):
            signature = tables.wakes[y]
            kind, slot = tables.signatures[signature, KIND], tables.signatures[signature, WAKE_SLOT]
            value = np.int64(0)
            if kind in (SAME, ORDER):
                if (sets.rows[r, FLAGS] >> 2 * slot & 3) != KNOWN:
                    continue  # never equal to anything, nor below or above it
                value = sets.rows[r, VALUES + slot]
            at = bucket(sets.part[d], signature, value if kind == SAME else np.int64(0), index)
            if index.key[at, FIRST] >= 0 and kind != ORDER and index.entry_set[index.key[at, FIRST]] == d:
                continue
            if regs[N_ENTRIES] == index.entry_set.size or 2 * regs[N_BUCKETS] >= index.key.shape[0]:
                return False
            entry = np.int32(regs[N_ENTRIES])
            regs[N_ENTRIES] += 1
            index.entry_set[entry] = d
            if index.key[at, FIRST] < 0:
                index.key[at, PART], index.key[at, SIGNATURE] = sets.part[d], signature
                index.key[at, VALUE] = value if kind == SAME else 0
                regs[N_BUCKETS] += 1
                index.following[entry] = -1
                index.right[entry] = -1
                index.value[entry] = sortable(value, tables.signatures[signature, WAKE_FLOAT])
                index.key[at, FIRST] = entry
            elif kind == ORDER:
                index.value[entry] = sortable(value, tables.signatures[signature, WAKE_FLOAT])
                plant(at, entry, index)
            else:
                index.following[entry] = index.key[at, FIRST]
                index.key[at, FIRST] = entry
    return True


@inlined
def wake(entry: int, n: int, head: Ints, mark: int, index: Index, scratch: Scratch) -> int:
    """Note a set that holds something, once per event."""
    d = index.entry_set[entry]
    if head[d, 0] >= 0 and scratch.stamp[d] != mark:
        scratch.stamp[d] = mark
        scratch.moving[n] = d
        return n + 1
    return n


@kernel
def wake_tree(first: int, n: int, how: int, value: int, head: Ints, mark: int, index: Index, scratch: Scratch) -> int:
    """Note the sets whose stored value s satisfies `value how s`."""
    top = 0
    scratch.order[0] = first
    while top >= 0:
        node = scratch.order[top]
        top -= 1
        while node >= 0:
            stored = index.value[node]
            if how in (op.MORE, op.AT_LEAST):  # stored values below
                if stored < value or (how == op.AT_LEAST and stored == value):
                    n = wake(node, n, head, mark, index, scratch)
                    top += 1
                    scratch.order[top] = index.following[node]
                    node = index.right[node]
                else:
                    node = index.following[node]
            elif stored > value or (how == op.AT_MOST and stored == value):
                n = wake(node, n, head, mark, index, scratch)
                top += 1
                scratch.order[top] = index.right[node]
                node = index.following[node]
            else:
                node = index.right[node]
    return n


@kernel
def touched(i: int, part: int, mark: int, head: Ints, events: Events, tables: Tables, index: Index,
            scratch: Scratch) -> int:  # fmt: skip
    """The sets of the partition that event i may move, in scratch.moving; how many."""
    n = 0
    for signature in range(tables.signatures.shape[0]):
        kind, bit = tables.signatures[signature, KIND], tables.signatures[signature, WAKE_BIT]
        if kind == LISTED or (kind != ALWAYS and bit_of(events.bits, i, bit) == (kind == UNLESS)):
            continue
        value, leaf = np.int64(0), tables.signatures[signature, WAKE_LEAF]
        if kind in (SAME, ORDER):
            if np.int64(events.nulls[i]) >> leaf & 1:
                continue
            value = events.values[i, leaf]
        at = bucket(part, signature, value if kind == SAME else np.int64(0), index)
        entry = index.key[at, FIRST]
        if kind == ORDER:
            if entry >= 0:
                value = sortable(value, tables.signatures[signature, WAKE_FLOAT])
                n = wake_tree(entry, n, tables.signatures[signature, WAKE_OP], value, head, mark, index, scratch)
            continue
        while entry >= 0:
            n = wake(entry, n, head, mark, index, scratch)
            entry = index.following[entry]
    return n
