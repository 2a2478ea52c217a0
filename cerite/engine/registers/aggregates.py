"""Aggregates in programs: what a register keeps of all its events, and what the event at hand adds to it.

COUNT reads a tally, SUM, MIN, MAX, FIRST and LAST the stored value, AVG the sum over the tally.
"""

from __future__ import annotations

from cerite.core.errors import PatternError
from cerite.engine.registers import interpret as op
from cerite.engine.registers.column_types import ColumnTypes
from cerite.engine.registers.leaves import PRESENCE, Running, Value
from cerite.engine.registers.programs import Operands, Postfix
from cerite.predicate import expression as ex
from cerite.predicate.functions import TEXT
from cerite.predicate.kinds import ValueKind

_HOW = {"MIN": op.MINIMUM, "MAX": op.MAXIMUM, "FIRST": op.FIRST_VALUE, "LAST": op.LAST_VALUE}
_HOW_FLOAT = {op.MINIMUM: op.MINIMUM_FLOAT, op.MAXIMUM: op.MAXIMUM_FLOAT, op.SUM_WHOLE: op.SUM_FLOAT}
_HOW_TEXT = {op.MINIMUM: op.MINIMUM_TEXT, op.MAXIMUM: op.MAXIMUM_TEXT}


def emit_aggregate(node: ex.Aggregate, program: Postfix, operands: Operands, types: ColumnTypes) -> ValueKind | None:
    """Append the code of an aggregate's value; returns its kind, None if it is always NULL."""
    taken = node.taken
    kind, scale = (None, None) if taken is None else (types.kind(taken), types.scale(taken))
    if node.function == "COUNT":
        if taken is not None and kind is None:
            operands.push(0, program)
        else:
            _emit_running(node, Running(op.TALLY, _taken(node, types)), program, operands)
        return "int"
    if kind is None:
        program.code.append((op.NULL, 0))
        return None
    floats = kind == "float" and scale is None
    how = _HOW.get(node.function, op.SUM_WHOLE)
    how = _HOW_FLOAT.get(how, how) if floats else _HOW_TEXT.get(how, how) if kind == "string" else how
    _emit_running(node, Running(how, _taken(node, types)), program, operands)
    if how == op.SUM_FLOAT:
        program.code.append((op.NUMBER, 0))
    if node.function != "AVG":
        return kind
    if not floats:
        program.code.append((op.TO_FLOAT, scale or 0))
    _emit_running(node, Running(op.TALLY, _taken(node, types)), program, operands)
    program.code += [(op.TO_FLOAT, 0), (op.DIVIDE, 0)]
    return "float"


def text_end(node: ex.Expression, types: ColumnTypes) -> ex.Aggregate | None:
    """The FIRST or LAST text, if a test is about nothing else: then the result of the test is stored, not the text."""
    allowed = (ex.Comparison, ex.Like, ex.Literal, ex.Aggregate)
    if not isinstance(node, (ex.Comparison, ex.Like)) or len(set(ex.aggregates(node))) != 1:
        return None
    (end,) = set(ex.aggregates(node))
    strict = all(isinstance(each, allowed) or (isinstance(each, ex.Call) and each.function in TEXT)
                 for each in ex.walk(node))  # fmt: skip
    text = end.function in ("FIRST", "LAST") and types.kind(end) == "string"
    return end if strict and text else None


def emit_text_end(node: ex.Expression, end: ex.Aggregate, program: Postfix, operands: Operands) -> None:
    """Append the code of a test of `text_end`: the test's truth for that event is what is stored."""
    taken = end.taken
    assert taken is not None
    plain = ex.transform(node, lambda each: taken if each == end else each)
    _emit_running(end, Running(_HOW[end.function], Value(plain, "bool")), program, operands)


def _emit_running(node: ex.Aggregate, running: Running, program: Postfix, operands: Operands) -> None:
    """Append what a register keeps of its events, and what the event at hand adds to that, if it counts."""
    assert node.variable is not None
    tally = running.how == op.TALLY
    if node.over == "nothing":
        if tally:
            operands.push(0, program)
        else:
            program.code.append((op.NULL, 0))
    elif node.over == "event":
        operands.read(running.of, "", program)
        program.code += [(op.IS_NULL, 0), (op.NEGATE, 0)] * tally
    else:
        program.code.append((op.COUNTED if tally else op.STORED, operands.slot(node.variable, running)))
        if node.over == "through":
            operands.read(running.of, "", program)
            program.code.append((op.ACCUMULATE, running.how))


def _taken(node: ex.Aggregate, types: ColumnTypes) -> Value:
    """What an aggregate takes from each event: its presence, an attribute, or what is computed from several."""
    if node.taken is None:
        return PRESENCE
    kind, scale = types.kind(node.taken), types.scale(node.taken)
    assert kind is not None
    if scale is not None:
        return Value(node.taken, kind, "digits" if node.of is None else "digits or NULL", scale)
    return Value(node.taken, kind)


def no_text(node: ex.Expression) -> PatternError:
    """The error for texts that would be computed from several others: only texts of single events can be stored."""
    return PatternError(
        f"the engine stores no text to compute `{node}` from", span=node.span,
        hint="compute it of each event, `MIN(lower(y.name))`, or compare event by event: `y[name > y.name]` reads the "
        "one before; FIRST and LAST are compared with texts as they are written",
    )  # fmt: skip
