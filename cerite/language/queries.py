"""From what people pass to what Cerite runs: `make_query` for queries in any form, `declared` for schemas."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, TypeVar, Union, cast

from cerite.core.errors import ArgumentError, SchemaError
from cerite.core.schema import Schema, kind_named
from cerite.language.builder import Builder, Width, duration, width
from cerite.language.ceql import parse_condition, parse_query, parse_schema, parse_suppress
from cerite.language.terms import Term, Variable, variable_of
from cerite.pattern.check import check
from cerite.pattern.nodes import Pattern, Strategy
from cerite.pattern.query import Consume, Item, Measure, QuerySpec, Suppress

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
Select = Sequence[str] | Mapping[str, Union[Term, Variable, str]]  # variables, or measures by name
SchemaLike = Union[Schema, str, Mapping[str, Union[str, Mapping[str, str]]], "pa.Schema"]  # what `declared` takes


def make_query(
    source: str | QuerySpec | Builder | Pattern,
    *,
    select: Select | None = None,
    strategy: str | None = None,
    partition_by: Sequence[str] = (),
    within: Width | None = None,
    consume: str = "NONE",
    limit: int | None = None,
    suppress: Width | Suppress | None = None,
    schema: Schema | None = None,
) -> QuerySpec:
    """A query that has passed every check; keyword clauses go with a pattern, while text has clauses of its own.

    >>> from cerite import attr, event
    >>> print(make_query(event("A").as_("x") >> event("B"), select=["x"], within="5 events"))
    SELECT x
    FROM S
    WHERE A AS x ; B
    WITHIN 5 EVENTS
    """
    if isinstance(source, (str, QuerySpec)):
        partition_by = (partition_by,) if isinstance(partition_by, str) else partition_by
        clauses = select, strategy, tuple(partition_by), within, consume, limit, suppress
        if clauses != (None, None, (), None, "NONE", None, None):
            raise ArgumentError(
                "the text of a query has its own clauses; keywords go with a pattern",
                hint="write them into the text: … PARTITION BY [name] WITHIN 30 seconds LIMIT 3",
            )
        query = parse_query(source) if isinstance(source, str) else source
    elif not isinstance(source, (Builder, Pattern)):
        raise ArgumentError(f"not a query or pattern: {source!r}", hint="pass CEQL text, or a pattern: event('A')")
    else:
        items, measures = _selected(select)
        query = QuerySpec(
            source.pattern if isinstance(source, Builder) else source, items=items, measures=measures,
            strategy=None if strategy is None else _word("strategy", strategy, Strategy.named, Strategy),
            partition=_names("partition_by", partition_by), within=None if within is None else width(within),
            consume=_word("consume", consume, lambda word: Consume(word.upper()), Consume), limit=_limit(limit),
            suppress=_suppress(suppress),
        )  # fmt: skip
    check(query, schema)
    return query


def _selected(select: Select | None) -> tuple[tuple[Item, ...] | None, tuple[Measure, ...]]:
    """The variables to show, and the measures: terms or text by name, next to variables under their own names."""
    if not isinstance(select, Mapping):
        return (None if select is None else tuple(map(Item, _names("select", select)))), ()
    items: list[Item] = []
    measures: list[Measure] = []
    for name, value in zip(_names("select", tuple(select)), select.values(), strict=True):
        if isinstance(value, Variable) and variable_of(value) == name:
            items.append(Item(name))
        elif isinstance(value, (Term, str)):
            measures.append(Measure(name, parse_condition(value) if isinstance(value, str) else value.expression))
        else:
            raise ArgumentError(
                f"`select` takes measures by their names, not {value!r} as {name!r}",
                hint="write select={'low': var.x.price, 'n': count(var.y)}; var.x is shown under its own name",
            )
    return tuple(items), tuple(measures)


def _names(clause: str, names: object) -> tuple[str, ...]:
    """One name or several."""
    several = (names,) if isinstance(names, str) else tuple(names) if isinstance(names, Iterable) else (None,)
    if not all(isinstance(name, str) and name for name in several):
        raise ArgumentError(f"`{clause}` takes names, not {names!r}", hint=f"write {clause}=['x', 'y']")
    if clause == "select" and several == ("*",):
        raise ArgumentError("`select` takes names, not '*'", hint="leave `select` out: every variable is shown then")
    return cast("tuple[str, ...]", several)


def _word(clause: str, word: object, read: Callable[[str], T], words: Iterable[Enum]) -> T:
    """What a word of a clause stands for."""
    try:
        return read(cast(str, word))
    except (AttributeError, ValueError):
        known = ", ".join(repr(each.value) for each in words)
        raise ArgumentError(f"`{clause}` is one of {known}, not {word!r}") from None


def _limit(limit: object) -> int | None:
    if limit is None or (isinstance(limit, int) and not isinstance(limit, bool) and limit > 0):
        return limit
    raise ArgumentError(f"`limit` is a positive whole number, not {limit!r}", hint="leave it out for all matches")


def _suppress(given: Width | Suppress | None) -> Suppress | None:
    """How long nothing is reported: text may say PER PARTITION."""
    if given is None or isinstance(given, Suppress):
        return given
    return parse_suppress(given) if isinstance(given, str) else Suppress(duration(given, "suppress"))


def declared(given: SchemaLike) -> Schema:
    """A schema from any form that people have: a schema, `CREATE STREAM` text, an Arrow schema, or names with types.

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
        try:
            return Schema.of_arrow(given)
        except (AttributeError, TypeError):
            hint = "pass {'price': 'float'}, CREATE STREAM text, or an Arrow schema"
            raise ArgumentError(f"a schema cannot be read from {given!r}", hint=hint) from None
    if not given:
        raise SchemaError("the schema declares nothing", hint="write {'price': 'float'}")
    columns = {name: kind for name, kind in given.items() if isinstance(kind, str)}
    events = {name: kinds for name, kinds in given.items() if isinstance(kinds, Mapping)}
    if len(columns) == len(given):
        return Schema.of_columns(columns)
    if len(events) < len(given):
        raise SchemaError("the schema mixes event types and columns", hint="write {'BUY': {'price': 'float'}}")
    return Schema({event: {key: kind_named(kind) for key, kind in each.items()} for event, each in events.items()})
