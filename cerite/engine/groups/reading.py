"""Taking the matches of an event that changes no run: pending steps are carried along instead of being handed down.

`C[v > x.v]` at the end of a pattern only completes matches. The marks of that event are carried from the root of the
tree along the two ends of its stretch of values, and at every node the pending step is put before them: a row of
entries instead of a matrix, and nothing in the tree changes. The O(log n) pieces of the stretch, each with what is
carried to it, are combined into one node: the event's matches.

Invariant: what is carried to a node, for each state, is what follows there until the match is complete.
"""

from __future__ import annotations

from cerite.core.jit import inner
from cerite.engine.groups.runs import EMPTY, MOST_OF_A_TERM, UNCHANGED, Runs, has_room, joined, marked, united
from cerite.engine.groups.steps import Steps, label_of, source_of
from cerite.engine.groups.tree import (
    FROM,
    FROM_SIDE,
    LEFT_END,
    RIGHT_END,
    STEP,
    TO,
    TO_SIDE,
    Entries,
    Forest,
    Room,
    is_left,
)

LEFT_SIDE, RIGHT_SIDE, SPARE = range(3)  # rows of `Runs.carried`: for the two ends of a stretch, and while it changes


@inner
def read_range(part: int, which: int, forest: Forest, steps: Steps, room: Room, runs: Runs) -> bool:
    """Take the matches of room.ranges[which]; False if there is no room, and then place.matches must be forgotten."""
    low, from_side = room.ranges[which, FROM], room.ranges[which, FROM_SIDE]
    high, to_side, step = room.ranges[which, TO], room.ranges[which, TO_SIDE], room.ranges[which, STEP]
    if not begin_to_carry(step, forest, steps, runs):
        return False
    at = forest.root[part]
    if from_side == LEFT_END and to_side == RIGHT_END:
        return take_matches(forest.sums, at, LEFT_SIDE, forest, runs)
    while at >= 0:
        below = is_left(at, low, from_side, forest)
        if not below and is_left(at, high, to_side, forest):
            break
        if not carry_past(at, LEFT_SIDE, forest, runs):
            return False
        at = forest.right[at] if below else forest.left[at]
    if at < 0:
        return True
    if not take_matches(forest.own, at, LEFT_SIDE, forest, runs) or not carry_past(at, LEFT_SIDE, forest, runs):
        return False
    for s in range(forest.states):
        runs.carried[RIGHT_SIDE, s] = runs.carried[LEFT_SIDE, s]
    return read_side(forest.left[at], LEFT_SIDE, low, from_side, forest, runs) and read_side(
        forest.right[at], RIGHT_SIDE, high, to_side, forest, runs
    )


@inner
def read_side(at: int, row: int, value: int, side: int, forest: Forest, runs: Runs) -> bool:
    """Take the matches below a node that lie right of the cut at a stretch's left end, or left of that at its right."""
    while at >= 0:
        if side == (RIGHT_END if row == RIGHT_SIDE else LEFT_END):
            return take_matches(forest.sums, at, row, forest, runs)
        outward, inward = forest.left[at], forest.right[at]
        if row == RIGHT_SIDE:
            outward, inward = inward, outward
        inside = is_left(at, value, side, forest) == (row == RIGHT_SIDE)
        if inside and not take_matches(forest.own, at, row, forest, runs):
            return False
        if not carry_past(at, row, forest, runs):
            return False
        if inside and inward >= 0 and not take_matches(forest.sums, inward, row, forest, runs):
            return False
        at = outward if inside else inward
    return True


@inner
def begin_to_carry(step: int, forest: Forest, steps: Steps, runs: Runs) -> bool:
    """Begin to carry the marks with which a step completes matches; False if there is no room."""
    first, end, carried = steps.accepting_at[step], steps.accepting_at[step + 1], runs.carried
    if not has_room(3 * (end - first), runs):
        return False
    for s in range(forest.states):
        carried[LEFT_SIDE, s] = EMPTY
    for a in range(first, end):
        state = source_of(steps.accepting[a])
        mark = marked(UNCHANGED, label_of(steps.accepting[a]), forest.place.position, runs)
        carried[LEFT_SIDE, state] = united(carried[LEFT_SIDE, state], mark, runs)
    return True


@inner
def carry_past(x: int, row: int, forest: Forest, runs: Runs) -> bool:
    """Put what a node's children have yet to do before what is carried; False if there is no room."""
    size, carried, pending = forest.states, runs.carried, forest.pending
    if not forest.tagged[x]:
        return True
    if not has_room(MOST_OF_A_TERM * size * size, runs):
        return False
    for s in range(size):
        value = EMPTY
        for t in range(size):
            later = carried[row, t]
            if later != EMPTY:
                value = united(value, joined(pending[x, t * size + s], later, runs), runs)
        carried[SPARE, s] = value
    for s in range(size):
        carried[row, s] = carried[SPARE, s]
    return True


@inner
def take_matches(rows: Entries, x: int, row: int, forest: Forest, runs: Runs) -> bool:
    """Join a row to what is carried, and add it to the event's matches; False where there is no room."""
    size, place, carried = forest.states, forest.place, runs.carried
    if not has_room(MOST_OF_A_TERM * size + 1, runs):
        return False
    for s in range(size):
        later = carried[row, s]
        if later != EMPTY:
            place.matches = united(place.matches, joined(rows[x, s], later, runs), runs)
    return True
