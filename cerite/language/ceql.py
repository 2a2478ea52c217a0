"""From CEQL text to queries: `parse_query`, `parse_pattern`, `parse_condition`, `parse_schema`.

Parsing reports only what is wrong with the text itself; whether the pattern is meaningful is checked afterwards
(`cerite.pattern.check`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar, cast

from cerite.core.errors import CeriteError, QuerySyntaxError, SchemaError, Span
from cerite.core.schema import Kind, Schema, kind_named, merge
from cerite.language.ceql_patterns import pattern_of, strategy_of
from cerite.language.conditions import condition_of, name_of, signed_of, size_of
from cerite.language.parsing import Node, parse, span_of, subtree
from cerite.pattern.measures import default_name
from cerite.pattern.nodes import Pattern, Size, Strategy
from cerite.pattern.query import Consume, Item, Measure, QuerySpec, Suppress
from cerite.predicate.expression import Attribute, Expression

T = TypeVar("T")
_STARTS = ("query", "pattern_only", "condition_only", "schema_only", "size_only", "silence_only")


def parse_query(text: str) -> QuerySpec:
    """A whole query, with the declarations that may stand before it.

    >>> print(parse_query("select b from Stock where (BUY or SELL) as s ; (BUY or SELL) as b within 1 minute"))
    SELECT b
    FROM Stock
    WHERE (BUY OR SELL) AS s ; (BUY OR SELL) AS b
    WITHIN 1 minute
    """
    query = _parsed(text, "query", _query)
    return replace(query, source=text)


def parse_pattern(text: str) -> Pattern:
    """A pattern as it stands in WHERE.

    >>> parse_pattern("BUY AS b")
    Named(operand=Event(type='BUY', condition=None, output=True, register=None), variable='b')
    """
    return _parsed(text, "pattern_only", lambda tree: pattern_of(tree.children[0]))


def parse_condition(text: str) -> Expression:
    """A condition as it stands in a filter's brackets."""
    return _parsed(text, "condition_only", lambda tree: condition_of(tree.children[0]))


def parse_window(text: str) -> Size:
    """A window as it stands after WITHIN.

    >>> parse_window("1.5 min")
    Size(amount=1.5, unit='minutes', attribute=None)
    """
    return _parsed(text, "size_only", lambda tree: size_of(tree.children[0]))


def parse_suppress(text: str) -> Suppress:
    """What stands after SUPPRESS.

    >>> str(parse_suppress("10 min per partition"))
    '10 minutes PER PARTITION'
    """
    return _parsed(text, "silence_only", lambda tree: _silence(subtree(tree.children[0])))


def parse_schema(text: str) -> Schema:
    """The schema of one or more `CREATE STREAM S { EVENT BUY { id:int, … }, … }`.

    >>> print(parse_schema("create stream S { event A { id:int } } create stream T { event B {} }"))
    CREATE STREAM S { EVENT A { id:int } }
    CREATE STREAM T { EVENT B {} }
    """
    return _parsed(text, "schema_only", lambda tree: cast(Schema, _declared(tree.children)))


def _parsed(text: str, start: str, build: Callable[[Node], T]) -> T:
    tree = parse(text, "ceql", _STARTS, start)
    try:
        return build(tree)
    except CeriteError as error:
        raise error.at(text) from None


# ---------------------------------------------------------------- clauses
def _query(tree: Node) -> QuerySpec:
    clauses: dict[str, Node] = {}
    declarations: list[Node] = []
    for child in tree.children:
        node = subtree(child)
        if node.data == "declaration":
            declarations.append(node)
        elif str(node.data) in clauses:
            raise QuerySyntaxError(f"there are two {str(node.data).upper()} clauses", span=span_of(node))
        else:
            clauses[str(node.data)] = node
    selected = _select(clauses["select"])
    optional = {name: node for name, node in clauses.items() if name in _OPTIONAL}
    return QuerySpec(
        where=pattern_of(clauses["where"].children[0]),
        items=selected.items,
        strategy=selected.strategy,
        measures=selected.measures,
        streams=tuple(name_of(each) for each in clauses["from_clause"].children),
        schema=_declared(declarations),
        clauses={name: cast(Span, span_of(node)) for name, node in clauses.items()},
        **{name: _OPTIONAL[name](node) for name, node in optional.items()},
    )


