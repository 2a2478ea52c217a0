"""The floor under every engine: the time it takes Polars and NumPy just to evaluate a query's conditions.

Both read the same columns, strings as dictionary codes; each distinct comparison is evaluated once, then combined per
event test of the query. NumPy works in blocks that stay in the cache. No bits are packed, no pattern is looked for.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from cerite.automaton.guards import Test
from cerite.core.arrays import Flags
from cerite.predicate import expression as ex

BLOCK = 1 << 16
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def polars_floor(table: pa.Table, tests: Iterable[Test]) -> Callable[[], object]:
    """A call that evaluates the tests with Polars."""
    frame = pl.DataFrame(pl.from_arrow(table))
    columns = [_polars_test(test).alias(str(place)) for place, test in enumerate(tests)]
    return lambda: frame.lazy().select(columns).collect()


def _polars_test(test: Test) -> pl.Expr:
    typed = pl.lit(True) if test.type is None else pl.col("type") == test.type
    return typed if test.condition is None else typed & _polars(test.condition)


def _polars(node: ex.Expression) -> pl.Expr:
    match node:
        case ex.Attribute(name):
            return pl.col(name)
        case ex.Literal(value):
            return pl.lit(value)
        case ex.Comparison(op, left, right):
            expression: pl.Expr = _OPERATORS[op](_polars(left), _polars(right))
            return expression
        case ex.And(operands):
            return pl.all_horizontal(*map(_polars, operands))
        case ex.Or(operands):
            return pl.any_horizontal(*map(_polars, operands))
        case ex.Not(operand):
            return ~_polars(operand)
        case ex.IsNull(operand):
            return _polars(operand).is_null()
    raise NotImplementedError(f"the floor does not evaluate {node}")


def numpy_floor(table: pa.Table, tests: Iterable[Test]) -> Callable[[], object]:
    """A call that evaluates the tests with NumPy."""
    wanted = list(tests)
    columns = {name: _Column(table.column(name)) for name in table.column_names}

    def call() -> list[list[int]]:
        blocks = (slice(start, start + BLOCK) for start in range(0, table.num_rows, BLOCK))
        return [[int(np.count_nonzero(flags)) for flags in _NumPy(columns, block).all(wanted)] for block in blocks]

    return call


class _Column:
    """A column's values, or its codes and dictionary."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        array = column.combine_chunks()
        array = array.chunk(0) if isinstance(array, pa.ChunkedArray) else array
        if pa.types.is_string(array.type):
            array = array.dictionary_encode()
        self.words: list[str] | None = None
        if pa.types.is_dictionary(array.type):
            self.words, array = array.dictionary.to_pylist(), array.indices
        self.values = array.to_numpy(zero_copy_only=False)

    def constant(self, value: Any) -> Any:
        """The form in which the value is compared."""
        if self.words is None:
            return value
        return self.words.index(value) if value in self.words else -1


class _NumPy:
    """One evaluation of a block: comparisons are remembered, so that each is done once."""

    def __init__(self, columns: dict[str, _Column], block: slice) -> None:
        self._columns = columns
        self._block = block
        self._known: dict[ex.Expression, Flags] = {}

    def all(self, tests: list[Test]) -> list[Flags]:
        return [self._test(test) for test in tests]

    def _test(self, test: Test) -> Flags:
        parts: list[ex.Expression] = [] if test.condition is None else [test.condition]
        if test.type is not None:
            parts.append(ex.Comparison("=", ex.Attribute("type"), ex.Literal(test.type)))
        return self._holds(ex.And(tuple(parts)))

    def _holds(self, node: ex.Expression) -> Flags:
        match node:
            case ex.And(operands):
                return self._joined(np.logical_and, operands)
            case ex.Or(operands):
                return self._joined(np.logical_or, operands)
            case ex.Not(operand):
                return np.logical_not(self._holds(operand))
            case ex.IsNull(ex.Attribute(name)):
                return np.zeros(self._columns[name].values[self._block].size, np.bool_)  # the streams have no NULLs
            case ex.Comparison(op, ex.Attribute(name), ex.Literal(value)):
                if node not in self._known:
                    column = self._columns[name]
                    self._known[node] = _OPERATORS[op](column.values[self._block], column.constant(value))
                return self._known[node]
        raise NotImplementedError(f"the floor does not evaluate {node}")

    def _joined(self, join: np.ufunc, operands: tuple[ex.Expression, ...]) -> Flags:
        positions, *others = map(self._holds, operands)
        for each in others:
            positions = join(positions, each)
        return positions
