"""One event, before anything changes: which sets move, and where to.

Both engines, the one that finds matches and the one that counts them, begin an event here. Sets are interned and
indexed on the way; nothing else is written, so that a kernel that runs out of room begins the event again.
"""

import numpy as np
import numpy.typing as npt

from cerite.engine.registers.index_kernel import enter
from cerite.engine.registers.layout import (
    DONE,
    ENTERED,
    INITIAL,
    LATE,
    MORE_INDEX,
    N_MOVES,
    N_SETS,
    Events,
    Index,
    Scratch,
    Sets,
    Tables,
)
from cerite.engine.registers.moves_kernel import moves, start_rows
from cerite.engine.registers.sets_kernel import NO_SET, bit_of
from cerite.engine.registers.tables import BIT
from cerite.engine.registers.watch_kernel import advance_common
from cerite.jit import inlined, inner, kernel

Longs = npt.NDArray[np.int64]


@kernel
def relevant(
    bits: npt.NDArray[np.uint64], when: npt.NDArray[np.uint64], unless: npt.NDArray[np.uint64], kept: Longs
) -> int:
    """The events that can move or start anything; how many."""
    n = 0
    for i in range(bits.shape[0]):
        for w in range(bits.shape[1]):
            if bits[i, w] & when[w] or ~bits[i, w] & unless[w]:
                kept[n] = i
                n += 1
                break
    return n


@inlined
def starts(i: int, events: Events, tables: Tables) -> bool:
    """Whether a run may begin at event i, as far as the event alone tells."""
    initial = tables.shape[INITIAL]
    found = tables.shape[LATE] == 1
    for x in range(tables.first[initial], tables.first[initial + 1]):
        found = found or bit_of(events.bits, i, tables.t[x, BIT])
    return found


@inner
def plan(i: int, part: int, moving: int, events: Events, tables: Tables, sets: Sets, index: Index, scratch: Scratch,
         regs: Longs) -> int:  # fmt: skip
    """Note the moves of scratch.moving[:moving], then of the start (span[moving]); `DONE`, or what is missing."""
    regs[N_MOVES] = 0
    for y in range(moving + 1):
        before = regs[N_MOVES]
        if y < moving:
            d = np.int64(scratch.moving[y])
            rows, begin, end = sets.rows, sets.begin[d], sets.begin[d] + sets.size[d]
        else:
            d = np.int64(NO_SET)
            rows, begin, end = scratch.start, np.int64(0), np.int64(0)
            if starts(i, events, tables):
                end = np.int64(start_rows(part, tables, sets, scratch.start))
                if end < 0:
                    return -end
        why = moves(y, part, rows, begin, end, i, events, tables, sets, scratch, regs)
        if why != DONE:
            return why
        after = regs[N_MOVES]
        scratch.span[y, 0], scratch.span[y, 1] = before, after
        if after == before + 1:
            m = scratch.move[before]
            if y < moving and m[1] == 0 and m[2] == d and m[3] == 0:
                scratch.span[y, 0] = -1
                regs[N_MOVES] = before
    if sets.common.size:
        why = advance_common(part, i, events, tables, sets, scratch, regs)
        if why != DONE:
            return why
    while regs[ENTERED] < regs[N_SETS]:
        if not enter(regs[ENTERED], tables, sets, index, regs):
            return MORE_INDEX
        regs[ENTERED] += 1
    return DONE
