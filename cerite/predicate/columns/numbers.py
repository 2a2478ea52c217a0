"""Arithmetic and comparison on blocks of numbers and instants, with the results that `evaluate` gives one by one.

An operand is a block or a constant. Comparisons are exact whatever kinds of numbers meet; whole numbers and decimals
are exact in arithmetic, too: results that leave 64 bits are NULL. In arithmetic with a float, every number is a float.
Invariant: no function raises or warns on any value, except that arithmetic refuses decimals of too many digits; what
has no result is NULL (NaN in a float block).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, Union

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cerite.core.arrays import Flags, Floats, Longs, Words
from cerite.core.errors import StreamError
from cerite.predicate.columns.read import Decimals, Instants, Integers, Wide, both
from cerite.predicate.evaluate import exactly, scale_of, written

Operand = Union[Integers, Floats, Decimals, Wide, int, float]
Operands = Union[Integers, Floats, Decimals]

_WRAP = 2**64 - 1
_SIGN = 2**63
_LARGEST = 2**53  # up to here every whole number is a float
_RANKED = 2.0**61
_SPLIT = 2.0**27 + 1
_HEX = np.frombuffer(bytes(range(256)).hex().encode(), np.uint8).reshape(256, 2)
_EXACT_SCALE = 22  # 10 to this power is a float, and less is
_COMPARE: dict[str, np.ufunc] = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
_ARROW: dict[str, Any] = {
    "=": pc.equal, "!=": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal,
}  # fmt: skip
_PYTHON: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_EXACT: dict[str, np.ufunc] = {"+": np.add, "-": np.subtract, "*": np.multiply}
_FLOAT: dict[str, np.ufunc] = {**_EXACT, "/": np.divide, "%": np.fmod}


def arithmetic(op: str, left: Operand, right: Operand) -> Operands:
    """`left op right`, at least one of them a block."""
    for side in (left, right):
        if isinstance(side, Wide):
            raise _too_wide(f"`{op}`", side)
    with np.errstate(all="ignore"):
        if op != "/" and _whole(left) and _whole(right):
            return _integers(op, left, right)
        sides = (left, right)
        exact = any(isinstance(side, Decimals) for side in sides) and not any(map(_is_float, sides))
        if op != "/" and exact:
            return _decimals(op, left, right)
        divisor = as_float(right)
        result: Floats = _FLOAT[op](as_float(left), divisor)
        if op == "/":
            result[np.broadcast_to(np.equal(divisor, 0.0), result.shape)] = np.nan
        return result


def _is_float(operand: Operand) -> bool:
    """Whether arithmetic with it turns decimals into floats; with finite constants it does not."""
    return isinstance(operand, np.ndarray) or (isinstance(operand, float) and not math.isfinite(operand))


def _too_wide(what: str, operand: Wide) -> StreamError:
    kind = operand.array.type
    return StreamError(
        f"{what} reads {kind} with more digits than 64 bits hold",
        hint=f"cast the column to decimal(18, {min(kind.scale, 6)}) or to a float",
    )


def _integers(op: str, left: Operand, right: Operand) -> Integers:
    values, fits = _remainder(left, right) if op == "%" else _exact(op, left, right)
    return Integers(values, both(_valid(left), both(_valid(right), fits)))


def _decimals(op: str, left: Operand, right: Operand) -> Decimals:
    """Whole numbers of a common scale, or of their own scales if they are multiplied."""
    scales = max(0, _scale(left)), max(0, _scale(right))
    common = sum(scales) if op == "*" else max(scales)
    one, other = (
        _rescaled(side, scale if op == "*" else common) for side, scale in zip((left, right), scales, strict=True)
    )
    if one is None or other is None:
        count = next(side.values.size for side in (left, right) if isinstance(side, Decimals))
        return Decimals(np.zeros(count, np.int64), common, np.zeros(count, np.bool_))
    result = _integers(op, one, other)
    return Decimals(result.values, common, result.valid)


def _scale(operand: Operand) -> int:
    if isinstance(operand, Decimals):
        return operand.scale
    return scale_of(written(operand)) if isinstance(operand, float) else 0


def _rescaled(operand: Operand, scale: int) -> Integers | int | None:
    """The operand's digits at a scale of at least its own; None for a constant that does not fit."""
    if isinstance(operand, (int, float)):
        whole = math.floor(exactly(operand, beside_decimals=True) * 10**scale)
        return whole if -_SIGN <= whole < _SIGN else None
    assert isinstance(operand, (Integers, Decimals))
    block = Integers(operand.values, operand.valid)
    factor = 10 ** (scale - _scale(operand))
    if factor < _SIGN:
        return block if factor == 1 and block.values.dtype == np.int64 else _integers("*", block, factor)
    return Integers(np.zeros_like(block.values, np.int64), both(block.valid, block.values == 0))


