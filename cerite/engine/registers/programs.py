"""Conditions across events as small programs for the kernels: no compilation per query.

A program is a stretch of (operation, argument) pairs in postfix order over a stack of payloads with NULL flags. Most
conditions are one comparison of a leaf of the event with one stored value; these are also noted as `Simple`, which
kernels check without a stack and can index: equality by hash, order by a tree.

Invariant: a program is true exactly where `evaluate.holds` says so; with an empty register it is false.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from cerite.engine.registers.leaves import Leaf, Mark, Value
from cerite.errors import PatternError
from cerite.pattern.window import Size
from cerite.predicate.columns_formula import FLIPPED
from cerite.predicate.evaluate import value_of
from cerite.predicate.expression import (
    And,
    Arithmetic,
    Attribute,
    Comparison,
    Expression,
    In,
    InRange,
    Interval,
    IsNull,
    IsTrue,
    Literal,
    Negative,
    Not,
    Or,
    Reference,
    transform,
    walk,
)
from cerite.predicate.kinds import ANY, Kinds, check_condition
from cerite.schema import Kind

EVENT, STORED, CONSTANT, TO_FLOAT, COMPARE_INT, COMPARE_FLOAT, COMPARE_STRING = range(7)
ADD, SUBTRACT, MULTIPLY, DIVIDE, MODULO, ADD_FLOAT, SUBTRACT_FLOAT, MULTIPLY_FLOAT, MODULO_FLOAT = range(7, 16)
ALL, ANY_OF, NEGATE, IS_NULL, IS_TRUE, NULL = range(16, 22)
EQUAL, DIFFERENT, LESS, AT_MOST, MORE, AT_LEAST = range(6)
COMPARISONS = {"=": EQUAL, "!=": DIFFERENT, "<": LESS, "<=": AT_MOST, ">": MORE, ">=": AT_LEAST}
_WHOLE = {"+": ADD, "-": SUBTRACT, "*": MULTIPLY, "%": MODULO}
_FLOAT = {"+": ADD_FLOAT, "-": SUBTRACT_FLOAT, "*": MULTIPLY_FLOAT, "/": DIVIDE, "%": MODULO_FLOAT}

Slot = tuple[str, Leaf]  # a register and what is kept of its event


@dataclass(frozen=True, slots=True)
class Simple:
    """`event leaf op stored value`, both numbers of one kind, or strings for (in)equality."""

    op: int
    leaf: int
    slot: int
    is_float: bool


@dataclass
class Program:
    """One condition: its code, the stored values it reads, and the one comparison it may be."""

    code: list[tuple[int, int]] = field(default_factory=list)
    slots: frozenset[int] = frozenset()
    simple: Simple | None = None
    text: str = ""

    @property
    def orders_strings(self) -> bool:
        """Whether it asks which of two strings comes first."""
        return any(name == COMPARE_STRING and how not in (EQUAL, DIFFERENT) for name, how in self.code)


class Compiler:
    """Makes the programs of one query, sharing leaves, stored values and constants."""

    def __init__(self, kinds: dict[str, Kind]) -> None:
        self._kinds = kinds
        self.leaves: dict[Leaf, int] = {}
        self.slots: dict[Slot, int] = {}
        self.constants: list[int] = []

    def window(self, register: str, size: Size) -> Program:
        """The event lies in the reach of the one in the register."""
        leaf, slot = self._leaf(Mark(size, low=True)), self._slot(register, Mark(size, low=False))
        code = [(EVENT, leaf), (STORED, slot), (COMPARE_INT, AT_MOST)]
        return Program(code, frozenset((slot,)), Simple(AT_MOST, leaf, slot, False), f"WITHIN {size}")

    def condition(self, condition: Expression) -> Program:
        """A condition that reads at least one register."""
        check_condition(condition, self._kind_of)
        plain = transform(condition, _comparisons)
        program = Program(text=str(condition))
        self._emit(plain, program)
        program.slots = self._slots_of(plain, program)
        program.simple = self._simple(program.code)
        return program

    def _kind_of(self, node: Attribute | Reference) -> Kinds:
        kind = self._kinds.get(node.name)
        return ANY if kind is None else frozenset((kind,))

    def _leaf(self, leaf: Leaf) -> int:
        return self.leaves.setdefault(leaf, len(self.leaves))

    def _slot(self, register: str, leaf: Leaf) -> int:
        self._leaf(leaf)
        return self.slots.setdefault((register, leaf), len(self.slots))

    def _slots_of(self, node: Expression, program: Program) -> frozenset[int]:
        """What the program reads; every register it names must hold an event, also where its value does not matter."""
        found = {argument for name, argument in program.code if name == STORED}
        of = {slot: register for (register, _), slot in self.slots.items()}
        for each in walk(node):
            if isinstance(each, Reference) and each.variable not in {of.get(slot) for slot in found}:
                found.add(self._slot(each.variable, Value(Literal(True), "bool")))
                of = {slot: register for (register, _), slot in self.slots.items()}
        return frozenset(found)

    def _emit(self, node: Expression, program: Program, as_float: bool = False) -> Kind | None:
        """Append the node's code; returns the kind of its value, None if that is always NULL."""
        source = _source(node)
        if source is not None:
            return self._emit_leaf(node, source, program, as_float)
        if _is_constant(node):
            return self._emit_constant(node, program, as_float)
        kind = self._emit_node(node, program)
        if as_float and kind == "int":
            program.code.append((TO_FLOAT, 0))
            return "float"
        return kind

    def _emit_leaf(self, node: Expression, source: str, program: Program, as_float: bool) -> Kind | None:
        plain = transform(node, _as_attribute)
        kind = self._kind(plain)
        if kind is None or (kind in ("int", "float") and any(map(_is_constant, _operations(plain)))):
            program.code.append((NULL, 0))
            return None
        if as_float and kind == "int":
            kind = "float"
        leaf = Value(plain, kind)
        if source == "":
            program.code.append((EVENT, self._leaf(leaf)))
        else:
            program.code.append((STORED, self._slot(source, leaf)))
        return kind

    def _emit_constant(self, node: Expression, program: Program, as_float: bool) -> Kind | None:
        value = value_of(node, {})
        if value is None:
            program.code.append((NULL, 0))
            return None
        if isinstance(value, str):
            raise PatternError(f"`{node}` cannot be compared with what several events give", span=node.span)
        kind: Kind = "bool" if isinstance(value, bool) else "float" if isinstance(value, float) or as_float else "int"
        payload = int(np.array([value], np.float64).view(np.int64)[0]) if kind == "float" else int(value)
        program.code.append((CONSTANT, len(self.constants)))
        self.constants.append(payload)
        return kind

    def _emit_node(self, node: Expression, program: Program) -> Kind | None:
        match node:
            case Comparison(op=op, left=left, right=right):
                self._emit_comparison(op, left, right, program)
                return "bool"
            case And(operands=operands) | Or(operands=operands):
                for each in operands:
                    self._emit(each, program)
                program.code.append((ALL if isinstance(node, And) else ANY_OF, len(operands)))
                return "bool"
            case Not(operand=operand) | IsTrue(operand=operand) | IsNull(operand=operand):
                self._emit(operand, program)
                name = {Not: NEGATE, IsTrue: IS_TRUE, IsNull: IS_NULL}[type(node)]
                program.code.append((name, 0))
                return "bool"
            case Arithmetic(op=op, left=left, right=right):
                return self._emit_arithmetic(op, left, right, program)
        raise TypeError(f"not an expression: {node!r}")

    def _emit_comparison(self, op: str, left: Expression, right: Expression, program: Program) -> None:
        kinds = {self._kind(transform(side, _as_attribute)) for side in (left, right)}
        mixed = kinds == {"int", "float"}
        self._emit(left, program, mixed)
        self._emit(right, program, mixed)
        name = COMPARE_STRING if "string" in kinds else COMPARE_FLOAT if "float" in kinds else COMPARE_INT
        program.code.append((name, COMPARISONS[op]))

    def _emit_arithmetic(self, op: str, left: Expression, right: Expression, program: Program) -> Kind:
        kinds = {self._kind(transform(side, _as_attribute)) for side in (left, right)}
        whole = kinds <= {"int", None} and op != "/"
        self._emit(left, program, not whole)
        self._emit(right, program, not whole)
        program.code.append(((_WHOLE if whole else _FLOAT)[op], 0))
        return "int" if whole else "float"

    def _kind(self, node: Expression) -> Kind | None:
        match node:
            case Literal(value=value):
                return "bool" if isinstance(value, bool) else "string" if isinstance(value, str) else (
                    "int" if isinstance(value, int) else "float")  # fmt: skip
            case Attribute(name=name):
                return self._kinds.get(name)
            case Negative(operand=operand):
                return self._kind(operand)
            case Arithmetic(op=op, left=left, right=right):
                kinds = {self._kind(left), self._kind(right)}
                return None if None in kinds else "float" if op == "/" or "float" in kinds else "int"
        return "bool"

    def _simple(self, code: list[tuple[int, int]]) -> Simple | None:
        if len(code) != 3 or {code[0][0], code[1][0]} != {EVENT, STORED}:
            return None
        name, op = code[2]
        if name not in (COMPARE_INT, COMPARE_FLOAT) and op not in (EQUAL, DIFFERENT):
            return None
        if code[0][0] == EVENT:
            return Simple(op, code[0][1], code[1][1], name == COMPARE_FLOAT)
        flipped = {COMPARISONS[one]: COMPARISONS[other] for one, other in FLIPPED.items()}
        return Simple(flipped[op], code[1][1], code[0][1], name == COMPARE_FLOAT)


