"""From parse trees of CEQL's patterns to `cerite.pattern` nodes.

`φ FILTER θ1 AND θ2` filters twice and `φ FILTER θ1 OR θ2` is a union (CORE, footnote 1); a filter in ICDT's spelling
(`y.id = x.id`) is about the variable that its pattern binds last.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from lark import Token, Tree

from cerite.core.errors import CeriteError, PatternError, QuerySyntaxError, Span
from cerite.language.conditions import condition_of, name_of, size_of
from cerite.language.parsing import Node, placed, span_of, subtree
from cerite.pattern import nodes
from cerite.pattern.nodes import ANY_TYPE, Pattern, walk
from cerite.pattern.references import filtered_variable
from cerite.pattern.variables import same_event
from cerite.predicate import expression as ex
from cerite.predicate.expression import walk as walk_condition

_MAX_ALTERNATIVES = 10_000  # nodes of the largest pattern to which ORs between filters may multiply one
_COUNTS = {"+": (1, None), "*": (0, None), "?": (0, 1)}


def strategy_of(node: Node) -> nodes.Strategy | None:
    """The strategy a word names; None for ALL."""
    word = str(node.children[0])
    return None if word.upper() == "ALL" else nodes.Strategy.named(word)


def pattern_of(tree: object) -> Pattern:
    """The pattern of a parse tree."""
    node = subtree(tree)
    return placed(_BUILDERS[str(node.data)](node), node)


def _parts(node: Node) -> tuple[Pattern, ...]:
    return tuple(pattern_of(child) for child in node.children if isinstance(child, Tree))


def _sequence(node: Node) -> Pattern:
    parts: list[Pattern] = []
    gaps: list[tuple[Pattern, ...]] = []
    waiting: list[Pattern] = []
    for link in map(subtree, node.children):
        if link.data == "negated":
            waiting.append(pattern_of(link.children[0]))
        else:
            gaps.append(tuple(waiting))
            waiting = []
            parts.append(pattern_of(link))
    if not parts:
        raise _negation_alone(subtree(node.children[0]))
    return nodes.Sequence(tuple(parts), tuple(gaps[1:]), gaps[0], tuple(waiting))


def _negation_alone(node: Node) -> PatternError:
    return PatternError(
        "NOT says what is absent before or after something that happens, and here nothing does", span=span_of(node),
        hint="write what happens before or after it: `A ; NOT B WITHIN 30 seconds`, `NOT A ; B WITHIN 30 seconds`",
    )  # fmt: skip


def _event(node: Node) -> Pattern:
    output, condition, register, type_ = True, None, None, ""
    for child in map(subtree, node.children):
        match str(child.data):
            case "skip":
                output = False
            case "inline":
                condition = condition_of(child.children[0])
            case "into":
                register = name_of(child.children[0])
            case _:
                type_ = _type(child)
    return nodes.Event(type_ or None, condition, output, register)


def _type(name: Node) -> str:
    """The event type that a name stands for, empty for any."""
    written = str(name.children[0])
    if written.upper() == "ANY":
        raise QuerySyntaxError(
            f"`{written}` is no event type", span=span_of(name),
            hint=f"write `_` for any event; an event type of this name stands in back-quotes: `` `{written}` ``",
        )  # fmt: skip
    return "" if written == ANY_TYPE else name_of(name)


def _counted(node: Node) -> Pattern:
    operand, count = map(subtree, node.children)
    mark = str(count.children[0])
    if mark == "?" and operand.data in ("counted", "bounded"):
        raise _reluctant(operand, count)
    least, most = _COUNTS[mark[-1]]
    return nodes.Iteration(pattern_of(operand), least, most, contiguous=mark.startswith(":"))


def _reluctant(operand: Node, count: Node) -> QuerySyntaxError:
    """The error for `B+?`: elsewhere a reluctant quantifier, it would be read as `(B+)?` here."""
    whole = pattern_of(operand)
    return QuerySyntaxError(
        f"there are no reluctant quantifiers such as `{whole}?`: an iteration gives every match, short and long",
        span=span_of(count),
        hint="to have one match of those that end together, write a strategy: SELECT NEXT (the earliest events), LAST "
        f"(the latest) or MAX; for an iteration that may be absent, `({whole})?`",
    )  # fmt: skip


def _bounded(node: Node) -> Pattern:
    operand, bounds = map(subtree, node.children)
    opening, *rest = cast(list[Token], bounds.children)
    comma = next((i for i, token in enumerate(rest) if token.type == "COMMA"), None)
    least: int
    most: int | None
    if comma is None:
        least = most = int(rest[0])
    else:
        least = int(rest[0]) if comma else 0
        most = int(rest[comma + 1]) if len(rest) > comma + 1 else None
    if most is not None and (most < least or most == 0):
        raise QuerySyntaxError(
            f"an iteration from {least} to {most} times cannot happen", span=span_of(bounds),
            hint="write `{least,most}` with least ≤ most and most ≥ 1",
        )  # fmt: skip
    if max(least, most or 0) > 10_000:
        raise QuerySyntaxError("an iteration's bounds go up to 10000", span=span_of(bounds))
    return nodes.Iteration(pattern_of(operand), least, most, contiguous=str(opening).startswith(":"))


def _applied(node: Node) -> Pattern:
    operator, operand = map(subtree, node.children)
    if str(operator.children[0]).upper() == "COMPLEMENT":
        return nodes.Complement(pattern_of(operand))
    strategy = strategy_of(operator)
    assert strategy is not None
    return nodes.Select(strategy, pattern_of(operand))


def _applied_to_many(node: Node) -> Pattern:
    operator, *parts = [subtree(child) for child in node.children if isinstance(child, Tree)]
    kind = {"PERMUTE": nodes.Permute, "SKIP_ANY": nodes.SkipAny, "SKIP_NEXT": nodes.SkipNext}[
        str(operator.children[0]).upper()
    ]
    return kind(tuple(map(pattern_of, parts)))


def _project(node: Node) -> Pattern:
    *names, operand = [child for child in node.children if isinstance(child, Tree)]
    return nodes.Project(pattern_of(operand), tuple(map(name_of, names)))


def _filter(node: Node) -> Pattern:
    operand, filters = node.children
    return _apply(pattern_of(operand), subtree(filters), span_of(node))


def _apply(operand: Pattern, filters: Node, span: Span | None) -> Pattern:
    """`φ FILTER θ1 AND θ2` filters twice, `φ FILTER θ1 OR θ2` is a union (CORE, footnote 1)."""
    if filters.data == "filter_group":
        return _apply(operand, subtree(filters.children[0]), span)
    if filters.data == "filters":
        union = nodes.Union(tuple(_apply(operand, subtree(each), span) for each in filters.children), span=span)
        if sum(1 for _ in walk(union)) > _MAX_ALTERNATIVES:
            raise PatternError(
                "the ORs between these filters multiply the pattern too often", span=span_of(filters),
                hint="write alternatives about one variable inside its brackets: `x[a = 1 OR a = 2]`",
            )  # fmt: skip
        return union
    conditions: list[nodes.On | ex.Expression] = []
    each: Node
    for each in map(subtree, filters.children) if filters.data == "filter_conjunction" else (filters,):
        if each.data == "filter_group":
            operand = _apply(_filtered(operand, conditions, span), subtree(each.children[0]), span)
            conditions = []
        else:
            conditions.append(_on(each, operand))
    return _filtered(operand, conditions, span)


def _filtered(operand: Pattern, conditions: list[nodes.On | ex.Expression], span: Span | None) -> Pattern:
    """Conditions on events first: they and those on the whole pattern hold in any order."""
    ons = tuple(each for each in conditions if isinstance(each, nodes.On))
    wholes = tuple(each for each in conditions if isinstance(each, ex.Expression))
    filtered = nodes.Filter(operand, ons, span=span) if ons else operand
    return nodes.Having(filtered, wholes, span=span) if wholes else filtered


def _on(node: Node, operand: Pattern) -> nodes.On | ex.Expression:
    """A condition on every event of a variable; with aggregates outside of brackets, one on the whole pattern."""
    if node.data == "on":
        return nodes.On(name_of(node.children[0]), condition_of(node.children[1]), span=span_of(node))
    condition = condition_of(node.children[0])
    if node.data == "on_whole" or any(
        isinstance(each, (ex.Aggregate, ex.Moment)) for each in walk_condition(condition)
    ):
        return condition
    mentioned = ex.references(condition)
    if not mentioned:
        raise PatternError(
            f"`{condition}` mentions no variable", span=span_of(node), hint="write `x[price > 3]` or `x.price > 3`"
        )
    variable = filtered_variable(operand, condition) or mentioned[0].variable

    def own(each: ex.Expression) -> ex.Expression:
        if not isinstance(each, ex.Reference):
            return each
        its = each.variable == variable or same_event(operand, each.variable, variable)
        return ex.Attribute(each.name, span=each.span) if its else each

    return nodes.On(variable, ex.transform(condition, own), span=span_of(node))


def _named(node: Node) -> Pattern:
    return nodes.Named(pattern_of(node.children[0]), name_of(node.children[1]))


def _window(node: Node) -> Pattern:
    size: nodes.Size = size_of(node.children[1])
    return nodes.Window(pattern_of(node.children[0]), size)


_BUILDERS: dict[str, Callable[[Node], Pattern]] = {
    "filter": _filter,
    "union": lambda node: nodes.Union(_parts(node)),
    "intersection": lambda node: nodes.Intersection(_parts(node)),
    "sequence": _sequence,
    "negated": lambda node: _raise(_negation_alone(node)),
    "concat": lambda node: nodes.Concat(_parts(node)),
    "counted": _counted,
    "bounded": _bounded,
    "named": _named,
    "group": lambda node: pattern_of(node.children[0]),
    "window": _window,
    "applied": _applied,
    "applied_to_many": _applied_to_many,
    "project": _project,
    "empty": lambda node: nodes.Empty(),
    "nothing": lambda node: nodes.Nothing(),
    "event": _event,
}


def _raise(error: CeriteError) -> Pattern:
    raise error