def at_scale(operand: Operand, scale: int) -> Integers:
    """Whole numbers and decimals by their digits at a scale of at least their own; NULL where these are too many."""
    if isinstance(operand, Wide):
        raise _too_wide("a condition across events", operand)
    scaled = _rescaled(operand, scale)
    assert isinstance(scaled, Integers)
    return scaled


def ordered_text(operand: Operand, scale: int) -> pa.Array:
    """Numbers as texts in the same order: the digits at a common scale as hexadecimal numbers of 256 bits."""
    try:
        array = pc.cast(_as_arrow(operand), pa.decimal256(76, scale))
    except pa.ArrowInvalid:
        raise StreamError(
            f"a number has too many digits to be compared with decimals of {scale} places",
            hint="cast one of the columns to the other's type",
        ) from None
    data = np.frombuffer(array.buffers()[1], np.uint8)[32 * array.offset : 32 * (array.offset + len(array))]
    ordered = data.reshape(-1, 32)[:, ::-1].copy()
    ordered[:, 0] ^= 128  # negative numbers first
    text = _HEX[ordered].reshape(-1)
    offsets = np.arange(0, 64 * len(array) + 1, 64, dtype=np.int64)
    texts = pa.Array.from_buffers(pa.large_string(), len(array), [None, pa.py_buffer(offsets), pa.py_buffer(text)])
    return pc.if_else(array.is_valid(), texts, None) if array.null_count else texts


def as_float(operand: Operand) -> Floats | float:
    """The operand as floats, NaN where it is NULL."""
    if isinstance(operand, (Integers, Decimals)):
        floats = operand.values.astype(np.float64)
        if isinstance(operand, Decimals) and operand.scale:
            floats = _floats_of(operand, floats)
        if operand.valid is not None:
            floats[~operand.valid] = np.nan
        return floats
    if isinstance(operand, Wide):
        return _rounded_text(operand.array)
    return float(operand) if isinstance(operand, int) else operand


def _floats_of(operand: Decimals, digits: Floats) -> Floats:
    """The nearest floats: one division where both sides of it are exact, else by way of text, which rounds once."""
    if 0 <= operand.scale <= _EXACT_SCALE and (not digits.size or _small(operand.values)):
        return digits / 10.0**operand.scale
    return _rounded_text(arrow_decimals(operand))


def _rounded_text(array: pa.Array) -> Floats:
    floats: Floats = pc.cast(pc.cast(array, pa.string()), pa.float64()).to_numpy(zero_copy_only=False)
    return floats.copy()


def arrow_decimals(operand: Decimals) -> pa.Array:
    words = np.column_stack([operand.values, operand.values >> 63])
    kind = pa.decimal128(38, operand.scale)
    return pa.Array.from_buffers(kind, len(words), [None, pa.py_buffer(np.ascontiguousarray(words))])


def compare_numbers(op: str, left: Operand, right: Operand) -> Flags:
    """Where `left op right` is true; `left` is a block."""
    if isinstance(left, Wide) or isinstance(right, Wide):
        return _compare_wide(op, left, right)
    if isinstance(left, np.ndarray):
        if isinstance(right, (Integers, Decimals)):
            return _compare_floats(_FLIPPED.get(op, op), right, left)
        truth: Flags
        if isinstance(right, int) and float(right) != right:  # between two floats
            if op in ("=", "!="):
                return np.equal(left, left) & (op == "!=")
            above = float(right) if float(right) > right else math.nextafter(float(right), math.inf)
            op, right = {"<=": "<", ">": ">="}.get(op, op), above
        truth = _differ(left, as_float(right)) if op == "!=" else _COMPARE[op](left, as_float(right))
        return truth
    assert isinstance(left, (Integers, Decimals))
    if isinstance(right, np.ndarray):
        return _compare_floats(op, left, right)
    if isinstance(right, (Integers, Decimals)):
        valid = both(left.valid, right.valid)
        truth = _compare_scales(op, left, right)
    else:
        valid = left.valid
        if right != right:
            return np.zeros(left.values.size, np.bool_)
        constant = exactly(right, beside_decimals=isinstance(left, Decimals))
        truth = compare_constant(op, left.values, constant * Fraction(10) ** _scale(left))
    return truth if valid is None else truth & valid


