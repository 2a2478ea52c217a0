"""Counting and finding by groups, event by event: what has left the window goes, stretches of values step, starts come.

An event's values cut the stored ones into stretches: below the least, equal to it, between it and the next, and so on,
and those that are NULL. Within a stretch the event's comparisons say the same, so that all its starts do the same step;
neighbours with equal steps form one range, and if comparisons do not matter there is a single range, of everything.

Invariant: an event that stops for want of room is begun again, or resumed where `Place.stage` says; what it has done by
then can be done twice without harm.
"""

import numpy as np

from cerite.core.arrays import Ints, Longs
from cerite.core.jit import inlined, inner, kernel
from cerite.engine.groups.grouping import NO, UNKNOWN, YES
from cerite.engine.groups.numbers import Numbers
from cerite.engine.groups.reading import read_range
from cerite.engine.groups.runs import (
    DEAD,
    EMPTY,
    Runs,
    compact_nodes,
    has_room,
    keep_entries,
    marked,
    move_entries,
    new_bottom,
    united,
)
from cerite.engine.groups.steps import CODE_BITS, MISSING, Steps, label_of, source_of
from cerite.engine.groups.tree import (
    ABOVE,
    BEFORE_NULLS,
    BELOW,
    FROM,
    FROM_SIDE,
    LEFT_END,
    NONE,
    RIGHT_END,
    STEP,
    TO,
    TO_SIDE,
    Forest,
    Room,
    Stage,
    changes,
    clear_cut,
    hand_down,
    is_left,
    plant,
    prepare_path,
    step_nodes,
    step_range,
    uproot,
)
from cerite.engine.registers.index import sortable
from cerite.engine.registers.interpret import compare
from cerite.engine.registers.layout import Events
from cerite.engine.state.cursor import Stop
from cerite.engine.tecs.nodes import note_root


@inlined
def cut_values(i: int, events: Events, steps: Steps, cuts: Longs) -> int:
    """The distinct values of the event that its comparisons look at, rising, in `cuts`; how many."""
    n = 0
    for a in range(steps.leaves.size):
        leaf = steps.leaves[a]
        if np.int64(events.nulls[i]) >> leaf & 1:
            continue
        value = sortable(events.values[i, leaf], steps.is_float)
        at = n
        while at > 0 and cuts[at - 1] > value:
            at -= 1
        if at > 0 and cuts[at - 1] == value:
            continue
        for k in range(n, at, -1):
            cuts[k] = cuts[k - 1]
        cuts[at] = value
        n += 1
    return n


@inlined
def code_of(stretch: int, n: int, i: int, events: Events, steps: Steps, cuts: Longs) -> int:
    """What the comparisons say of a stretch: 2k is below the k-th cut, 2k + 1 at it; the last one is that of NULLs."""
    code = 0
    for a in range(steps.leaves.size):
        leaf, answer = steps.leaves[a], UNKNOWN
        if stretch <= 2 * n and not np.int64(events.nulls[i]) >> leaf & 1:
            value = sortable(events.values[i, leaf], steps.is_float)
            at = 0
            while cuts[at] != value:
                at += 1
            answer = YES if compare(steps.operations[a], 2 * at + 1, stretch) else NO
        code |= answer << CODE_BITS * a
    return code


