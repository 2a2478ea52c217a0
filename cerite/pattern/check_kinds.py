"""A query against a schema: event types and attributes exist, conditions and windows have the right kinds."""

from __future__ import annotations

from collections.abc import Iterator

from cerite.core.errors import SchemaError, Span, listed, suggestion
from cerite.core.schema import Schema
from cerite.pattern import nodes
from cerite.pattern.nodes import ANY_TYPE
from cerite.pattern.query import QuerySpec
from cerite.predicate import expression as ex
from cerite.predicate.expression import attributes
from cerite.predicate.expression import walk as walk_expression
from cerite.predicate.kinds import ANY, KindOf, Kinds, check_condition, kinds_of

Types = frozenset["str | None"]  # event types a variable may be bound to; None is any


def check_kinds(query: QuerySpec, schema: Schema | None) -> None:
    """Refuse conditions whose parts clash, and names that the schema does not know (without one, names pass)."""
    for event in nodes.walk(query.where):
        if isinstance(event, nodes.Event) and schema and event.type is not None and not schema.knows(event.type):
            raise SchemaError(
                f"unknown event type `{event.type}`", span=event.span,
                hint=suggestion(event.type, schema.events) or f"the stream has {listed(schema.events)}",
            )  # fmt: skip
    types = event_types(query.where)
    for own, condition in _conditions(query.where, types):
        check_condition(condition, _lookup(own, types, schema))
    for measure in query.measures:
        kinds_of(measure.expression, _lookup(frozenset((None,)), types, schema))
    if schema is None:
        return
    everything = frozenset(event.type for event in nodes.walk(query.where) if isinstance(event, nodes.Event))
    for item in query.items or ():
        for attribute in item.attributes or ():
            _known(attribute, types[item.variable], schema, item.span)
    for attribute in query.partition:
        _known(attribute, everything, schema, query.clauses.get("partition"))
    for size in _sizes(query):
        if size.attribute is None:
            continue
        kinds = _known(size.attribute, everything, schema, size.span)
        if not kinds <= {"int", "float"}:
            hint = "a window over the event time is `WITHIN 30 seconds`" if "timestamp" in kinds else None
            raise SchemaError(f"a window over `{size.attribute}` needs a number", span=size.span, hint=hint)


def event_types(pattern: nodes.Pattern) -> dict[str, Types]:
    """For every variable anywhere in the pattern, the event types it may be bound to."""
    types: dict[str, Types] = {}
    for node in nodes.walk(pattern):
        if isinstance(node, nodes.Event):
            for name in node.writes | {ANY_TYPE if node.type is None else node.type}:
                types[name] = types.get(name, frozenset()) | {node.type}
        elif isinstance(node, nodes.Named):
            inside = frozenset(
                event.type for event in nodes.walk(node.operand) if isinstance(event, nodes.Event) and event.output
            )
            types[node.variable] = types.get(node.variable, frozenset()) | inside
    return types


def _conditions(pattern: nodes.Pattern, types: dict[str, Types]) -> Iterator[tuple[Types, ex.Expression]]:
    for node in nodes.walk(pattern):
        if isinstance(node, nodes.Event) and node.condition is not None:
            yield frozenset((node.type,)), node.condition
        elif isinstance(node, nodes.Filter):
            yield from ((types[on.variable], on.condition) for on in node.conditions)
        elif isinstance(node, nodes.Having):
            yield from ((frozenset((None,)), condition) for condition in node.conditions)


def read_attributes(query: QuerySpec) -> frozenset[str]:
    """The attributes that conditions, windows and measures read, from whichever event."""
    named = frozenset().union(*map(attributes, _expressions(query)))
    return named | {size.attribute for size in _sizes(query) if size.attribute is not None}


def shown_attributes(query: QuerySpec) -> frozenset[str]:
    """The attributes that a result is made of: those that measures read, and those that SELECT shows."""
    shown = (item.attributes or () for item in query.items or ())
    return frozenset().union(*(attributes(each.expression) for each in query.measures), *shown)


