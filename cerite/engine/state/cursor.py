"""How kernels and Python communicate: where a kernel is, and why it stopped.

A kernel reads a batch until it needs something that only Python can supply: a missing entry of the determinised
automaton, or more room. It then returns the reason, leaves in its `Cursor` everything that it needs to go on, and is
called again with the same cursor. Kernels read and write the fields as attributes, at no more cost than an array;
Python does so by the properties that `record` adds.

Invariant: a field means one thing, whichever engine uses it, and a `Stop` means one reason. Engines that share kernels
have the same record, so that these are compiled once; what only trees of groups need is in their own (`tree.Place`).
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, TypeVar

import numpy as np

from cerite.core.arrays import Longs

R = TypeVar("R", bound=np.void)


class Stop(IntEnum):
    """Why a kernel stopped. Some helpers return the reason negated, where other results are -1 or not negative."""

    DONE = 0  # the batch is read
    MISS = 1  # an entry of the determinised automaton is missing
    MORE_SLOTS = 2  # no room for a partition
    MORE_NODES = 3  # no room in the tECS, or in what takes its place
    MORE_CELLS = 4  # no room for union-lists
    ROOTS_FULL = 5  # no room for what is to be enumerated
    # with registers
    MORE_SETS = 6
    MORE_SCRATCH = 7
    MORE_INDEX = 8
    RESET = 9  # most of the sets are empty
    MORE_STARTS = 10  # no room for a start that stores a value
    # counting
    MORE_LIMBS = 11  # a number needs more limbs
    HOT = 12  # a number nears 62 bits
    WIDE = 13  # the partition's numbers have outgrown 62 bits
    # enumeration
    CHUNK_FULL = 14  # no room for matches
    DEEPER = 15  # no room in the stack
    CHOOSER_FULL = 16  # no room for best sets


class Consumption(IntEnum):
    """What an event at which matches end makes the run forget: CONSUME BY, as kernels know it."""

    NONE = 0
    PARTITION = 1  # the partial matches of its partition
    ANY = 2  # all partial matches


def consumption(consume: str) -> int:
    """The number of what a plan consumes; not a member, which would be of a type of its own to Numba.

    >>> consumption("partition")
    1
    """
    return Consumption[consume.upper()].value


def record(kind: type[R]) -> type[R]:
    """Give a record of whole numbers, named by its annotations, properties that read and write them."""
    for name in kind.__annotations__:
        setattr(kind, name, _field(name))
    return kind


def _field(name: str) -> property:
    def read(self: Any) -> int:
        return int(self[name])

    def write(self: Any, value: int) -> None:
        self[name] = value

    return property(read, write)


@record
class Cursor(np.void):  # type: ignore[misc]
    """Where an engine's kernel is in a batch, and how much of everything is in use."""

    next: int  # the place in `selection` of the event to read next
    occurrences: int  # events at which a match ended
    epoch: int  # rises when matches anywhere consume all runs
    free_slots: int
    dstate: int  # the entry that is missing
    event_class: int
    # the tECS and its union-lists
    nodes: int
    need: int  # nodes that the event at hand may need
    cells: int
    free_cell: int  # the first of the chain of unused cells
    roots: int  # matches noted for enumeration
    # registers
    sets: int
    rows: int
    entered: int  # sets that are in the index
    buckets: int
    entries: int
    moves: int  # of the event at hand
    mark: int  # the stamp of sets that this event has touched
    # counting
    wide: int  # whether a number has outgrown its limbs
    slot: int  # the partition with a number that nears 62 bits
    free_node: int  # the first of the chain of unused queue nodes
    high: int  # how often the total ran over
    back: int  # the two stacks of one partition in limbs: events since the last flip, and older starts
    back_end: int
    front: int
    front_end: int


@record
class Walk(np.void):  # type: ignore[misc]
    """Where the enumeration of matches is."""

    root: int
    stack: int
    matches: int
    marks: int
    emitted: int  # matches of the current event
    winner: int  # its best set
    width: int  # marks of every match, or `MIXED`
    same: int  # whether the path has the labels of the first match


def fresh(kind: type[R]) -> R:
    """A record of zeros."""
    zeros: R = np.zeros(1, _layout(kind))[0]
    return zeros


def new_cursor() -> Cursor:
    """The cursor of a run that has read nothing: its chains are empty.

    >>> cursor = new_cursor()
    >>> cursor.nodes += 2
    >>> cursor.nodes, cursor.cells, cursor.free_cell
    (2, 0, -1)
    """
    cursor = fresh(Cursor)
    cursor.free_cell = cursor.free_node = -1
    return cursor


def to_longs(given: np.void) -> Longs:
    """A record as a snapshot keeps it."""
    return np.array(given.item(), np.int64)


def of_longs(kind: type[R], values: Longs) -> R:
    """The inverse of `to_longs`."""
    whole = np.zeros(1, _layout(kind))
    whole.view(np.int64)[:] = values
    filled: R = whole[0]
    return filled


def _layout(kind: type[np.void]) -> np.dtype[Any]:
    return np.dtype((kind, np.dtype([(name, np.int64) for name in kind.__annotations__], align=True)))
