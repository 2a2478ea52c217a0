"""T-CER's chunks (DEBS 2024, listing 4): where the time line is cut, and what each chunk reads besides what it owns.

The paper cuts time into pieces of one size; here the cuts are quantiles of the data, so that tasks have equal shares
whatever the stream's rhythm. Chunk c owns the matches that end in [own_c, own_{c+1}) and reads from `read_c` on, which
is exactly the window before `own_c`. Invariant: both sequences are non-decreasing, read_c <= own_c, and every match
that ends in a chunk's own range lies inside what the chunk reads, so every match is found exactly once, without
coordination.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from cerite.engine.events.keys import below, lowest
from cerite.spark.worker.job import Cut, Number

ROWS_PER_CHUNK = 8_000_000
FEW_ROWS = 20_000  # fewer are not worth a second task
SPAN = 3  # the least number of windows that a chunk owns, so that reading the overlap costs at most a third


def reach(end: Number, width: Fraction) -> Number:
    """The earliest start that a window of this width allows for a match ending here."""
    if isinstance(end, int):
        return below(end, width)
    return float(lowest(np.array([end], np.float64), width)[0])


def time_cuts(quantiles: Sequence[Number], count: int, width: Fraction, *, spaced: bool) -> tuple[Cut, ...]:
    """At most `count` chunks with cuts among the quantiles; `spaced` keeps them some windows apart.

    >>> time_cuts([0, 10, 20, 30], 2, Fraction(5), spaced=True)
    (Cut(own=20, read=15),)
    >>> time_cuts([7, 7, 7, 7], 4, Fraction(5), spaced=False)
    ()
    """
    if count < 2 or len(quantiles) < 2:
        return ()
    wanted = [quantiles[round(k * len(quantiles) / count) % len(quantiles)] for k in range(1, count)]
    last, cuts = quantiles[0], list[Cut]()
    for own in sorted(set(wanted)):
        if own > last and not (spaced and own - last < SPAN * width):
            cuts.append(Cut(own, reach(own, width)))
            last = own
    return tuple(cuts)


def count_cuts(edges: Sequence[Number], rows: Sequence[int], count: int, size: int) -> tuple[Cut, ...]:
    """Cuts for a window of `size` events: each chunk reads back whole bins that hold at least `size - 1` rows.

    `rows[k]` is the number of rows in [edges[k], edges[k + 1]), the last bin being open.

    >>> count_cuts([0, 10, 20, 30], [4, 4, 4, 4], 2, 3)
    (Cut(own=20, read=10),)
    """
    before = np.concatenate([[0], np.cumsum(rows)])
    cuts: list[Cut] = []
    for k in range(1, count):
        at = int(np.searchsorted(before, k * before[-1] / count))
        if 0 < at < len(edges) and (not cuts or edges[at] > cuts[-1].own):
            back = int(np.searchsorted(before, max(0, before[at] - (size - 1)), side="right")) - 1
            cuts.append(Cut(edges[at], edges[max(back, 0)]))
    return tuple(cuts)


def chunk_count(rows: int, tasks: int) -> int:
    """How many chunks this many rows are worth: the same number for every task that runs at once.

    >>> chunk_count(1_000, 4), chunk_count(1_000_000, 4), chunk_count(50_000_000, 4)
    (1, 4, 8)
    """
    return 1 if rows < FEW_ROWS else tasks * max(1, math.ceil(rows / ROWS_PER_CHUNK / tasks))


def step(column: str, edges: Sequence[Number]) -> str:
    """SQL for how many of the (rising) edges are at or below a column's value: a decision tree.

    >>> step("t", [5, 8])
    'CASE WHEN t >= 8L THEN 2 ELSE CASE WHEN t >= 5L THEN 1 ELSE 0 END END'
    """

    def tree(low: int, high: int) -> str:
        if low == high:
            return str(low)
        middle = (low + high) // 2
        return f"CASE WHEN {column} >= {_sql(edges[middle])} THEN {tree(middle + 1, high)} ELSE {tree(low, middle)} END"

    return tree(0, len(edges))


def _sql(value: Number) -> str:
    if isinstance(value, int):
        return f"{value}L" if value > -(2**63) else "(-9223372036854775807L - 1L)"
    return f"double('{value!r}')" if math.isinf(value) else f"{value!r}D"
