"""The starts of a window in a tree ordered by the value they store; what all below a node have yet to do is pending.

A node is a start: its value, its place in the stream, and in `own` how many of its partial matches are in each
deterministic state. `sums` adds up the starts below a node and the node itself; `pending` is the product of the steps
that its children have not done yet, a matrix over the states: so a step for a whole stretch of values only touches the
few nodes at its two ends. Trees that find matches have entries of `runs` in place of numbers: not how many partial
matches there are but which, with unions for sums and joins for products.

Trees are treaps, which keeps them balanced: priorities are hashes of places, so no order of values is a worst case, and
the shape follows from the starts alone. Starts leave in the order in which they came, in which `after` chains them.

Invariant: `own` and `sums` of a node are right once the pending steps of the nodes above it are done. Only `hand_down`
multiplies, and it changes either everything or, if a number has no room, nothing; whatever changes a tree first hands
down along its whole way, so that it can stop there and begin again with wider numbers or more nodes.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cerite.core.arrays import Flags, Longs, Words
from cerite.core.hashing import mix
from cerite.core.jit import inlined, inner
from cerite.engine.groups.numbers import Numbers, add_to, length, narrow_product, settled, wide_product
from cerite.engine.groups.runs import (
    EMPTY,
    MOST_OF_A_TERM,
    Runs,
    completed,
    has_room,
    moved,
    multiplied,
    united,
)
from cerite.engine.groups.steps import Steps
from cerite.engine.state.cursor import record

NONE = -1
# sides of a cut: before all values, before or after those that equal its value, after all values, after NULLs as well
LEFT_END, BELOW, ABOVE, BEFORE_NULLS, RIGHT_END = range(5)
DEEPEST = 1 << 10  # a treap is never that deep


class Stage(IntEnum):
    """How far an event has got; one that then stops for want of room goes on from there."""

    UNREAD = 0
    MOVED = 1  # it has moved what there was, and not yet begun anything
    COMPLETED = 2  # the same, and matches end at it


@record
class Place(np.void):  # type: ignore[misc]
    """Where a counter is, and how much is in use."""

    next: int  # the place in `selection` of the event to read next
    occurrences: int  # events at which a match ended
    bits: int  # the class and code whose step is missing
    code: int
    nodes: int  # starts that are alive
    free: int  # the first of the chain of unused nodes
    born: int  # starts so far: their places
    wide: int  # whether a number has outgrown its form
    stage: int  # a `Stage`: how far the event at hand has got
    position: int  # of the event at hand
    matches: int  # the matches that this event completes, as an entry of `runs`


Entries = npt.NDArray[Any]  # numbers, which are words, or entries of `runs`, which are longs


class Forest(NamedTuple):
    """The trees, one for each partition."""

    left: Longs
    right: Longs
    after: Longs
    value: Longs  # in the order of values
    null: Flags  # whether the value is NULL or not known: these come last
    born: Longs
    key: Longs  # of the window
    own: Entries
    sums: Entries
    pending: Entries
    tagged: Flags  # whether something is pending; otherwise the contents of `pending` mean nothing
    root: Longs  # by partition
    oldest: Longs
    newest: Longs
    states: int
    limbs: int  # of a number
    place: Place


class Room(NamedTuple):
    """Room for one event's work."""

    path: Longs
    kids: Entries  # what both children of a node become
    spare: Entries
    cuts: Longs  # the distinct values of an event, rising
    ranges: Longs  # of stored values: where each begins and ends, and its step


# columns of `ranges`: a value and a side of it, again, and a step
FROM, FROM_SIDE, TO, TO_SIDE, STEP = range(5)


@inlined
def priority(x: int, forest: Forest) -> np.uint64:
    """What keeps the trees balanced."""
    return mix(np.uint64(forest.born[x]))


@inlined
def is_left(x: int, value: int, side: int, forest: Forest) -> bool:
    """Whether a start lies to the left of a cut."""
    if side in (LEFT_END, RIGHT_END):
        return bool(side == RIGHT_END)
    if forest.null[x]:
        return False
    return bool(side == BEFORE_NULLS or forest.value[x] < value or (side == ABOVE and forest.value[x] == value))


@inlined
def comes_first(x: int, y: int, forest: Forest) -> bool:
    """The order of starts: by value, NULLs last; equal ones as they came."""
    if forest.null[x] != forest.null[y]:
        return bool(forest.null[y])
    if not forest.null[x] and forest.value[x] != forest.value[y]:
        return bool(forest.value[x] < forest.value[y])
    return bool(forest.born[x] < forest.born[y])


