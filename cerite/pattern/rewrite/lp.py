"""LP-normal form: every unary filter on the definition of its variable (ICDT 2019, theorem 3).

With variables that hold sets (CORE), a filter says "every event of x satisfies P", so it moves into every event that
is bound to x, through everything but a selection operator (SREMO's @ among them): `NEXT(φ) FILTER x[P]` selects first
and filters then.
Conditions that read other variables stay where they are, as in the paper.
"""

from __future__ import annotations

from dataclasses import replace

from cerite.pattern import nodes
from cerite.pattern.variables import bound
from cerite.predicate.expression import Expression, conjunction

_SELECTING = (nodes.Select, nodes.SkipNext)  # what a match looks like decides here which others are kept


def lp_normal(pattern: nodes.Pattern) -> nodes.Pattern:
    """The same pattern with unary filters inside the events they are about.

    >>> from cerite.language.ceql import parse_pattern
    >>> print(lp_normal(parse_pattern("(T AS x ; H AS y) FILTER x[tmp > 40] AND y[hum <= 25] AND y[id = x.id]")))
    T[tmp > 40] AS x ; H[hum <= 25] AS y FILTER y[id = x.id]
    """
    inner = pattern.map(lp_normal)
    if not isinstance(inner, nodes.Filter):
        return inner
    conditions: list[nodes.On] = []
    operand = inner.operand
    for on in inner.conditions:
        if on.reads or _selected(operand, on.variable):
            conditions.append(on)
        else:
            operand = _push(operand, on.variable, on.condition)
    return replace(inner, operand=operand, conditions=tuple(conditions)) if conditions else operand


def is_lp_normal(pattern: nodes.Pattern) -> bool:
    """Whether no unary filter is left that could move inwards."""
    return all(
        on.reads or _selected(node.operand, on.variable)
        for node in nodes.walk(pattern)
        if isinstance(node, nodes.Filter)
        for on in node.conditions
    )


def _push(node: nodes.Pattern, variable: str, condition: Expression) -> nodes.Pattern:
    """The condition on every event below that the variable is bound to."""
    match node:
        case nodes.Event():
            return _narrowed(node, condition) if variable in node.labels else node
        case nodes.Named(operand=operand) if node.variable == variable:
            return replace(node, operand=_push_to_all(operand, condition))
        case nodes.Project() if variable not in node.variables:
            return node
        case nodes.Sequence(parts=parts):
            return replace(node, parts=tuple(_push(part, variable, condition) for part in parts))
        case nodes.Complement():
            return node
        case _:
            return node.map(lambda child: _push(child, variable, condition))


def _push_to_all(node: nodes.Pattern, condition: Expression) -> nodes.Pattern:
    """The condition on every event that the node shows; below a projection only the variables it keeps."""
    match node:
        case nodes.Event():
            return _narrowed(node, condition) if node.output else node
        case nodes.Project(operand=operand, variables=variables):
            for variable in variables:
                operand = _push(operand, variable, condition)
            return replace(node, operand=operand)
        case nodes.Sequence(parts=parts):
            return replace(node, parts=tuple(_push_to_all(part, condition) for part in parts))
        case nodes.Complement():
            return node
        case _:
            return node.map(lambda child: _push_to_all(child, condition))


def _narrowed(event: nodes.Event, condition: Expression) -> nodes.Event:
    return replace(event, condition=conjunction(event.condition, condition))


def _selected(node: nodes.Pattern, variable: str) -> bool:
    """Whether some event of the variable is bound inside a selection operator."""
    if isinstance(node, _SELECTING):
        return variable in bound(node)
    if isinstance(node, nodes.Named) and node.variable == variable:
        return any(isinstance(each, _SELECTING) for each in nodes.walk(node.operand))
    parts = (
        node.parts
        if isinstance(node, (nodes.Sequence, nodes.Union))
        else ()
        if isinstance(node, nodes.Complement)
        else node.children
    )
    return variable in bound(node) and any(_selected(part, variable) for part in parts)
