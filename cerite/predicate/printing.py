"""Expressions as CEQL text. Invariant: parsing the text gives an equal expression."""

from __future__ import annotations

from datetime import timedelta

from cerite.core.names import quoted
from cerite.predicate.expression import (
    Aggregate,
    And,
    Arithmetic,
    Attribute,
    Call,
    Comparison,
    Expression,
    In,
    InRange,
    Interval,
    IsNull,
    IsTrue,
    Like,
    Literal,
    Moment,
    Negative,
    Not,
    Or,
    Reference,
    Value,
)
from cerite.predicate.functions import duration_text

# How tightly a node binds; an operand that binds no tighter than its place needs gets parentheses.
_OR, _AND, _NOT, _TEST, _SUM, _PRODUCT, _SIGN, _ATOM = range(8)


def text(expression: Expression) -> str:
    """The expression as it would be written in a filter's brackets.

    >>> print(text(Or((Comparison(">", Attribute("price"), Reference("x", "price")), IsNull(Attribute("id"))))))
    price > x.price OR id IS NULL
    """
    return _render(expression)[0]


def literal(value: Value) -> str:
    """A constant as text."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, timedelta):
        return duration_text(value)
    return repr(value)


def _at(expression: Expression, level: int) -> str:
    rendered, own = _render(expression)
    return rendered if own >= level else f"({rendered})"


def _render(node: Expression) -> tuple[str, int]:
    match node:
        case Literal(value=value):
            shown = literal(value)
            return shown, _SIGN if shown.startswith("-") else _ATOM
        case Attribute(name=name):
            return quoted(name), _ATOM
        case Reference(variable=variable, name=name):
            return f"{quoted(variable)}.{quoted(name)}", _ATOM
        case Negative(operand=operand):
            # `-(1)` is not the constant -1, and `-(-x)` does not start a comment
            inner = f"({text(operand)})" if isinstance(operand, (Literal, Negative)) else _at(operand, _ATOM)
            return f"-{inner}", _SIGN
        case Arithmetic(op=op, left=left, right=right):
            level = _PRODUCT if op in "*/%" else _SUM
            return f"{_at(left, level)} {op} {_at(right, level + 1)}", level
        case Call(function=function, arguments=arguments):
            return f"{function}({', '.join(map(text, arguments))})", _ATOM
        case Aggregate():
            return _aggregate(node), _ATOM
        case Moment(function=function):
            return f"{function}()", _ATOM
        case Interval(low=low, high=high):
            return f"{text(low)}..{text(high)}", _ATOM
        case And(operands=operands):
            return " AND ".join(_at(each, _NOT) for each in operands), _AND
        case Or(operands=operands):
            return " OR ".join(_at(each, _AND) for each in operands), _OR
        case Not(operand=operand):
            return f"NOT {_at(operand, _ATOM)}", _NOT
        case _:
            return _test(node), _TEST


def _aggregate(node: Aggregate) -> str:
    if node.variable is None:
        return f"{node.function}(*)"
    whole = quoted(node.variable) if node.taken is None else text(node.read)
    return f"{node.function}({'DISTINCT ' if node.distinct else ''}{whole})"


def _test(node: Expression) -> str:
    match node:
        case Comparison(op=op, left=left, right=right):
            return f"{_at(left, _SUM)} {op} {_at(right, _SUM)}"
        case In(operand=operand, items=items):
            return f"{_at(operand, _SUM)} IN {{{', '.join(text(item) for item in items)}}}"
        case InRange(operand=operand, low=low, high=high):
            return f"{_at(operand, _SUM)} IN RANGE({text(low)}, {text(high)})"
        case Like(operand=operand, pattern=pattern):
            return f"{_at(operand, _SUM)} LIKE {literal(pattern)}"
        case IsNull(operand=operand):
            return f"{_at(operand, _SUM)} IS NULL"
        case IsTrue(operand=operand):
            return f"{_at(operand, _SUM)} IS TRUE"
    raise TypeError(f"not an expression: {node!r}")