@inner
def hand_down(x: int, forest: Forest, room: Room, numbers: Numbers | None, runs: Runs | None) -> bool:
    """Give a node's pending step to its children; False, with nothing changed, if there is no room."""
    if not forest.tagged[x]:
        return True
    size, width = forest.states, forest.states * forest.limbs
    own, sums, pending, kids = forest.own, forest.sums, forest.pending, room.kids
    if runs is not None and not has_room(2 * MOST_OF_A_TERM * (size + 2) * size * size, runs):
        return False
    if numbers is not None:
        measure(pending, x, forest, numbers)
    for side in range(2):
        y = forest.right[x] if side else forest.left[x]
        if y < 0:
            continue
        at = side * (size + 2) * width
        for which in range(3 if forest.tagged[y] else 2):
            rows = own if which == 0 else sums if which == 1 else pending
            columns = size if which == 2 else 1
            if runs is not None:
                multiplied(pending, x, rows, y, size, columns, kids, at + which * width, runs)
            done = True
            if numbers is not None:
                done = product(pending, x, rows, y, columns, kids, at + which * width, forest, numbers)
            if not done:
                return False
    for side in range(2):
        y = forest.right[x] if side else forest.left[x]
        if y < 0:
            continue
        at = side * (size + 2) * width
        for j in range(width):
            own[y, j], sums[y, j] = kids[at + j], kids[at + width + j]
        for j in range(size * width):
            pending[y, j] = kids[at + 2 * width + j] if forest.tagged[y] else pending[x, j]
        forest.tagged[y] = True
    forest.tagged[x] = False
    return True


@inner
def measure(pending: Words, x: int, forest: Forest, numbers: Numbers) -> None:
    """Note how long the numbers in a node's pending step are, if they may be long."""
    size, limbs = forest.states, forest.limbs
    if limbs > 1:
        for k in range(size * size):
            numbers.lengths[k] = length(pending, x, k * limbs, limbs)


@inner
def product(
    pending: Words, x: int, rows: Words, y: int, columns: int, out: Words, at: int, forest: Forest, numbers: Numbers
) -> bool:
    """out[at:] ← pending[x] · rows[y], of `columns` columns; False if a number has no room."""
    size, limbs = forest.states, forest.limbs
    if limbs == 1:
        return narrow_product(pending, x, rows, y, size, columns, float(numbers.limit), out, at)
    return wide_product(pending, x, rows, y, size, columns, limbs, out, at, numbers.low, numbers.high, numbers.lengths)


@inlined
def sum_up(x: int, forest: Forest, numbers: Numbers | None, runs: Runs | None) -> None:
    """Compute the sums of a node without a pending step from those of its children."""
    size, limbs, own, sums = forest.states, forest.limbs, forest.own, forest.sums
    left, right = forest.left[x], forest.right[x]
    for j in range(size * limbs):
        if runs is not None:
            below = sums[left, j] if left >= 0 else EMPTY
            if right >= 0:
                below = united(below, sums[right, j], runs)
            sums[x, j] = united(own[x, j], below, runs)
        if numbers is not None:
            value = own[x, j]
            if left >= 0:
                value += sums[left, j]
            if right >= 0:
                value += sums[right, j]
            sums[x, j] = value
    if numbers is not None:
        forest.place.wide |= settled(sums, x, size * limbs, limbs, numbers.limit)


@inner
def sum_up_path(n: int, forest: Forest, room: Room, numbers: Numbers | None, runs: Runs | None) -> None:
    """`sum_up` for room.path[:n], from its end to its beginning."""
    for at in range(n - 1, -1, -1):
        sum_up(room.path[at], forest, numbers, runs)


@inlined
def can_sum_up(levels: int, forest: Forest, runs: Runs | None) -> bool:
    """Whether there is room to sum up so many nodes."""
    fits = True
    if runs is not None:
        fits = has_room(2 * levels * forest.states, runs)
    return fits


# ------------------------------------------------------------ starts come and go
@inner
def prepare_path(x: int, part: int, forest: Forest, room: Room, numbers: Numbers | None, runs: Runs | None) -> bool:
    """Hand down along the way to the place where start x is, or will be; False if there is no room."""
    at, levels = forest.root[part], 1
    while at >= 0 and at != x:
        if forest.tagged[at] and not hand_down(at, forest, room, numbers, runs):
            return False
        at = forest.right[at] if comes_first(at, x, forest) else forest.left[at]
        levels += 1
    return can_sum_up(levels, forest, runs)


