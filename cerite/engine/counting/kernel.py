"""Counting matches without enumerating them, at a cost that does not grow with the window.

A partition's live starts form a queue, aggregated with two stacks (Tangwongsan et al., "two-stacks"): the back stack
lists the events since the last flip with their product P and the vector v of the starts among them; the front stack
holds older starts, each with the sum of its own and all newer front starts' vectors as they were at the flip. The
matches ending now are the accepting part of P · front + v. When the oldest start leaves the window and the front is
empty, a flip walks the back once, new to old; each event is walked at most once, so an event costs amortised O(1).

Invariants: both stacks are linked lists in one arena of nodes; `oldest` is the key of the back's first start,
`newest` that of the latest start; with no
start alive a partition owns no node and no slot. Numbers stay below 2**62 (see `count_steps`), so nothing ever wraps:
a partition that would get there is handed to `count_limbs` (`wide[slot]` set).
"""

import numpy as np
import numpy.typing as npt

from cerite.core.arrays import Ints, Longs
from cerite.core.jit import inner, kernel
from cerite.engine.counting.steps import advance_matrix, advance_vector, retreat_matrix, set_identity, unknown_state
from cerite.engine.subset.determinise import MISSING

Counts = npt.NDArray[np.uint64]

# Registers: scalars a kernel shares with Python.
NEXT, FREE_NODE, N_FREE, EPOCH, HIGH, OCCURRENCES, DSTATE, CLASS, SLOT = range(9)
DONE, MISS, MORE_SLOTS, MORE_NODES, HOT_BEFORE, HOT_AFTER, WIDE = range(7)  # HOT: before or after reading the event
CEILING = 4.0e18  # below 2**62


@kernel
def free_chain(head: int, node_next: Ints, regs: Longs) -> None:
    """Return a whole stack to the arena."""
    while head >= 0:
        following = node_next[head]
        node_next[head] = regs[FREE_NODE]
        regs[FREE_NODE] = head
        head = following


@inner
def flip(
    s: int,
    size: int,
    limit: np.uint64,
    front: Ints,
    back: Ints,
    node_class: Ints,
    node_next: Ints,
    node_v: Counts,
    p: Counts,
    v: Counts,
    entry: Ints,
    touched: Ints,
    n_touched: Ints,
    succ: Ints,
    spare: Counts,
    r: Counts,
    regs: Longs,
) -> bool:
    """Move slot s's back stack to its empty front; False, with nothing changed, when a number nears the limit."""
    set_identity(r, size)
    suffix = spare[size]
    suffix[:size] = np.uint64(0)
    node = back[s]
    while node >= 0:
        c = node_class[node]
        offset = entry[c, 0]
        top = np.uint64(0)
        for y in range(offset + 1, offset + 1 + 2 * succ[offset], 2):
            target = succ[y + 1]
            for k in range(size):
                suffix[k] += r[target, k]
                top = max(top, suffix[k])
        if succ[offset]:
            for k in range(size):
                node_v[node, k] = suffix[k]
        top = max(top, retreat_matrix(r, size, c, entry, touched, n_touched, succ, spare))
        if top > limit:
            return False
        node = node_next[node]
    node = back[s]
    head = np.int32(-1)
    while node >= 0:
        following = node_next[node]
        if succ[entry[node_class[node], 0]]:
            node_next[node] = head
            head = node
        else:
            node_next[node] = regs[FREE_NODE]
            regs[FREE_NODE] = node
        node = following
    front[s] = head
    back[s] = -1
    set_identity(p[s], size)
    v[s, :size] = np.uint64(0)
    return True


