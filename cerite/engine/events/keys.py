"""Window keys: for every event a number that does not decrease, and the least key a match ending there may start at.

Windows of time or of an attribute compare the column itself, windows of events the rank in the (partition's) stream;
the kernel only ever compares `key >= low`. Every column becomes 64-bit integers in the same order: decimals by their
digits, unsigned numbers by an offset, floats by their bits. Invariant: `key[start] >= low[end]` exactly when the window
holds between the two events according to the judge: whole numbers, decimals and instants subtract exactly, floats as
floats do. An event without a value neither starts nor ends a match (the plan sees to that); it gets the last known key
and low, so that neither ever decreases.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple, Union

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cerite.core.arrays import Buffers, Flags, Floats, Longs, Words, borrowed, picked
from cerite.core.errors import Hint, Setting, StreamError
from cerite.core.jit import kernel
from cerite.pattern.nodes import Size, of_floats
from cerite.predicate.columns.read import digits

Numbers = Union[Longs, Words, Floats]
LEAST, MOST = int(np.iinfo(np.int64).min), int(np.iinfo(np.int64).max)
_SIGN = np.uint64(1 << 63)
BLOCK = 1 << 11  # keys that are checked at once
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def numbers(column: pa.Array, name: str) -> tuple[Numbers, Flags | None]:
    """A column as 64-bit numbers, decimals by their digits, and where it is NULL (None: nowhere)."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.dictionary_decode()
        kind = column.type
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp(kind.unit)).view(pa.int64())
    elif pa.types.is_date(kind):
        column = column.cast(pa.timestamp("ms")).view(pa.int64())
    elif pa.types.is_decimal(kind):
        column = _unscaled(column, name)
    elif pa.types.is_floating(kind):
        column = column.cast(pa.float64())
    elif not (pa.types.is_uint64(kind) or pa.types.is_int64(kind)):
        if not (pa.types.is_integer(kind) or pa.types.is_null(kind)):
            raise not_numbers(name, str(kind))
        column = column.cast(pa.int64())
    if column.null_count == 0 and not pa.types.is_floating(column.type):
        return column.to_numpy(zero_copy_only=False), None
    missing = pc.is_null(column, nan_is_null=True).to_numpy(zero_copy_only=False)
    values = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
    return values, missing if missing.any() else None


def not_numbers(name: str, kind: str, hint: str | None = None) -> StreamError:
    """That what a column holds is not in an order that windows could measure."""
    return StreamError(f"the column `{name}` holds {kind}, not numbers or timestamps", hint=hint)


def _unscaled(column: pa.Array, name: str) -> pa.Array:
    values = digits(column)
    if values is None:
        kind = column.type
        raise StreamError(
            f"`{name}` holds {kind} with more digits than 64 bits have, which windows cannot compare exactly",
            hint=f"cast it to decimal(18, {min(kind.scale, 6)}), to a timestamp or to whole numbers",
        )
    return pa.array(values, mask=None if not column.null_count else column.is_null().to_numpy(zero_copy_only=False))