@inlined
def plant(x: int, part: int, forest: Forest, room: Room, numbers: Numbers | None, runs: Runs | None) -> None:
    """Put a start into the tree, after `prepare_path`; its `own` is set already."""
    left, right, path = forest.left, forest.right, room.path
    n, above, to_right, at = 0, np.int64(NONE), False, forest.root[part]
    mine = priority(x, forest)
    while at >= 0 and priority(at, forest) >= mine:
        path[n] = at
        n += 1
        above, to_right = at, comes_first(at, x, forest)
        at = right[at] if to_right else left[at]
    if above < 0:
        forest.root[part] = x
    elif to_right:
        right[above] = x
    else:
        left[above] = x
    path[n] = x
    n += 1
    smaller, larger = x, x  # where the parts of the old subtree are hung next
    while at >= 0:
        path[n] = at
        n += 1
        if comes_first(at, x, forest):
            if smaller == x:
                left[x] = at
            else:
                right[smaller] = at
            smaller, at = at, right[at]
        else:
            if larger == x:
                right[x] = at
            else:
                left[larger] = at
            larger, at = at, left[at]
    if smaller == x:
        left[x] = NONE
    else:
        right[smaller] = NONE
    if larger == x:
        right[x] = NONE
    else:
        left[larger] = NONE
    sum_up_path(n, forest, room, numbers, runs)


@inner
def uproot(x: int, part: int, forest: Forest, room: Room, numbers: Numbers | None, runs: Runs | None) -> bool:
    """Take a start out of its tree; False, with no start changed, if there is no room."""
    left, right, path = forest.left, forest.right, room.path
    if not prepare_path(x, part, forest, room, numbers, runs) or not hand_down(x, forest, room, numbers, runs):
        return False
    smaller, larger, below = left[x], right[x], 0
    while smaller >= 0 and larger >= 0:
        below += 1
        first = priority(smaller, forest) > priority(larger, forest)
        if not hand_down(smaller if first else larger, forest, room, numbers, runs):
            return False
        if first:
            smaller = right[smaller]
        else:
            larger = left[larger]
    n, above, to_right, at = 0, np.int64(NONE), False, forest.root[part]
    while at != x:
        path[n] = at
        n += 1
        above, to_right = at, comes_first(at, x, forest)
        at = right[at] if to_right else left[at]
    if not can_sum_up(n + below, forest, runs):
        return False
    smaller, larger = left[x], right[x]
    while True:
        lower = larger < 0 or (smaller >= 0 and priority(smaller, forest) > priority(larger, forest))
        at = smaller if lower else larger
        if above < 0:
            forest.root[part] = at
        elif to_right:
            right[above] = at
        else:
            left[above] = at
        if smaller < 0 or larger < 0:
            break
        path[n] = at
        n += 1
        above, to_right = at, bool(lower)
        if lower:
            smaller = right[smaller]
        else:
            larger = left[larger]
    sum_up_path(n, forest, room, numbers, runs)
    return True


# ------------------------------------------------------------ steps
@inlined
def changes(step: int, steps: Steps) -> bool:
    """Whether a step does more than complete matches."""
    return bool(steps.changed_at[step] < steps.changed_at[step + 1])


@inner
def step_rows(rows: Entries, x: int, width: int, step: int, forest: Forest, steps: Steps, spare: Entries,
              numbers: Numbers | None, runs: Runs | None) -> None:  # fmt: skip
    """rows[x] ← M rows[x], where a row has `width` words for every state."""
    size, limbs = forest.states, forest.limbs
    for j in range(size * width):
        spare[j] = rows[x, j]
    at, end = steps.changed_at[step], steps.changed_at[step + 1]
    while at < end:
        target, first = steps.changed[at] * width, at + 2
        at = first + steps.changed[at + 1]
        for j in range(width):
            if runs is not None:
                rows[x, target + j] = moved(spare, steps.changed, first, at, width, j, forest.place.position, runs)
            if numbers is not None:
                value = np.uint64(0)
                for s in range(first, at):
                    value += spare[steps.changed[s] * width + j]
                rows[x, target + j] = value
    if numbers is not None:
        forest.place.wide |= settled(rows, x, size * width, limbs, numbers.limit)


@inlined
def accepted(
    rows: Entries, x: int, step: int, forest: Forest, steps: Steps, numbers: Numbers | None, runs: Runs | None
) -> bool:
    """Add the matches that a step completes to the total, or to those of the event; returns whether there are any."""
    some, first, end = False, steps.accepting_at[step], steps.accepting_at[step + 1]
    if runs is not None:
        matches = completed(rows, x, steps.accepting, first, end, forest.place.position, runs)
        forest.place.matches = united(forest.place.matches, matches, runs)
        some = matches != EMPTY
    if numbers is not None:
        for a in range(first, end):
            some |= add_to(numbers.total, rows, x, steps.accepting[a] * forest.limbs, forest.limbs)
    return some


