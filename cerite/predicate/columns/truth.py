"""Where formulas hold on a block of rows: the vectorised counterpart of `evaluate`.

A block reads each column and each formula once. Invariant: an atom is true exactly where `evaluate.value_of` says
True for that row, and false where it says False or NULL.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cerite.core.arrays import Flags
from cerite.predicate import expression as ex
from cerite.predicate.columns.functions import called, is_time, nanoseconds, negative, time_arithmetic
from cerite.predicate.columns.numbers import arithmetic, compare_instants, compare_numbers
from cerite.predicate.columns.read import Column, Decimals, Instants, Integers
from cerite.predicate.formula import All, Formula, Negated, Some

_STRINGS: dict[str, Any] = {
    "=": pc.equal, "!=": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal,
}  # fmt: skip
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MANY = 8  # items from which on a list is looked up in a hash table instead of compared one by one


class Block:
    """Rows [start, stop) of some columns, and the formulas whose value on them is already known."""

    def __init__(self, columns: Mapping[str, Column], start: int, stop: int) -> None:
        self._columns = columns
        self._start = start
        self._stop = stop
        self._truths: dict[int, Flags] = {}
        self._values: dict[str, Any] = {}

    def remember(self, formula: Formula, flags: Flags) -> None:
        """Keep these flags as the formula's value."""
        self._truths[id(formula)] = flags

    def truth(self, formula: Formula) -> Flags:
        """Where the formula holds; not to be written to."""
        flags = self._truths.get(id(formula))
        if flags is None:
            flags = self._truths[id(formula)] = self._computed(formula)
        return flags

    def holds_everywhere(self, formula: Formula) -> bool:
        """Whether the formula says that a column is not NULL, and none of its values is NULL; False decides nothing."""
        if not isinstance(formula, Negated) or not isinstance(formula.part, ex.IsNull):
            return False
        operand = formula.part.operand
        if not isinstance(operand, ex.Attribute) or self._columns[operand.name].is_float:
            return False
        return self._columns[operand.name].valid(self._start, self._stop) is None

    def _computed(self, formula: Formula) -> Flags:
        if isinstance(formula, (All, Some)):
            join = np.logical_and if isinstance(formula, All) else np.logical_or
            flags: Flags = join(self.truth(formula.parts[0]), self.truth(formula.parts[1]))
            for part in formula.parts[2:]:
                join(flags, self.truth(part), out=flags)
            return flags
        if isinstance(formula, Negated):
            return ~self.truth(formula.part)
        if isinstance(formula, bool):
            return np.full(self._stop - self._start, formula)
        return self._atom(formula)

    def _atom(self, node: ex.Expression) -> Flags:
        match node:
            case ex.Attribute(name=name):
                return self._columns[name].truth(self._start, self._stop)
            case ex.Not(operand=ex.Attribute(name=name)):
                return self._columns[name].truth(self._start, self._stop, False)
            case ex.Not(operand=ex.In(operand=operand) | ex.Like(operand=operand) as inner):
                return ~(self._atom(inner) | self._null(operand))
            case ex.Comparison(op=op, left=left, right=right):
                return self._compare(op, self.value(left), self.value(right))
            case ex.IsNull(operand=operand):
                return self._null(operand)
            case ex.Like(operand=operand, pattern=pattern):
                return _flags(pc.match_substring_regex(self.value(operand), _like(pattern)))
            case ex.In(operand=operand, items=items):
                return self._in(self.value(operand), items)
        raise TypeError(f"not an atom: {node!r}")

    def value(self, node: ex.Expression) -> Any:
        """Numbers, instants or an array of strings; a constant as it is written."""
        match node:
            case ex.Literal(value=value):
                return value
            case ex.Attribute(name=name):
                if name not in self._values:
                    self._values[name] = self._columns[name].read(self._start, self._stop)
                return self._values[name]
            case ex.Negative(operand=operand):
                value = self.value(operand)
                return negative(value) if isinstance(value, Instants) else arithmetic("-", 0, value)
            case ex.Arithmetic(op=op, left=left, right=right):
                one, other = self.value(left), self.value(right)
                return (time_arithmetic if is_time(one) or is_time(other) else arithmetic)(op, one, other)
            case ex.Call(function=function, arguments=arguments):
                return called(function, [self.value(each) for each in arguments], self._stop - self._start)
        raise TypeError(f"not a value: {node!r}")

    def _compare(self, op: str, left: Any, right: Any) -> Flags:
        if isinstance(left, Instants):
            if isinstance(right, (str, timedelta)):
                right = _nanoseconds(right) if isinstance(right, str) else nanoseconds(right)
            return compare_instants(op, left, right)
        if isinstance(left, pa.Array):
            if isinstance(right, pa.Array) and left.type != right.type:
                left, right = left.cast(pa.large_string()), right.cast(pa.large_string())
            return _flags(_STRINGS[op](left, pa.scalar(right, left.type) if isinstance(right, str) else right))
        return compare_numbers(op, left, right)

    def _in(self, value: Any, items: tuple[ex.Literal | ex.Interval, ...]) -> Flags:
        points = [item.value for item in items if isinstance(item, ex.Literal)]
        flags: Flags = np.zeros(self._stop - self._start, np.bool_)
        if len(points) > _MANY:
            points = _look_up(value, points, flags)
        for point in points:
            flags |= self._compare("=", value, point)
        for item in items:
            if isinstance(item, ex.Interval):
                above = self._compare(">=", value, item.low.value)
                flags |= above & self._compare("<=", value, item.high.value)
        return flags

    def _null(self, node: ex.Expression) -> Flags:
        if isinstance(node, ex.Attribute) and not self._columns[node.name].is_float:
            valid = self._columns[node.name].valid(self._start, self._stop)
        else:
            value = self.value(node)
            if isinstance(value, pa.Array):
                valid = Column(value).valid(0, len(value))
            else:
                valid = value.valid if isinstance(value, (Integers, Decimals, Instants)) else np.equal(value, value)
        return np.zeros(self._stop - self._start, np.bool_) if valid is None else ~valid


