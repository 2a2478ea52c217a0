"""Runs that are matches once their windows are over, in the order in which that happens: NOT at the end of a pattern.

Runs are distinguished by the position of their first event, so a set with such runs, a *waiting* set, has one start and
one end of its window. Every clock has a heap of its waiting sets by start: there is one clock for all partitions if
time drives the windows, else one for each. A set that runs have left (what must be absent has occurred) stays in its
heap until its turn comes, and is then skipped; so entering, leaving and deciding a run cost O(log n) at most, and
partitions in which nothing is due are not looked at.

Where parts are decided by windows of their own (`waits`), runs are distinguished by the first events of those parts
instead, and the rows of a waiting set belong to one match: it is decided when the first of them is, and a row is
decided when the last of its windows is over.

The heaps are pairing heaps over the numbers of sets: they are rebuilt where sets are renumbered.

Invariant: every set with runs in a tail is in the heap of its clock; sets of one start come out one after the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cerite.core.arrays import Flags, Ints, Longs
from cerite.core.jit import inlined, inner, kernel
from cerite.engine.events.keys import LEAST, MOST
from cerite.engine.registers.interpret import FLAGS, KNOWN, STATE, VALUES
from cerite.engine.registers.layout import LIST, Events, Sets
from cerite.engine.state.cursor import Consumption

NONE = -1
DUE, DONE_WITH, ROOT, STALE = range(4)  # places in `progress`


class Noted(NamedTuple):
    """What is known of the matches under each root noted."""

    ends: Longs  # their last events
    lows: Longs  # the least keys at which they may begin
    by: Longs  # the position of the event that ends them, or of the one that their window began with
    since: Longs  # the key of the latter, as if all windows lasted as the longest
    row: Longs  # the event of the batch that ends them; where the end of a window does, -1 less their partition


def nothing_noted(size: int) -> Noted:
    """Empty arrays with room for `size` roots."""
    return Noted(*(np.zeros(size, np.int64) for _ in Noted._fields))


class Deadlines(NamedTuple):
    """What waits, by set and by clock; None for a query without NOT at its end."""

    tails: Flags  # by state
    waits: Longs  # the slots of the keys since which windows of parts last; none where the query's window decides
    began: Longs  # the slots of the positions of the events that these windows began with
    sooner: Longs  # by how much these windows end sooner than the longest of them
    start_slot: int  # of the first event's position, -1 where not needed
    end_slot: int  # of the last event's position, likewise
    time_leaf: int  # what says the time, -1 where the query's window does
    lengths: int  # how many different lengths these windows have
    shared: bool  # whether there is one clock
    first: Ints  # by clock: the top of its heap
    waiting: Flags  # by set: whether it is in a heap
    start: Longs  # by set: the position of the event that its window began with
    key: Longs  # by set: the key of the event that its window began with; of parts, as if all lasted as the longest
    child: Ints
    sibling: Ints
    due: Ints  # sets whose windows end at the same moment
    progress: Longs  # how many are due, how many of them are done, roots noted, whether many sets became empty
    noted: Noted


@inlined
def clock_of(part: int, deadlines: Deadlines) -> int:
    """The clock that drives a partition."""
    return 0 if deadlines.shared else part


@inlined
def time_at(i: int, events: Events, deadlines: Deadlines) -> int:
    """The low of an event, in the window that decides."""
    leaf = deadlines.time_leaf
    low: int = events.low[i] if leaf < 0 else events.values[i, leaf]
    return low


@inner
def is_tail(d: int, sets: Sets, deadlines: Deadlines) -> bool:
    """Whether some run of the set is a match once its window is over."""
    tail = False
    for r in range(sets.begin[d], sets.begin[d] + sets.size[d]):
        tail = tail or deadlines.tails[sets.rows[r, STATE]]
    return tail


@inner
def earlier(a: int, b: int, sets: Sets, deadlines: Deadlines) -> bool:
    """The order of decisions: by deadline, start, then content of the sets, so that rebuilding cannot change it."""
    if deadlines.lengths > 1 and deadlines.key[a] != deadlines.key[b]:
        return bool(deadlines.key[a] < deadlines.key[b])
    if deadlines.start[a] != deadlines.start[b]:
        return bool(deadlines.start[a] < deadlines.start[b])
    if sets.size[a] != sets.size[b]:
        return bool(sets.size[a] < sets.size[b])
    for r in range(sets.size[a]):
        for k in range(sets.rows.shape[1]):
            one, two = sets.rows[sets.begin[a] + r, k], sets.rows[sets.begin[b] + r, k]
            if one != two:
                return bool(one < two)
    return bool(a < b)


@inner
def meld(a: int, b: int, sets: Sets, deadlines: Deadlines) -> int:
    """Meld two heaps into one; either may be empty."""
    if a < 0 or b < 0:
        return max(a, b)
    if earlier(b, a, sets, deadlines):
        a, b = b, a
    deadlines.sibling[b] = deadlines.child[a]
    deadlines.child[a] = b
    return a


@inner
def last_begun(d: int, sets: Sets, deadlines: Deadlines) -> tuple[int, int]:
    """The key and place of the part whose window ends last, in the row of the set for which that is earliest."""
    first, place = MOST, MOST
    for r in range(sets.begin[d], sets.begin[d] + sets.size[d]):
        last, began = LEAST, LEAST
        for k in range(deadlines.waits.size):
            slot = deadlines.waits[k]
            if (sets.rows[r, FLAGS] >> 2 * slot & 3) == KNOWN:
                key = max(sets.rows[r, VALUES + slot], LEAST + deadlines.sooner[k]) - deadlines.sooner[k]
                at = sets.rows[r, VALUES + deadlines.began[k]]
                if key > last or (key == last and at > began):
                    last, began = key, at
        if last < first or (last == first and began < place):
            first, place = last, began
    return first, place


@inner
def wait_for(d: int, key: int, sets: Sets, deadlines: Deadlines) -> None:
    """Enter a set that runs have come into, if it has a tail and is not there yet."""
    if deadlines.waiting[d] or not is_tail(d, sets, deadlines):
        return
    deadlines.waiting[d] = True
    if deadlines.waits.size:
        deadlines.key[d], deadlines.start[d] = last_begun(d, sets, deadlines)
    else:
        deadlines.start[d] = sets.rows[sets.begin[d], VALUES + deadlines.start_slot]
        deadlines.key[d] = key
    deadlines.child[d] = deadlines.sibling[d] = NONE
    clock = clock_of(sets.part[d], deadlines)
    deadlines.first[clock] = meld(int(d), int(deadlines.first[clock]), sets, deadlines)


@inner
def take_first(clock: int, sets: Sets, deadlines: Deadlines) -> int:
    """Take the first set out of a heap: its children are melded in pairs, then from the last pair to the first."""
    top = int(deadlines.first[clock])
    child, sibling = deadlines.child, deadlines.sibling
    rest, each = int(NONE), int(child[top])
    while each >= 0:
        other = int(sibling[each])
        following = int(sibling[other]) if other >= 0 else int(NONE)
        sibling[each] = NONE
        if other >= 0:
            sibling[other] = NONE
        pair = meld(each, other, sets, deadlines)
        sibling[pair] = rest  # a chain of pairs, the last one first
        rest, each = pair, following
    heap = int(NONE)
    while rest >= 0:
        following = int(sibling[rest])
        sibling[rest] = NONE
        heap = meld(heap, rest, sets, deadlines)
        rest = following
    deadlines.first[clock] = heap
    deadlines.waiting[top] = False
    return top


@inner
def gather_due(clock: int, low: int, head: Ints, sets: Sets, deadlines: Deadlines) -> int:
    """Take out the waiting sets whose windows end first, if they are over; returns how many these are."""
    n, key = 0, 0
    while deadlines.first[clock] >= 0:
        d = int(deadlines.first[clock])
        if head[d, LIST] >= 0:
            if deadlines.key[d] >= low or (n and deadlines.key[d] != key):
                break
            key = deadlines.key[d]
        take_first(clock, sets, deadlines)
        if head[d, LIST] >= 0:
            deadlines.due[n] = d
            n += 1
    return n


@inner
def ends_of(d: int, sets: Sets, deadlines: Deadlines) -> int:
    """How many different last events the runs of a set have that are in tails; 1 if they are not distinguished."""
    if deadlines.end_slot < 0:
        return 1
    begin, ends = sets.begin[d], 0
    slot = VALUES + deadlines.end_slot
    for r in range(begin, begin + sets.size[d]):
        fresh = deadlines.tails[sets.rows[r, STATE]]
        for before in range(begin, r):
            same = sets.rows[before, slot] == sets.rows[r, slot] and deadlines.tails[sets.rows[before, STATE]]
            fresh = fresh and not same
        ends += int(fresh)
    return ends


@kernel
def stop_clocks(consume: int, head: Ints, sets: Sets, deadlines: Deadlines) -> int:
    """At the end of the stream: the first clock whose windows are to be ended, in the order of their starts.

    If nothing is consumed, all heaps become one. If matches anywhere consume all runs, it is the clock whose windows
    end first; else each clock goes on by itself.
    """
    first = deadlines.first
    if consume == Consumption.PARTITION:
        return 0
    earliest = 0
    for clock in range(first.size):
        while first[clock] >= 0 and head[first[clock], LIST] < 0:
            take_first(clock, sets, deadlines)
        if consume == Consumption.ANY:
            known = first[clock] >= 0
            if known and (first[earliest] < 0 or earlier(first[clock], first[earliest], sets, deadlines)):
                earliest = clock
        elif clock:
            both = meld(int(first[0]), int(first[clock]), sets, deadlines)
            first[0], first[clock] = both, NONE
    return earliest


@kernel
def wait_for_all(sets: Sets, heads: Longs, keys: Longs, deadlines: Deadlines) -> None:
    """Enter the sets with these numbers, which hold runs with these start keys."""
    for y in range(heads.size):
        wait_for(heads[y], keys[y], sets, deadlines)
