"""Expressions as CEQL text. Invariant: parsing the text gives an equal expression."""

from __future__ import annotations

from datetime import timedelta

from cerite.core.names import quoted
from cerite.predicate import expression as ex
from cerite.predicate.functions import duration_text

# How tightly a node binds; an operand that binds no tighter than its place needs gets parentheses.
_OR, _AND, _NOT, _TEST, _SUM, _PRODUCT, _SIGN, _ATOM = range(8)


def text(expression: ex.Expression) -> str:
    """The expression as it would be written in a filter's brackets.

    >>> cheaper = ex.Comparison(">", ex.Attribute("price"), ex.Reference("x", "price"))
    >>> print(text(ex.Or((cheaper, ex.IsNull(ex.Attribute("id"))))))
    price > x.price OR id IS NULL
    """
    return _render(expression)[0]


def literal(value: ex.Value) -> str:
    """A constant as text."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, timedelta):
        return duration_text(value)
    return repr(value)


def _at(expression: ex.Expression, level: int) -> str:
    rendered, own = _render(expression)
    return rendered if own >= level else f"({rendered})"


def _render(node: ex.Expression) -> tuple[str, int]:
    match node:
        case ex.Literal(value=value):
            shown = literal(value)
            return shown, _SIGN if shown.startswith("-") else _ATOM
        case ex.Attribute(name=name):
            return quoted(name), _ATOM
        case ex.Reference(variable=variable, name=name):
            return f"{quoted(variable)}.{quoted(name)}", _ATOM
        case ex.Negative(operand=operand):
            # `-(1)` is not the constant -1, and `-(-x)` does not start a comment
            inner = f"({text(operand)})" if isinstance(operand, (ex.Literal, ex.Negative)) else _at(operand, _ATOM)
            return f"-{inner}", _SIGN
        case ex.Arithmetic(op=op, left=left, right=right):
            level = _PRODUCT if op in "*/%" else _SUM
            return f"{_at(left, level)} {op} {_at(right, level + 1)}", level
        case ex.Call(function=function, arguments=arguments):
            return f"{function}({', '.join(map(text, arguments))})", _ATOM
        case ex.Aggregate():
            return _aggregate(node), _ATOM
        case ex.Moment(function=function):
            return f"{function}()", _ATOM
        case ex.Interval(low=low, high=high):
            return f"{text(low)}..{text(high)}", _ATOM
        case ex.And(operands=operands):
            return " AND ".join(_at(each, _NOT) for each in operands), _AND
        case ex.Or(operands=operands):
            return " OR ".join(_at(each, _AND) for each in operands), _OR
        case ex.Not(operand=operand):
            return f"NOT {_at(operand, _ATOM)}", _NOT
        case _:
            return _test(node), _TEST


def _aggregate(node: ex.Aggregate) -> str:
    if node.variable is None:
        return f"{node.function}(*)"
    whole = quoted(node.variable) if node.taken is None else text(node.read)
    return f"{node.function}({'DISTINCT ' if node.distinct else ''}{whole})"


def _test(node: ex.Expression) -> str:
    match node:
        case ex.Comparison(op=op, left=left, right=right):
            return f"{_at(left, _SUM)} {op} {_at(right, _SUM)}"
        case ex.In(operand=operand, items=items):
            return f"{_at(operand, _SUM)} IN {{{', '.join(text(item) for item in items)}}}"
        case ex.InRange(operand=operand, low=low, high=high):
            return f"{_at(operand, _SUM)} IN RANGE({text(low)}, {text(high)})"
        case ex.Like(operand=operand, pattern=pattern):
            return f"{_at(operand, _SUM)} LIKE {literal(pattern)}"
        case ex.IsNull(operand=operand):
            return f"{_at(operand, _SUM)} IS NULL"
        case ex.IsTrue(operand=operand):
            return f"{_at(operand, _SUM)} IS TRUE"
    raise TypeError(f"not an expression: {node!r}")
