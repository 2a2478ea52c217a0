"""The two stacks of counting: matches are counted, not enumerated, at a cost that does not grow with the window.

`counter` owns the arrays and calls these kernels. The kernels are here, not in `counter`, so that `limbs`, which has
the same two stacks over wide numbers, can import them without a cycle.

A partition's live starts form a queue, aggregated with two stacks (Tangwongsan et al., "two-stacks"): the back stack
lists the events since the last flip with their product P and the vector v of the starts among them; the front stack
holds older starts, each with the sum of its own and all newer front starts' vectors as they were at the flip. The
matches that an event completes are its gain · (P · front + v), before it moves anything. When the oldest start leaves
the window and the front is empty, a flip walks the back once, new to old; each event is walked at most once, so that
an event costs amortised O(1). Events that neither move a state nor start a run are not in the back.

Invariants: both stacks are linked lists in one arena of nodes; `oldest` is the key of the back's first start, `newest`
that of the latest start; with no start alive a partition owns no node and no slot. Numbers stay below 2**62 (see
`steps`), so nothing ever wraps: a partition that would get there is handed to `limbs` (`wide[slot]` set). No run is in
dstate 0, so that vectors and matrices begin at 1.
"""

from typing import NamedTuple

import numpy as np

from cerite.core.arrays import Flags, Ints, Longs, Words
from cerite.core.jit import inlined, inner, kernel
from cerite.engine.counting.blocks import Block, look
from cerite.engine.counting.steps import (
    Steps,
    advance_matrix,
    advance_vector,
    retreat_matrix,
    set_identity,
    unknown_state,
)
from cerite.engine.events.keys import Reach
from cerite.engine.state.cursor import Consumption, Cursor, Stop
from cerite.engine.subset.base import Batch
from cerite.engine.subset.determinise import INITIAL, MISSING
from cerite.predicate.columns.kernels import Lookup

CEILING = 4.0e18  # below 2**62
LOW = 0  # the only place of a total: its low word; how often that ran over is the cursor's `high`


class CountingOptions(NamedTuple):
    """How a query is counted, and with how many deterministic states so far."""

    windowed: bool
    consume: int  # a `Consumption`
    limit: np.uint64  # what numbers must not exceed
    size: int


class Starts(NamedTuple):
    """The live starts of every partition, by its slot: the heads of the two stacks, P, v and their keys."""

    slot_of: Ints
    free: Ints
    epochs: Longs
    wide: Flags
    front: Ints
    back: Ints
    starts: Ints  # how many are in the back
    oldest: Longs
    newest: Longs
    p: Words
    v: Words


class Queue(NamedTuple):
    """The nodes of both stacks."""

    node_class: Ints
    node_key: Longs
    node_next: Ints
    node_v: Words
    cursor: Cursor


class Scratch(NamedTuple):
    """Room for one step: rows on their way, and the product of a flip; and the total of the batch."""

    spare: Words
    r: Words
    total: Words


@kernel
def free_chain(head: int, queue: Queue) -> None:
    """Return a whole stack to the arena."""
    while head >= 0:
        following = queue.node_next[head]
        queue.node_next[head] = queue.cursor.free_node
        queue.cursor.free_node = head
        head = following


@inner
def release(part: int, s: int, slots: Starts, queue: Queue) -> None:
    """Take back the slot of a partition, and its nodes."""
    free_chain(slots.front[s], queue)
    free_chain(slots.back[s], queue)
    slots.front[s], slots.back[s] = -1, -1
    slots.slot_of[part] = -1
    slots.free[queue.cursor.free_slots] = s
    queue.cursor.free_slots += 1


@inlined
def expire(s: int, low: int, slots: Starts, queue: Queue) -> None:
    """Drop from the front what has left the window."""
    while slots.front[s] >= 0 and queue.node_key[slots.front[s]] < low:
        gone = slots.front[s]
        slots.front[s] = queue.node_next[gone]
        queue.node_next[gone] = queue.cursor.free_node
        queue.cursor.free_node = gone


