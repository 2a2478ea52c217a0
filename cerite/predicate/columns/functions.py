"""Functions and the arithmetic of time on blocks of values: `predicate.functions`, vectorised.

Instants and durations are whole numbers of a unit; where two units meet, the finer one is used. Invariant: no function
raises on any value; what `predicate.functions` gives NULL for, and what 64 bits of the unit do not hold, is NULL.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cerite.core.arrays import Flags, Floats
from cerite.core.errors import StreamError
from cerite.predicate.columns.numbers import as_float
from cerite.predicate.columns.read import Column, Decimals, Instants, Integers, Wide, both
from cerite.predicate.functions import EARLIEST, LATEST, MICROSECOND, PARTS, ROUNDING

_MICRO = 1_000  # nanoseconds
_SECOND = 1_000_000_000
_MOST = 2**63 - 1
_TEXT: dict[str, Callable[[str], str]] = {"lower": str.lower, "upper": str.upper}


def is_time(value: Any) -> bool:
    """Whether the value is a block of instants or a duration."""
    return isinstance(value, (Instants, timedelta))


def time_arithmetic(op: str, left: Any, right: Any) -> Instants | Floats:
    """`left op right` of instants and durations, at least one of them a block."""
    one, other = _block(left), _block(right)
    unit = min(one.unit, other.unit)
    a, b = _in_unit(one, unit), _in_unit(other, unit)
    valid = both(a.valid, b.valid)
    if op == "/":
        return _quotient(a, b, valid)
    result = a.values + b.values if op == "+" else a.values - b.values
    signs = (a.values ^ result) & ((b.values ^ result) if op == "+" else (a.values ^ b.values))
    is_duration = one.is_duration == other.is_duration
    fits: Flags = np.greater_equal(signs, 0)
    if not is_duration and unit >= _MICRO:
        fits &= (result >= EARLIEST * _MICRO // unit) & (result <= LATEST * _MICRO // unit)
    known = both(valid, None if fits.all() else fits)  # of a duration that is too long, one flag for all rows
    return Instants(result, unit, None if known is None else np.broadcast_to(known, result.shape), is_duration)


def negative(value: Instants) -> Instants:
    """`-value` of a duration."""
    return Instants(-value.values, value.unit, value.valid, True)


def nanoseconds(value: timedelta) -> int:
    """A duration's length in nanoseconds."""
    return value // MICROSECOND * _MICRO