@lru_cache(maxsize=256)  # a stream asks for every push
def width_of(size: Size, kind: pa.DataType, unit: str = "ms") -> Fraction:
    """A window's width in steps of `numbers`; plain numbers count `unit`, days are in milliseconds."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    width = size.width * Fraction(_ticks_per_second(kind, unit), 1_000) if size.is_time else size.width
    if pa.types.is_decimal(kind):
        return Fraction(width * Fraction(10) ** int(kind.scale))
    return Fraction(of_floats(width)) if pa.types.is_floating(kind) else width


def _ticks_per_second(kind: pa.DataType, unit: str) -> int:
    if pa.types.is_timestamp(kind):
        return _PER_SECOND[kind.unit]
    return 1_000 if pa.types.is_date(kind) else _PER_SECOND[unit]


def tick_text(value: pa.Scalar) -> str:
    """A time or number as readable text: a timestamp as ISO 8601, a number as it is."""
    kind = value.type
    if pa.types.is_date(kind):
        value, kind = value.cast(pa.timestamp("ms")), pa.timestamp("ms")
    if not pa.types.is_timestamp(kind):
        return str(value.as_py())
    text = str(np.datetime64(value.value, kind.unit))
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return text if kind.tz is None else f"{text}Z"


def ordered(values: Floats) -> Longs:
    """Floats as integers in the same order."""
    bits = np.where(values == 0, 0.0, values).view(np.int64)
    return np.where(bits < 0, bits ^ MOST, bits)


def floats_of(keys: Longs) -> Floats:
    """The floats that `ordered` turned into these integers."""
    return np.where(keys < 0, keys ^ MOST, keys).view(np.float64)


def lowest(values: Floats, width: Fraction) -> Floats:
    """The least float s with `value - s <= width`, the difference rounded as for floats; infinity only reaches itself.

    Every difference up to half a step above the width rounds to it. The result is then only a step or two away: the
    first subtraction is exact where much cancels, the second is small.
    """
    limit = _float_below(width)
    with np.errstate(all="ignore"):
        low = (values - limit) - np.spacing(limit) / 2
        for _ in range(3):
            below = np.nextafter(low, -np.inf)
            low = np.where(values - below <= limit, below, low)
        for _ in range(4):
            low = np.where(values - low <= limit, low, np.nextafter(low, np.inf))
        return np.fmin(np.where(values - low <= limit, low, np.nan), values)


def _float_below(width: Fraction) -> float:
    """The greatest float that is not above the width."""
    if width > Fraction(np.finfo(np.float64).max):
        return float(np.finfo(np.float64).max)
    nearest = float(width)
    return nearest if Fraction(nearest) <= width else math.nextafter(nearest, -math.inf)


def below(value: int, width: Fraction) -> int:
    """The least whole number s with `value - s <= width`, as far down as 64 bits go."""
    return max(LEAST, value - math.floor(width))


class Reach(NamedTuple):
    """How far windows reach below a key: `by`, modulo 2^64; from keys below `least`, down to the least 64-bit key."""

    least: int
    by: int


def reach_of(width: int | None) -> Reach:
    """The reach of windows of a width, or (None) without a window."""
    if width is None:
        return Reach(MOST, 0)
    by = min(width, 2**64 - 1)
    return Reach(LEAST + by, int(np.uint64(by).view(np.int64)))


def keys_below(key: Longs, width: int) -> Longs:
    """The keys by a width below these, or above if it is negative, as far as 64 bits go."""
    if width < 0:
        return np.where(key > MOST + width, MOST, key - width)
    low = np.empty_like(key)
    write_lows(borrowed(signed(key)), reach_of(width), low)
    return low


def time_of(size: Size, time: str | None) -> str:
    """The column that a window of time or of an attribute is measured on."""
    name = time if size.is_time else size.attribute
    if name is None:
        raise StreamError(
            "the query has a time window, but no time column is named", hint=Hint("name it: ", Setting("time"))
        )
    return name


class Ranks:
    """How many events each partition has had so far; a batch counts only once `advance` says that it was taken.

    >>> ranks = Ranks()
    >>> ranks.of(np.array([0, 1, 0]), 3)
    array([0, 0, 1])
    >>> ranks.advance()
    >>> ranks.of(np.array([0, 1]), 2)
    array([2, 1])
    """

    def __init__(self) -> None:
        self.seen: Longs = np.zeros(1, np.int64)
        self._pending: tuple[Longs, Longs] | None = None  # the partitions of the batch, and `seen` after it

    def of(self, partition: Longs | None, count: int) -> Longs:
        """The rank of every event of a batch in its partition."""
        self.undo()
        if partition is None:
            first = int(self.seen[0])
            self._pending = np.zeros(0, np.int64), np.array([first + count])
            return np.arange(first, first + count, dtype=np.int64)
        ranks, seen, top = np.empty(count, np.int64), self.seen, int(partition.max(initial=-1)) + 1
        if top > seen.size:
            seen = np.concatenate([seen, np.zeros(max(top, seen.size), np.int64)])
        count_up(partition, seen, ranks)
        self._pending = partition, seen
        return ranks

    def keep(self, partitions: Longs) -> None:
        """Number these partitions from 0 on; the others, if they come again, begin with rank 0."""
        self.seen = picked(self.seen, partitions)

    def advance(self) -> None:
        """Count the batch that was last ranked."""
        if self._pending is not None:
            self.seen = self._pending[1]
        self._pending = None

    def undo(self) -> None:
        """Forget a batch that was ranked and not taken."""
        if self._pending is not None and self._pending[1] is self.seen:
            count_down(self._pending[0], self.seen)
        self._pending = None


@kernel
def count_up(partition: Longs, seen: Longs, ranks: Longs) -> None:
    """Count events by partition, and note how many came before each."""
    for i in range(partition.size):
        ranks[i] = seen[partition[i]]
        seen[partition[i]] += 1


@kernel
def count_down(partition: Longs, seen: Longs) -> None:
    """Take back what `count_up` counted."""
    for p in partition:
        seen[p] -= 1


def count_keys(size: Size, ranks: Longs) -> tuple[Longs, Longs]:
    """Keys of `WITHIN n EVENTS`."""
    return ranks, ranks - (int(size.amount) - 1)


def value_keys(
    column: pa.Array, name: str, size: Size, unit: str = "ms", buffers: Buffers | None = None
) -> tuple[Longs, Longs, Flags | None]:
    """Keys of a time or attribute window, and where the column is NULL (None: nowhere)."""
    values, missing = numbers(column, name)
    width = width_of(size, column.type, unit)
    if values.dtype == np.float64:
        floats = values.astype(np.float64)
        return ordered(floats), ordered(lowest(floats, width)), missing
    buffers = Buffers() if buffers is None else buffers
    key, low = signed(values), buffers.take("low", values.size, np.int64)
    key = borrowed(key)
    write_lows(key, reach_of(math.floor(width)), low)
    return key, low, missing  # for a column with NULLs, which `carry` fills in, `key` is a copy already


class Measure(NamedTuple):
    """What a window of time or of an attribute is measured on: a column, and what its plain numbers count."""

    size: Size
    name: str
    unit: str

    def keys(self, batch: pa.RecordBatch, buffers: Buffers | None = None) -> tuple[Longs, Longs, Flags | None]:
        """The key and low of every event, and which events have none."""
        return value_keys(batch.column(self.name), self.name, self.size, self.unit, buffers)

    def width(self, schema: pa.Schema) -> Fraction:
        """The window's width in steps of the column's numbers."""
        return width_of(self.size, schema.field(self.name).type, self.unit)


def measure(size: Size | None, time: str | None, unit: str) -> Measure | None:
    """What a window is measured on; None without a window, and for one of events.

    >>> measure(Size.of("price", 3), "at", "ms").name, measure(Size.events(3), "at", "ms")
    ('price', None)
    """
    return None if size is None or size.unit == "events" else Measure(size, time_of(size, time), unit)


def keys_of(values: Numbers) -> Longs:
    """Numbers as signed integers in the same order."""
    if values.dtype == np.float64:
        return ordered(values.astype(np.float64))
    if values.dtype == np.uint64:
        shifted: Longs = (values.astype(np.uint64) ^ _SIGN).view(np.int64)
        return shifted
    return values.astype(np.int64)


def signed(values: Numbers) -> Longs:
    """`keys_of` for reading only, which does not copy signed integers."""
    keys = values.view(np.int64) if values.dtype == np.int64 else keys_of(values)
    keys.flags.writeable = False  # kernels distinguish arrays that can be written from those that cannot
    return keys


@kernel
def first_fall(key: Longs, last: int, strictly: bool) -> int:
    """The place of the first key that is less (or, `strictly`, not greater) than the one before it, or -1.

    `last` comes before the first key. Whole blocks are checked without a branch, many keys at once, and only a block
    with a fall is searched.
    """
    for begin in range(0, key.size, BLOCK):
        block = key[begin : begin + BLOCK]
        falls = int(block[0] < last or (strictly and block[0] == last))
        for i in range(1, block.size):
            falls += int(block[i] < block[i - 1]) | (int(block[i] == block[i - 1]) & int(strictly))
        for i in range(block.size if falls else 0):
            if block[i] < last or (strictly and block[i] == last):
                return begin + i
            last = block[i]
        last = block[-1]
    return -1


@kernel
def write_lows(key: Longs, reach: Reach, low: Longs) -> None:
    """The least keys that windows reach from each key."""
    for i in range(key.size):
        low[i] = key[i] - reach.by if key[i] >= reach.least else LEAST


@kernel
def carry(key: Longs, low: Longs, missing: Flags, ids: Longs, last_key: Longs, last_low: Longs) -> int:
    """Fill in missing keys and lows with the partition's last ones; returns the first event that decreases, or -1."""
    for i in range(key.size):
        if missing[i]:
            key[i] = last_key[ids[i]]
            low[i] = last_low[ids[i]]
        elif key[i] < last_key[ids[i]]:
            return i
        last_key[ids[i]] = key[i]
        last_low[ids[i]] = low[i]
    return -1
