"""Conditions across events as small programs for the kernels: no compilation per query.

A program is a stretch of (operation, argument) pairs in postfix order over a stack of payloads with NULL flags. Most
conditions are one comparison of a leaf of the event with one stored value; these are also noted as `Simple`, which
kernels check without a stack and can index: equality by hash, order by a tree.

Invariant: a program is true exactly where `evaluate.holds` says so; with an empty register it is false.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any, cast

import numpy as np

from cerite.core.errors import PatternError
from cerite.core.schema import Kind
from cerite.engine.registers.interpret import (
    ABS,
    ABS_FLOAT,
    ACCUMULATE,
    ADD,
    ADD_FLOAT,
    ALL,
    ANY_OF,
    AT_LEAST,
    AT_MOST,
    CEIL,
    COALESCE,
    COMPARE_FLOAT,
    COMPARE_INT,
    COMPARE_MIXED,
    COMPARE_SCALED,
    COMPARE_STRING,
    CONSTANT,
    COUNTED,
    DIFFERENT,
    DIVIDE,
    EQUAL,
    EVENT,
    FIRST,
    FLOOR,
    IN_YEARS,
    IS_NULL,
    IS_TRUE,
    LAST,
    LEAST,
    LEAST_FLOAT,
    LESS,
    MODULO,
    MODULO_FLOAT,
    MORE,
    MOST,
    MOST_FLOAT,
    MULTIPLY,
    MULTIPLY_FLOAT,
    NEGATE,
    NULL,
    NUMBER,
    PART,
    PLACES,
    ROUND,
    STORED,
    SUBTRACT,
    SUBTRACT_FLOAT,
    SUM_FLOAT,
    SUM_WHOLE,
    TALLY,
    TO_FLOAT,
)
from cerite.engine.registers.leaves import Leaf, Mark, Running, Value
from cerite.pattern.nodes import Size
from cerite.predicate.columns.read import LONG_DIGITS
from cerite.predicate.evaluate import scale_of, value_of, written
from cerite.predicate.expression import (
    Aggregate,
    And,
    Arithmetic,
    Attribute,
    Call,
    Comparison,
    ComparisonOp,
    Expression,
    In,
    InRange,
    Interval,
    IsNull,
    IsTrue,
    Like,
    Literal,
    Negative,
    Not,
    Or,
    Reference,
    aggregates,
    is_constant,
    transform,
    walk,
)
from cerite.predicate.formula import FLIPPED
from cerite.predicate.functions import EARLIEST, EPOCH, LATEST, MICROSECOND, PARTS, TEXT, TIMES, utc
from cerite.predicate.kinds import ANY, Kinds, ValueKind, check_condition

COMPARISONS = {"=": EQUAL, "!=": DIFFERENT, "<": LESS, "<=": AT_MOST, ">": MORE, ">=": AT_LEAST}
_WHOLE = {"+": ADD, "-": SUBTRACT, "*": MULTIPLY, "%": MODULO}
_UNARY = {"round": ROUND, "floor": FLOOR, "ceil": CEIL}
_FLOAT = {"+": ADD_FLOAT, "-": SUBTRACT_FLOAT, "*": MULTIPLY_FLOAT, "/": DIVIDE, "%": MODULO_FLOAT}

MOST_SCALE = 22  # ten to this power is a float
_LEAST, _MOST = -(2**63), 2**63 - 1
NULL_VALUE = Literal(float("nan"))  # a part that is always NULL, such as `1 / 0`

Slot = tuple[str, Leaf | Running]  # a register and what is kept of its event, or of all its events


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
    needs: frozenset[int] = frozenset()  # those of them whose register must hold an event: not what aggregates keep
    simple: Simple | None = None
    text: str = ""

    @property
    def orders_strings(self) -> bool:
        """Whether it asks which of two strings comes first."""
        return any(name == COMPARE_STRING and how not in (EQUAL, DIFFERENT) for name, how in self.code)


class Compiler:
    """Makes the programs of one query, sharing leaves, stored values and constants."""

    def __init__(
        self, kinds: dict[str, Kind], decimals: Mapping[str, tuple[int, int]], unsigned: frozenset[str], finest: int
    ) -> None:
        self._kinds = kinds
        self._decimals = decimals  # digits and, of them, places behind the point
        self._unsigned = unsigned
        self._finest = finest  # nanoseconds of the unit in which instants and durations are stored
        self.leaves: dict[Leaf, int] = {}
        self.slots: dict[Slot, int] = {}
        self.constants: list[int] = []

    def window(self, register: str, size: Size) -> Program:
        """The event lies in the reach of the one in the register."""
        leaf, slot = self._leaf(Mark(size, low=True)), self._slot(register, Mark(size, low=False))
        code = [(EVENT, leaf), (STORED, slot), (COMPARE_INT, AT_MOST)]
        return Program(
            code, frozenset((slot,)), frozenset((slot,)), Simple(AT_MOST, leaf, slot, False), f"WITHIN {size}"
        )

    def condition(self, condition: Expression) -> Program:
        """A condition that reads at least one register."""
        check_condition(condition, self._kind_of)
        plain = transform(transform(condition, _comparisons), self._spread)
        program = Program(text=str(condition))
        self._emit(plain, program)
        self._note_slots(plain, program)
        program.simple = self._simple(program.code)
        return program

    def stored(self, register: str, leaf: Leaf) -> int:
        """The number of a value that is kept of a register's event, whether or not a program reads it."""
        return self._slot(register, leaf)

    def _kind_of(self, node: Attribute | Reference) -> Kinds:
        kind = self._kinds.get(node.name)
        return ANY if kind is None else frozenset((kind,))

    def _leaf(self, leaf: Leaf) -> int:
        return self.leaves.setdefault(leaf, len(self.leaves))

    def _slot(self, register: str, leaf: Leaf | Running) -> int:
        self._leaf(leaf.of if isinstance(leaf, Running) else leaf)
        return self.slots.setdefault((register, leaf), len(self.slots))

    def _note_slots(self, node: Expression, program: Program) -> None:
        """What the program reads; every register it refers to must hold an event, also where its value is no matter."""
        read = {argument for name, argument in program.code if name in (STORED, COUNTED)}
        of = {slot: register for (register, leaf), slot in self.slots.items() if not isinstance(leaf, Running)}
        needed = {slot: of[slot] for slot in read if slot in of}
        for each in walk(node):
            if isinstance(each, Reference) and each.variable not in needed.values():
                needed[self._slot(each.variable, Value(Literal(True), "bool"))] = each.variable
        program.needs, program.slots = frozenset(needed), frozenset(read | needed.keys())

    def _spread(self, node: Expression) -> Expression:
        """Texts chosen among several events' are told apart where they are compared: programs hold only their numbers.

        `coalesce(a, x.b) = c` is `a IS NOT NULL AND a = c OR a IS NULL AND x.b = c`, both NULL where a and x.b are.
        """
        if isinstance(node, (Comparison, Like, IsNull)):
            sides = (node.left, node.right) if isinstance(node, Comparison) else (node.operand,)
            for number, side in enumerate(sides):
                if isinstance(side, Call) and side.function == "coalesce" and self._is_text(side):
                    return self._apart(node, number, side)
        if isinstance(node, Call) and node.function in TEXT and isinstance(node.arguments[0], Call):
            inner = node.arguments[0]
            if inner.function == "coalesce" and _source(inner) is None:
                return Call("coalesce", tuple(Call(node.function, (each,)) for each in inner.arguments))
        return node

    def _is_text(self, node: Call) -> bool:
        return _source(node) is None and "string" in {self._kind(transform(a, _as_attribute)) for a in node.arguments}

    def _apart(self, node: Comparison | Like | IsNull, number: int, side: Call) -> Expression:
        field_name = "operand" if not isinstance(node, Comparison) else ("left", "right")[number]
        cases: list[Expression] = []
        null = [self._spread(IsNull(each)) for each in side.arguments]
        for at, argument in enumerate(side.arguments):
            # where all are NULL the last decides: its test is NULL as well, which NOT must not turn into true
            there = [Not(null[at])] if at + 1 < len(side.arguments) else []
            changed: dict[str, Any] = {field_name: argument}
            test = self._spread(replace(node, **changed))
            cases.append(And((*null[:at], *there, test)))
        return Or(tuple(cases))

    def _emit(self, node: Expression, program: Program, as_float: bool = False) -> ValueKind | None:
        """Append the node's code; returns the kind of its value, None if that is always NULL."""
        source = _source(node)
        if source is not None:
            return self._emit_leaf(node, source, program, as_float)
        if is_constant(node):
            return self._emit_constant(node, program, as_float)
        end = self._text_end(node)
        if end is not None:
            return self._emit_text_end(node, end, program)
        kind = self._emit_node(node, program)
        scale = self._scale(transform(node, _as_attribute))
        if as_float and (kind == "int" or scale is not None):
            if scale is not None and scale > MOST_SCALE:
                raise self._too_many(node)
            program.code.append((TO_FLOAT, scale or 0))
            return "float"
        return kind

    def _emit_leaf(self, node: Expression, source: str, program: Program, as_float: bool) -> ValueKind | None:
        plain = transform(node, _as_attribute)
        kind = self._kind(plain)
        if kind is None:
            program.code.append((NULL, 0))
            return None
        if as_float and kind == "int":
            kind = "float"
        self._read(Value(plain, kind), source, program)
        return kind

    def _read(self, leaf: Value, source: str, program: Program) -> None:
        if source == "":
            program.code.append((EVENT, self._leaf(leaf)))
        else:
            program.code.append((STORED, self._slot(source, leaf)))

    def _emit_constant(self, node: Expression, program: Program, as_float: bool) -> ValueKind | None:
        value = value_of(node, {})
        if isinstance(value, timedelta):
            program.code.append((CONSTANT, len(self.constants)))
            self.constants.append(value // MICROSECOND * 1_000 // self._finest)
            return "duration"
        if value is None:
            program.code.append((NULL, 0))
            return None
        if isinstance(value, str):
            raise PatternError(f"`{node}` cannot be compared with what several events give", span=node.span)
        kind: Kind = "bool" if isinstance(value, bool) else "float" if isinstance(value, float) or as_float else "int"
        self._push(int(np.array([value], np.float64).view(np.int64)[0]) if kind == "float" else int(value), program)
        return kind

    def _push(self, payload: int, program: Program) -> None:
        program.code.append((CONSTANT, len(self.constants)))
        self.constants.append(payload)

    def _emit_node(self, node: Expression, program: Program) -> ValueKind | None:
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
            case Negative(operand=operand):
                return self._emit_arithmetic("-", Literal(0), operand, program)
            case Call():
                return self._emit_call(node, program)
            case Aggregate(function="COUNT", name=name):
                if name is not None and self._kind(Attribute(name)) is None:
                    self._push(0, program)
                else:
                    self._emit_running(node, TALLY, program)
                return "int"
            case Aggregate():
                return self._emit_aggregate(node, program)
            case Like():
                raise _no_text(node)
        raise TypeError(f"not an expression: {node!r}")

    def _emit_comparison(self, op: ComparisonOp, left: Expression, right: Expression, program: Program) -> None:
        plain = [transform(side, _as_attribute) for side in (left, right)]
        kinds = {self._kind(side) for side in plain}
        if "timestamp" in kinds:
            left, right, kinds = _since_1970(left), _since_1970(right), {"timestamp"}
        leaves = _source(left) is not None and _source(right) is not None
        if None not in kinds and any(self._scale(side) is not None for side in plain):
            self._emit_decimals(op, left, right, program)
        elif all(isinstance(side, Attribute) and side.name in self._unsigned for side in plain):
            self._emit_leaves("unsigned", 0, (left, right), program)
            program.code.append((COMPARE_INT, COMPARISONS[op]))
        elif kinds == {"int", "float"} and leaves:
            self._emit_leaves("among floats", 0, (left, right), program)
            program.code.append((COMPARE_INT, COMPARISONS[op]))
        elif kinds == {"int", "float"}:
            if self._kind(plain[0]) == "float":
                op, left, right = FLIPPED[op], right, left
            self._emit(left, program)
            self._emit(right, program)
            program.code.append((COMPARE_MIXED, COMPARISONS[op]))
        else:
            self._emit(left, program)
            self._emit(right, program)
            name = COMPARE_STRING if "string" in kinds else COMPARE_FLOAT if "float" in kinds else COMPARE_INT
            program.code.append((name, COMPARISONS[op]))

    def _emit_leaves(self, form: str, scale: int, sides: tuple[Expression, ...], program: Program) -> None:
        for side in sides:
            source, plain = _source(side), transform(side, _as_attribute)
            kind = self._kind(plain)
            assert source is not None
            assert kind is not None
            self._read(Value(plain, kind, form, scale), source, program)

    def _emit_decimals(self, op: ComparisonOp, left: Expression, right: Expression, program: Program) -> None:
        """A comparison of which at least one side is a decimal."""
        sides = (left, right)
        plain = [transform(side, _as_attribute) for side in sides]
        scales = [self._places(side) for side in plain]
        common = max(scale or 0 for scale in scales)
        if None in scales:  # one is a float: whole numbers that say where it lies between the other's
            if common > MOST_SCALE:
                raise self._too_many(left if scales[0] is None else right)
            if None in map(_source, sides):
                self._emit_with_float(op, sides, common, program)
                return
            self._emit_leaves("between", common, sides, program)
            program.code.append((COMPARE_INT, COMPARISONS[op]))
        elif None not in map(_source, sides):
            wide = any(self._width(side) + common - (scale or 0) > LONG_DIGITS
                       for side, scale in zip(plain, scales, strict=True))  # fmt: skip
            self._emit_leaves("text" if wide else "digits", common, sides, program)
            program.code.append((COMPARE_STRING if wide else COMPARE_INT, COMPARISONS[op]))
        else:
            first, second = (scale or 0 for scale in scales)
            if first > second:
                op, left, right = FLIPPED[op], right, left
            self._emit_digits(left, min(first, second), program)
            self._emit_digits(right, common, program)
            program.code.append((COMPARE_SCALED, PLACES * abs(first - second) + COMPARISONS[op]))

    def _emit_with_float(self, op: ComparisonOp, sides: tuple[Expression, ...], scale: int, program: Program) -> None:
        """A decimal against a float, of which several events give at least one."""
        exact, other = sides
        if self._places(transform(exact, _as_attribute)) is None:
            op, exact, other = FLIPPED[op], other, exact
        if _source(exact) is None:
            self._emit_digits(exact, scale, program)
        else:  # of one event it is compared whole, or refused
            self._emit_leaves("digits", scale, (exact,), program)
        self._emit(other, program, as_float=True)
        program.code.append((COMPARE_MIXED, PLACES * scale + COMPARISONS[op]))

    def _emit_digits(self, node: Expression, scale: int, program: Program) -> None:
        """A whole number or decimal by its digits at this scale, NULL where they are too many."""
        source, plain = _source(node), transform(node, _as_attribute)
        if is_constant(node):
            value = value_of(node, {})
            exact = None if value is None else Fraction(written(value) if isinstance(value, float) else value)
            if exact is None:
                program.code.append((NULL, 0))
            else:
                self._push(max(_LEAST, min(_MOST, int(exact * 10**scale))), program)
        elif source is not None:
            kind = self._kind(plain)
            assert kind is not None
            self._read(Value(plain, kind, "digits or NULL", scale), source, program)
        else:
            self._emit(node, program)
            own = self._places(plain) or 0
            if scale > own:
                self._push(10 ** min(scale - own, 18), program)
                program.code.append((MULTIPLY, 0))

    def _emit_aggregate(self, node: Aggregate, program: Program) -> ValueKind | None:
        """The value of all events of a register: a sum, and for AVG that over their number."""
        taken = Attribute(node.name or "")
        kind, scale = self._kind(taken), self._scale(taken)
        if kind is None:
            program.code.append((NULL, 0))
            return None
        floats = kind == "float" and scale is None
        if kind == "string" and node.function in ("MIN", "MAX"):
            raise _no_text(node)
        how = {"MIN": LEAST, "MAX": MOST, "FIRST": FIRST, "LAST": LAST}.get(node.function, SUM_WHOLE)
        how = {LEAST: LEAST_FLOAT, MOST: MOST_FLOAT, SUM_WHOLE: SUM_FLOAT}.get(how, how) if floats else how
        self._emit_running(node, how, program)
        if how == SUM_FLOAT:
            program.code.append((NUMBER, 0))
        if node.function != "AVG":
            return kind
        if not floats:
            program.code.append((TO_FLOAT, scale or 0))
        self._emit_running(node, TALLY, program)
        program.code += [(TO_FLOAT, 0), (DIVIDE, 0)]
        return "float"

    def _text_end(self, node: Expression) -> Aggregate | None:
        """The FIRST or LAST text that a test is about and nothing else: kept is then what the test says of it."""
        allowed = (Comparison, Like, Literal, Aggregate)
        if not isinstance(node, (Comparison, Like)) or len(set(aggregates(node))) != 1:
            return None
        (end,) = set(aggregates(node))
        strict = all(isinstance(each, allowed) or (isinstance(each, Call) and each.function in TEXT)
                     for each in walk(node))  # fmt: skip
        text = end.function in ("FIRST", "LAST") and self._kind(end) == "string"
        return end if strict and text else None

    def _emit_text_end(self, node: Expression, end: Aggregate, program: Program) -> ValueKind:
        plain = transform(node, lambda each: Attribute(end.name or "") if each == end else each)
        self._emit_running(end, FIRST if end.function == "FIRST" else LAST, program, Value(plain, "bool"))
        return "bool"

    def _emit_running(self, node: Aggregate, how: int, program: Program, of: Value | None = None) -> None:
        """What a register keeps of its events, and what the event at hand adds to it, where it counts."""
        assert node.variable is not None
        leaf = self._taken(node) if of is None else of
        if node.over == "nothing":
            if how == TALLY:
                self._push(0, program)
            else:
                program.code.append((NULL, 0))
        elif node.over == "event":
            program.code.append((EVENT, self._leaf(leaf)))
            program.code += [(IS_NULL, 0), (NEGATE, 0)] * (how == TALLY)
        else:
            name = COUNTED if how == TALLY else STORED
            program.code.append((name, self._slot(node.variable, Running(how, leaf))))
            if node.over == "through":
                program.code += [(EVENT, self._leaf(leaf)), (ACCUMULATE, how)]

    def _taken(self, node: Aggregate) -> Value:
        """What an aggregate takes of each event: its own presence, or an attribute."""
        kind = None if node.name is None else self._kind(Attribute(node.name))
        if node.name is None:
            return Value(Literal(True), "bool")
        assert kind is not None
        if node.name in self._decimals:
            return Value(Attribute(node.name), kind, "digits", self._decimals[node.name][1])
        return Value(Attribute(node.name), kind)

    def _emit_call(self, node: Call, program: Program) -> ValueKind | None:
        """A function of what several events give; of texts it was spread, of one event it is a leaf."""
        kind = self._kind(transform(node, _as_attribute))
        if node.function == "coalesce":
            for each in node.arguments:
                self._emit(each, program, kind == "float")
            program.code.append((COALESCE, len(node.arguments)))
            return kind
        if node.function in TEXT:
            raise _no_text(node)
        own = self._kind(transform(node.arguments[0], _as_attribute))
        self._emit(node.arguments[0], program, own == "float")  # a decimal is taken as a float
        if node.function in PARTS:
            program.code.append((PART, len(self.constants)))
            self.constants += [PARTS.index(node.function), 1_000_000_000 // self._finest]
        elif node.function == "abs":
            program.code.append((ABS_FLOAT if own == "float" else ABS, 0))
        elif own == "float":
            program.code.append((_UNARY[node.function], 0))
        return kind

    def _emit_times(self, op: str, left: Expression, right: Expression, program: Program) -> ValueKind:
        kinds = [self._kind(transform(side, _as_attribute)) for side in (left, right)]
        for side in (left, right):
            self._emit(side, program)
            if op == "/":
                program.code.append((TO_FLOAT, 0))
        program.code.append((DIVIDE if op == "/" else _WHOLE[op], 0))
        if op == "/":
            return "float"
        if "timestamp" not in kinds or kinds[0] == kinds[1]:
            return "duration"
        if self._finest >= 1_000:  # nanoseconds do not leave the years that there are
            program.code.append((IN_YEARS, len(self.constants)))
            self.constants += [each * 1_000 // self._finest for each in (EARLIEST, LATEST)]
        return "timestamp"

    def _emit_arithmetic(self, op: str, left: Expression, right: Expression, program: Program) -> ValueKind:
        plain = [transform(side, _as_attribute) for side in (left, right)]
        scales = [self._places(side) for side in plain]
        kinds = {self._kind(side) for side in plain}
        if kinds & {"timestamp", "duration"}:
            return self._emit_times(op, left, right, program)
        if op != "/" and None not in scales and any(self._scale(side) is not None for side in plain):
            common = max(scale or 0 for scale in scales)
            for side, scale in zip((left, right), scales, strict=True):
                self._emit_digits(side, (scale or 0) if op == "*" else common, program)
            program.code.append((_WHOLE[op], 0))
            return "float"
        whole = kinds <= {"int", None} and op != "/"
        self._emit(left, program, not whole)
        self._emit(right, program, not whole)
        program.code.append(((_WHOLE if whole else _FLOAT)[op], 0))
        return "int" if whole else "float"

    def _scale(self, node: Expression) -> int | None:
        """The places behind the point of a decimal; None for what is none."""
        match node:
            case Attribute(name=name):
                return self._decimals[name][1] if name in self._decimals else None
            case Aggregate(function=function, name=str(name)) if function not in ("COUNT", "AVG"):
                return self._scale(Attribute(name))
            case Negative(operand=operand):
                return self._scale(operand)
            case Arithmetic(op=op, left=left, right=right) if op != "/":
                if self._scale(left) is None and self._scale(right) is None:
                    return None
                one, other = self._places(left), self._places(right)
                return None if one is None or other is None else one + other if op == "*" else max(one, other)
        return None

    def _places(self, node: Expression) -> int | None:
        """The scale of what can be exact: a decimal, a whole number, a constant as it is written; None for a float."""
        if is_constant(node):
            value = value_of(node, {})
            if isinstance(value, float):
                return scale_of(written(value)) if math.isfinite(value) else None
            return 0
        return 0 if self._kind(node) == "int" else self._scale(node)

    def _width(self, node: Expression) -> int:
        """The digits a decimal column may have; others are looked at when they come."""
        return self._decimals[node.name][0] if isinstance(node, Attribute) and node.name in self._decimals else 0

    def _too_many(self, node: Expression) -> PatternError:
        return PatternError(
            f"`{node}` meets a number of another kind that it cannot be compared with exactly", span=node.span,
            hint="cast one of the columns, so that decimals meet decimals or floats meet floats",
        )  # fmt: skip

    def _kind(self, node: Expression) -> ValueKind | None:
        match node:
            case Literal(value=value):
                return "bool" if isinstance(value, bool) else "string" if isinstance(value, str) else (
                    "duration" if isinstance(value, timedelta) else "int" if isinstance(value, int) else "float"
                )  # fmt: skip
            case Attribute(name=name):
                return self._kinds.get(name)
            case Aggregate(function="COUNT"):
                return "int"
            case Aggregate(function=function, name=name):
                taken = self._kinds.get(name or "")
                return "float" if taken is not None and function == "AVG" else taken
            case Negative(operand=operand):
                return self._kind(operand)
            case Arithmetic(op=op, left=left, right=right):
                one, other = self._kind(left), self._kind(right)
                if one is None or other is None:
                    return None
                if {one, other} & {"timestamp", "duration"}:
                    return cast(ValueKind, TIMES[one, op, other])
                return "float" if op == "/" or "float" in (one, other) else "int"
            case Call(function="coalesce", arguments=arguments):
                kinds = {self._kind(each) for each in arguments} - {None}
                return "float" if "float" in kinds else next(iter(kinds), None)
            case Call(function=function, arguments=(argument,)):
                own = self._kind(argument)
                whole = function in PARTS or function == "length"
                return None if own is None else "int" if whole else own
        return "bool"

    def _simple(self, code: list[tuple[int, int]]) -> Simple | None:
        if len(code) != 3 or {code[0][0], code[1][0]} != {EVENT, STORED}:
            return None
        name, op = code[2]
        told_by_number = name == COMPARE_STRING and op in (EQUAL, DIFFERENT)
        if name not in (COMPARE_INT, COMPARE_FLOAT) and not told_by_number:
            return None
        if code[0][0] == EVENT:
            return Simple(op, code[0][1], code[1][1], name == COMPARE_FLOAT)
        flipped = {COMPARISONS[one]: COMPARISONS[other] for one, other in FLIPPED.items()}
        return Simple(flipped[op], code[1][1], code[0][1], name == COMPARE_FLOAT)


def _comparisons(node: Expression) -> Expression:
    """IN and ranges as comparisons, constants computed, so that fewer kinds of node are left."""
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
        case Call(function="coalesce", arguments=arguments):
            known = tuple(each for each in arguments if each is not NULL_VALUE)
            return Call("coalesce", known) if len(known) > 1 else known[0] if known else NULL_VALUE
        case Negative() | Arithmetic() | Call() if is_constant(node):
            value = value_of(node, {})
            return NULL_VALUE if value is None else Literal(value)
        case Negative() | Arithmetic() | Call() if any(each is NULL_VALUE for each in node.children):
            return NULL_VALUE
    return node


def _no_text(node: Expression) -> PatternError:
    return PatternError(
        f"the engine keeps no text that `{node}` could be asked of", span=node.span,
        hint="ask it of an event: `y[name > y.name]` compares with the one before; FIRST and LAST are compared with "
        "texts as they are written",
    )  # fmt: skip


def _since_1970(node: Expression) -> Expression:
    """A written time as the duration since 1970, as which instants are stored."""
    if not isinstance(node, Literal) or not isinstance(node.value, str):
        return node
    return Literal(utc(datetime.fromisoformat(node.value)) - EPOCH, span=node.span)


def _source(node: Expression) -> str | None:
    """The one event a part reads: '' for the event at hand, a register's name, None for several or none."""
    if aggregates(node):
        return None
    found = {each.variable if isinstance(each, Reference) else "" for each in walk(node)
             if isinstance(each, (Attribute, Reference))}  # fmt: skip
    return found.pop() if len(found) == 1 else None


def _as_attribute(node: Expression) -> Expression:
    return Attribute(node.name) if isinstance(node, Reference) else node