class _Selected(NamedTuple):
    strategy: Strategy | None
    items: tuple[Item, ...] | None
    measures: tuple[Measure, ...]


def _select(node: Node) -> _Selected:
    strategy, everything = None, False
    items: list[Item] = []
    measures: list[Measure] = []
    for child in map(subtree, node.children):
        if child.data == "strategy":
            strategy = strategy_of(child)
        elif child.data == "everything":
            everything = True
        else:
            selected = _item(child) if child.data == "item" else _value(child)
            if isinstance(selected, Item):
                items.append(selected)
            else:
                measures.append(selected)
    if everything and items:
        raise QuerySyntaxError(
            "`*` shows every variable already", span=items[0].span, hint="leave out `*`, or what follows it"
        )
    return _Selected(strategy, None if everything else tuple(items), tuple(measures))


def _item(node: Node) -> Item:
    names = [name_of(each) for each in node.children]
    return Item(names[0], tuple(names[1:]) or None, span=span_of(node))


def _value(node: Node) -> Item | Measure:
    """A variable alone, or a measure, which is named by AS or after what it measures."""
    expression = condition_of(node.children[0])
    named = name_of(node.children[1]) if len(node.children) > 1 else None
    if isinstance(expression, Attribute):
        if named is not None:
            raise QuerySyntaxError(
                f"AS names a value, and `{expression.name}` is a variable", span=span_of(node),
                hint=f"write `{expression.name}`, or a value of its events: `{expression.name}.price AS {named}`",
            )  # fmt: skip
        return Item(expression.name, span=span_of(node))
    return Measure(named or default_name(expression), expression, span=span_of(node))


def _partition(node: Node) -> tuple[str, ...]:
    return tuple(name_of(each) for bracket in node.children for each in subtree(bracket).children)


def _consume(node: Node) -> Consume:
    return Consume(str(subtree(node.children[0]).data).removesuffix("_target").upper())


def _limit(node: Node) -> int:
    value = signed_of(node.children[0])
    if not isinstance(value, int) or value < 1:
        raise QuerySyntaxError(f"LIMIT takes a positive whole number, not {value}", span=span_of(node))
    return value


def _silence(node: Node) -> Suppress:
    size, *per_partition = node.children
    return Suppress(size_of(size, of_time=True), bool(per_partition))


_OPTIONAL: dict[str, Callable[[Node], Any]] = {
    "partition": _partition,
    "within": lambda node: size_of(node.children[0]),
    "consume": _consume,
    "limit": _limit,
    "suppress": lambda node: _silence(subtree(node.children[0])),
}


def _declared(nodes: Iterable[object]) -> Schema | None:
    known: Schema | None = None
    for node in map(subtree, nodes):
        more = _declaration(node)
        try:
            known = merge(known, more)
        except SchemaError as error:
            raise SchemaError(error.message, span=span_of(node), hint=error.hint) from None
    return known


def _declaration(node: Node) -> Schema:
    stream, *events = node.children
    declared: dict[str, dict[str, Kind]] = {}
    for event in map(subtree, events):
        name, *attributes = event.children
        if name_of(name) in declared:
            raise SchemaError(f"event type `{name_of(name)}` is declared twice", span=span_of(subtree(name)))
        kinds = declared.setdefault(name_of(name), {})
        for attribute in map(subtree, attributes):
            key, kind = map(subtree, attribute.children)
            if name_of(key) in kinds:
                raise SchemaError(f"attribute `{name_of(key)}` is declared twice", span=span_of(key))
            try:
                kinds[name_of(key)] = kind_named(name_of(kind))
            except SchemaError as error:
                raise SchemaError(error.message, span=span_of(kind), hint=error.hint) from None
    return Schema(declared, stream=name_of(stream))