def _comparisons(node: Expression) -> Expression:
    """IN and ranges as comparisons, `-e` as `0 - e`, constants computed, so that fewer kinds of node are left."""
    match node:
        case InRange(operand=operand, low=low, high=high):
            return And((Comparison(">=", operand, low), Comparison("<=", operand, high)))
        case In(operand=operand, items=items) if _source(operand) is None:
            each = tuple(
                And((Comparison(">=", operand, item.low), Comparison("<=", operand, item.high)))
                if isinstance(item, Interval)
                else Comparison("=", operand, item)
                for item in items
            )
            return each[0] if len(each) == 1 else Or(each)
        case Negative(operand=operand):
            return _comparisons(Arithmetic("-", Literal(0), operand))
        case Arithmetic() if _is_constant(node) and value_of(node, {}) is not None:
            return Literal(value_of(node, {}))
    return node


def _is_constant(node: Expression) -> bool:
    return not any(isinstance(each, (Attribute, Reference)) for each in walk(node))


def _operations(node: Expression) -> list[Expression]:
    """The arithmetic in an expression; what is constant of it has been computed, unless it is NULL."""
    return [each for each in walk(node) if isinstance(each, Arithmetic)]


def _source(node: Expression) -> str | None:
    """The one event a part reads: '' for the event at hand, a register's name, None for several or none."""
    found = {each.variable if isinstance(each, Reference) else "" for each in walk(node)
             if isinstance(each, (Attribute, Reference))}  # fmt: skip
    return found.pop() if len(found) == 1 else None


def _as_attribute(node: Expression) -> Expression:
    return Attribute(node.name) if isinstance(node, Reference) else node
