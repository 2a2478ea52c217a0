"""Conditions as two-valued formulas over atoms: where a three-valued condition is true, and where it is false.

NOT is pushed down to the comparisons, which have a converse (`NOT a < b` is `a >= b`: both are unknown where a side is
NULL), so NULLs matter only inside atoms. An atom is an expression of one of the forms

    value op value,  value LIKE pattern,  value IN {..},  value IS NULL,  boolean attribute

the second, third and last also under NOT. Constants are folded by `evaluate` itself.

Invariant: equal formulas of one `Formulas` are one object, so a formula's value can be remembered by identity.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Union

from cerite.core.errors import PatternError, SchemaError
from cerite.core.schema import Kind
from cerite.predicate import expression as ex
from cerite.predicate.evaluate import compare, value_of
from cerite.predicate.kinds import ANY, Kinds, check_condition

CONVERSE: dict[ex.ComparisonOp, ex.ComparisonOp] = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
FLIPPED: dict[ex.ComparisonOp, ex.ComparisonOp] = {"=": "=", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
_LONGEST = 10_000
_CONDITIONS = (ex.Comparison, ex.And, ex.Or, ex.Not, ex.In, ex.InRange, ex.Like, ex.IsNull, ex.IsTrue)


@dataclass(frozen=True, slots=True)
class All:
    """Every part holds."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Some:
    """At least one part holds."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Negated:
    """The part does not hold: two-valued, unlike NOT."""

    part: Formula


Formula = Union[bool, ex.Expression, All, Some, Negated]


def attributes(formula: Formula) -> frozenset[str]:
    """The columns a formula reads."""
    if isinstance(formula, ex.Expression):
        return frozenset(node.name for node in ex.walk(formula) if isinstance(node, ex.Attribute))
    return frozenset(name for part in parts(formula) for name in attributes(part))


def atoms(formula: Formula) -> tuple[ex.Expression, ...]:
    """The atoms of a formula, in writing order."""
    if isinstance(formula, ex.Expression):
        return (formula,)
    return tuple(atom for part in parts(formula) for atom in atoms(part))


def parts(formula: Formula) -> tuple[Formula, ...]:
    """The formulas directly below one that is not an atom."""
    if isinstance(formula, (All, Some)):
        return formula.parts
    return (formula.part,) if isinstance(formula, Negated) else ()


class Formulas:
    """Turns conditions over columns of known kinds into formulas; an attribute without a kind is always NULL."""

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        self._kinds = kinds
        self._known: dict[Formula, Formula] = {}

    def of(self, condition: ex.Expression) -> Formula:
        """The formula of where the condition holds; refused if the condition reads a variable or its kinds clash."""
        for reference in ex.references(condition):
            raise PatternError(
                f"`{reference}` reads another event; only conditions on one event can be evaluated by columns",
                span=reference.span,
            )
        for node in ex.walk(condition):
            _check_constant(node)
        check_condition(condition, self._kind_of)
        return self._truth(condition, True)

    def every(self, parts: Iterable[Formula]) -> Formula:
        """The conjunction, flat, without duplicates or constants."""
        return self._joined(All, parts)

    def grouped(self, formula: Formula, home: Callable[[Formula], str | None]) -> Formula:
        """The same formula, with the parts of an AND or OR that have the same home grouped together."""
        if isinstance(formula, Negated):
            return self._one(Negated(self.grouped(formula.part, home)))
        if not isinstance(formula, (All, Some)) or home(formula) is not None:
            return formula
        kind = type(formula)
        together: dict[str | None, list[Formula]] = {}
        for part in formula.parts:
            together.setdefault(home(part), []).append(part)
        alone = [self.grouped(part, home) for part in together.pop(None, [])]
        for group in together.values():
            alone.append(self._one(kind(tuple(group))) if len(group) > 1 else group[0])
        return self._one(kind(tuple(alone)))

    def _kind_of(self, node: ex.Expression) -> Kinds:
        kind = self._kinds.get(node.name) if isinstance(node, ex.Attribute) else None
        return ANY if kind is None else frozenset((kind,))

    def _one(self, formula: Formula) -> Formula:
        return formula if isinstance(formula, bool) else self._known.setdefault(formula, formula)

    def _joined(self, kind: type[All] | type[Some], parts: Iterable[Formula]) -> Formula:
        neutral = kind is All
        flat: dict[Formula, None] = {}
        for part in parts:
            for each in part.parts if isinstance(part, kind) else (part,):
                if each is (not neutral):
                    return not neutral
                if each is not neutral:
                    flat[each] = None
        if len(flat) <= 1:
            return next(iter(flat), neutral)
        return self._one(kind(tuple(flat)))

    def _some(self, parts: Iterable[Formula]) -> Formula:
        return self._joined(Some, parts)

    def _negated(self, formula: Formula) -> Formula:
        if isinstance(formula, Negated):
            return formula.part
        return not formula if isinstance(formula, bool) else self._one(Negated(formula))

    def _truth(self, node: ex.Expression, wanted: bool) -> Formula:
        """The formula of where the condition has exactly this truth value."""
        match node:
            case ex.Literal(value=value):
                return value is wanted
            case ex.Attribute(name=name):
                return name in self._kinds and self._signed(node, wanted)
            case ex.Call(arguments=arguments):  # the first that is known: `coalesce` of truth values
                known = [self.every((self._truth(each, wanted), *map(self._unknown, arguments[:number])))
                         for number, each in enumerate(arguments)]  # fmt: skip
                return self._some(known)
            case ex.And(operands=operands) | ex.Or(operands=operands):
                join = self.every if isinstance(node, ex.And) is wanted else self._some
                return join([self._truth(each, wanted) for each in operands])
            case ex.Not(operand=operand):
                return self._truth(operand, not wanted)
            case ex.IsTrue(operand=operand):
                true = self._truth(operand, True)
                return true if wanted else self._negated(true)
            case ex.IsNull(operand=operand):
                null = self._unknown(operand)
                return null if wanted else self._negated(null)
            case ex.InRange(operand=operand, low=low, high=high):
                ends = (ex.Comparison(">=", operand, low), ex.Comparison("<=", operand, high))
                return self._truth(ex.And(ends), wanted)
            case ex.Comparison(op=op, left=left, right=right):
                return self._comparison(op if wanted else CONVERSE[op], left, right)
            case ex.In() | ex.Like():
                return self._membership(node, wanted)
        raise TypeError(f"not a condition: {node!r}")

    def _comparison(self, op: ex.ComparisonOp, left: ex.Expression, right: ex.Expression) -> Formula:
        if self._is_condition(left) or self._is_condition(right):
            same = op == "="
            both = (self.every((self._truth(left, each), self._truth(right, each is same))) for each in (True, False))
            return self._some(both)
        one, other = self._value(left), self._value(right)
        if one is None or other is None:
            return False
        if isinstance(one, ex.Literal):
            if isinstance(other, ex.Literal):
                return compare(op, one.value, other.value) is True
            op, one, other = FLIPPED[op], other, one
        return self._one(ex.Comparison(op, one, other))

    def _membership(self, node: ex.In | ex.Like, wanted: bool) -> Formula:
        if isinstance(node, ex.In) and self._is_condition(node.operand):
            equal = tuple(ex.Comparison("=", node.operand, item) for item in node.items)
            return self._truth(ex.Or(equal), wanted)
        operand = self._value(node.operand)
        if operand is None:
            return False
        atom = ex.Like(operand, node.pattern) if isinstance(node, ex.Like) else ex.In(operand, node.items)
        return value_of(atom, {}) is wanted if isinstance(operand, ex.Literal) else self._signed(atom, wanted)

    def _signed(self, atom: ex.Expression, wanted: bool) -> Formula:
        return self._one(atom if wanted else ex.Not(atom))

    def _unknown(self, node: ex.Expression) -> Formula:
        if self._is_condition(node) and not isinstance(node, ex.Attribute):
            return self.every(self._negated(self._truth(node, each)) for each in (True, False))
        operand = self._value(node)
        if operand is None or isinstance(operand, ex.Literal):
            return operand is None
        return self._one(ex.IsNull(operand))

    def _is_condition(self, node: ex.Expression) -> bool:
        if isinstance(node, ex.Attribute):
            return self._kinds.get(node.name) == "bool"
        if isinstance(node, ex.Call):
            return node.function == "coalesce" and any(map(self._is_condition, node.arguments))
        return isinstance(node, _CONDITIONS) or (isinstance(node, ex.Literal) and isinstance(node.value, bool))

    def _value(self, node: ex.Expression) -> ex.Expression | None:
        """The value with its constant parts computed; None if it is always NULL."""
        if isinstance(node, ex.Literal):
            return None if isinstance(node.value, float) and math.isnan(node.value) else node
        if isinstance(node, ex.Attribute):
            return node if node.name in self._kinds else None
        if isinstance(node, ex.Call) and node.function == "coalesce":
            return self._coalesced(node)
        inner = [self._value(child) for child in node.children]
        known = [each for each in inner if each is not None]
        if len(known) < len(inner):
            return None
        value: ex.Expression
        if isinstance(node, ex.Call):
            value = ex.Call(node.function, tuple(known))
        else:
            value = ex.Arithmetic(node.op, *known) if isinstance(node, ex.Arithmetic) else ex.Negative(*known)
        if any(not isinstance(each, ex.Literal) for each in known):
            return value
        constant = value_of(value, {})
        return None if constant is None else ex.Literal(constant)

    def _coalesced(self, node: ex.Call) -> ex.Expression | None:
        """The call without arguments that are always NULL, or that come after a constant, which never is."""
        known: list[ex.Expression] = []
        for each in map(self._value, node.arguments):
            if each is not None:
                known.append(each)
            if isinstance(each, ex.Literal):
                break
        return (known[0] if known else None) if len(known) < 2 else ex.Call("coalesce", tuple(known))


def _check_constant(node: ex.Expression) -> None:
    """Refuse what no column can hold, and patterns that Arrow's regular expressions might not."""
    value = node.pattern if isinstance(node, ex.Like) else node.value if isinstance(node, ex.Literal) else None
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise SchemaError(f"`{value}` does not fit: integers have 64 bits", span=node.span)
    if isinstance(value, str) and any("\ud800" <= character <= "\udfff" for character in value):
        raise SchemaError(f"{value!r} is not text: it holds half of a surrogate pair", span=node.span)
    if isinstance(node, ex.Like) and len(node.pattern) > _LONGEST:
        raise SchemaError(f"a LIKE pattern has at most {_LONGEST} characters", span=node.span)