@inner
def flip(s: int, size: int, limit: np.uint64, steps: Steps, slots: Starts, queue: Queue, scratch: Scratch) -> bool:
    """Move slot s's back stack to its empty front; False, with nothing changed, when a number nears the limit."""
    entry, succ, r = steps.entry, steps.succ, scratch.r
    node_class, node_next = queue.node_class, queue.node_next
    set_identity(r, size)
    suffix = scratch.spare[size]
    suffix[:size] = np.uint64(0)
    node = slots.back[s]
    while node >= 0:
        c = node_class[node]
        offset = entry[c, INITIAL]
        top = np.uint64(0)
        for y in range(offset + 1, offset + 1 + 2 * succ[offset], 2):
            target = succ[y + 1]
            for k in range(1, size):
                suffix[k] += r[target, k]
                top = max(top, suffix[k])
        if succ[offset]:
            for k in range(1, size):
                queue.node_v[node, k] = suffix[k]
        top = max(top, retreat_matrix(r, 1, size, c, steps, scratch.spare))
        if top > limit:
            return False
        node = node_next[node]
    node = slots.back[s]
    head = np.int32(-1)
    while node >= 0:
        following = node_next[node]
        if succ[entry[node_class[node], INITIAL]]:
            node_next[node] = head
            head = node
        else:
            node_next[node] = queue.cursor.free_node
            queue.cursor.free_node = node
        node = following
    slots.front[s] = head
    slots.back[s] = -1
    set_identity(slots.p[s], size)
    slots.v[s, :size] = np.uint64(0)
    return True


@inlined
def note_matches(matches: np.uint64, total: Words, cursor: Cursor) -> None:
    """Add the matches that an event completes to the total."""
    cursor.occurrences += 1
    total[LOW] += matches
    if total[LOW] < matches:
        cursor.high += 1


@kernel
def count_events(
    batch: Batch, options: CountingOptions, steps: Steps, slots: Starts, queue: Queue, scratch: Scratch
) -> int:
    """Count over batch.selection[cursor.next:]; returns why it stopped, `DONE` at the end of the batch."""
    windowed, consume, limit, size = options.windowed, options.consume, options.limit, options.size
    cursor, entry, succ = queue.cursor, steps.entry, steps.succ
    front, back, starts, p, v, spare = slots.front, slots.back, slots.starts, slots.p, slots.v, scratch.spare
    for x in range(cursor.next, batch.selection.size):
        cursor.next = x
        i = batch.selection[x]
        c, key, low = batch.classes[i], batch.key[i], batch.low[i]
        part = batch.partition[i] if batch.partition.size else 0
        s = slots.slot_of[part]
        if entry[c, INITIAL] == MISSING:
            cursor.dstate, cursor.event_class = INITIAL, c
            return Stop.MISS
        fresh, alone = succ[entry[c, INITIAL]], np.uint64(steps.gain[c, INITIAL])
        if s < 0:
            if fresh == 0:
                if alone:
                    note_matches(alone, scratch.total, cursor)
                    if consume == Consumption.ANY:
                        cursor.epoch += 1
                continue
            if cursor.free_slots == 0:
                return Stop.MORE_SLOTS
            if cursor.free_node < 0:  # `sweep` would free a slot that is taken and holds nothing, again and again
                return Stop.MORE_NODES
            cursor.free_slots -= 1
            s = slots.free[cursor.free_slots]
            slots.slot_of[part] = s
            slots.epochs[s] = cursor.epoch
            front[s], back[s], starts[s], slots.wide[s] = -1, -1, 0, False
            v[s, :size] = np.uint64(0)
        if slots.epochs[s] != cursor.epoch:
            free_chain(front[s], queue)
            free_chain(back[s], queue)
            front[s], back[s], starts[s] = -1, -1, 0
            v[s, :size] = np.uint64(0)
            slots.wide[s] = False
            slots.epochs[s] = cursor.epoch
        if slots.wide[s]:
            if consume == Consumption.ANY:
                return Stop.WIDE
            continue
        if cursor.free_node < 0:
            return Stop.MORE_NODES
        if windowed:
            expire(s, low, slots, queue)
            if front[s] < 0 and starts[s] and slots.oldest[s] < low:
                if not flip(s, size, limit, steps, slots, queue, scratch):
                    cursor.slot = s
                    return Stop.HOT
                starts[s] = 0
                expire(s, low, slots, queue)
        if front[s] < 0 and starts[s] == 0:
            free_chain(back[s], queue)
            back[s] = -1
            v[s, :size] = np.uint64(0)
        lead = front[s]
        missing = unknown_state(c, v[s], p[s], queue.node_v[max(lead, 0)], lead >= 0, size, steps)
        if missing >= 0:
            cursor.dstate, cursor.event_class = missing, c
            return Stop.MISS
        matches, estimate = alone, 0.0
        for y in range(steps.n_gaining[c]):
            d = steps.gaining[c, y]
            runs, about = v[s, d], np.float64(v[s, d])
            if lead >= 0:
                for k in range(1, size):
                    runs += p[s, d, k] * queue.node_v[lead, k]
                    about += np.float64(p[s, d, k]) * np.float64(queue.node_v[lead, k])
            matches += np.uint64(steps.gain[c, d]) * runs
            estimate += steps.gain[c, d] * about
        if estimate > CEILING:
            cursor.slot = s
            return Stop.HOT
        if matches:
            note_matches(matches, scratch.total, cursor)
            if consume:
                if consume == Consumption.ANY:
                    cursor.epoch += 1
                release(part, s, slots, queue)
                continue
        if fresh == 0 and lead < 0 and starts[s] == 0:
            release(part, s, slots, queue)
            continue
        top = advance_vector(v[s], c, steps, spare[size])
        if lead >= 0:
            top = max(top, advance_matrix(p[s], 1, size, c, steps, spare))
        if fresh:
            offset = entry[c, INITIAL]
            for y in range(offset + 1, offset + 1 + 2 * fresh, 2):
                v[s, succ[y + 1]] += np.uint64(1)
            if starts[s] == 0:
                slots.oldest[s] = key
            slots.newest[s] = key
            starts[s] = starts[s] + 1 if windowed else 1
        if windowed and (fresh or steps.n_touched[c]):
            node = cursor.free_node
            cursor.free_node = queue.node_next[node]
            queue.node_class[node], queue.node_key[node], queue.node_next[node] = c, key, back[s]
            back[s] = node
        if top > limit:
            cursor.slot, cursor.next = s, x + 1
            return Stop.HOT
    cursor.next = batch.selection.size
    return Stop.DONE


