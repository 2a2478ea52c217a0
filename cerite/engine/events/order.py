"""The order of a stream: its events' positions, and that neither these nor the times decrease.

Invariant: time never decreases and is never NULL, positions rise; the first row where that is not so is refused by its
number. What was read before a refused batch is remembered as if the batch had not come.

What is wrong with an order is said here for all that check one, whether rows come from Spark or late.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cerite.core.arrays import Flags, Longs
from cerite.core.errors import Hint, OrderError, Setting, StreamError, listed
from cerite.engine.events.keys import MOST, first_fall, numbers, signed, tick_text
from cerite.engine.events.rows import Columns
from cerite.predicate.columns.read import decoded


class StreamOrder:
    """Checks the batches of one stream, one after the other.

    >>> order = StreamOrder(Columns(time="at"))
    >>> order.positions(pa.record_batch({"at": [3, 5]}), 0), order.positions(pa.record_batch({"at": [5]}), 2)
    (0, 2)
    """

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self.first_time: int | None = None
        self.last: dict[str, tuple[int, str]] = {}  # the last key of a column that must rise, and how it is shown

    def positions(self, batch: pa.RecordBatch, row: int) -> Longs | int:
        """The positions of the next events, or the first one's: the rows' numbers, which begin at `row`."""
        name, time = self._columns.position, self._columns.time
        places: Longs | int = row
        if name is not None:
            places = whole_positions(batch.column(name), name)
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
            raise no_time(name, first)
        keys = signed(values)
        if self.first_time is None and keys.size:
            self.first_time = int(keys[0])
        self._check_rising("time", name, keys, column, row, strictly=False)

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


def no_time(name: str, row: int) -> StreamError:
    """That a row has no time."""
    return StreamError(f"row {row} has no time in `{name}`", hint="filter such rows out, or fill them in")


def whole_positions(column: pa.Array, name: str) -> Longs:
    """The positions that a column gives the events."""
    values, missing = numbers(column, name)
    whole = pa.types.is_integer(column.type)
    if missing is not None or not whole or (values.size and int(values.max()) > MOST):
        raise positions_not_whole(name)
    return values.astype(np.int64)


def positions_not_whole(name: str) -> StreamError:
    """That a column cannot hold positions."""
    return StreamError(f"the position column `{name}` must hold whole numbers below 2^63, none of them NULL")


def positions_fall(name: str, order: Iterable[str]) -> StreamError:
    """That positions contradict the order that these columns give."""
    return StreamError(
        f"the positions in `{name}` do not rise with {listed(order)}",
        hint="number the events in this order; or leave the column out, and name it in order_by",
    )


def equal_to_next(column: pa.Array) -> Flags:
    """Which values equal the next one; NULLs equal each other."""
    column = decoded(column)
    one, other = column.slice(0, len(column) - 1), column.slice(1)
    equal = pc.fill_null(pc.equal(one, other), False)
    if column.null_count:
        equal = pc.or_(equal, pc.and_(pc.is_null(one), pc.is_null(other)))
    flags: Flags = equal.to_numpy(zero_copy_only=False)
    return flags


def tied(columns: Mapping[str, pa.Array], place: int, *otherwise: str | Setting) -> StreamError:
    """That the event at a place and the next one are equal in all columns that order events."""
    shown = ", ".join(f"{name} = {_shown(column[place])}" for name, column in columns.items())
    return StreamError(
        f"two events cannot be ordered: both have {shown}",
        hint=Hint("name columns that break the tie: ", Setting("order_by"), *otherwise),
    )


def _shown(value: pa.Scalar) -> str:
    """A value for a message: times as ISO 8601."""
    kind = value.type
    return tick_text(value) if pa.types.is_timestamp(kind) or pa.types.is_date(kind) else repr(value.as_py())