@inlined
def find_ranges(i: int, c: int, events: Events, steps: Steps, forest: Forest, room: Room) -> int:
    """Write the ranges in which an event of class c does something to room.ranges; how many, or -1 if a step misses."""
    n = cut_values(i, events, steps, room.cuts) if steps.depends[c] else 0
    stretches = 2 * n + 2 if steps.depends[c] else 1
    count, before = 0, 0
    for stretch in range(stretches):
        code = code_of(stretch, n, i, events, steps, room.cuts) if steps.depends[c] else 0
        step = steps.step_of[c, code]
        if step == MISSING:
            forest.place.code = code
            return -1
        value, side = np.int64(0), np.int64(LEFT_END)
        if stretch == 2 * n + 1:
            side = np.int64(BEFORE_NULLS)
        elif stretch > 0:
            value, side = room.cuts[(stretch - 1) // 2], np.int64(BELOW if stretch % 2 else ABOVE)
        if step != before and before > 0:
            room.ranges[count - 1, TO], room.ranges[count - 1, TO_SIDE] = value, side
        if step != before and step > 0:
            room.ranges[count, FROM], room.ranges[count, FROM_SIDE], room.ranges[count, STEP] = value, side, step
            count += 1
        before = step
    if before > 0:
        room.ranges[count - 1, TO], room.ranges[count - 1, TO_SIDE] = 0, RIGHT_END
    return count


@inlined
def drop_empty(part: int, ranges: int, forest: Forest, room: Room) -> int:
    """Keep only the ranges in which there are starts; returns how many these are."""
    count = 0
    for which in range(ranges):
        low, from_side = room.ranges[which, FROM], room.ranges[which, FROM_SIDE]
        high, to_side = room.ranges[which, TO], room.ranges[which, TO_SIDE]
        at = forest.root[part]
        while at >= 0:
            below = is_left(at, low, from_side, forest)
            if not below and is_left(at, high, to_side, forest):
                break
            at = forest.right[at] if below else forest.left[at]
        if at >= 0:
            for k in range(room.ranges.shape[1]):
                room.ranges[count, k] = room.ranges[which, k]
            count += 1
    return count


@inlined
def full(runs: Runs | None) -> int:
    """Why to stop when there is no room: for a number, or for nodes."""
    return Stop.MORE_LIMBS if runs is None else Stop.MORE_NODES


@inlined
def expire(part: int, low: int, forest: Forest, room: Room, numbers: Numbers | None, runs: Runs | None) -> bool:
    """Take out the starts of a partition that have left the window; False where something has no room."""
    x = forest.oldest[part]
    while x >= 0 and forest.key[x] < low:
        following = forest.after[x]
        if following < 0 or forest.key[forest.newest[part]] < low:
            clear(part, forest)
            return True
        if not uproot(x, part, forest, room, numbers, runs):
            return False
        forest.oldest[part] = following
        release(x, forest)
        x = following
    return True


@inner
def release(x: int, forest: Forest) -> None:
    """Make a node free."""
    forest.after[x] = forest.place.free
    forest.place.free = x
    forest.place.nodes -= 1


@inner
def clear(part: int, forest: Forest) -> None:
    """Forget the partial matches of a partition."""
    x = forest.oldest[part]
    while x >= 0:
        following = forest.after[x]
        release(x, forest)
        x = following
    forest.oldest[part] = forest.newest[part] = forest.root[part] = NONE


@inlined
def new_start(
    i: int, opening: int, events: Events, steps: Steps, forest: Forest, numbers: Numbers | None, runs: Runs | None
) -> int:
    """A node for the start at event i, not planted yet; callers have ensured room."""
    x, first, place = forest.place.free, steps.openings_at[opening], forest.place
    leaf, limbs = steps.stored, forest.limbs
    forest.left[x] = forest.right[x] = NONE
    forest.tagged[x] = False
    null = steps.openings[first + 1] == 0 or np.int64(events.nulls[i]) >> leaf & 1 == 1
    forest.null[x] = null
    forest.value[x] = 0 if null else sortable(events.values[i, leaf], steps.is_float)
    forest.born[x], forest.key[x] = place.born, events.key[i]
    for j in range(forest.own.shape[1]):
        forest.own[x, j] = np.uint64(0)
    if runs is not None:
        bottom = new_bottom(place.position, runs)
        for k in range(first + 2, steps.openings_at[opening + 1]):
            state = source_of(steps.openings[k])
            run = marked(bottom, label_of(steps.openings[k]), place.position, runs)
            forest.own[x, state] = united(forest.own[x, state], run, runs)
    if numbers is not None:
        for k in range(first + 2, steps.openings_at[opening + 1]):
            forest.own[x, steps.openings[k] * limbs] += np.uint64(1)
    return x


@inlined
def opening_nodes(opening: int, steps: Steps) -> int:
    """How many nodes of `runs` it takes at most to begin runs, or matches of one event."""
    first = steps.openings_at[opening]
    most: int = 3 * (steps.openings_at[opening + 1] - first + steps.openings[first])
    return most


@inlined
def add_start(x: int, part: int, forest: Forest, room: Room, numbers: Numbers | None, runs: Runs | None) -> None:
    """Plant a new start, after `prepare_path`."""
    place = forest.place
    place.free = forest.after[x]
    place.nodes += 1
    place.born += 1
    forest.after[x] = NONE
    plant(x, part, forest, room, numbers, runs)
    if forest.newest[part] >= 0:
        forest.after[forest.newest[part]] = x
    else:
        forest.oldest[part] = x
    forest.newest[part] = x


@inlined
def clear_cuts(part: int, ranges: int, opening: int, forest: Forest, steps: Steps, room: Room,
               numbers: Numbers | None, runs: Runs | None) -> bool:  # fmt: skip
    """Prepare the tree for the steps of an event; False if there is no room, also for matches of the event alone."""
    need = opening_nodes(opening, steps) if opening >= 0 else 0
    for which in range(ranges):
        step, levels = room.ranges[which, STEP], 1
        if runs is not None and not changes(step, steps):
            continue
        for value_at, side_at in ((FROM, FROM_SIDE), (TO, TO_SIDE)):
            value, side = room.ranges[which, value_at], room.ranges[which, side_at]
            along = clear_cut(part, value, side, forest, room, numbers, runs)
            if along < 0:
                return False
            levels += along
        if runs is not None:
            need += levels * step_nodes(step, forest, steps)
    fits = True
    if runs is not None:
        fits = has_room(need, runs)
    return fits


@inlined
def read_ranges(part: int, ranges: int, forest: Forest, steps: Steps, room: Room, runs: Runs) -> bool:
    """Take the matches of all ranges whose steps change nothing; False if there is no room."""
    forest.place.matches = EMPTY
    for which in range(ranges):
        if not changes(room.ranges[which, STEP], steps) and not read_range(part, which, forest, steps, room, runs):
            return False
    return True


@inlined
def accept_alone(opening: int, steps: Steps, forest: Forest, numbers: Numbers | None, runs: Runs | None) -> bool:
    """Add the matches that consist of the event alone; returns whether there are any."""
    single = steps.openings[steps.openings_at[opening]]
    if numbers is not None:
        numbers.total[0] += np.uint64(single)
    if runs is not None and single > 0:
        place, bottom = forest.place, new_bottom(forest.place.position, runs)
        for k in range(steps.single_at[opening], steps.single_at[opening + 1]):
            match = marked(bottom, label_of(steps.single[k]), place.position, runs)
            place.matches = united(place.matches, match, runs)
    return bool(single > 0)


@inlined
def move(i: int, part: int, c: int, opening: int, events: Events, steps: Steps, forest: Forest, room: Room,
         numbers: Numbers | None, runs: Runs | None) -> int:  # fmt: skip
    """Move the starts of a partition by event i: `DONE` or why not; sets place.stage."""
    if not expire(part, events.low[i], forest, room, numbers, runs):
        return full(runs)
    some, ranges, place = False, 0, forest.place
    if forest.root[part] >= 0:
        ranges = find_ranges(i, c, events, steps, forest, room)
        if ranges < 0:
            return Stop.MISS
        ranges = drop_empty(part, ranges, forest, room)
    if opening >= 0 and place.free < 0:
        return Stop.MORE_STARTS
    if runs is not None and not read_ranges(part, ranges, forest, steps, room, runs):
        return full(runs)
    if not clear_cuts(part, ranges, opening, forest, steps, room, numbers, runs):
        return full(runs)
    for which in range(ranges):
        if runs is None or changes(room.ranges[which, STEP], steps):
            some |= step_range(part, which, forest, steps, room, numbers, runs)
    if opening >= 0:
        some |= accept_alone(opening, steps, forest, numbers, runs)
    if runs is not None:
        some = place.matches != EMPTY
        if some:
            note_root(i, (place.matches >> 1) - 1, runs.roots, runs.cursor)
    place.stage = Stage.COMPLETED if some else Stage.MOVED
    return Stop.MORE_LIMBS if place.wide else Stop.DONE


@kernel
def read_groups(events: Events, consume: int, steps: Steps, forest: Forest, room: Room, lows: Longs,
                numbers: Numbers | None, runs: Runs | None) -> int:  # fmt: skip
    """Read events.selection[place.next:], adding all matches to the total or to the roots; returns why it stopped."""
    place = forest.place
    for at in range(place.next, events.selection.size):
        place.next = at
        i = events.selection[at]
        part = events.part[i] if events.part.size else 0
        bits = events.bits[i, 0]
        c = steps.class_of[bits]
        if c < 0:
            place.bits, place.code = bits, 0
            return Stop.MISS
        opening = steps.opening_of[c]
        lows[part] = events.low[i]
        place.position = events.position[i]
        if place.stage == Stage.UNREAD:
            if opening < 0 and forest.root[part] < 0:
                continue
            if runs is not None and runs.cursor.roots == runs.roots.node.size:
                return Stop.ROOTS_FULL
            why = move(i, part, c, opening, events, steps, forest, room, numbers, runs)
            if why != Stop.DONE:
                place.bits = bits
                return why
        if consume and place.stage == Stage.COMPLETED:
            clear(part, forest)
        elif opening >= 0 and steps.openings_at[opening + 1] > steps.openings_at[opening] + 2:
            if runs is not None and not has_room(opening_nodes(opening, steps), runs):
                return full(runs)
            x = new_start(i, opening, events, steps, forest, numbers, runs)
            if not prepare_path(x, part, forest, room, numbers, runs):
                return full(runs)
            add_start(x, part, forest, room, numbers, runs)
        place.occurrences += place.stage == Stage.COMPLETED
        place.stage = Stage.UNREAD
        if place.wide:
            place.next = at + 1
            return Stop.MORE_LIMBS
    place.next = events.selection.size
    return Stop.DONE


@kernel
def expire_all(lows: Longs, forest: Forest, room: Room, numbers: Numbers | None, runs: Runs | None) -> int:
    """`expire` for all partitions; `DONE` or why not."""
    for part in range(min(lows.size, forest.root.size)):
        if forest.root[part] >= 0 and not expire(part, lows[part], forest, room, numbers, runs):
            return full(runs)
    return Stop.DONE


@kernel
def hand_down_all(order: Longs, forest: Forest, room: Room, numbers: Numbers) -> int:
    """Do all pending steps, so that `own` is complete; `order` has room for every node. `DONE` or `MORE_LIMBS`."""
    for part in range(forest.root.size):
        n, at = 0, 0
        if forest.root[part] >= 0:
            order[0] = forest.root[part]
            n = 1
        while at < n:
            x = order[at]
            at += 1
            if not hand_down(x, forest, room, numbers, None):
                return Stop.MORE_LIMBS
            for y in (forest.left[x], forest.right[x]):
                if y >= 0:
                    order[n] = y
                    n += 1
    return Stop.DONE


@kernel
def plant_all(part: Longs, forest: Forest, room: Room, numbers: Numbers) -> None:
    """Plant nodes 0, 1, … into the trees of their partitions; nothing is pending."""
    for x in range(part.size):
        add_start(x, part[x], forest, room, numbers, None)


@kernel
def list_starts(nodes: Longs, part: Longs, forest: Forest) -> None:
    """List the starts of all partitions, by partition and in the order in which they came, with their partitions."""
    n = 0
    for p in range(forest.oldest.size):
        x = forest.oldest[p]
        while x >= 0:
            nodes[n], part[n] = x, p
            n += 1
            x = forest.after[x]


@kernel
def compact_groups(starts: Longs, target: Ints, forest: Forest, runs: Runs) -> None:
    """Keep the nodes that the starts (all of them) still refer to; `target` has room for a number for every node."""
    target[: runs.cursor.nodes] = DEAD
    for x in starts:
        keep_entries(forest.own, x, target)
        keep_entries(forest.sums, x, target)
        if forest.tagged[x]:
            keep_entries(forest.pending, x, target)
    compact_nodes(target, runs)
    for x in starts:
        move_entries(forest.own, x, target)
        move_entries(forest.sums, x, target)
        if forest.tagged[x]:
            move_entries(forest.pending, x, target)
