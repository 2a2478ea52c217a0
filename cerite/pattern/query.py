"""A whole query: SELECT … FROM … WHERE … and the clauses after it (CORE, section 2.2, with our additions)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from cerite.core.errors import Span
from cerite.core.names import quoted
from cerite.core.schema import Schema
from cerite.pattern.nodes import Pattern, Size, Strategy
from cerite.predicate.expression import Aggregate, Expression, variables, walk


class Consume(Enum):
    """What a completed match forgets: nothing, its partition's partial matches, or all of them."""

    NONE = "NONE"
    PARTITION = "PARTITION"
    ANY = "ANY"


@dataclass(frozen=True, slots=True)
class Suppress:
    """How long nothing is reported after a reported match, in the whole stream or in the match's partition."""

    size: Size
    per_partition: bool = False

    def __str__(self) -> str:
        return f"{self.size}{' PER PARTITION' if self.per_partition else ''}"


@dataclass(frozen=True, slots=True)
class Item:
    """One entry of SELECT: a variable, and the attributes of its events to show (None: all)."""

    variable: str
    attributes: tuple[str, ...] | None = None
    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)

    def __str__(self) -> str:
        shown = "" if self.attributes is None else f"[{', '.join(map(quoted, self.attributes))}]"
        return quoted(self.variable) + shown


@dataclass(frozen=True, slots=True)
class Measure:
    """A value that SELECT computes for every match: `AVG(y.price) AS mean`."""

    name: str
    expression: Expression
    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)

    def __str__(self) -> str:
        return f"{self.expression} AS {quoted(self.name)}"


@dataclass(frozen=True, slots=True)
class QuerySpec:
    """The parsed query. `items` None is `SELECT *`; `schema` is what `CREATE STREAM` declared before it."""

    where: Pattern
    items: tuple[Item, ...] | None = None
    strategy: Strategy | None = None
    streams: tuple[str, ...] = ("S",)
    partition: tuple[str, ...] = ()
    within: Size | None = None
    consume: Consume = Consume.NONE
    limit: int | None = None
    suppress: Suppress | None = None
    measures: tuple[Measure, ...] = field(default=(), kw_only=True)
    schema: Schema | None = field(default=None, kw_only=True)
    source: str | None = field(default=None, compare=False, repr=False, kw_only=True)
    clauses: dict[str, Span] = field(default_factory=dict, compare=False, repr=False, kw_only=True)

    @property
    def variables(self) -> tuple[str, ...] | None:
        """The variables that SELECT mentions in any form, None for all."""
        nodes = [node for measure in self.measures for node in walk(measure.expression)]
        if self.items is None or any(isinstance(node, Aggregate) and node.variable is None for node in nodes):
            return None
        measured = sorted(name for measure in self.measures for name in variables(measure.expression))
        return tuple(dict.fromkeys((*(item.variable for item in self.items), *measured)))

    def __str__(self) -> str:
        from cerite.pattern.printing import query_text

        return query_text(self)