@inlined
def step_one(
    x: int, step: int, forest: Forest, steps: Steps, room: Room, numbers: Numbers | None, runs: Runs | None
) -> bool:
    """Let one start do a step; whether it completes matches. Its sums are not right afterwards."""
    some = accepted(forest.own, x, step, forest, steps, numbers, runs)
    if changes(step, steps):
        step_rows(forest.own, x, forest.limbs, step, forest, steps, room.spare, numbers, runs)
    return some


@inner
def step_all(
    x: int, step: int, forest: Forest, steps: Steps, room: Room, numbers: Numbers | None, runs: Runs | None
) -> bool:
    """Let all starts below a node do a step; whether they complete matches."""
    if x < 0:
        return False
    some = accepted(forest.sums, x, step, forest, steps, numbers, runs)
    if not changes(step, steps):
        return some
    size, limbs, pending = forest.states, forest.limbs, forest.pending
    if not forest.tagged[x]:
        for j in range(size * size * limbs):
            pending[x, j] = np.uint64(0)
        for t in range(size):
            pending[x, (t * size + t) * limbs] = np.uint64(1)
        forest.tagged[x] = True
    step_rows(forest.own, x, limbs, step, forest, steps, room.spare, numbers, runs)
    step_rows(forest.sums, x, limbs, step, forest, steps, room.spare, numbers, runs)
    step_rows(pending, x, size * limbs, step, forest, steps, room.spare, numbers, runs)
    return some


@inner
def clear_cut(
    part: int, value: int, side: int, forest: Forest, room: Room, numbers: Numbers | None, runs: Runs | None
) -> int:
    """Hand down on both sides of a cut; returns how many nodes lie along it, or -1 if there is no room."""
    at, levels = forest.root[part], 0
    while at >= 0 and LEFT_END < side < RIGHT_END:
        if forest.tagged[at] and not hand_down(at, forest, room, numbers, runs):
            return -1
        at = forest.right[at] if is_left(at, value, side, forest) else forest.left[at]
        levels += 1
    return levels


@inlined
def step_range(part: int, which: int, forest: Forest, steps: Steps, room: Room, numbers: Numbers | None,
               runs: Runs | None) -> bool:  # fmt: skip
    """Let the starts between two cleared cuts do a step, as room.ranges[which] says; whether they complete matches."""
    left, right, path = forest.left, forest.right, room.path
    low, from_side = room.ranges[which, FROM], room.ranges[which, FROM_SIDE]
    high, to_side, step = room.ranges[which, TO], room.ranges[which, TO_SIDE], room.ranges[which, STEP]
    at = forest.root[part]
    if from_side == LEFT_END and to_side == RIGHT_END:
        return step_all(at, step, forest, steps, room, numbers, runs)
    n = 0
    while at >= 0:
        below = is_left(at, low, from_side, forest)
        if not below and is_left(at, high, to_side, forest):
            break
        path[n] = at
        n += 1
        at = right[at] if below else left[at]
    if at < 0:
        return False
    path[n] = at
    n += 1
    some = step_one(at, step, forest, steps, room, numbers, runs)
    smaller, larger = left[at], right[at]
    if from_side == LEFT_END:
        some |= step_all(smaller, step, forest, steps, room, numbers, runs)
        smaller = np.int64(NONE)
    if to_side == RIGHT_END:
        some |= step_all(larger, step, forest, steps, room, numbers, runs)
        larger = np.int64(NONE)
    while smaller >= 0:
        path[n] = smaller
        n += 1
        if is_left(smaller, low, from_side, forest):
            smaller = right[smaller]
        else:
            some |= step_one(smaller, step, forest, steps, room, numbers, runs)
            some |= step_all(right[smaller], step, forest, steps, room, numbers, runs)
            smaller = left[smaller]
    while larger >= 0:
        path[n] = larger
        n += 1
        if is_left(larger, high, to_side, forest):
            some |= step_one(larger, step, forest, steps, room, numbers, runs)
            some |= step_all(left[larger], step, forest, steps, room, numbers, runs)
            larger = right[larger]
        else:
            larger = left[larger]
    if changes(step, steps):
        sum_up_path(n, forest, room, numbers, runs)
    return some


@inner
def step_nodes(step: int, forest: Forest, steps: Steps) -> int:
    """How many nodes of `runs` a step needs at most: for one start, for all that is below it, and for summing up."""
    sources = steps.changed_at[step + 1] - steps.changed_at[step]
    accepting = steps.accepting_at[step + 1] - steps.accepting_at[step]
    size = forest.states
    most: int = (3 * sources * (size + 2) + 2 * (3 * accepting + 1)) * 2 + 2 * size
    return most
