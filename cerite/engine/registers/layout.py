"""The arrays that the kernels share, grouped as named tuples.

`Tables` never change; the others grow. Kernels check for room before they write, and return to Python for more;
interning twice is harmless, so an event that was begun is simply begun again.
"""

from __future__ import annotations

from typing import NamedTuple

from cerite.core.arrays import Flags, Ints, Longs, Words
from cerite.engine.state.cursor import Cursor

# wake signatures: which events a state may be moved by
# PAST is an ORDER that stored values satisfy once and for all; LISTED wakes on nothing: it finds a partition's sets
ALWAYS, WHEN, UNLESS, SAME, ORDER, PAST, LISTED = range(7)
WAKE_KIND, WAKE_BIT, WAKE_LEAF, WAKE_SLOT, WAKE_OP, WAKE_FLOAT = range(6)


class Tables(NamedTuple):
    """The automaton: transitions by state, programs, and what wakes each state; only `beyond` belongs to a run."""

    first: Longs  # transitions of state q: t[first[q]:first[q + 1]]
    t: Longs
    programs: Longs  # flattened lists of program numbers
    groups: Longs  # negated: a bit, and a list in `programs`
    actions: Longs
    program_table: Longs
    wakes_first: Longs  # signatures of state q: wakes[wakes_first[q]:wakes_first[q + 1]]
    wakes: Longs
    signatures: Longs
    ops: Longs
    watchers: Longs  # kind, entry, the action that keeps what it begins with, `others`, whether that is of the run
    shape: Longs
    beyond: Longs  # in place `RAN_OVER`: 1 once a sum has left 64 bits
    string_order: Longs  # by number; none where nothing compares strings by order


RAN_OVER = 0  # the only place of `beyond`
# what `shape` says: states, sizes, and whether runs may pass over events before the first they mark
INITIAL, FINAL, STATES, STORED_VALUES, MAXIMAL, WATCHERS, LATE = range(7)
# columns of the table of negated groups
GROUP_BIT, GROUP_BEGIN, GROUP_END = range(3)
# columns of the table of ops
WATCHER, RESETS, STARTS, SPAWNS, FORBIDS, OP_MARKS = range(6)


class Sets(NamedTuple):
    """Deterministic states: interned sets of configurations, each of one partition."""

    begin: Longs
    size: Longs
    part: Longs
    code: Longs  # hash
    rows: Longs
    table: Ints
    known: Longs  # by set: its last moves that followed from an event's bits alone (see `moves.recall`)
    cursor: Cursor  # how many sets and rows there are


class Index(NamedTuple):
    """Which sets to look at: buckets, each the first entry of a chain or a tree.

    There is a bucket for every partition and signature, found by its number; where a stored value must be equal, there
    is one for every such value in use, found by hash.
    """

    first: Ints  # by partition and signature
    key: Longs  # partition, signature, value, first entry
    begin: Longs  # the entries of set d: begin[d]:begin[d + 1]
    entry_set: Ints
    place: Longs  # the entry's bucket: a number of `first`, or -1 - one of `key`
    linked: Flags  # whether it is in its chain (or tree)
    following: Ints  # next in a chain, left in a tree
    right: Ints
    value: Longs


class Scratch(NamedTuple):
    """Room for one event's work."""

    rows: Longs
    label: Longs
    order: Longs
    tree: Longs  # the way down a tree; a treap is never that deep
    moving: Ints
    move: Longs  # where a set goes: the label, the target, and whether what it holds is accepted
    span: Longs  # moves of the y-th moving set: move[begin:end]; `begin` is -1 where it stays
    taken: Ints
    start: Longs  # the rows in which runs begin
    stamp: Longs


# columns of `move`, and of `span`
MOVE_LABEL, MOVE_TARGET, MOVE_ACCEPTS = range(3)
MOVE_WIDTH = 3
SPAN_BEGIN, SPAN_END = range(2)


class Configurations(NamedTuple):
    """All runs of a query, and what moves them."""

    tables: Tables
    sets: Sets
    entries: Index
    scratch: Scratch
    head: Ints  # by set, in column `LIST`: the first cell of what it holds, -1 if it holds nothing
    lows: Longs  # by partition: where the window of its last event begins


LIST = 0  # the only column of `head`: a set is one deterministic state; without registers, a slot has a column for each


class Watching(NamedTuple):
    """What runs are compared with: watched sets, and whatever else is followed in a partition besides runs.

    It is None for a query that has neither watchers nor late starts nor MAX, and then none of that is compiled.
    """

    common: Longs  # by partition and watcher: all runs begun so far; in the last column those that marked nothing
    following: Longs  # what `common` of the partition becomes
    rows: Longs  # room for one watched set, by level: what is watched inside what is watched
    label: Longs  # zeros: a watched set has no labels
    order: Longs  # by level
    fresh: Longs  # by level: the row in which a run begins


class Events(NamedTuple):
    """A batch, as the kernels read it."""

    selection: Longs  # the events to read, rising
    bits: Words
    values: Longs
    nulls: Words
    key: Longs
    low: Longs
    position: Longs
    part: Longs


class Moment(NamedTuple):
    """Event i of a batch, in the partition that it belongs to."""

    events: Events
    i: int
    part: int