def called(name: str, values: list[Any], size: int) -> Any:
    """The function's values on a block of `size` rows; at least one argument is a block."""
    values = [as_float(value) if isinstance(value, (Decimals, Wide)) else value for value in values]
    if name == "coalesce":
        return _coalesced(values, size)
    (value,) = values
    if name in PARTS:
        return Integers(part(name, value.values, _SECOND // value.unit), value.valid)
    if name in ROUNDING:
        return value if isinstance(value, Integers) else _rounded(name, value)
    if name == "abs":
        return _absolute(value)
    if name == "length":
        counts = pc.utf8_length(value)
        valid = Column(counts).valid(0, size)
        return Integers(pc.fill_null(counts, 0).cast(pa.int64()).to_numpy(zero_copy_only=False), valid)
    return _cased(name, value)


def part(name: str, ticks: Any, per_second: int) -> Any:
    """A part of instants in UTC, from ticks since 1970: of one whole number or of an array of them."""
    seconds = ticks // per_second
    days = seconds // 86_400
    if name == "weekday":
        return (days + 3) % 7 + 1
    if name in ("hour", "minute", "second"):
        return {"hour": seconds // 3_600 % 24, "minute": seconds // 60 % 60, "second": seconds % 60}[name]
    return dict(zip(("year", "month", "day"), civil(days), strict=True))[name]


def civil(days: Any) -> tuple[Any, Any, Any]:
    """Year, month and day of days since 1970, in the Gregorian calendar (Hinnant's algorithm, of 400-year eras)."""
    shifted = days + 719_468
    era = shifted // 146_097
    of_era = shifted - era * 146_097
    year_of_era = (of_era - of_era // 1_460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * of_year + 2) // 153  # March is 0
    month = shifted_month + 3 - 12 * (shifted_month >= 10)
    return year_of_era + era * 400 + (month <= 2), month, of_year - (153 * shifted_month + 2) // 5 + 1


def _block(value: Any) -> Instants:
    """A duration as a block of one, in the largest unit that holds it."""
    if isinstance(value, Instants):
        return value
    length = nanoseconds(value)
    unit = next(each for each in (_SECOND, 1_000_000, _MICRO) if length % each == 0)
    return Instants(np.array([length // unit], np.int64), unit, None, True)


def _in_unit(value: Instants, unit: int) -> Instants:
    factor = value.unit // unit
    if factor == 1:
        return value
    fits: Flags = np.abs(value.values) <= _MOST // factor
    return Instants(value.values * factor, unit, value.valid if fits.all() else both(value.valid, fits), True)


def _quotient(a: Instants, b: Instants, valid: Flags | None) -> Floats:
    scale = max(a.unit, _MICRO) // _MICRO  # counts of microseconds, or of nanoseconds
    with np.errstate(all="ignore"):
        quotient: Floats = (a.values.astype(np.float64) * scale) / (b.values.astype(np.float64) * scale)
    quotient[np.broadcast_to(b.values == 0, quotient.shape)] = np.nan
    if valid is not None:
        quotient[~np.broadcast_to(valid, quotient.shape)] = np.nan
    return quotient


def _rounded(name: str, value: Floats) -> Floats:
    if name != "round":
        rounded: Floats = np.floor(value) if name == "floor" else np.ceil(value)
        return rounded
    with np.errstate(invalid="ignore"):  # infinity minus infinity
        whole = np.trunc(value)
        return whole + np.where(np.abs(value - whole) >= 0.5, np.copysign(1.0, value), 0.0)


def _absolute(value: Any) -> Any:
    if isinstance(value, Instants):
        return Instants(np.abs(value.values), value.unit, value.valid, True)
    if not isinstance(value, Integers):
        return np.abs(value)
    if value.values.dtype == np.uint64:
        return value
    least = value.values == np.iinfo(np.int64).min
    return Integers(np.abs(value.values), both(value.valid, ~least) if least.any() else value.valid)


def _cased(name: str, value: pa.Array) -> pa.Array:
    """Lower or upper case: plain letters by Arrow; texts with other letters by Python, once per distinct text.

    Arrow maps characters one by one; Python and Spark follow Unicode, where one may become several.
    """
    text = (pc.ascii_lower if name == "lower" else pc.ascii_upper)(value)
    plain = pc.fill_null(pc.string_is_ascii(value), True)
    if pc.all(plain).as_py() is not False:
        return text
    others = value.filter(pc.invert(plain)).dictionary_encode()
    cased = pa.array([_TEXT[name](each) for each in others.dictionary.to_pylist()], value.type)
    return pc.replace_with_mask(text, pc.invert(plain), cased.take(others.indices))


def _coalesced(values: list[Any], size: int) -> Any:
    first = next(value for value in values if not isinstance(value, (int, float, str, timedelta)))
    if isinstance(first, pa.Array):
        return pc.coalesce(*(_text_array(value, size) for value in values))
    if isinstance(first, Instants):
        return _coalesced_times([_block(value) for value in values], size)
    if all(isinstance(value, (Integers, int)) for value in values):
        return _coalesced_integers(values, size)
    filled = np.full(size, np.nan)
    for value in reversed(values):
        floats = np.broadcast_to(as_float(value), size)
        filled = np.where(np.isnan(floats), filled, floats)
    return filled


def _text_array(value: pa.Array | str, size: int) -> pa.Array:
    wide = pa.large_string()
    return pa.repeat(pa.scalar(value, wide), size) if isinstance(value, str) else value.cast(wide)


def _coalesced_integers(values: list[Any], size: int) -> Integers:
    """Whole numbers of 64 bits; where some are signed, one that only fits an unsigned column is refused."""
    parts: list[tuple[npt.NDArray[Any], Flags | None]] = []
    signed = any(value < 0 if isinstance(value, int) else value.values.dtype == np.int64 for value in values)
    if not signed:
        plain = [np.array([value], np.uint64) if isinstance(value, int) else value.values for value in values]
        return _filled([(each, getattr(value, "valid", None)) for each, value in zip(plain, values, strict=True)], size)
    for value in values:
        block = value if isinstance(value, Integers) else Integers(np.array([value], np.int64), None)
        if block.values.dtype == np.uint64 and (block.values > np.uint64(_MOST)).any():
            raise StreamError("`coalesce` has a number beyond 2^63 among signed ones", hint="cast the column to float")
        parts.append((block.values.astype(np.int64), block.valid))
    return _filled(parts, size)


def _coalesced_times(blocks: list[Instants], size: int) -> Instants:
    unit = min(block.unit for block in blocks)
    scaled = [_in_unit(block, unit) for block in blocks]
    filled = _filled([(block.values, block.valid) for block in scaled], size)
    return Instants(filled.values, unit, filled.valid, blocks[0].is_duration)


def _filled(parts: list[tuple[npt.NDArray[Any], Flags | None]], size: int) -> Integers:
    """Row by row, the first value that is not NULL."""
    filled, known = np.zeros(size, parts[0][0].dtype), np.zeros(size, np.bool_)
    for values, valid in parts:
        new = ~known if valid is None else ~known & valid
        filled = np.where(new, values, filled)
        known |= new
    return Integers(filled, None if known.all() else known)
