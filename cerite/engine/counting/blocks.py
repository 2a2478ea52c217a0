"""Some thousand events at a time: their classes, where their windows begin, and which events matter.

A batch may have so many events that what is computed for all of them leaves the cache before it is read, above all if
several threads share it. A kernel that reads block by block computes it just before, in one small piece of memory, and
without Python between the steps.

Invariant: what a block holds about an event is what `Rows` of the whole batch has.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cerite.core.arrays import Ints, Longs, Words
from cerite.core.jit import embedded
from cerite.engine.events.keys import Reach, write_lows
from cerite.engine.subset.classes import keep_coded
from cerite.predicate.columns.kernels import Lookup, gather_both

SIZE = 1 << 12  # events of a block


class Block(NamedTuple):
    """Room for one block, and the known classes of events; the table is empty if it does not tell what matters."""

    low: Longs
    classes: Ints
    relevant: Longs  # the events that matter, by their places in the block
    table: Ints
    effect: Ints


def new_block() -> Block:
    """Room for a block; the known classes are put in before every use (`EventClasses.tables`)."""
    none = np.zeros(0, np.int32)
    return Block(np.empty(SIZE, np.int64), np.empty(SIZE, np.int32), np.empty(SIZE + 1, np.int64), none, none)


def part_of(lookup: Lookup, begin: int, end: int) -> Lookup:
    """What the bits of some events follow from."""
    return lookup._replace(codes=lookup.codes[begin:end], others=lookup.others[begin:end])


def bits_of(lookup: Lookup) -> Words:
    """The bits of events, a row for each."""
    bits = np.empty(lookup.codes.size, np.uint64)
    gather_both(*lookup, bits)
    return bits.reshape(-1, 1)


@embedded
def look(begin: int, end: int, key: Longs, lookup: Lookup, reach: Reach, block: Block) -> int:
    """Compute a block; returns how many of its events matter, or -1 if one is of a class that is not known yet."""
    n = end - begin
    part = Lookup(lookup.codes[begin:end], lookup.masks, lookup.others[begin:end], lookup.other_masks)
    write_lows(key[begin:end], reach, block.low[:n])
    return keep_coded(part, block.table, block.effect, block.classes[:n], block.relevant)
