"""SUPPRESS: after a match was reported, what ends soon after it is left out before anything is enumerated.

Which events report is decided by the roots that a kernel noted, one decision for each event that completes matches, in
the order of the stream; of those that report, one match is enumerated. So the cost does not depend on how many matches
are left out, and the state is one time: that of the last report, or one for every partition that has one.

Invariant: an event reports if and only if it lies later than the suppressed time after the last report of its scope, as
the judge says. What is decided does not depend on whether matches are read, or on where batches are cut. A time that
is over is forgotten together with the partition's number (`cerite.engine.recycle`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from cerite.core.arrays import Flags, Longs, partition_ids, picked
from cerite.core.jit import kernel
from cerite.engine.events.keys import LEAST, time_of, value_keys
from cerite.engine.events.rows import Columns, Rows
from cerite.engine.slots import grown
from cerite.pattern.query import Suppress


class Suppressor:
    """When matches were last reported, by partition or once for the whole stream."""

    def __init__(self, suppress: Suppress, columns: Columns) -> None:
        self._size, self._by_partition = suppress.size, suppress.per_partition
        self._name, self._unit = time_of(suppress.size, columns.time), columns.unit
        self._last: Longs = np.zeros(1, np.int64)
        self._known: Flags = np.zeros(1, np.bool_)
        self._over = LEAST  # a report before this silences no event that may still come
        self._key = self._low = self._scope = np.zeros(0, np.int64)

    def begin(self, rows: Rows) -> None:
        """The next batch is read."""
        column = rows.batch.column(self._name)
        self._key, self._low, _ = value_keys(column, self._name, self._size, self._unit)
        if self._size.is_time and self._low.size:  # on Spark, groups of rows each have a time of their own
            self._over = max(self._over, int(self._low[-1]))
        if not self._by_partition or rows.partition is None:
            self._scope = np.zeros(self._key.size, np.int64)
            return
        self._scope = partition_ids(rows.partition, self._key.size)
        top = int(self._scope.max()) + 1 if self._scope.size else 0
        if top > self._last.size:
            size = max(top, 2 * self._last.size)
            self._last, self._known = grown(self._last, size), grown(self._known, size)

    def reported(self, events: Longs) -> Flags:
        """Which roots are enumerated, given the event of each in the order of the stream."""
        chosen = np.zeros(events.size, np.bool_)
        choose(events, self._key, self._low, self._scope, self._last, self._known, chosen)
        return chosen

    # ------------------------------------------------------------ as `Recycler` sees it
    def forget(self, lows: Longs) -> None:
        """Let go of the times that are over; `lows`, which are of the pattern's window, say nothing about them."""
        del lows
        self._known &= self._last >= self._over
        self._last[~self._known] = 0

    @property
    def partitions(self) -> Longs:
        """The partitions that a report still silences."""
        return np.flatnonzero(self._known) if self._by_partition else np.zeros(0, np.int64)

    def keep(self, partitions: Longs) -> None:
        """Number these partitions from 0 on; the others have no report."""
        if self._by_partition:
            self._last, self._known = picked(self._last, partitions), picked(self._known, partitions)

    @property
    def size(self) -> int:
        """How much there is to look at when something is forgotten."""
        return int(self._last.size)

    # ------------------------------------------------------------ snapshots
    def state(self) -> dict[str, npt.NDArray[Any]]:
        """What a snapshot keeps."""
        return {"last": self._last, "known": self._known, "over": np.array([self._over])}

    def restore(self, state: dict[str, npt.NDArray[Any]]) -> None:
        """Continue where a snapshot was taken."""
        self._last, self._known = state["last"].astype(np.int64), state["known"].astype(np.bool_)
        self._over = int(state["over"][0])


@kernel
def choose(events: Longs, key: Longs, low: Longs, scope: Longs, last: Longs, known: Flags, chosen: Flags) -> None:
    """Mark the roots of the events that report, and remember these."""
    for x in range(events.size):
        i = events[x]
        if x and events[x - 1] == i:
            chosen[x] = chosen[x - 1]
            continue
        part = scope[i]
        if not known[part] or last[part] < low[i]:
            chosen[x] = True
            known[part], last[part] = True, key[i]
