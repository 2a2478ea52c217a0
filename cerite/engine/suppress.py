"""SUPPRESS: after a match is reported, those that become known soon after are left out before they are enumerated.

Which events report is decided from the roots that a kernel noted, with one decision for each event that completes
matches, in the order of the stream; for an event that reports, one match is enumerated. So the cost does not depend on
how many matches are left out, and the state is one time: that of the last report, or one per partition with a report.

A match that the end of a window decides (NOT at the end of the pattern or of a part) is known at the deadline: the time
of the event that the window began with plus the window. For whole numbers and instants, the key of that event is kept,
marked *late*, so that differences are exact whatever the window's length; for floats, the deadline is kept, added as
floats add.

Invariant: an event reports if and only if it lies later than the suppressed time after the last report of its scope, as
the judge says. What is decided does not depend on whether matches are read, or on where batches are cut. A time that
is over is forgotten together with the partition's number (`cerite.engine.recycle`).
"""

from __future__ import annotations

from fractions import Fraction
from math import floor
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from cerite.core.arrays import Arrays, Flags, Longs, partition_ids, picked
from cerite.core.jit import kernel
from cerite.engine.events.keys import LEAST, floats_of, keys_below, lowest, ordered, time_of, value_keys, width_of
from cerite.engine.events.rows import Columns, Rows
from cerite.engine.state.slots import grown
from cerite.pattern.nodes import Size
from cerite.pattern.query import Suppress


class Moments(NamedTuple):
    """When occurrences become known, in that order: keys, the least last reports that silence them, and scopes."""

    key: Longs
    low: Longs  # after a report at an event
    low_late: Longs  # after one at the end of a window
    scope: Longs
    late: Flags


class Suppressor:
    """When matches were last reported, by partition or in the whole stream; `window` is the one that decides."""

    def __init__(self, suppress: Suppress, columns: Columns, schema: pa.Schema, window: Size | None) -> None:
        self._size, self._by_partition = suppress.size, suppress.per_partition
        self._name, self._unit = time_of(suppress.size, columns.time), columns.unit
        kind = schema.field(self._name).type
        self._floats = pa.types.is_floating(kind)
        self._silent = width_of(suppress.size, kind, columns.unit)
        self._wait = Fraction(0) if window is None else width_of(window, kind, columns.unit)
        self._last: Longs = np.zeros(1, np.int64)
        self._known: Flags = np.zeros(1, np.bool_)
        self._late: Flags = np.zeros(1, np.bool_)
        self._over = LEAST  # a report before this silences no match that may still come
        self._key = self._low = self._scope = np.zeros(0, np.int64)

    def begin(self, rows: Rows) -> None:
        """Prepare for the next batch."""
        column = rows.column(self._name)
        self._key, self._low, _ = value_keys(column, self._name, self._size, self._unit)
        if self._size.is_time and self._low.size:  # on Spark, groups of rows each have a time of their own
            self._over = max(self._over, int(self._lows(self._key[-1:], self._wait)[0]))
        if not self._by_partition or rows.partition is None:
            self._scope = np.zeros(self._key.size, np.int64)
            return
        self._scope = partition_ids(rows.partition, self._key.size)
        top = int(self._scope.max()) + 1 if self._scope.size else 0
        if top > self._last.size:
            size = max(top, 2 * self._last.size)
            self._last, self._known = grown(self._last, size), grown(self._known, size)
            self._late = grown(self._late, size)

    def reported(self, events: Longs) -> Flags:
        """Which roots are enumerated, given the event of each in the order of the stream."""
        none = np.zeros(self._key.size, np.bool_)
        return self._chosen(events, Moments(self._key, self._low, self._low, self._scope, none))

    def decided(self, row: Longs, since: Longs) -> Flags:
        """The same if windows decide some roots: their `row` is -1 less the partition, their window began `since`."""
        late = row < 0
        key, scope = since.copy(), -1 - row if self._by_partition else np.zeros(row.size, np.int64)
        key[~late], scope[~late] = self._key[row[~late]], self._scope[row[~late]]
        low, low_late = self._lows(key, Fraction(0)), self._lows(key, self._wait)
        if self._floats:
            key[late] = ordered(floats_of(key[late]) + float(self._wait))
            low[late] = low_late[late] = self._lows(key[late], Fraction(0))
        else:
            low[late], low_late[late] = self._lows(key[late], -self._wait), self._lows(key[late], Fraction(0))
        another = np.r_[True, late[1:] | (row[1:] != row[:-1])][: row.size]
        first = np.maximum.accumulate(np.where(another, np.arange(row.size), 0))
        chosen = self._chosen(first, Moments(key, low, low_late, scope, late))
        chosen[~another] = False  # one root per event is enough
        return chosen

    def _lows(self, key: Longs, longer: Fraction) -> Longs:
        """The least last reports that silence what is known at these keys; whole numbers may have to add a window."""
        if self._floats:
            return ordered(lowest(floats_of(key), self._silent))
        return keys_below(key, floor(self._silent + longer))

    def _chosen(self, occurrences: Longs, moments: Moments) -> Flags:
        chosen = np.zeros(occurrences.size, np.bool_)
        choose(occurrences, moments, self._last, self._late, self._known, chosen)
        return chosen

    # ------------------------------------------------------------ as `Recycler` sees it
    def forget(self, lows: Longs) -> None:
        """Forget the times that are over; `lows` belong to the pattern's window and say nothing about them."""
        del lows
        self._known &= self._last >= self._over
        self._last[~self._known], self._late[~self._known] = 0, False

    @property
    def partitions(self) -> Longs:
        """The partitions that a report still silences."""
        return np.flatnonzero(self._known) if self._by_partition else np.zeros(0, np.int64)

    def keep(self, partitions: Longs) -> None:
        """Number these partitions from 0 on; the others have no report."""
        if self._by_partition:
            self._last, self._known = picked(self._last, partitions), picked(self._known, partitions)
            self._late = picked(self._late, partitions)

    @property
    def size(self) -> int:
        """How much there is to look through when something is to be forgotten."""
        return int(self._last.size)

    # ------------------------------------------------------------ snapshots
    def state(self) -> Arrays:
        """What a snapshot keeps."""
        return {"last": self._last, "known": self._known, "late": self._late, "over": np.array([self._over])}

    def restore(self, state: Arrays) -> None:
        """Continue where a snapshot was taken."""
        self._last, self._known = state["last"].astype(np.int64), state["known"].astype(np.bool_)
        self._late = state["late"].astype(np.bool_)
        self._over = int(state["over"][0])


@kernel
def choose(occurrences: Longs, moments: Moments, last: Longs, late: Flags, known: Flags, chosen: Flags) -> None:
    """Mark the roots of the occurrences that report, and remember these."""
    for x in range(occurrences.size):
        i = occurrences[x]
        if x and occurrences[x - 1] == i:
            chosen[x] = chosen[x - 1]
            continue
        part = moments.scope[i]
        low = moments.low_late[i] if late[part] else moments.low[i]
        if not known[part] or last[part] < low:
            chosen[x] = True
            known[part], last[part], late[part] = True, moments.key[i], moments.late[i]
