"""CEQL text becomes a query: `parse_query`, `parse_pattern`, `parse_condition`, `parse_schema`.

Parsing says only what is wrong with the text itself; whether the pattern means something is checked afterwards
(`cerite.pattern.check`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar, cast

from lark import Token, Tree

from cerite.errors import CeriteError, PatternError, QuerySyntaxError, SchemaError, Span
from cerite.language.conditions import condition_of, name_of, number_of, size_of
from cerite.language.parsing import Node, parse, span_of, subtree
from cerite.pattern.alternatives import Intersection, Permute, Union
from cerite.pattern.atoms import ANY_TYPE, Empty, Event, Nothing
from cerite.pattern.base import Pattern, walk
from cerite.pattern.complement import Complement
from cerite.pattern.filtering import Filter, On
from cerite.pattern.iteration import Iteration
from cerite.pattern.naming import Named, Project
from cerite.pattern.query import Consume, Item, Query
from cerite.pattern.references import filtered_variable
from cerite.pattern.selection import Select, Strategy
from cerite.pattern.sequence import Concat, Sequence
from cerite.pattern.skipping import SkipAny, SkipNext
from cerite.pattern.window import Size, Window
from cerite.predicate.expression import Attribute, Expression, Reference, references, transform
from cerite.schema import Kind, Schema, kind_named, merge

T = TypeVar("T")
_STARTS = ("query", "pattern_only", "condition_only", "schema_only")
_MAX_ALTERNATIVES = 10_000  # nodes that ORs between filters may multiply a pattern to
_COUNTS = {"+": (1, None), "*": (0, None), "?": (0, 1)}


def parse_query(text: str) -> Query:
    """A whole query, with the declarations that may stand before it.

    >>> print(parse_query("select b from Stock where (BUY or SELL) as s ; (BUY or SELL) as b within 1 minute"))
    SELECT b
    FROM Stock
    WHERE (BUY OR SELL) AS s ; (BUY OR SELL) AS b
    WITHIN 1 minutes
    """
    made = _parsed(text, "query", _query)
    return replace(made, source=text)


def parse_pattern(text: str) -> Pattern:
    """A pattern as it stands in WHERE.

    >>> parse_pattern("BUY AS b")
    Named(operand=Event(type='BUY', condition=None, output=True, register=None), variable='b')
    """
    return _parsed(text, "pattern_only", lambda tree: _pattern(tree.children[0]))


def parse_condition(text: str) -> Expression:
    """A condition as it stands in a filter's brackets."""
    return _parsed(text, "condition_only", lambda tree: condition_of(tree.children[0]))


def parse_schema(text: str) -> Schema:
    """`CREATE STREAM S { EVENT BUY { id:int, … }, … }`, one or more."""
    return _parsed(text, "schema_only", lambda tree: cast(Schema, merge(map(_declaration, tree.children))))


def _parsed(text: str, start: str, build: Callable[[Node], T]) -> T:
    tree = parse(text, "ceql", _STARTS, start)
    try:
        return build(tree)
    except CeriteError as error:
        raise error.at(text) from None


# ---------------------------------------------------------------- clauses
def _query(tree: Node) -> Query:
    clauses: dict[str, Node] = {}
    declared: list[Schema] = []
    for child in tree.children:
        node = subtree(child)
        if node.data == "declaration":
            declared.append(_declaration(node))
        elif str(node.data) in clauses:
            raise QuerySyntaxError(f"there are two {str(node.data).upper()} clauses", span=span_of(node))
        else:
            clauses[str(node.data)] = node
    strategy, items = _select(clauses["select"])
    optional = {name: node for name, node in clauses.items() if name in _OPTIONAL}
    return Query(
        where=_pattern(clauses["where"].children[0]),
        items=items,
        strategy=strategy,
        streams=tuple(name_of(each) for each in clauses["from_clause"].children),
        schema=merge(declared),
        clauses={name: cast(Span, span_of(node)) for name, node in clauses.items()},
        **{name: _OPTIONAL[name](node) for name, node in optional.items()},
    )