@kernel
def count_blocks(begin: int, key: Longs, lookup: Lookup, reach: Reach, block: Block, options: CountingOptions,
                 steps: Steps, slots: Starts, queue: Queue, scratch: Scratch) -> tuple[int, int, int]:  # fmt: skip
    """Count all events of a single stream from `begin` on, block by block.

    Returns the first event of the block that it stopped in (at the end, the number of events), how many events of that
    block are relevant, or -1 for a class that is not known yet, and why it stopped.
    """
    none, size = key[:0], block.low.size
    for at in range(begin, key.size, size):
        n = min(size, key.size - at)
        relevant = look(at, at + n, key, lookup, reach, block)
        if relevant < 0:
            return at, relevant, Stop.MISS
        queue.cursor.next = 0
        batch = Batch(block.relevant[:relevant], block.classes[:n], key[at : at + n], block.low[:n], none)
        why = count_events(batch, options, steps, slots, queue, scratch)
        if why != Stop.DONE:
            return at, relevant, why
    return key.size, 0, Stop.DONE


# Taking back the slots of partitions in which nothing can be bound any more.
#
# A partition notices that its window is empty, or that all its runs have ended, only at its own next event. When there
# is no more room, or when it is time to recycle (`cerite.engine.recycle`), `sweep` finds the partitions without a run.
#
# Invariant: only partitions whose every start is before their low, or whose runs are in no state that an event could
# move, lose their slot; wide partitions stay.


@inner
def running(s: int, moves: Flags, slots: Starts, queue: Queue) -> bool:
    """Whether a slot has runs in a state that events can move."""
    p, v = slots.p, slots.v
    for d in range(v.shape[1]):
        if moves[d] and v[s, d]:
            return True
    if slots.front[s] >= 0:
        older = queue.node_v[slots.front[s]]
        for d in range(p.shape[1]):
            for k in range(p.shape[2]):
                if moves[d] and p[s, d, k] and older[k]:
                    return True
    return False


@kernel
def sweep(lows: Longs, moves: Flags, slots: Starts, queue: Queue) -> int:
    """Free the slots without a run that can go on, `lows` by partition; returns how many."""
    freed = 0
    for part in range(min(slots.slot_of.size, lows.size)):
        s = slots.slot_of[part]
        if s < 0 or slots.wide[s]:
            continue
        ended = slots.newest[s] < lows[part] or slots.epochs[s] != queue.cursor.epoch
        if ended or not running(s, moves, slots, queue):
            release(part, s, slots, queue)
            freed += 1
    return freed