def optional_attributes(query: QuerySpec) -> frozenset[str]:
    """The attributes that an event may lack: those of conditions and results, but not of windows and partitions."""
    return shown_attributes(query).union(*map(attributes, nodes.conditions_of(query.where)))


def _expressions(query: QuerySpec) -> Iterator[ex.Expression]:
    """Conditions and measures."""
    yield from nodes.conditions_of(query.where)
    yield from (measure.expression for measure in query.measures)


def ordered_attributes(query: QuerySpec, *, constants: bool = False) -> dict[str, Span | None]:
    """The attributes that are compared by order with values of other attributes, and where: `y[v > x.v]`.

    Compared with a quoted text (`name > 'M'`), an attribute is meant as text; compared with a number, it cannot be.
    With `constants`, these are included.
    """
    attributes: dict[str, Span | None] = {}
    for condition in _expressions(query):
        for node in walk_expression(condition):
            if isinstance(node, ex.Aggregate) and node.function in ("MIN", "MAX") and node.name is not None:
                attributes.setdefault(node.name, node.span)
            if isinstance(node, ex.Comparison) and node.op not in ("=", "!="):
                sides: tuple[ex.Expression, ...] = (node.left, node.right)
            elif isinstance(node, ex.InRange):
                sides = (node.operand, node.low, node.high)
            else:
                continue
            if constants or not any(isinstance(side, ex.Literal) for side in sides):
                names = (each.name for each in sides if isinstance(each, (ex.Attribute, ex.Reference)))
                attributes |= {name: node.span for name in names if name not in attributes}
    return attributes


def _lookup(own: Types, types: dict[str, Types], schema: Schema | None) -> KindOf:
    def kind_of(node: ex.Attribute | ex.Reference) -> Kinds:
        if schema is None:
            return ANY
        if isinstance(node, ex.Reference):
            nested = f"{node.variable}.{node.name}"
            if nested in (schema.columns or ()):
                raise SchemaError(
                    f"`{nested}` may be `{node.name}` of the variable `{node.variable}`, or a nested attribute",
                    span=node.span,
                    hint=f"give the variable another name; the nested attribute is written `` `{nested}` ``",
                )  # fmt: skip
            return _known(node.name, types.get(node.variable, frozenset((None,))), schema, node.span)
        mistaken = f"`{node.name}.…` reads the variable" if node.name in types else f"a text has quotes: '{node.name}'"
        return _known(node.name, own, schema, node.span, mistaken)

    return kind_of


def _known(attribute: str, holders: Types, schema: Schema, span: Span | None, mistaken: str | None = None) -> Kinds:
    """The kinds the attribute may have on events of these types; refused if none of them has it."""
    if attribute in schema.absent:
        return ANY
    holders = holders or frozenset((None,))  # a pattern without events: whatever the stream has
    kinds = frozenset(kind for holder in holders for kind in schema.kinds(holder, attribute))
    if kinds:
        return kinds
    if attribute in schema.unusable:
        raise SchemaError(
            f"queries cannot use the column `{attribute}`, which holds {schema.unusable[attribute]}", span=span,
            hint="use numbers, booleans, text or timestamps",
        )  # fmt: skip
    known = {name for holder in holders for name in schema.attributes(holder)}
    named = sorted(holder for holder in holders if holder is not None)
    owner = listed(named) if named and schema.columns is None else "the stream"
    there = f"there {'are' if len(known) > 1 else 'is'} {listed(known)}" if known else None
    raise SchemaError(
        f"{owner} {'have' if owner.count('`') > 2 else 'has'} no attribute `{attribute}`", span=span,
        hint=suggestion(attribute, known) or "; ".join(filter(None, (there, mistaken))) or None,
    )  # fmt: skip


def _sizes(query: QuerySpec) -> Iterator[nodes.Size]:
    if query.within is not None:
        yield query.within
    yield from (node.size for node in nodes.walk(query.where) if isinstance(node, nodes.Window))