def _select(node: Node) -> tuple[Strategy | None, tuple[Item, ...] | None]:
    strategy, items = None, []
    for child in map(subtree, node.children):
        if child.data == "strategy":
            strategy = _strategy(child)
        elif child.data == "item":
            names = [name_of(each) for each in child.children]
            items.append(Item(names[0], tuple(names[1:]) or None, span=span_of(child)))
    return strategy, tuple(items) or None


def _strategy(node: Node) -> Strategy | None:
    word = str(node.children[0]).upper()
    return None if word == "ALL" else Strategy("NEXT" if word == "NXT" else word)


def _partition(node: Node) -> tuple[str, ...]:
    return tuple(name_of(each) for bracket in node.children for each in subtree(bracket).children)


def _consume(node: Node) -> Consume:
    return Consume(str(subtree(node.children[0]).data).removesuffix("_target").upper())


def _limit(node: Node) -> int:
    value = number_of(subtree(node.children[0]))
    if not isinstance(value, int) or value < 1:
        raise QuerySyntaxError(f"LIMIT takes a whole number from 1 on, not {value}", span=span_of(node))
    return value


_OPTIONAL: dict[str, Callable[[Node], Any]] = {
    "partition": _partition,
    "within": lambda node: size_of(node.children[0]),
    "consume": _consume,
    "limit": _limit,
}


def _declaration(tree: object) -> Schema:
    stream, *events = subtree(tree).children
    found: dict[str, dict[str, Kind]] = {}
    for event in map(subtree, events):
        name, *attributes = event.children
        if name_of(name) in found:
            raise SchemaError(f"event type `{name_of(name)}` is declared twice", span=span_of(subtree(name)))
        kinds = found.setdefault(name_of(name), {})
        for attribute in map(subtree, attributes):
            key, kind = map(subtree, attribute.children)
            if name_of(key) in kinds:
                raise SchemaError(f"attribute `{name_of(key)}` is declared twice", span=span_of(key))
            try:
                kinds[name_of(key)] = kind_named(name_of(kind))
            except SchemaError as error:
                raise SchemaError(error.message, span=span_of(kind), hint=error.hint) from None
    return Schema(found, stream=name_of(stream))


# ---------------------------------------------------------------- patterns
def _pattern(tree: object) -> Pattern:
    node = subtree(tree)
    made = _BUILDERS[str(node.data)](node)
    if made.span is None:
        object.__setattr__(made, "span", span_of(node))
    return made


def _parts(node: Node) -> tuple[Pattern, ...]:
    return tuple(_pattern(child) for child in node.children if isinstance(child, Tree))


def _sequence(node: Node) -> Pattern:
    parts: list[Pattern] = []
    absent: list[tuple[Pattern, ...]] = []
    waiting: list[Pattern] = []
    for link in map(subtree, node.children):
        if link.data == "negated":
            if not parts:
                raise _negation_at("start", link)
            waiting.append(_pattern(link.children[0]))
        else:
            if parts:
                absent.append(tuple(waiting))
            waiting = []
            parts.append(_pattern(link))
    if waiting:
        raise _negation_at("end", subtree(node.children[-1]))
    return Sequence(tuple(parts), tuple(absent))


