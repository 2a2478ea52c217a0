"""From what people pass to what Cerite runs: `make_query` for queries in any form, `declared` for schemas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cerite.core.errors import SchemaError
from cerite.core.schema import Schema, kind_named
from cerite.language.builder import Builder, Width, width
from cerite.language.ceql import parse_query, parse_schema
from cerite.pattern.check import check
from cerite.pattern.nodes import Pattern, Strategy
from cerite.pattern.query import Consume, Item, QuerySpec


def make_query(
    source: str | QuerySpec | Builder | Pattern,
    *,
    select: Sequence[str] | None = None,
    strategy: str | None = None,
    partition_by: Sequence[str] = (),
    within: Width | None = None,
    consume: str = "NONE",
    limit: int | None = None,
    schema: Schema | None = None,
) -> QuerySpec:
    """A query that has passed every check; the keyword clauses go with a pattern, text brings its own.

    >>> from cerite import attr, event
    >>> print(make_query(event("A").as_("x") >> event("B"), select=["x"], within="5 events"))
    SELECT x
    FROM S
    WHERE A AS x ; B
    WITHIN 5 EVENTS
    """
    if isinstance(source, (str, QuerySpec)):
        if (select, strategy, tuple(partition_by), within, consume, limit) != (None, None, (), None, "NONE", None):
            raise TypeError("the text of a query has its own clauses; keywords go with a pattern")
        made = parse_query(source) if isinstance(source, str) else source
    elif not isinstance(source, (Builder, Pattern)):
        raise TypeError(f"not a query or pattern: {source!r}")
    else:
        made = QuerySpec(
            source.pattern if isinstance(source, Builder) else source,
            items=None if select is None else tuple(map(Item, select)),
            strategy=None if strategy is None else Strategy.named(strategy),
            partition=tuple(partition_by), within=None if within is None else width(within),
            consume=Consume(consume.upper()), limit=limit,
        )  # fmt: skip
    check(made, schema)
    return made


def declared(given: object) -> Schema:
    """A schema from what people have: one, `CREATE STREAM` text, an Arrow schema, or names with their types.

    >>> declared({"price": "double"}) == Schema.of_columns({"price": "float"})
    True
    >>> print(declared({"BUY": {"id": "int"}}))
    CREATE STREAM S { EVENT BUY { id:int } }
    """
    if isinstance(given, Schema):
        return given
    if isinstance(given, str):
        return parse_schema(given)
    if not isinstance(given, Mapping):
        return Schema.of_arrow(given)
    if not given:
        raise SchemaError("the schema declares nothing", hint="write {'price': 'float'}")
    if all(isinstance(kind, str) for kind in given.values()):
        return Schema.of_columns(given)
    if not all(isinstance(kinds, Mapping) for kinds in given.values()):
        raise SchemaError("the schema mixes event types and columns", hint="write {'BUY': {'price': 'float'}}")
    return Schema({event: {key: kind_named(kind) for key, kind in each.items()} for event, each in given.items()})
