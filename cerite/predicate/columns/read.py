"""Arrow columns as NumPy arrays, a block of rows at a time, without copying where the layout allows it.

NULLs: floats carry them as NaN (both mean NULL in a condition), integers, decimals and instants as a mask that is None
when there are none. Decimals are their digits as whole numbers; only those of too many digits stay as Arrow has them.
Invariant: a block [start, stop) holds the same values whatever the array's offset and encoding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Union

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from cerite.core.arrays import Bytes, Flags, Floats, Longs

_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
LONG_DIGITS = 18  # decimals with this many digits fit 64 bits
_MOST_DIGITS = 9 * 10**18  # so that a float next to them does not round beyond 64 bits


@dataclass(frozen=True, slots=True)
class Integers:
    """64-bit integers, signed or unsigned, and which of them are not NULL (None: all)."""

    values: npt.NDArray[Any]
    valid: Flags | None


@dataclass(frozen=True, slots=True)
class Decimals:
    """Decimals of one scale by their digits (1.50 of scale 2 is 150), and which of them are not NULL (None: all)."""

    values: Longs
    scale: int
    valid: Flags | None


@dataclass(frozen=True, slots=True)
class Wide:
    """Decimals of which some have more digits than 64 bits hold."""

    array: pa.Array


@dataclass(frozen=True, slots=True)
class Instants:
    """Times since 1970 UTC or durations, in units of `unit` nanoseconds, and which of them are not NULL (None: all)."""

    values: Longs
    unit: int
    valid: Flags | None
    is_duration: bool = False


Values = Union[Integers, Floats, Decimals, Wide, Instants, pa.Array]


class Column:
    """One column of a batch, or the distinct values of one."""

    def __init__(self, array: pa.Array) -> None:
        self.array = plain(array)
        self._start: int = self.array.offset
        buffers = self.array.buffers()
        self._validity = np.frombuffer(buffers[0], np.uint8) if self.array.null_count else None
        kind = self.array.type
        self._values: npt.NDArray[Any]
        self.is_float = bool(is_.is_floating(kind))
        self._reader: Callable[[Column, int, int], Values] = Column._strings
        if is_.is_boolean(kind):
            self._values = np.frombuffer(buffers[1], np.uint8)
        elif is_.is_integer(kind) or self.is_float:
            self._values = fixed_width(self.array, kind.to_pandas_dtype())
            self._reader = Column._floats if self.is_float else Column._integers
        elif is_.is_decimal(kind):
            whole = digits(self.array)
            self._reader = Column._wide if whole is None else Column._decimals
            self._values = np.zeros(0, np.int64) if whole is None else aligned(whole)
        elif is_.is_timestamp(kind) or is_.is_date64(kind):
            self._values = fixed_width(self.array, np.int64)
            self._reader = Column._instants

    def read(self, start: int, stop: int) -> Values:
        """A block of numbers, instants or strings."""
        return self._reader(self, start, stop)

    def valid(self, start: int, stop: int) -> Flags | None:
        """Which rows of the block are not NULL; None if all are."""
        return None if self._validity is None else _unpacked(self._validity, self._start + start, stop - start)

    def truth(self, start: int, stop: int, wanted: bool = True) -> Flags:
        """Where a boolean column is this truth value; NULL is neither."""
        values = _unpacked(self._values, self._start + start, stop - start)
        if not wanted:
            np.logical_not(values, out=values)
        valid = self.valid(start, stop)
        return values if valid is None else values & valid

    def _floats(self, start: int, stop: int) -> Floats:
        values, valid = self._values[start:stop], self.valid(start, stop)
        return (values if valid is None else np.where(valid, values, np.nan)).astype(np.float64, copy=False)

    def _integers(self, start: int, stop: int) -> Integers:
        values = self._values[start:stop]
        wide = values if values.dtype == np.uint64 else values.astype(np.int64, copy=False)
        return Integers(wide, self.valid(start, stop))

    def _decimals(self, start: int, stop: int) -> Decimals:
        return Decimals(self._values[start:stop], self.array.type.scale, self.valid(start, stop))

    def _wide(self, start: int, stop: int) -> Wide:
        return Wide(self.array.slice(start, stop - start))

    def _instants(self, start: int, stop: int) -> Instants:
        unit = "ms" if is_.is_date64(self.array.type) else self.array.type.unit
        return Instants(self._values[start:stop], _NANOSECONDS[unit], self.valid(start, stop))

    def _strings(self, start: int, stop: int) -> pa.Array:
        return self.array.slice(start, stop - start)


def plain(array: pa.Array) -> pa.Array:
    """The array in a layout that `Column` reads: no dictionary, decimals of 128 or 256 bits, days as seconds."""
    if is_.is_dictionary(array.type):
        values = plain(array.dictionary)  # first: not every layout can be taken from
        return pa.DictionaryArray.from_arrays(array.indices, values).dictionary_decode()
    if is_.is_decimal32(array.type) or is_.is_decimal64(array.type):
        return pc.cast(array, pa.decimal128(array.type.precision, array.type.scale))
    if is_.is_date32(array.type):
        return pc.cast(array, pa.timestamp("s"))
    return pc.cast(array, pa.large_string()) if is_.is_string_view(array.type) else array


def decoded_type(kind: pa.DataType) -> pa.DataType:
    """The type of a column's values: dictionaries decoded."""
    return kind.value_type if is_.is_dictionary(kind) else kind


def decoded(column: Any) -> Any:
    """A column, in one or several chunks, without its dictionary.

    >>> decoded(pa.array(["a", "a"]).dictionary_encode()).type
    DataType(string)
    """
    if not is_.is_dictionary(column.type):
        return column
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([chunk.dictionary_decode() for chunk in column.chunks], column.type.value_type)
    return column.dictionary_decode()


def both(one: Flags | None, other: Flags | None) -> Flags | None:
    """Which rows two masks of valid rows have in common; None is every row."""
    if one is None or other is None:
        return other if one is None else one
    return one & other


def digits(array: pa.Array) -> Longs | None:
    """The digits of decimals as whole numbers (1.50 of scale 2 is 150), 0 where NULL; None if 64 bits are too few."""
    kind = array.type
    array = plain(array)
    words = array.type.byte_width // 8
    whole = np.frombuffer(array.buffers()[1], "<i8")[array.offset * words : (array.offset + len(array)) * words]
    low = whole[::words].copy()  # of a single row even a slice would be the read-only buffer itself
    if array.null_count:
        low[array.is_null().to_numpy(zero_copy_only=False)] = 0
    if kind.precision > LONG_DIGITS:
        known = slice(None) if not array.null_count else array.is_valid().to_numpy(zero_copy_only=False)
        for word in range(1, words):
            if (whole[word::words][known] != (low[known] >> 63)).any():
                return None
        if low.size and max(int(low.max()), -int(low.min())) > _MOST_DIGITS:
            return None
    return low


def fixed_width(array: pa.Array, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """The values of an array of numbers, whatever stands where it is NULL."""
    size = np.dtype(dtype).itemsize
    return aligned(np.frombuffer(array.buffers()[1], dtype, len(array), array.offset * size))


def aligned(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The values at an address the kernels are compiled for, and read-only like Arrow's own."""
    if not values.flags.aligned:
        values = values.copy()
    values.flags.writeable = False
    return values


def _unpacked(bitmap: Bytes, start: int, count: int) -> Flags:
    whole = np.unpackbits(bitmap[start >> 3 : (start + count + 7) >> 3], bitorder="little")
    return whole[start & 7 : (start & 7) + count].view(np.bool_)