def _negation_at(where: str, node: Node) -> PatternError:
    return PatternError(
        f"NOT at the {where} of a pattern (absence) is not supported", span=span_of(node),
        hint="NOT stands between two patterns: `A ; NOT B ; C`",
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
                type_ = "" if str(child.children[0]) == ANY_TYPE else name_of(child)
    return Event(type_ or None, condition, output, register)


def _counted(node: Node) -> Pattern:
    operand, count = map(subtree, node.children)
    mark = str(count.children[0])
    least, most = _COUNTS[mark[-1]]
    return Iteration(_pattern(operand), least, most, contiguous=mark.startswith(":"))


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
    return Iteration(_pattern(operand), least, most, contiguous=str(opening).startswith(":"))


def _applied(node: Node) -> Pattern:
    operator, operand = map(subtree, node.children)
    if str(operator.children[0]).upper() == "COMPLEMENT":
        return Complement(_pattern(operand))
    strategy = _strategy(operator)
    assert strategy is not None
    return Select(strategy, _pattern(operand))


def _applied_to_many(node: Node) -> Pattern:
    operator, *parts = [subtree(child) for child in node.children if isinstance(child, Tree)]
    kind = {"PERMUTE": Permute, "SKIP_ANY": SkipAny, "SKIP_NEXT": SkipNext}[str(operator.children[0]).upper()]
    return kind(tuple(map(_pattern, parts)))


def _project(node: Node) -> Pattern:
    *names, operand = [child for child in node.children if isinstance(child, Tree)]
    return Project(_pattern(operand), tuple(map(name_of, names)))


def _filter(node: Node) -> Pattern:
    operand, filters = node.children
    return _apply(_pattern(operand), subtree(filters), span_of(node))


def _apply(operand: Pattern, filters: Node, span: Span | None) -> Pattern:
    """`φ FILTER θ1 AND θ2` filters twice, `φ FILTER θ1 OR θ2` is a union (CORE, footnote 1)."""
    if filters.data == "filter_group":
        return _apply(operand, subtree(filters.children[0]), span)
    if filters.data == "filters":
        union = Union(tuple(_apply(operand, subtree(each), span) for each in filters.children), span=span)
        if sum(1 for _ in walk(union)) > _MAX_ALTERNATIVES:
            raise PatternError(
                "the ORs between these filters multiply the pattern too often", span=span_of(filters),
                hint="write alternatives about one variable inside its brackets: `x[a = 1 OR a = 2]`",
            )  # fmt: skip
        return union
    conditions: list[On] = []
    each: Node
    for each in map(subtree, filters.children) if filters.data == "filter_conjunction" else (filters,):
        if each.data == "filter_group":
            operand = _apply(_filtered(operand, conditions, span), subtree(each.children[0]), span)
            conditions = []
        else:
            conditions.append(_on(each, operand))
    return _filtered(operand, conditions, span)


def _filtered(operand: Pattern, conditions: list[On], span: Span | None) -> Pattern:
    return Filter(operand, tuple(conditions), span=span) if conditions else operand


def _on(node: Node, operand: Pattern) -> On:
    if node.data == "on":
        return On(name_of(node.children[0]), condition_of(node.children[1]), span=span_of(node))
    condition = condition_of(node.children[0])
    mentioned = references(condition)
    if not mentioned:
        raise PatternError(
            f"`{condition}` mentions no variable", span=span_of(node), hint="write `x[price > 3]` or `x.price > 3`"
        )
    variable = filtered_variable(operand, condition) or mentioned[0].variable

    def own(each: Expression) -> Expression:
        dotted = isinstance(each, Reference) and each.variable == variable
        return Attribute(cast(Reference, each).name, span=each.span) if dotted else each

    return On(variable, transform(condition, own), span=span_of(node))


def _named(node: Node) -> Pattern:
    return Named(_pattern(node.children[0]), name_of(node.children[1]))


def _window(node: Node) -> Pattern:
    size: Size = size_of(node.children[1])
    return Window(_pattern(node.children[0]), size)


_BUILDERS: dict[str, Callable[[Node], Pattern]] = {
    "filter": _filter,
    "union": lambda node: Union(_parts(node)),
    "intersection": lambda node: Intersection(_parts(node)),
    "sequence": _sequence,
    "negated": lambda node: _raise(_negation_at("start", node)),
    "concat": lambda node: Concat(_parts(node)),
    "counted": _counted,
    "bounded": _bounded,
    "named": _named,
    "group": lambda node: _pattern(node.children[0]),
    "window": _window,
    "applied": _applied,
    "applied_to_many": _applied_to_many,
    "project": _project,
    "empty": lambda node: Empty(),
    "nothing": lambda node: Nothing(),
    "event": _event,
}


def _raise(error: CeriteError) -> Pattern:
    raise error
