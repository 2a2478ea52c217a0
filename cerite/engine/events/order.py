"""The order of a stream: its events' positions, and that neither these nor the times go back.

Invariant: time never decreases and is never NULL, positions rise; the first row where that is not so is refused by its
number. What was read before a refused batch is remembered as if the batch had not come.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa

from cerite.core.arrays import Longs
from cerite.core.errors import Hint, OrderError, Setting, StreamError
from cerite.engine.events.keys import MOST, first_fall, numbers, signed, tick_text
from cerite.engine.events.rows import Columns


class StreamOrder:
    """Checks the batches of one stream, one after the other.

    >>> order = StreamOrder(Columns(time="at"))
    >>> order.positions(pa.record_batch({"at": [3, 5]}), 0), order.positions(pa.record_batch({"at": [5]}), 2)
    (0, 2)
    """

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self.last: dict[str, tuple[int, str]] = {}  # the last key of a column that must rise, and how it is shown

    def positions(self, batch: pa.RecordBatch, row: int) -> Longs | int:
        """The positions of the next events, or the first one's: the rows' numbers, which begin at `row`."""
        name, time = self._columns.position, self._columns.time
        places: Longs | int = row
        if name is not None:
            places = whole_positions(batch, name)
            self._check_rising("position", name, places, batch.column(name), row, strictly=True)
        if time is not None:
            self._check_time(time, batch.column(time), row)
        return places

    @contextmanager
    def undone(self) -> Iterator[None]:
        """Forgets what was read within this context if it ends with an error."""
        last = dict(self.last)
        try:
            yield
        except BaseException:
            self.last = last
            raise

    def _check_time(self, name: str, column: pa.Array, row: int) -> None:
        values, missing = numbers(column, name)
        if missing is not None:
            first = int(np.argmax(missing)) + row
            raise StreamError(f"row {first} has no time in `{name}`", hint="filter such rows out, or fill them in")
        self._check_rising("time", name, signed(values), column, row, strictly=False)

    def _check_rising(self, role: str, name: str, keys: Longs, column: pa.Array, row: int, *, strictly: bool) -> None:
        """Refuse a column that decreases, naming the first row where it does."""
        if not keys.size:
            return
        before = self.last.get(role)
        skipped = int(before is None)  # nothing comes before the first event
        at = skipped + first_fall(keys[skipped:], int(keys[0]) if before is None else before[0], strictly)
        if at >= skipped:
            what = "does not rise" if strictly else "decreases"
            previous = before[1] if before is not None and not at else tick_text(column[at - 1])
            raise OrderError(
                f"`{name}` {what} at row {row + at}: {tick_text(column[at])} after {previous}",
                name=name,
                row=at,
                hint="positions number the events in their order, each once; leave the column out for the rows' numbers"
                if strictly
                else Hint("sort by it first, or let Cerite sort: ", Setting("order_by", name)),
            )
        self.last[role] = int(keys[-1]), tick_text(column[-1])


def whole_positions(batch: pa.RecordBatch, name: str) -> Longs:
    """The positions that a column gives the events."""
    values, missing = numbers(batch.column(name), name)
    whole = pa.types.is_integer(batch.schema.field(name).type)
    if missing is not None or not whole or (values.size and int(values.max()) > MOST):
        raise StreamError(f"the position column `{name}` must hold whole numbers below 2^63, none of them NULL")
    return values.astype(np.int64)
