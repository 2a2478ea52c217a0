"""Whether so few different values are alive at once that it is faster to move entries one by one.

Moving starts in groups costs the logarithm of the window and a constant, which is more than a handful of entries cost.
How many there are depends on the data: the first events of a run tell, if they are more than a window.

Invariant: whichever way is chosen, the matches are the same; where the first events do not tell, starts are moved in
groups, whose cost has a bound.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cerite.automaton import TRUE
from cerite.core.arrays import Flags, Longs
from cerite.engine.events.rows import Rows
from cerite.engine.groups.grouping import Grouping

LOOKED_AT = 1 << 14  # the most events that are looked at
FEWEST = 1 << 10  # the fewest events that tell something
FEW = 12  # different values in a window
ALIKE = 60  # starts whose entries an event moves
WINDOWS = 64  # how many windows are looked into


class Looked(NamedTuple):
    """The first events of a run: stored values, whether a match may start, and where the window before each begins."""

    values: Longs
    starts: Flags
    begins: Longs

    def alive(self, end: int) -> Longs:
        """The stored values of the starts in the window that ends with an event."""
        window = slice(self.begins[end], end + 1)
        return self.values[window][self.starts[window]]


def are_few(grouping: Grouping, rows: Rows) -> bool:
    """Whether windows, in the first events of these and their largest partition, mostly hold few different values."""
    looked = _looked(grouping, rows)
    if looked is None:
        return False
    before = np.concatenate([[0], np.cumsum(looked.starts)])
    alive = before[1:] - before[np.minimum(looked.begins, np.arange(looked.begins.size) + 1)]
    return bool(alive.mean() <= FEW or np.unique(looked.alive(int(alive.argmax()))).size <= FEW)


def counted_one_by_one(grouping: Grouping, rows: Rows) -> bool:
    """Whether it is faster to count one by one: what equals an event is found by hash, and few entries move at once.

    Entries of one value are a list of starts, so both lists and starts are bounded: those of all values if events move
    them all, else those of one value.
    """
    if grouping.moves_many and not grouping.only_equality:
        return False
    looked = _looked(grouping, rows)
    if looked is None:
        return False
    lists, starts = 0.0, 0.0
    for end in np.linspace(0, looked.begins.size - 1, WINDOWS).astype(np.int64).tolist():
        alike = np.unique(looked.alive(end), return_counts=True)[1]
        if grouping.moves_many:
            lists, starts = lists + alike.size, starts + alike.sum()
        elif alike.size:
            starts += (alike * alike).sum() / alike.sum()  # the more starts have a value, the more often it is sought
    return bool(lists <= FEW * WINDOWS and starts <= ALIKE * WINDOWS)


def _looked(grouping: Grouping, rows: Rows) -> Looked | None:
    """What the first events say; None if they are less than a window."""
    assert rows.stored is not None
    if rows.key.size < FEWEST:
        return None
    chosen = np.arange(min(rows.key.size, LOOKED_AT))
    if rows.partition is not None:
        part = rows.partition[chosen]
        chosen = chosen[part == np.bincount(part).argmax()]
    key, low = rows.key[chosen], rows.low[chosen]
    if low[-1] <= key[0]:  # no window is over: it may become a crowd
        return None
    values = rows.stored.values[chosen, grouping.leaf]
    return Looked(values, _starts(grouping, rows)[chosen], np.searchsorted(key, low))


def _starts(grouping: Grouping, rows: Rows) -> Flags:
    """The events at which a match may start."""
    machine = grouping.machine
    bits = np.asarray(rows.bits, np.uint64)
    starts = np.zeros(bits.shape[0], np.bool_)
    numbers = {guard: bit for bit, guard in enumerate(machine.guards)}
    for t in grouping.leaving.get(machine.automaton.initial, ()):
        alone = machine.split(t.condition).alone
        if t.condition == TRUE or alone not in numbers:
            starts[:] = True
        else:
            starts |= (bits[:, 0] >> np.uint64(numbers[alone]) & np.uint64(1)).astype(np.bool_)
    return starts
