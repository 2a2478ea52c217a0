"""From conditions across events to programs: comparisons, arithmetic and functions, each by the kinds of its values.

Invariant: a program is true exactly where `evaluate.holds` says so; with an empty register it is false.
"""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction

import numpy as np

from cerite.automaton.guards import Reach
from cerite.core.errors import ALIKE, PatternError
from cerite.core.schema import Kind
from cerite.engine.registers import interpret as op
from cerite.engine.registers.aggregates import emit_aggregate, emit_text_end, no_text, text_end
from cerite.engine.registers.column_types import ColumnTypes
from cerite.engine.registers.leaves import PRESENCE, Mark, Running, Value
from cerite.engine.registers.programs import Operands, Postfix, Simple
from cerite.engine.registers.simplify import as_attribute, simplified, since_1970, source_of
from cerite.predicate import expression as ex
from cerite.predicate.columns.read import LONG_DIGITS
from cerite.predicate.evaluate import value_of, written
from cerite.predicate.formula import FLIPPED
from cerite.predicate.functions import EARLIEST, LATEST, MICROSECOND, PARTS, TEXT
from cerite.predicate.kinds import ValueKind, check_condition

COMPARISONS = {"=": op.EQUAL, "!=": op.DIFFERENT, "<": op.LESS, "<=": op.AT_MOST, ">": op.MORE, ">=": op.AT_LEAST}
_WHOLE = {"+": op.ADD, "-": op.SUBTRACT, "*": op.MULTIPLY, "%": op.MODULO}
_UNARY = {"round": op.ROUND, "floor": op.FLOOR, "ceil": op.CEIL}
_FLOAT = {"+": op.ADD_FLOAT, "-": op.SUBTRACT_FLOAT, "*": op.MULTIPLY_FLOAT, "/": op.DIVIDE, "%": op.MODULO_FLOAT}

MOST_SCALE = 22  # the greatest power of ten that a float holds exactly
_LEAST, _MOST = -(2**63), 2**63 - 1


