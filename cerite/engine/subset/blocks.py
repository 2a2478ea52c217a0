"""Some thousand events at a time: of which classes they are, where windows begin, which events matter.

A batch may have so many events that what is worked out of all of them leaves the cache before it is read, above all
where several threads share it. A kernel that reads block by block works it out just before, in one small piece of
memory, and without Python between the steps.

Invariant: what a block holds of an event is what `Rows` has of it in the whole batch.
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
    """Room for one block, and the classes of events that are known; no table where it does not tell what matters."""

    low: Longs
    classes: Ints
    relevant: Longs  # the events that matter, by their places in the block
    table: Ints
    effect: Ints


def new_block() -> Block:
    """Room for a block; which classes are known is said before every use (`EventClasses.tables`)."""
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
    """Work out a block; returns how many of its events matter, or -1 if one is of a class that is not known yet."""
    n = end - begin
    part = Lookup(lookup.codes[begin:end], lookup.masks, lookup.others[begin:end], lookup.other_masks)
    write_lows(key[begin:end], reach, block.low[:n])
    return keep_coded(part, block.table, block.effect, block.classes[:n], block.relevant)
