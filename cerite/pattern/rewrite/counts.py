"""Thresholds on counts as bounds of iterations: `(B AS y)+ FILTER COUNT(y) >= 5` is `(B AS y){5,}`.

A number of events needs no register where one iteration alone decides it: everything else binds the variable a fixed
number of times, and so does each repetition. What is left of a filter stays; so does a condition for which this does
not hold, or that would repeat more often than `MOST` times.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf

from cerite.pattern import nodes
from cerite.pattern.variables import counts, marks
from cerite.predicate import expression as ex
from cerite.predicate.formula import FLIPPED

MOST = 1_000
Range = tuple[float, float]


def bounded_counts(pattern: nodes.Pattern) -> nodes.Pattern:
    """The same pattern, with thresholds on counts moved into the iterations that they are about.

    >>> from cerite.language.ceql import parse_pattern
    >>> print(bounded_counts(parse_pattern("A ; (B AS y)+ ; C FILTER COUNT(y) >= 5 AND AVG(y.v) > 3")))
    A ; (B AS y){5,} ; C FILTER AVG(y.v) > 3
    """

    def change(node: nodes.Pattern) -> nodes.Pattern:
        if not isinstance(node, nodes.Having):
            return node
        operand, rest = node.operand, []
        for condition in node.conditions:
            for part in condition.operands if isinstance(condition, ex.And) else (condition,):
                bounds = threshold(part)
                bounded = None if bounds is None else _bounded(operand, *bounds)
                if bounded is None:
                    rest.append(part)
                else:
                    operand = bounded
        return replace(node, operand=operand, conditions=tuple(rest)) if rest else operand

    return nodes.transform(pattern, change)


def threshold(condition: ex.Expression) -> tuple[str, Range] | None:
    """The variable and how often it is bound, at least and at most, if that is all that the condition says."""
    if isinstance(condition, ex.InRange):
        low, high = _whole(condition.low), _whole(condition.high)
        variable = _counted(condition.operand)
        return None if variable is None or low is None or high is None else (variable, (low, high))
    if not isinstance(condition, ex.Comparison):
        return None
    op, left, right = condition.op, condition.left, condition.right
    if isinstance(left, ex.Literal):
        op, left, right = FLIPPED[op], right, left
    variable, number = _counted(left), _whole(right)
    if variable is None or number is None or op == "!=":
        return None
    ranges: dict[str, Range] = {
        "=": (number, number), ">=": (number, inf), ">": (number + 1, inf), "<=": (0, number), "<": (0, number - 1),
    }  # fmt: skip
    return variable, ranges[op]


def _counted(node: ex.Expression) -> str | None:
    plain = isinstance(node, ex.Aggregate) and node.function == "COUNT" and node.taken is None
    return node.variable if isinstance(node, ex.Aggregate) and plain else None


def _whole(node: ex.Expression) -> int | None:
    return node.value if isinstance(node, ex.Literal) and type(node.value) is int else None


def _bounded(node: nodes.Pattern, variable: str | None, bounds: Range) -> nodes.Pattern | None:
    """The pattern with bounds on the variable's events (None: on marked ones); None where no iteration decides."""
    least, most = _numbers(node, variable)
    low, high = bounds
    if low <= least and most <= high:
        return node
    if most < low or high < least:
        return nodes.Nothing(span=node.span)
    match node:
        case nodes.Named() if node.variable == variable:
            inner = _bounded(node.operand, None, bounds)
            return None if inner is None else replace(node, operand=inner)
        case nodes.Named() | nodes.Filter() | nodes.Having() | nodes.Window():
            inner = _bounded(node.operand, variable, bounds)
            return None if inner is None else replace(node, operand=inner)
        case nodes.Union(parts=parts):
            inners = [_bounded(part, variable, bounds) for part in parts]
            known = tuple(each for each in inners if each is not None)
            return replace(node, parts=known) if len(known) == len(inners) else None
        case nodes.Sequence(parts=parts) | nodes.Concat(parts=parts):
            return _bounded_part(node, parts, variable, bounds)
        case nodes.Iteration():
            return _bounded_iteration(node, variable, bounds)
    return None


def _bounded_part(
    node: nodes.Sequence | nodes.Concat, parts: tuple[nodes.Pattern, ...], variable: str | None, bounds: Range
) -> nodes.Pattern | None:
    numbers = [_numbers(part, variable) for part in parts]
    fixed = sum(least for least, most in numbers if least == most)
    open_ = [at for at, (least, most) in enumerate(numbers) if least != most]
    if len(open_) != 1:
        return None
    (at,) = open_
    inner = _bounded(parts[at], variable, (bounds[0] - fixed, bounds[1] - fixed))
    return None if inner is None else replace(node, parts=(*parts[:at], inner, *parts[at + 1 :]))


def _bounded_iteration(node: nodes.Iteration, variable: str | None, bounds: Range) -> nodes.Pattern | None:
    each, most = _numbers(node.operand, variable)
    if each != most or each == 0:
        return None
    low = max(node.least, -(-bounds[0] // each))
    high = min(inf if node.most is None else node.most, bounds[1] // each)
    if low > high:
        return nodes.Nothing(span=node.span)
    if high == 0:
        return nodes.Empty(span=node.span)
    if low > MOST or (high > MOST and high != inf):
        return None
    return replace(node, least=int(low), most=None if high == inf else int(high))


def _numbers(node: nodes.Pattern, variable: str | None) -> Range:
    return marks(node) if variable is None else counts(node, variable)