class Compiler:
    """Builds the programs of one query, which share leaves, stored values and constants."""

    def __init__(self, types: ColumnTypes, operands: Operands) -> None:
        self._types = types
        self._operands = operands

    def window(self, reach: Reach) -> Postfix:
        """The condition that the event lies within the reach of the one in the register, or past it."""
        size, how = reach.size, op.MORE if reach.past else op.AT_MOST
        leaf = self._operands.leaf(Mark(size, low=True))
        slot = self._operands.slot(reach.register, Mark(size, low=False))
        code = [(op.EVENT, leaf), (op.STORED, slot), (op.COMPARE_INT, how)]
        words = f"{'AFTER' if reach.past else 'WITHIN'} {size}"
        return Postfix(code, frozenset((slot,)), frozenset((slot,)), Simple(how, leaf, slot, False), words)

    def condition(self, condition: ex.Expression) -> Postfix:
        """The program of a condition that reads at least one register."""
        check_condition(condition, self._types.possible)
        plain = simplified(condition, self._types)
        program = Postfix(text=str(condition))
        self._emit(plain, program)
        self._note_slots(plain, program)
        program.simple = one_comparison(program.code)
        return program

    def _note_slots(self, node: ex.Expression, program: Postfix) -> None:
        """Note what the program reads; registers that it refers to must hold an event, even if no value is read."""
        read = {argument for name, argument in program.code if name in (op.STORED, op.COUNTED)}
        slots = self._operands.slots.items()
        of = {slot: register for (register, leaf), slot in slots if not isinstance(leaf, Running)}
        needed = {slot: of[slot] for slot in read if slot in of}
        for each in ex.walk(node):
            if isinstance(each, ex.Reference) and each.variable not in needed.values():
                needed[self._operands.slot(each.variable, PRESENCE)] = each.variable
        program.needs, program.slots = frozenset(needed), frozenset(read | needed.keys())

    def _emit(self, node: ex.Expression, program: Postfix, as_float: bool = False) -> ValueKind | None:
        """Append the node's code; returns the kind of its value, None if that is always NULL."""
        source = source_of(node)
        if source is not None:
            return self._emit_leaf(node, source, program, as_float)
        if ex.is_constant(node):
            return self._emit_constant(node, program, as_float)
        end = text_end(node, self._types)
        if end is not None:
            emit_text_end(node, end, program, self._operands)
            return "bool"
        kind = self._emit_node(node, program)
        scale = self._types.scale(ex.transform(node, as_attribute))
        if as_float and (kind == "int" or scale is not None):
            if scale is not None and scale > MOST_SCALE:
                raise _too_many(node)
            program.code.append((op.TO_FLOAT, scale or 0))
            return "float"
        return kind

    def _emit_leaf(self, node: ex.Expression, source: str, program: Postfix, as_float: bool) -> ValueKind | None:
        plain = ex.transform(node, as_attribute)
        kind = self._types.kind(plain)
        if kind is None:
            program.code.append((op.NULL, 0))
            return None
        if as_float and kind == "int":
            kind = "float"
        self._operands.read(Value(plain, kind), source, program)
        return kind

    def _emit_constant(self, node: ex.Expression, program: Postfix, as_float: bool) -> ValueKind | None:
        value = value_of(node, {})
        if isinstance(value, timedelta):
            self._operands.push(value // MICROSECOND * 1_000 // self._types.finest, program)
            return "duration"
        if value is None:
            program.code.append((op.NULL, 0))
            return None
        if isinstance(value, str):  # by its number, as any other event's text
            self._operands.read(Value(ex.Literal(value), "string"), "", program)
            return "string"
        kind: Kind = "bool" if isinstance(value, bool) else "float" if isinstance(value, float) or as_float else "int"
        self._operands.push(
            int(np.array([value], np.float64).view(np.int64)[0]) if kind == "float" else int(value), program
        )
        return kind

    def _emit_node(self, node: ex.Expression, program: Postfix) -> ValueKind | None:
        match node:
            case ex.Comparison(op=sign, left=left, right=right):
                self._emit_comparison(sign, left, right, program)
                return "bool"
            case ex.And(operands=operands) | ex.Or(operands=operands):
                for each in operands:
                    self._emit(each, program)
                program.code.append((op.ALL if isinstance(node, ex.And) else op.ANY_OF, len(operands)))
                return "bool"
            case ex.Not(operand=operand) | ex.IsTrue(operand=operand) | ex.IsNull(operand=operand):
                self._emit(operand, program)
                name = {ex.Not: op.NEGATE, ex.IsTrue: op.IS_TRUE, ex.IsNull: op.IS_NULL}[type(node)]
                program.code.append((name, 0))
                return "bool"
            case ex.Arithmetic(op=sign, left=left, right=right):
                return self._emit_arithmetic(sign, left, right, program)
            case ex.Negative(operand=operand):
                return self._emit_arithmetic("-", ex.Literal(0), operand, program)
            case ex.Call():
                return self._emit_call(node, program)
            case ex.Aggregate():
                return emit_aggregate(node, program, self._operands, self._types)
            case ex.Like():
                raise no_text(node)
        raise TypeError(f"not an expression: {node!r}")

    def _emit_comparison(
        self, sign: ex.ComparisonOp, left: ex.Expression, right: ex.Expression, program: Postfix
    ) -> None:
        plain = [ex.transform(side, as_attribute) for side in (left, right)]
        kinds = {self._types.kind(side) for side in plain}
        if "timestamp" in kinds:
            left, right, kinds = since_1970(left), since_1970(right), {"timestamp"}
        leaves = source_of(left) is not None and source_of(right) is not None
        if None not in kinds and any(self._types.scale(side) is not None for side in plain):
            self._emit_decimals(sign, left, right, program)
        elif all(isinstance(side, ex.Attribute) and side.name in self._types.unsigned for side in plain):
            self._emit_leaves("unsigned", 0, (left, right), program)
            program.code.append((op.COMPARE_INT, COMPARISONS[sign]))
        elif kinds == {"int", "float"} and leaves:
            self._emit_leaves("among floats", 0, (left, right), program)
            program.code.append((op.COMPARE_INT, COMPARISONS[sign]))
        elif kinds == {"int", "float"}:
            if self._types.kind(plain[0]) == "float":
                sign, left, right = FLIPPED[sign], right, left
            self._emit(left, program)
            self._emit(right, program)
            program.code.append((op.COMPARE_MIXED, COMPARISONS[sign]))
        else:
            self._emit(left, program)
            self._emit(right, program)
            name = op.COMPARE_STRING if "string" in kinds else op.COMPARE_FLOAT if "float" in kinds else op.COMPARE_INT
            program.code.append((name, COMPARISONS[sign]))

    def _emit_leaves(self, form: str, scale: int, sides: tuple[ex.Expression, ...], program: Postfix) -> None:
        for side in sides:
            source, plain = source_of(side), ex.transform(side, as_attribute)
            kind = self._types.kind(plain)
            assert source is not None
            assert kind is not None
            self._operands.read(Value(plain, kind, form, scale), source, program)

    def _emit_decimals(
        self, sign: ex.ComparisonOp, left: ex.Expression, right: ex.Expression, program: Postfix
    ) -> None:
        """A comparison of which at least one side is a decimal."""
        sides = (left, right)
        plain = [ex.transform(side, as_attribute) for side in sides]
        scales = [self._types.places(side) for side in plain]
        common = max(scale or 0 for scale in scales)
        if None in scales:  # one is a float: whole numbers that say where it lies between the other's
            if common > MOST_SCALE:
                raise _too_many(left if scales[0] is None else right)
            if None in map(source_of, sides):
                self._emit_with_float(sign, sides, common, program)
                return
            self._emit_leaves("between", common, sides, program)
            program.code.append((op.COMPARE_INT, COMPARISONS[sign]))
        elif None not in map(source_of, sides):
            wide = any(self._types.width(side) + common - (scale or 0) > LONG_DIGITS
                       for side, scale in zip(plain, scales, strict=True))  # fmt: skip
            self._emit_leaves("text" if wide else "digits", common, sides, program)
            program.code.append((op.COMPARE_STRING if wide else op.COMPARE_INT, COMPARISONS[sign]))
        else:
            first, second = (scale or 0 for scale in scales)
            if first > second:
                sign, left, right = FLIPPED[sign], right, left
            self._emit_digits(left, min(first, second), program)
            self._emit_digits(right, common, program)
            program.code.append((op.COMPARE_SCALED, op.PLACES * abs(first - second) + COMPARISONS[sign]))

    def _emit_with_float(
        self, sign: ex.ComparisonOp, sides: tuple[ex.Expression, ...], scale: int, program: Postfix
    ) -> None:
        """A decimal against a float, at least one of which is computed from several events."""
        exact, other = sides
        if self._types.places(ex.transform(exact, as_attribute)) is None:
            sign, exact, other = FLIPPED[sign], other, exact
        if source_of(exact) is None:
            self._emit_digits(exact, scale, program)
        else:  # a value of one event is compared with all its digits, or refused
            self._emit_leaves("digits", scale, (exact,), program)
        self._emit(other, program, as_float=True)
        program.code.append((op.COMPARE_MIXED, op.PLACES * scale + COMPARISONS[sign]))

    def _emit_digits(self, node: ex.Expression, scale: int, program: Postfix) -> None:
        """A whole number or decimal by its digits at this scale, NULL where they are too many."""
        source, plain = source_of(node), ex.transform(node, as_attribute)
        if ex.is_constant(node):
            value = value_of(node, {})
            exact = None if value is None else Fraction(written(value) if isinstance(value, float) else value)
            if exact is None:
                program.code.append((op.NULL, 0))
            else:
                self._operands.push(max(_LEAST, min(_MOST, int(exact * 10**scale))), program)
        elif source is not None:
            kind = self._types.kind(plain)
            assert kind is not None
            self._operands.read(Value(plain, kind, "digits or NULL", scale), source, program)
        else:
            self._emit(node, program)
            own = self._types.places(plain) or 0
            if scale > own:
                self._operands.push(10 ** min(scale - own, 18), program)
                program.code.append((op.MULTIPLY, 0))

    def _emit_call(self, node: ex.Call, program: Postfix) -> ValueKind | None:
        """A function of values of several events; for texts it has been spread, for one event it is a leaf."""
        kind = self._types.kind(ex.transform(node, as_attribute))
        if node.function == "coalesce":
            for each in node.arguments:
                self._emit(each, program, kind == "float")
            program.code.append((op.COALESCE, len(node.arguments)))
            return kind
        if node.function in TEXT:
            raise no_text(node)
        own = self._types.kind(ex.transform(node.arguments[0], as_attribute))
        self._emit(node.arguments[0], program, own == "float")  # a decimal is taken as a float
        if node.function in PARTS:
            program.code.append((op.PART, len(self._operands.constants)))
            self._operands.constants += [PARTS.index(node.function), 1_000_000_000 // self._types.finest]
        elif node.function == "abs":
            program.code.append((op.ABS_FLOAT if own == "float" else op.ABS, 0))
        elif own == "float":
            program.code.append((_UNARY[node.function], 0))
        return kind

    def _emit_times(self, sign: str, left: ex.Expression, right: ex.Expression, program: Postfix) -> ValueKind:
        kinds = [self._types.kind(ex.transform(side, as_attribute)) for side in (left, right)]
        for side in (left, right):
            self._emit(side, program)
            if sign == "/":
                program.code.append((op.TO_FLOAT, 0))
        program.code.append((op.DIVIDE if sign == "/" else _WHOLE[sign], 0))
        if sign == "/":
            return "float"
        if "timestamp" not in kinds or kinds[0] == kinds[1]:
            return "duration"
        if self._types.finest >= 1_000:  # nanoseconds cannot leave the range of years
            program.code.append((op.IN_YEARS, len(self._operands.constants)))
            self._operands.constants += [each * 1_000 // self._types.finest for each in (EARLIEST, LATEST)]
        return "timestamp"

    def _emit_arithmetic(self, sign: str, left: ex.Expression, right: ex.Expression, program: Postfix) -> ValueKind:
        plain = [ex.transform(side, as_attribute) for side in (left, right)]
        scales = [self._types.places(side) for side in plain]
        kinds = {self._types.kind(side) for side in plain}
        if kinds & {"timestamp", "duration"}:
            return self._emit_times(sign, left, right, program)
        if sign != "/" and None not in scales and any(self._types.scale(side) is not None for side in plain):
            common = max(scale or 0 for scale in scales)
            for side, scale in zip((left, right), scales, strict=True):
                self._emit_digits(side, (scale or 0) if sign == "*" else common, program)
            program.code.append((_WHOLE[sign], 0))
            return "float"
        whole = kinds <= {"int", None} and sign != "/"
        self._emit(left, program, not whole)
        self._emit(right, program, not whole)
        program.code.append(((_WHOLE if whole else _FLOAT)[sign], 0))
        return "int" if whole else "float"


def _too_many(node: ex.Expression) -> PatternError:
    return PatternError(
        f"`{node}` meets a number of another kind that it cannot be compared with exactly", span=node.span,
        hint=ALIKE,
    )  # fmt: skip


def one_comparison(code: list[tuple[int, int]]) -> Simple | None:
    """The comparison of a leaf of the event with a stored value that this code is, if it is just that."""
    if len(code) != 3 or {code[0][0], code[1][0]} != {op.EVENT, op.STORED}:
        return None
    name, how = code[2]
    same_numbers = name == op.COMPARE_STRING and how in (op.EQUAL, op.DIFFERENT)
    if name not in (op.COMPARE_INT, op.COMPARE_FLOAT) and not same_numbers:
        return None
    if code[0][0] == op.EVENT:
        return Simple(how, code[0][1], code[1][1], name == op.COMPARE_FLOAT)
    flipped = {COMPARISONS[one]: COMPARISONS[other] for one, other in FLIPPED.items()}
    return Simple(flipped[how], code[1][1], code[0][1], name == op.COMPARE_FLOAT)
