"""Whether so few different values are alive at once that entries are sooner moved one by one.

Moving starts in groups costs the logarithm of the window and a constant that a handful of entries stays below. How many
there are is up to the data: the first events of a run tell, if they are more than a window.

Invariant: whichever way is chosen, the matches are the same; where the first events do not tell, starts are moved in
groups, whose cost has a bound.
"""

from __future__ import annotations

import numpy as np

from cerite.automaton import TRUE
from cerite.core.arrays import Flags
from cerite.engine.events.rows import Rows
from cerite.engine.groups.grouping import Grouping

LOOKED_AT = 1 << 14  # events at most
FEWEST = 1 << 10  # events that tell something
FEW = 12  # different values in a window


def are_few(grouping: Grouping, rows: Rows) -> bool:
    """Whether windows, in the first events of these and their largest partition, mostly hold few different values."""
    assert rows.stored is not None
    if rows.key.size < FEWEST:
        return False
    chosen = np.arange(min(rows.key.size, LOOKED_AT))
    if rows.partition is not None:
        part = rows.partition[chosen]
        chosen = chosen[part == np.bincount(part).argmax()]
    key, low = rows.key[chosen], rows.low[chosen]
    if low[-1] <= key[0]:  # no window is over: it may become a crowd
        return False
    begins = np.searchsorted(key, low)
    starts = _starts(grouping, rows)[chosen]
    before = np.concatenate([[0], np.cumsum(starts)])
    alive = before[1:] - before[np.minimum(begins, np.arange(chosen.size) + 1)]
    if alive.mean() <= FEW:
        return True
    most = int(alive.argmax())
    window = chosen[begins[most] : most + 1]
    return bool(np.unique(rows.stored.values[window[starts[begins[most] : most + 1]], grouping.leaf]).size <= FEW)


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