def _look_up(value: Any, points: list[Any], flags: Flags) -> list[Any]:
    """Set flags where the value is one of the points, by hashing; returns points that this cannot compare exactly."""
    if isinstance(value, Integers):
        limits = np.iinfo(value.values.dtype)
        exact = [point for point in points if isinstance(point, int) and limits.min <= point <= limits.max]
        known = _flags(
            pc.is_in(pa.array(value.values), value_set=pa.array(exact, pa.from_numpy_dtype(value.values.dtype)))
        )
        flags |= known if value.valid is None else known & value.valid
        return [point for point in points if isinstance(point, float)]
    if isinstance(value, np.ndarray):  # adding 0 makes -0.0 the same as 0.0
        floats = np.array([point for point in points if float(point) == point], np.float64)
        flags |= _flags(pc.is_in(pa.array(value + 0.0), value_set=pa.array(floats + 0.0)))
        return []
    if isinstance(value, pa.Array):
        flags |= _flags(pc.is_in(value, value_set=pa.array(points, value.type)))
        return []
    return points


def _flags(array: pa.BooleanArray) -> Flags:
    return Column(array).truth(0, len(array))


@lru_cache(maxsize=512)
def _nanoseconds(text: str) -> int:
    """An ISO time as nanoseconds since 1970 UTC; without a zone it is UTC."""
    moment = datetime.fromisoformat(text)
    instant = moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
    return (instant - _EPOCH) // timedelta(microseconds=1) * 1000


@lru_cache(maxsize=512)
def _like(pattern: str) -> str:
    """A LIKE pattern as a regular expression in Arrow's dialect (RE2)."""
    out: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character == "\\":
            out.append(f"\\x{{{ord(next(characters, character)):x}}}")
        else:
            out.append({"%": ".*", "_": "."}.get(character) or f"\\x{{{ord(character):x}}}")
    return f"(?s)\\A{''.join(out)}\\z"