def _differ(left: Floats, right: Floats | float) -> Flags:
    """NaN differs from everything, but NULL does not."""
    below: Flags = np.less(left, right)
    return below | np.greater(left, right)


def _compare_scales(op: str, left: Integers | Decimals, right: Integers | Decimals) -> Flags:
    one, other = _scale(left), _scale(right)
    if one > other:
        return _compare_coarse(_FLIPPED.get(op, op), right.values, left.values, 10 ** (one - other))
    return _compare_coarse(op, left.values, right.values, 10 ** (other - one))


def _compare_floats(op: str, left: Integers | Decimals, right: Floats) -> Flags:
    """Numbers against floats by their exact values: against the float's whole part below, and whether there is more."""
    scale = _scale(left)
    if not scale and (left.values.dtype.itemsize < 8 or not left.values.size or _small(left.values)):
        floats = as_float(left)
        truth: Flags = _differ(floats, right) if op == "!=" else _COMPARE[op](floats, right)  # type: ignore[arg-type]
        return truth
    if not 0 <= scale <= _EXACT_SCALE:
        return _one_by_one(op, _as_arrow(left), right)
    unsigned = left.values.dtype == np.uint64
    whole, more, beyond = _floor_unsigned(right) if unsigned else floor_at(right, scale)
    equal = (left.values == whole) & (beyond == 0)
    below = np.where(beyond == 0, (left.values < whole) | (equal & more), beyond > 0)
    truth = _ordered(op, below, equal & ~more) & ~np.isnan(right)
    return truth if left.valid is None else truth & left.valid


def _small(values: npt.NDArray[Any]) -> bool:
    return int(values.max()) <= _LARGEST and int(values.min()) >= -_LARGEST


def floor_at(floats: Floats, scale: int) -> tuple[Longs, Flags, npt.NDArray[np.int8]]:
    """The digits of floats at a scale, rounded down; whether something was cut off; and which are beyond 64 bits.

    The product with a power of ten is a float and its exact error (Dekker), so nothing is lost.
    """
    with np.errstate(all="ignore"):
        factor = 10.0**scale
        product = floats * factor
        beyond = (product >= _SIGN).astype(np.int8) - (product < -_SIGN).astype(np.int8)
        safe = np.where((beyond != 0) | np.isnan(product), 0.0, floats)
        product = safe * factor
        error = _error(safe, factor, product)
        below = np.floor(product)
        rest = np.floor(error)
        cut = (product != below) | (error != rest)
        whole = below.astype(np.int64) + np.where(product == below, rest, 0).astype(np.int64)
        tiny = (np.abs(product) < 1e-200) & (safe != 0)  # the error may vanish there
        return np.where(tiny, np.where(safe < 0, -1, 0), whole), cut | tiny, beyond


# Whole numbers of 64 bits and floats in one order that 64 bits hold, so that one of either kind compares with one of
# the other as their payloads do. Up to 2^61 every whole number is twice itself, and a float between two of them is odd.
# Beyond, floats are more than 2 apart and go by their rank, and a whole number between two of them is odd.


def whole_among_floats(values: npt.NDArray[Any]) -> Longs:
    """The payloads of whole numbers, signed or unsigned."""
    negative = values < 0
    bits = values.view(np.uint64)
    size = np.where(negative, np.uint64(0) - bits, bits)
    cut = np.zeros(size.shape, np.uint64)
    for place in (61, 62, 63):  # a float has 53 digits
        cut[size >> np.uint64(place) == 1] = np.uint64(place - 52)
    even = (size >> cut) << cut
    rank = 2 * _rank(even.astype(np.float64)) + (even != size)
    signed: Longs = np.where(negative, -rank, rank)
    return np.where(cut == 0, 2 * values.astype(np.int64), signed)


def among_wholes(floats: Floats) -> Longs:
    """The payloads of floats."""
    safe = np.where(np.isnan(floats), 0.0, floats)
    large = np.abs(safe) >= _RANKED
    small = np.where(large, 0.0, safe)
    below = np.floor(small)
    rank = 2 * _rank(np.where(large, np.abs(safe), _RANKED))
    return np.where(large, np.where(safe < 0, -rank, rank), 2 * below.astype(np.int64) + (small != below))


def _rank(floats: Floats) -> Longs:
    """Floats from 2^61 on by their order, all beyond the whole numbers alike; meaningless below 2^61."""
    most = np.float64(2.0 * _SIGN)
    return 2**61 + np.minimum(floats, most).view(np.int64) - np.float64(_RANKED).view(np.int64)


