"""Arithmetic and comparison of blocks of numbers and instants, as `evaluate` does them one by one.

An operand is a block or a constant. Integers are exact: results that leave 64 bits are NULL; an integer meets a float
as a float. Invariant: no function raises or warns on any value; what has no result is NULL (NaN in a float block).
"""

from __future__ import annotations

from typing import Any, Union

import numpy as np
import numpy.typing as npt

from cerite.predicate.columns_read import Flags, Floats, Instants, Integers

Operand = Union[Integers, Floats, int, float]

_WRAP = 2**64 - 1
_SIGN = 2**63
_COMPARE: dict[str, np.ufunc] = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
_EXACT: dict[str, np.ufunc] = {"+": np.add, "-": np.subtract, "*": np.multiply}
_FLOAT: dict[str, np.ufunc] = {**_EXACT, "/": np.divide, "%": np.fmod}


def arithmetic(op: str, left: Operand, right: Operand) -> Integers | Floats:
    """`left op right`, at least one of them a block."""
    with np.errstate(all="ignore"):
        if op != "/" and _whole(left) and _whole(right):
            values, fits = _remainder(left, right) if op == "%" else _exact(op, left, right)
            return Integers(values, _both(_valid(left), _both(_valid(right), fits)))
        divisor = as_float(right)
        found: Floats = _FLOAT[op](as_float(left), divisor)
        if op == "/":
            found[np.broadcast_to(np.equal(divisor, 0.0), found.shape)] = np.nan
        return found


def as_float(operand: Operand) -> Floats | float:
    """The operand as floats, NaN where it is NULL."""
    if isinstance(operand, Integers):
        found = operand.values.astype(np.float64)
        if operand.valid is not None:
            found[~operand.valid] = np.nan
        return found
    return float(operand) if isinstance(operand, int) else operand


def compare_numbers(op: str, left: Operand, right: Operand) -> Flags:
    """Where `left op right` is true; `left` is a block."""
    found: Flags
    if isinstance(left, Integers) and _whole(right):
        valid = _both(left.valid, _valid(right))
        if isinstance(right, Integers):
            found = _compare_blocks(op, left.values, right.values)
        else:
            found = compare_constant(op, left.values, right)  # type: ignore[arg-type]
        return found if valid is None else found & valid
    a, b = as_float(left), as_float(right)
    if op == "!=":  # NaN differs from everything, but NULL does not
        below: Flags = np.less(a, b)
        return below | np.greater(a, b)
    found = _COMPARE[op](a, b)
    return found


def compare_constant(op: str, values: npt.NDArray[Any], constant: int) -> Flags:
    """Integers against any Python integer, also one their type cannot hold."""
    limits = np.iinfo(values.dtype)
    if not limits.min <= constant <= limits.max:
        above = constant > limits.max
        return np.full(values.shape, op == "!=" or op in (("<", "<=") if above else (">", ">=")))
    found: Flags = _COMPARE[op](values, values.dtype.type(constant))
    return found


def compare_instants(op: str, left: Instants, right: Instants | int) -> Flags:
    """Where `left op right` is true; a constant is in nanoseconds, of any size."""
    if isinstance(right, Instants):
        valid = _both(left.valid, right.valid)
        found = _compare_units(op, left, right)
    else:
        valid = left.valid
        whole, rest = divmod(right, left.unit)
        if rest and op in ("=", "!="):
            found = np.full(left.values.shape, op == "!=")
        else:  # a time between two units: the one above it is the first that is later
            found = compare_constant(op, left.values, whole + (rest > 0 and op in ("<", ">=")))
    return found if valid is None else found & valid


def _compare_units(op: str, left: Instants, right: Instants) -> Flags:
    if left.unit == right.unit:
        return _compare_blocks(op, left.values, right.values)
    if left.unit < right.unit:
        flipped = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
        return _compare_units(flipped.get(op, op), right, left)
    whole = right.values // (left.unit // right.unit)
    rest = right.values - whole * (left.unit // right.unit)
    equal = left.values == whole
    return _ordered(op, (left.values < whole) | (equal & (rest > 0)), equal & (rest == 0))


def _compare_blocks(op: str, left: npt.NDArray[Any], right: npt.NDArray[Any]) -> Flags:
    if left.dtype == right.dtype:
        found: Flags = _COMPARE[op](left, right)
        return found
    signed = left.dtype == np.int64  # the other is unsigned
    a, b = left.view(np.uint64), right.view(np.uint64)
    negative = (left if signed else right) < 0
    below = (negative | (a < b)) if signed else (~negative & (a < b))
    return _ordered(op, below, ~negative & (a == b))


def _ordered(op: str, below: Flags, equal: Flags) -> Flags:
    """A comparison from where left is below right and where they are equal."""
    if op in ("=", "!="):
        return equal if op == "=" else ~equal
    if op in ("<", ">="):
        return below if op == "<" else ~below
    return below | equal if op == "<=" else ~(below | equal)


def _exact(op: str, left: Operand, right: Operand) -> tuple[npt.NDArray[np.int64], Flags]:
    """The result modulo 2**64, and where that is the result.

    The floats' result is off by less than 2**14 where it matters, and a wrapped one by at least 2**64.
    """
    wrapped: npt.NDArray[np.int64] = _EXACT[op](_bits(left), _bits(right)).view(np.int64)
    nearly = _EXACT[op](_rounded(left), _rounded(right))
    return wrapped, np.abs(nearly - wrapped) < float(_SIGN)


def _remainder(left: Operand, right: Operand) -> tuple[npt.NDArray[np.int64], Flags]:
    """The remainder with the dividend's sign, and where there is one that fits."""
    divisor = _magnitude(right)
    rest = np.fmod(_magnitude(left), np.maximum(divisor, np.uint64(1)))
    negative = left.values < 0 if isinstance(left, Integers) else np.bool_(_constant(left) < 0)
    fits: Flags = np.not_equal(divisor, 0) & (negative | (rest < np.uint64(_SIGN)))
    values: npt.NDArray[np.int64] = np.where(negative, np.uint64(0) - rest, rest).view(np.int64)
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


def _both(one: Flags | None, other: Flags | None) -> Flags | None:
    if one is None or other is None:
        return other if one is None else one
    return one & other
