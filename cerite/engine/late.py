"""A window that is checked on finished matches: `WHERE NEXT(φ) WITHIN ε` selects first and drops then; LIMIT after.

The keys of all events are kept, because a match may start arbitrarily far back: such a query has no bounded memory.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cerite.engine.intake import Columns, Rows
from cerite.engine.keys import Ranks, count_keys, value_keys, width_of
from cerite.engine.matches import Matches
from cerite.pattern.window import Size

Longs = npt.NDArray[np.int64]


class LateWindow:
    """Remembers every event's window key and filters matches by it."""

    def __init__(self, size: Size, columns: Columns, limit: int | None) -> None:
        self._size = size
        self._limit = limit
        self._reported: dict[int, int] = {}
        self._column = columns.time if size.is_time else size.attribute
        self._ranks = Ranks()
        self._parts: list[tuple[Longs, Longs, Longs]] = []

    def add(self, rows: Rows) -> None:
        """The events of the next batch."""
        if self._size.unit == "events":
            key, low = count_keys(self._size, self._ranks.of(rows.partition, rows.position.size))
        else:
            assert self._column is not None
            column = rows.batch.column(self._column)
            key, low = value_keys(column, self._column, width_of(self._size, column.type))
        self._parts.append((rows.position, key, low))

    def keep(self, found: Matches) -> Matches:
        """The matches whose ends are close enough."""
        position, key, low = (np.concatenate(column) for column in zip(*self._parts, strict=True))
        starts, ends = (np.searchsorted(position, where) for where in (found.starts, found.ends))
        known = low[starts] != np.iinfo(np.int64).max
        kept = found.select(np.flatnonzero(known & (key[starts] >= low[ends])))
        return kept if self._limit is None else kept.select(self._first(kept.ends))

    def _first(self, ends: Longs) -> Longs:
        """The matches that LIMIT still lets through, occurrence by occurrence."""
        kept = []
        for index, end in enumerate(ends.tolist()):
            self._reported[end] = self._reported.get(end, 0) + 1
            if self._reported[end] <= (self._limit or 0):
                kept.append(index)
        return np.array(kept, np.int64)