def _floor_unsigned(floats: Floats) -> tuple[Words, Flags, npt.NDArray[np.int8]]:
    """As `floor_at`, for unsigned whole numbers."""
    beyond = (floats >= 2.0 * _SIGN).astype(np.int8) - (floats < 0).astype(np.int8)
    safe = np.where((beyond != 0) | np.isnan(floats), 0.0, floats)
    return np.floor(safe).astype(np.uint64), safe != np.floor(safe), beyond


def _error(one: Floats, other: float, product: Floats) -> Floats:
    """What rounding took from a product of floats that are not huge: `one * other - product`, exactly."""
    a, b = _SPLIT * one, _SPLIT * other
    one_high, other_high = a - (a - one), b - (b - other)
    one_low, other_low = one - one_high, other - other_high
    return one_low * other_low - (((product - one_high * other_high) - one_low * other_high) - one_high * other_low)


def _compare_wide(op: str, left: Operand, right: Operand) -> Flags:
    """Decimals of many digits, by Arrow in its widest type; with floats one by one, as Python does it."""
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        return _with_floats(op, left, right)
    if isinstance(right, (int, float)):
        assert isinstance(left, Wide)
        if right != right:
            return np.zeros(len(left.array), np.bool_)
        return _compare_wide_constant(op, left.array, exactly(right, beside_decimals=True))
    scale = max(0, _wide_scale(left), _wide_scale(right))  # Arrow does not compare those of less
    try:
        sides = [pc.cast(_as_arrow(side), pa.decimal256(76, scale)) for side in (left, right)]
    except pa.ArrowInvalid:
        raise StreamError(
            f"decimals of {_wide_scale(left)} and {_wide_scale(right)} places have too many digits to be compared",
            hint="cast one of them to the other's type",
        ) from None
    return _truth(_ARROW[op](*sides))


def _compare_wide_constant(op: str, array: pa.Array, constant: Fraction) -> Flags:
    scale = max(0, array.type.scale)  # Arrow does not compare those of less
    whole, rest = divmod(constant * Fraction(10) ** scale, 1)
    if (rest and op in ("=", "!=")) or abs(whole) >= 10**75:
        above = op in (("<", "<=") if whole > 0 else (">", ">="))
        known: Flags = array.is_valid().to_numpy(zero_copy_only=False)
        return known & (op == "!=" or above)
    whole += rest > 0 and op in ("<", ">=")
    digits = tuple(map(int, str(abs(whole))))
    scalar = pa.scalar(Decimal((int(whole < 0), digits, -scale)), pa.decimal256(76, scale))
    return _truth(_ARROW[op](pc.cast(array, scalar.type), scalar))


def _with_floats(op: str, left: Operand, right: Operand) -> Flags:
    if isinstance(left, Wide):
        return _one_by_one(op, left.array, right)
    assert isinstance(right, Wide)
    return _one_by_one(_FLIPPED.get(op, op), right.array, left)


def _one_by_one(op: str, decimals: pa.Array, floats: Any) -> Flags:
    pairs = zip(decimals.to_pylist(), floats.tolist(), strict=True)
    how = _PYTHON[op]
    return np.array([one is not None and other == other and how(one, other) for one, other in pairs], np.bool_)


def _wide_scale(operand: Operand) -> int:
    return int(operand.array.type.scale) if isinstance(operand, Wide) else _scale(operand)


def _as_arrow(operand: Operand) -> pa.Array:
    if isinstance(operand, Wide):
        return operand.array
    assert isinstance(operand, (Integers, Decimals))
    array = arrow_decimals(operand) if isinstance(operand, Decimals) else pa.array(operand.values)
    return array if operand.valid is None else pc.if_else(pa.array(operand.valid), array, None)


def _truth(array: pa.BooleanArray) -> Flags:
    flags: Flags = pc.fill_null(array, False).to_numpy(zero_copy_only=False)
    return flags


def compare_constant(op: str, values: npt.NDArray[Any], constant: Fraction) -> Flags:
    """Whole numbers against any constant, even one that their type cannot hold or that lies between two of them."""
    whole, rest = divmod(constant, 1)
    if rest and op in ("=", "!="):
        return np.full(values.shape, op == "!=")
    whole += rest > 0 and op in ("<", ">=")  # between two: the one above it is the first that is larger
    limits = np.iinfo(values.dtype)
    if not limits.min <= whole <= limits.max:
        above = whole > limits.max
        return np.full(values.shape, op == "!=" or op in (("<", "<=") if above else (">", ">=")))
    truth: Flags = _COMPARE[op](values, values.dtype.type(whole))
    return truth


