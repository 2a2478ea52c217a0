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
from cerite.predicate.evaluate import compare, value_of
from cerite.predicate.expression import (
    And,
    Arithmetic,
    Attribute,
    Call,
    Comparison,
    ComparisonOp,
    Expression,
    In,
    InRange,
    IsNull,
    IsTrue,
    Like,
    Literal,
    Negative,
    Not,
    Or,
    references,
    walk,
)
from cerite.predicate.kinds import ANY, Kinds, check_condition

CONVERSE: dict[ComparisonOp, ComparisonOp] = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
FLIPPED: dict[ComparisonOp, ComparisonOp] = {"=": "=", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
_LONGEST = 10_000
_CONDITIONS = (Comparison, And, Or, Not, In, InRange, Like, IsNull, IsTrue)


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


Formula = Union[bool, Expression, All, Some, Negated]


def attributes(formula: Formula) -> frozenset[str]:
    """The columns a formula reads."""
    if isinstance(formula, Expression):
        return frozenset(node.name for node in walk(formula) if isinstance(node, Attribute))
    return frozenset(name for part in parts(formula) for name in attributes(part))


def atoms(formula: Formula) -> tuple[Expression, ...]:
    """The atoms of a formula, in writing order."""
    if isinstance(formula, Expression):
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

    def of(self, condition: Expression) -> Formula:
        """The formula of where the condition holds; refused if the condition reads a variable or its kinds clash."""
        for reference in references(condition):
            raise PatternError(
                f"`{reference}` reads another event; only conditions on one event can be evaluated by columns",
                span=reference.span,
            )
        for node in walk(condition):
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

    def _kind_of(self, node: Expression) -> Kinds:
        kind = self._kinds.get(node.name) if isinstance(node, Attribute) else None
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

    def _truth(self, node: Expression, wanted: bool) -> Formula:
        """The formula of where the condition has exactly this truth value."""
        match node:
            case Literal(value=value):
                return value is wanted
            case Attribute(name=name):
                return name in self._kinds and self._signed(node, wanted)
            case Call(arguments=arguments):  # the first that is known: `coalesce` of truth values
                known = [self.every((self._truth(each, wanted), *map(self._unknown, arguments[:number])))
                         for number, each in enumerate(arguments)]  # fmt: skip
                return self._some(known)
            case And(operands=operands) | Or(operands=operands):
                join = self.every if isinstance(node, And) is wanted else self._some
                return join([self._truth(each, wanted) for each in operands])
            case Not(operand=operand):
                return self._truth(operand, not wanted)
            case IsTrue(operand=operand):
                true = self._truth(operand, True)
                return true if wanted else self._negated(true)
            case IsNull(operand=operand):
                null = self._unknown(operand)
                return null if wanted else self._negated(null)
            case InRange(operand=operand, low=low, high=high):
                ends = (Comparison(">=", operand, low), Comparison("<=", operand, high))
                return self._truth(And(ends), wanted)
            case Comparison(op=op, left=left, right=right):
                return self._comparison(op if wanted else CONVERSE[op], left, right)
            case In() | Like():
                return self._membership(node, wanted)
        raise TypeError(f"not a condition: {node!r}")

    def _comparison(self, op: ComparisonOp, left: Expression, right: Expression) -> Formula:
        if self._is_condition(left) or self._is_condition(right):
            same = op == "="
            both = (self.every((self._truth(left, each), self._truth(right, each is same))) for each in (True, False))
            return self._some(both)
        one, other = self._value(left), self._value(right)
        if one is None or other is None:
            return False
        if isinstance(one, Literal):
            if isinstance(other, Literal):
                return compare(op, one.value, other.value) is True
            op, one, other = FLIPPED[op], other, one
        return self._one(Comparison(op, one, other))

    def _membership(self, node: In | Like, wanted: bool) -> Formula:
        if isinstance(node, In) and self._is_condition(node.operand):
            equal = tuple(Comparison("=", node.operand, item) for item in node.items)
            return self._truth(Or(equal), wanted)
        operand = self._value(node.operand)
        if operand is None:
            return False
        atom = Like(operand, node.pattern) if isinstance(node, Like) else In(operand, node.items)
        return value_of(atom, {}) is wanted if isinstance(operand, Literal) else self._signed(atom, wanted)

    def _signed(self, atom: Expression, wanted: bool) -> Formula:
        return self._one(atom if wanted else Not(atom))

    def _unknown(self, node: Expression) -> Formula:
        if self._is_condition(node) and not isinstance(node, Attribute):
            return self.every(self._negated(self._truth(node, each)) for each in (True, False))
        operand = self._value(node)
        if operand is None or isinstance(operand, Literal):
            return operand is None
        return self._one(IsNull(operand))

    def _is_condition(self, node: Expression) -> bool:
        if isinstance(node, Attribute):
            return self._kinds.get(node.name) == "bool"
        if isinstance(node, Call):
            return node.function == "coalesce" and any(map(self._is_condition, node.arguments))
        return isinstance(node, _CONDITIONS) or (isinstance(node, Literal) and isinstance(node.value, bool))

    def _value(self, node: Expression) -> Expression | None:
        """The value with its constant parts computed; None if it is always NULL."""
        if isinstance(node, Literal):
            return None if isinstance(node.value, float) and math.isnan(node.value) else node
        if isinstance(node, Attribute):
            return node if node.name in self._kinds else None
        if isinstance(node, Call) and node.function == "coalesce":
            return self._coalesced(node)
        inner = [self._value(child) for child in node.children]
        known = [each for each in inner if each is not None]
        if len(known) < len(inner):
            return None
        value: Expression
        if isinstance(node, Call):
            value = Call(node.function, tuple(known))
        else:
            value = Arithmetic(node.op, *known) if isinstance(node, Arithmetic) else Negative(*known)
        if any(not isinstance(each, Literal) for each in known):
            return value
        constant = value_of(value, {})
        return None if constant is None else Literal(constant)

    def _coalesced(self, node: Call) -> Expression | None:
        """The call without arguments that are always NULL, or that come after a constant, which never is."""
        known: list[Expression] = []
        for each in map(self._value, node.arguments):
            if each is not None:
                known.append(each)
            if isinstance(each, Literal):
                break
        return (known[0] if known else None) if len(known) < 2 else Call("coalesce", tuple(known))


def _check_constant(node: Expression) -> None:
    """Refuse what no column can hold, and patterns that Arrow's regular expressions might not."""
    value = node.pattern if isinstance(node, Like) else node.value if isinstance(node, Literal) else None
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise SchemaError(f"`{value}` does not fit: integers have 64 bits", span=node.span)
    if isinstance(value, str) and any("\ud800" <= character <= "\udfff" for character in value):
        raise SchemaError(f"{value!r} is not text: it holds half of a surrogate pair", span=node.span)
    if isinstance(node, Like) and len(node.pattern) > _LONGEST:
        raise SchemaError(f"a LIKE pattern has at most {_LONGEST} characters", span=node.span)