@kernel
def count_events(
    kept: Longs,
    classes: Ints,
    key: Longs,
    low: Longs,
    partition: Longs,
    windowed: bool,
    consume: int,
    limit: np.uint64,
    size: int,
    entry: Ints,
    touched: Ints,
    n_touched: Ints,
    succ: Ints,
    accepting: Ints,
    slot_of: Ints,
    free_slots: Ints,
    epochs: Longs,
    wide: npt.NDArray[np.bool_],
    front: Ints,
    back: Ints,
    starts: Ints,
    oldest: Longs,
    newest: Longs,
    p: Counts,
    v: Counts,
    node_class: Ints,
    node_key: Longs,
    node_next: Ints,
    node_v: Counts,
    spare: Counts,
    r: Counts,
    regs: Longs,
    total: Counts,
) -> int:
    """Count over kept[regs[NEXT]:]; returns why it stopped, `DONE` at the end of the batch."""
    for x in range(regs[NEXT], kept.size):
        regs[NEXT] = x
        i = kept[x]
        c = classes[i]
        part = partition[i] if partition.size else 0
        s = slot_of[part]
        if entry[c, 0] == MISSING:
            regs[DSTATE], regs[CLASS] = 0, c
            return MISS
        fresh = succ[entry[c, 0]]
        if s < 0:
            if fresh == 0:
                continue
            if regs[N_FREE] == 0:
                return MORE_SLOTS
            regs[N_FREE] -= 1
            s = free_slots[regs[N_FREE]]
            slot_of[part] = s
            epochs[s] = regs[EPOCH]
            front[s], back[s], starts[s], wide[s] = -1, -1, 0, False
            v[s, :size] = np.uint64(0)
        if epochs[s] != regs[EPOCH]:
            free_chain(front[s], node_next, regs)
            free_chain(back[s], node_next, regs)
            front[s], back[s], starts[s] = -1, -1, 0
            v[s, :size] = np.uint64(0)
            wide[s] = False
            epochs[s] = regs[EPOCH]
        if wide[s]:
            if consume == 2:
                return WIDE
            continue
        if regs[FREE_NODE] < 0:
            return MORE_NODES
        if windowed:
            while front[s] >= 0 and node_key[front[s]] < low[i]:
                gone = front[s]
                front[s] = node_next[gone]
                node_next[gone] = regs[FREE_NODE]
                regs[FREE_NODE] = gone
            if front[s] < 0 and starts[s] and oldest[s] < low[i]:
                if not flip(s, size, limit, front, back, node_class, node_next, node_v, p, v, entry, touched,
                            n_touched, succ, spare, r, regs):  # fmt: skip
                    regs[SLOT] = s
                    return HOT_BEFORE
                starts[s] = 0
                while front[s] >= 0 and node_key[front[s]] < low[i]:
                    gone = front[s]
                    front[s] = node_next[gone]
                    node_next[gone] = regs[FREE_NODE]
                    regs[FREE_NODE] = gone
        if front[s] < 0 and starts[s] == 0:
            free_chain(back[s], node_next, regs)
            back[s] = -1
            v[s, :size] = np.uint64(0)
            if fresh == 0:
                slot_of[part] = -1
                free_slots[regs[N_FREE]] = s
                regs[N_FREE] += 1
                continue
        lead = front[s]
        missing = unknown_state(c, v[s], p[s], node_v[max(lead, 0)], lead >= 0, size, entry, touched, n_touched)
        if missing >= 0:
            regs[DSTATE], regs[CLASS] = missing, c
            return MISS
        top = advance_vector(v[s], c, entry, touched, n_touched, succ, spare[size])
        if lead >= 0:
            top = max(top, advance_matrix(p[s], size, c, entry, touched, n_touched, succ, spare))
        if fresh:
            offset = entry[c, 0]
            for y in range(offset + 1, offset + 1 + 2 * fresh, 2):
                v[s, succ[y + 1]] += np.uint64(1)
            if starts[s] == 0:
                oldest[s] = key[i]
            newest[s] = key[i]
            starts[s] = starts[s] + 1 if windowed else 1
        if windowed:
            node = regs[FREE_NODE]
            regs[FREE_NODE] = node_next[node]
            node_class[node], node_key[node], node_next[node] = c, key[i], back[s]
            back[s] = node
        if top > limit:
            regs[SLOT] = s
            return HOT_AFTER
        found, estimate = np.uint64(0), 0.0
        lead = front[s]
        for a in accepting:
            found += v[s, a]
            estimate += np.float64(v[s, a])
            if lead >= 0:
                for k in range(size):
                    found += p[s, a, k] * node_v[lead, k]
                    estimate += np.float64(p[s, a, k]) * np.float64(node_v[lead, k])
        if estimate > CEILING:
            regs[SLOT] = s
            return HOT_AFTER
        if found:
            regs[OCCURRENCES] += 1
            total[0] += found
            if total[0] < found:
                regs[HIGH] += 1
            if consume == 1:
                free_chain(front[s], node_next, regs)
                free_chain(back[s], node_next, regs)
                slot_of[part] = -1
                free_slots[regs[N_FREE]] = s
                regs[N_FREE] += 1
            elif consume == 2:
                regs[EPOCH] += 1
    regs[NEXT] = kept.size
    return DONE


# Taking back the slots of partitions in which nothing can be bound any more.
#
# A partition notices that its window is empty, or that all its runs have ended, only at its own next event. Whoever
# runs out of room, or of patience (`cerite.engine.recycle`), asks here which partitions have no run left.
#
# Invariant: only partitions whose every start is before their low, or whose runs are in no state that an event could
# move, lose their slot; wide partitions stay.


@inner
def running(s: int, moves: npt.NDArray[np.bool_], front: Ints, p: Counts, v: Counts, node_v: Counts) -> bool:
    """Whether a slot has runs in a state that events can move."""
    for d in range(v.shape[1]):
        if moves[d] and v[s, d]:
            return True
    if front[s] >= 0:
        older = node_v[front[s]]
        for d in range(p.shape[1]):
            for k in range(p.shape[2]):
                if moves[d] and p[s, d, k] and older[k]:
                    return True
    return False


@kernel
def sweep(
    lows: Longs,
    moves: npt.NDArray[np.bool_],
    slot_of: Ints,
    free_slots: Ints,
    epochs: Longs,
    wide: npt.NDArray[np.bool_],
    front: Ints,
    back: Ints,
    newest: Longs,
    p: Counts,
    v: Counts,
    node_v: Counts,
    node_next: Ints,
    regs: Longs,
) -> int:
    """Free the slots without a run that can go on, `lows` by partition; returns how many."""
    freed = 0
    for part in range(min(slot_of.size, lows.size)):
        s = slot_of[part]
        if s < 0 or wide[s]:
            continue
        if newest[s] < lows[part] or epochs[s] != regs[EPOCH] or not running(s, moves, front, p, v, node_v):
            free_chain(front[s], node_next, regs)
            free_chain(back[s], node_next, regs)
            front[s], back[s] = -1, -1
            slot_of[part] = -1
            free_slots[regs[N_FREE]] = s
            regs[N_FREE] += 1
            freed += 1
    return freed
