"""Conditions as Spark Column expressions: for Spark what `predicate.columns` is for the local engine.

A condition first becomes a two-valued formula over atoms (`predicate.formula`), as in the local engine; here the atoms
become Columns. Spark differs from `predicate.evaluate` in four ways, which are corrected here: in Spark, NaN is the
largest number, and here it is NULL; integer overflow and division by zero are errors, and here they are NULL; LIKE
refuses some escapes, and here it takes them; times without a zone depend on the session, and here they are UTC.

Invariant: the Column of a formula is TRUE exactly where `evaluate.holds` says True, and FALSE or NULL elsewhere;
comparisons of a plain column with a constant stay plain, so that Spark can push them into the source.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as fn

from cerite.automaton.guards import Guard, Test
from cerite.core.schema import Kind
from cerite.engine.plan import Plan
from cerite.predicate import expression as ex
from cerite.predicate.formula import All, Formula, Formulas, Negated, Some
from cerite.spark.driver.frame import Frame
from cerite.spark.driver.values import Value, Values, compared
from cerite.spark.worker.job import BIT, unary_tests

_MANY = 8  # constants from which a list of integers or strings is one IN instead of comparisons


class Guards(ABC):
    """Formulas of guards, built from those of their tests."""

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        self._formulas = Formulas(kinds)

    @abstractmethod
    def test(self, test: Test) -> Formula:
        """Where an event has this type and satisfies this condition."""

    def guard(self, guard: Guard) -> Formula:
        """Where a guard without registers lets an event pass."""
        wanted = [self.test(test) for test in sorted(guard.tests, key=str) if isinstance(test, Test)]
        unwanted = [self.negated(self.test(test)) for test in sorted(guard.negated, key=str) if isinstance(test, Test)]
        return self._formulas.every([*wanted, *unwanted])

    def every(self, parts: Iterable[Formula]) -> Formula:
        """The conjunction."""
        return self._formulas.every(parts)

    def some(self, parts: Iterable[Formula]) -> Formula:
        """The disjunction."""
        return self.negated(self._formulas.every([self.negated(part) for part in parts]))

    def negated(self, formula: Formula) -> Formula:
        """Where the formula does not hold, with negations pushed down so that no two meet."""
        if isinstance(formula, bool):
            return not formula
        if isinstance(formula, Negated):
            return formula.part
        if isinstance(formula, (All, Some)) and all(isinstance(part, Negated) for part in formula.parts):
            parts = tuple(part.part for part in formula.parts if isinstance(part, Negated))
            return Some(parts) if isinstance(formula, All) else All(parts)
        return Negated(formula)


class BitConditions(Guards):
    """Formulas of guards over the bits of the conditions on one event."""

    def __init__(self, plan: Plan) -> None:
        self._bits = {test: ex.Attribute(f"{BIT}{number}") for number, test in enumerate(unary_tests(plan))}
        super().__init__({bit.name: "bool" for bit in self._bits.values()})

    def test(self, test: Test) -> Formula:
        """Where the test's bit is set; a test that asks nothing has no bit."""
        return self._bits.get(test.split()[0], True)


class Conditions(Guards):
    """Builds Columns for the conditions of one query over one DataFrame."""

    def __init__(self, frame: Frame, type_column: str | None) -> None:
        super().__init__(frame.kinds)
        self._type = type_column
        self._values = Values(frame)

    def test(self, test: Test) -> Formula:
        """Where an event has this type and satisfies this condition."""
        conditions: list[ex.Expression] = [] if test.condition is None else [test.condition]
        if test.type is not None and self._type is not None:
            conditions.insert(0, ex.Comparison("=", ex.Attribute(self._type), ex.Literal(test.type)))
        return self._formulas.every([self._formulas.of(each) for each in conditions])

    def column(self, formula: Formula) -> Column:
        """The formula as a Column; NULL counts as not true."""
        if isinstance(formula, bool):
            return fn.lit(formula)
        if isinstance(formula, All):
            return reduce(Column.__and__, map(self.column, formula.parts))
        if isinstance(formula, Some):
            return reduce(Column.__or__, map(self.column, formula.parts))
        if isinstance(formula, Negated):
            return ~fn.coalesce(self.column(formula.part), fn.lit(False))
        return self._atom(formula)

    def _atom(self, node: ex.Expression) -> Column:
        match node:
            case ex.Attribute(name=name):
                return self._values.attribute(name).column
            case ex.Not(operand=ex.Attribute(name=name)):
                return ~self._values.attribute(name).column
            case ex.Not(operand=ex.In(operand=operand) | ex.Like(operand=operand) as inner):
                return ~self._atom(inner) & ~self._values.of(operand).null
            case ex.Comparison(op=op, left=left, right=right):
                return compared(op, self._values.of(left), self._values.of(right))
            case ex.IsNull(operand=operand):
                return self._values.of(operand).null
            case ex.Like(operand=operand, pattern=pattern):
                return self._values.of(operand).column.like(spark_like(pattern))
            case ex.In(operand=operand, items=items):
                return self._in(self._values.of(operand), items)
        raise TypeError(f"not an atom: {node!r}")

    def _in(self, value: Value, items: tuple[ex.Literal | ex.Interval, ...]) -> Column:
        points = [item.value for item in items if isinstance(item, ex.Literal)]
        plain = str if value.kind == "string" else int
        columns: list[Column] = []
        if len(points) > _MANY and value.kind in ("string", "int"):
            listed = [point for point in points if type(point) is plain and _fits(point)]
            points = [point for point in points if type(point) is not plain]
            columns.append(value.column.isin(listed))
        columns += [compared("=", value, self._values.constant(point)) for point in points]
        for item in items:
            if isinstance(item, ex.Interval):
                low, high = self._values.constant(item.low.value), self._values.constant(item.high.value)
                columns.append(compared(">=", value, low) & compared("<=", value, high))
        return reduce(Column.__or__, columns)


def _fits(point: object) -> bool:
    return isinstance(point, str) or (isinstance(point, int) and -(2**63) <= point < 2**63)


def spark_like(pattern: str) -> str:
    r"""A LIKE pattern in Spark's form, where a backslash may stand only before `%`, `_` and itself.

    >>> spark_like("a\\bc\\%_")
    'abc\\%_'
    """
    out: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character != "\\":
            out.append(character)
            continue
        taken = next(characters, "\\")
        out.append("\\" + taken if taken in "%_\\" else taken)
    return "".join(out)
