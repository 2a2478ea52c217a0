"""The ids of events that the watermark has not passed: an event with an id that is known is a duplicate.

Invariants: `times[k]` is the time key of the id with number k. An id with a NULL in it equals no other id, because an
event without an id cannot be distinguished from one that was delivered twice. Ids behind the watermark are forgotten
when the number of ids has doubled since the last time.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cerite.core.arrays import Arrays, Flags, Longs
from cerite.engine.events.partitions import Groups

FEWEST = 1 << 12  # ids that are never worth clearing up; tests begin with less


class Ids:
    """What is known of the columns that make an id."""

    def __init__(self, columns: tuple[str, ...]) -> None:
        self._groups = Groups(columns)
        self._times: Longs = np.zeros(0, np.int64)  # with room for more
        self._count = 0
        self._enough = FEWEST

    def __len__(self) -> int:
        return self._count

    @property
    def known(self) -> dict[str, int | None]:
        """What the numbering knows, so that `forget` can return to it."""
        return self._groups.counts

    def look(self, keys: Longs, batch: pa.RecordBatch) -> tuple[Flags, Longs]:
        """Which events are not duplicates, and the time keys of the ids that are new: to be added or forgotten."""
        numbers = self._groups.of(batch)
        _, first = np.unique(numbers, return_index=True)
        fresh = first[numbers[first] >= self._count]  # in the order of their numbers
        new = numbers < 0
        new[fresh] = True
        return new, keys[fresh]

    def add(self, keys: Longs, watermark: int) -> None:
        """Add the new ids, with these time keys."""
        count = self._count + keys.size
        if count > self._times.size:
            self._times = np.concatenate([self._times, np.zeros(max(count, FEWEST), np.int64)])
        self._times[self._count : count] = keys
        self._count = count
        if count > self._enough:
            self.prune(watermark)

    def forget(self, known: dict[str, int | None]) -> None:
        """Know only what was known then."""
        self._groups.forget(known)

    def prune(self, watermark: int) -> None:
        """Forget the ids whose times the watermark has passed, and number the others anew."""
        live = np.flatnonzero(self._times[: self._count] >= watermark)
        self._groups.keep(live)
        self._times, self._count = self._times[live], live.size
        self._enough = max(FEWEST, 2 * live.size)

    def state(self, watermark: int) -> Arrays:
        """What a snapshot keeps."""
        self.prune(watermark)
        return {"times": self._times, **self._groups.state()}

    def restore(self, state: Arrays) -> None:
        """Continue with the ids of a snapshot."""
        self._times = state["times"].astype(np.int64)
        self._count = self._times.size
        self._groups.restore(state)