def compare_instants(op: str, left: Instants, right: Instants | int) -> Flags:
    """Where `left op right` is true; a constant is in nanoseconds, of any size."""
    if isinstance(right, Instants):
        valid = both(left.valid, right.valid)
        truth = _compare_units(op, left, right)
    else:
        valid = left.valid
        truth = compare_constant(op, left.values, Fraction(right, left.unit))
    return truth if valid is None else truth & valid


def _compare_units(op: str, left: Instants, right: Instants) -> Flags:
    if left.unit < right.unit:
        return _compare_coarse(_FLIPPED.get(op, op), right.values, left.values, right.unit // left.unit)
    return _compare_coarse(op, left.values, right.values, left.unit // right.unit)


def _compare_coarse(op: str, left: npt.NDArray[Any], right: npt.NDArray[Any], ratio: int) -> Flags:
    """Numbers on the left count steps that are `ratio` times as large as those on the right."""
    if ratio == 1:
        return _compare_blocks(op, left, right)
    if ratio >= _SIGN:  # a step on the left is more than the right side reaches
        whole, more = np.where(right < 0, -1, 0), right != 0
    else:
        whole = right // right.dtype.type(ratio)
        more = right != whole * right.dtype.type(ratio)
    equal = _compare_blocks("=", left, whole)
    return _ordered(op, _compare_blocks("<", left, whole) | (equal & more), equal & ~more)


def _compare_blocks(op: str, left: npt.NDArray[Any], right: npt.NDArray[Any]) -> Flags:
    if left.dtype == right.dtype:
        truth: Flags = _COMPARE[op](left, right)
        return truth
    signed = left.dtype == np.int64  # the other is unsigned
    a, b = left.view(np.uint64), right.view(np.uint64)
    negative = (left if signed else right) < 0
    below = (negative | (a < b)) if signed else (~negative & (a < b))
    return _ordered(op, below, ~negative & (a == b))


def _ordered(op: str, below: Flags, equal: Flags) -> Flags:
    """The comparison, worked out from where left is below right and where they are equal."""
    if op in ("=", "!="):
        return equal if op == "=" else ~equal
    if op in ("<", ">="):
        return below if op == "<" else ~below
    return below | equal if op == "<=" else ~(below | equal)


def _exact(op: str, left: Operand, right: Operand) -> tuple[Longs, Flags]:
    """The result modulo 2**64, and where that is the true result.

    The floats' result is off by less than 2**14 where it matters, and a wrapped one by at least 2**64.
    """
    wrapped: Longs = _EXACT[op](_bits(left), _bits(right)).view(np.int64)
    nearly = _EXACT[op](_rounded(left), _rounded(right))
    return wrapped, np.abs(nearly - wrapped) < float(_SIGN)


def _remainder(left: Operand, right: Operand) -> tuple[Longs, Flags]:
    """The remainder with the dividend's sign, and where there is one that fits."""
    divisor = _magnitude(right)
    rest = np.fmod(_magnitude(left), np.maximum(divisor, np.uint64(1)))
    negative = left.values < 0 if isinstance(left, Integers) else np.bool_(_constant(left) < 0)
    fits: Flags = np.not_equal(divisor, 0) & (negative | (rest < np.uint64(_SIGN)))
    values: Longs = np.where(negative, np.uint64(0) - rest, rest).view(np.int64)
    return values, fits


def _whole(operand: Operand) -> bool:
    return isinstance(operand, (Integers, int))


def _constant(operand: Operand) -> int:
    assert isinstance(operand, int)
    return operand


def _bits(operand: Operand) -> Any:
    return operand.values.view(np.uint64) if isinstance(operand, Integers) else np.uint64(_constant(operand) & _WRAP)


def _rounded(operand: Operand) -> Any:
    return operand.values.astype(np.float64) if isinstance(operand, Integers) else float(_constant(operand))


def _magnitude(operand: Operand) -> Any:
    if not isinstance(operand, Integers):
        return np.uint64(abs(_constant(operand)))
    bits = operand.values.view(np.uint64)
    return bits if operand.values.dtype == np.uint64 else np.where(operand.values < 0, np.uint64(0) - bits, bits)


def _valid(operand: Operand) -> Flags | None:
    return operand.valid if isinstance(operand, Integers) else None
