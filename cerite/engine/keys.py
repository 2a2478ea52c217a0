"""Window keys: for every event a number that does not decrease, and the least key a match ending there may start at.

Time and attribute windows compare the column itself, count windows the rank in the (partition's) stream; the kernel
only ever compares `key >= low`. Floats become integers in the same order. Invariant: `key[start] >= low[end]` exactly
when the window holds between the two events. An event without a value neither starts nor ends a match (the plan sees
to that); it gets the last known key and low, so that neither ever decreases.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cerite.errors import StreamError
from cerite.jit import kernel
from cerite.pattern.window import Size

Longs = npt.NDArray[np.int64]
LEAST, MOST = int(np.iinfo(np.int64).min), int(np.iinfo(np.int64).max)
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def numbers(
    column: pa.Array, name: str
) -> tuple[npt.NDArray[np.int64] | npt.NDArray[np.float64], npt.NDArray[np.bool_] | None]:
    """A numeric or timestamp column as int64 or float64, and where it is NULL (None: nowhere)."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.dictionary_decode()
        kind = column.type
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp(kind.unit)).view(pa.int64())
    elif pa.types.is_date(kind):
        column = column.cast(pa.timestamp("ms")).view(pa.int64())
    elif pa.types.is_uint64(kind) or pa.types.is_decimal(kind) or pa.types.is_floating(kind):
        column = column.cast(pa.float64())
    elif pa.types.is_integer(kind) or pa.types.is_null(kind):
        column = column.cast(pa.int64())
    else:
        raise StreamError(f"the column `{name}` holds {kind}, not numbers or timestamps")
    if column.null_count == 0 and not pa.types.is_floating(column.type):
        return column.to_numpy(zero_copy_only=False), None
    missing = pc.is_null(column, nan_is_null=True).to_numpy(zero_copy_only=False)
    values = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
    return values, missing if missing.any() else None


def ticks_per_second(kind: pa.DataType, unit: str = "ms") -> int:
    """How many steps of the time column make a second; plain numbers count `unit`, days are in milliseconds."""
    if pa.types.is_timestamp(kind):
        return _PER_SECOND[kind.unit]
    return 1_000 if pa.types.is_date(kind) else _PER_SECOND[unit]


def tick_text(value: object, kind: pa.DataType) -> str:
    """A value of `numbers` as people read it: a timestamp as ISO 8601, a number as it is."""
    if pa.types.is_date(kind):
        kind = pa.timestamp("ms")
    if not pa.types.is_timestamp(kind):
        return str(value)
    text = str(np.datetime64(int(value), kind.unit))  # type: ignore[call-overload]
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return text if kind.tz is None else f"{text}Z"


def width_of(size: Size, kind: pa.DataType, unit: str = "ms") -> float:
    """A time or attribute window's width in steps of the column it is measured on."""
    return size.milliseconds * ticks_per_second(kind, unit) / 1000 if size.is_time else float(size.amount)


def ordered(values: npt.NDArray[np.float64]) -> Longs:
    """Floats as integers in the same order."""
    bits = np.where(values == 0, 0.0, values).view(np.int64)
    return np.where(bits < 0, bits ^ MOST, bits)


def lowest(values: npt.NDArray[np.float64], width: float) -> npt.NDArray[np.float64]:
    """The least float s with `value - s <= width`, rounding included."""
    low = values - width
    for _ in range(2):
        below = np.nextafter(low, -np.inf)
        low = np.where(values - below <= width, below, low)
    for _ in range(2):
        low = np.where(values - low <= width, low, np.nextafter(low, np.inf))
    return low


@dataclass
class Ranks:
    """How many events each partition has had so far; a batch counts once `advance` says that it was taken."""

    seen: Longs = field(default_factory=lambda: np.zeros(1, np.int64))
    _next: Longs | None = field(default=None, init=False)
    _more: tuple[Longs, Longs] | None = field(default=None, init=False)  # partitions of the batch, and its events there

    def of(self, partition: Longs | None, count: int) -> Longs:
        """The rank of every event of a batch in its partition."""
        self._next = self._more = None
        if partition is None:
            first = int(self.seen[0])
            self._more = np.zeros(1, np.int64), np.array([count])
            return np.arange(first, first + count, dtype=np.int64)
        if not count:
            return np.zeros(0, np.int64)
        top = int(partition.max()) + 1
        seen = self.seen
        if top > seen.size:
            seen = self._next = np.concatenate([seen, np.zeros(max(top, seen.size), np.int64)])
        order = np.argsort(partition, kind="stable")
        sorted_ids = partition[order]
        starts = np.flatnonzero(np.r_[True, sorted_ids[1:] != sorted_ids[:-1]])
        sizes = np.diff(np.r_[starts, count])
        ranks = np.empty(count, np.int64)
        ranks[order] = np.arange(count) - np.repeat(starts, sizes) + np.repeat(seen[sorted_ids[starts]], sizes)
        self._more = sorted_ids[starts], sizes
        return ranks

    def advance(self) -> None:
        """Count the batch that was last ranked."""
        self.seen = self.seen if self._next is None else self._next
        if self._more is not None:
            partitions, sizes = self._more
            self.seen[partitions] += sizes
        self._next = self._more = None


def count_keys(size: Size, ranks: Longs) -> tuple[Longs, Longs]:
    """Keys of `WITHIN n EVENTS`."""
    return ranks, ranks - (int(size.amount) - 1)


def value_keys(column: pa.Array, name: str, width: float) -> tuple[Longs, Longs]:
    """Keys of a time or attribute window; where the column is NULL, `low` is `MOST`."""
    values, missing = numbers(column, name)
    if values.dtype == np.float64:
        floats = values.astype(np.float64)
        key, low = ordered(floats), ordered(lowest(floats, width))
    else:
        key = values.astype(np.int64)
        whole = math.floor(min(width, 2.0**62))
        low = np.where(key < LEAST + whole, LEAST, key - whole)
    return key, low if missing is None else np.where(missing, MOST, low)


@kernel
def carry(key: Longs, low: Longs, ids: Longs, last_key: Longs, last_low: Longs) -> int:
    """Fill in missing keys and lows with the partition's last ones; the first event whose key goes back, or -1."""
    for i in range(key.size):
        if low[i] == MOST:
            key[i] = last_key[ids[i]]
            low[i] = last_low[ids[i]]
        elif key[i] < last_key[ids[i]]:
            return i
        last_key[ids[i]] = key[i]
        last_low[ids[i]] = low[i]
    return -1
