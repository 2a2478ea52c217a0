"""What a result shows of its matches, and what its columns are called, in process and on Spark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cerite.engine.plan import Plan
from cerite.engine.results.shape import Shown
from cerite.pattern.measures import measured
from cerite.pattern.query import Measure, QuerySpec

Attributes = dict[str, "tuple[str, ...] | None"]  # which attributes of a variable's events are shown; None is all
RESERVED = ("start", "end", "positions", "match", "start_time", "end_time", "events")  # columns that results have


@dataclass(frozen=True)
class Selection:
    """What SELECT asks for about every match.

    `variables` are those whose events are shown, None for all; `attributes` is what is shown of them, None if SELECT
    names none; `measures` are computed in addition to what every result has, and `values` are all that SELECT lists: a
    single match has no other place for its partition and its times. A `flat` result is a table of such values. `source`
    is the text of the query, if it has one.
    """

    variables: tuple[str, ...] | None = None
    attributes: Attributes | None = None
    measures: tuple[Measure, ...] = ()
    values: tuple[Measure, ...] = ()
    source: str | None = None

    @staticmethod
    def of(query: QuerySpec) -> Selection:
        """What a query selects."""
        if query.items is None:
            return Selection(measures=measured(query), values=query.measures, source=query.source)
        named = any(item.attributes is not None for item in query.items)
        attributes = {item.variable: item.attributes for item in query.items} if named else None
        variables = tuple(item.variable for item in query.items)
        return Selection(variables, attributes, measured(query), query.measures, query.source)

    @property
    def flat(self) -> bool:
        """Whether a result is a table of values."""
        return bool(self.values)

    def columns(self, plan: Plan, everything: Sequence[str]) -> tuple[Shown, ...]:
        """The result's columns of events; they have the attributes in `everything` unless SELECT names some."""
        attributes = self.attributes or {}
        if plan.semantics != "valuations":
            if self.flat and not self.variables:
                return ()
            names = [each for each in attributes.values() if each is not None]
            whole = not attributes or len(names) < len(attributes)
            return (Shown("events", None, tuple(everything) if whole else tuple(dict.fromkeys(sum(names, ())))),)
        shown = [name for name in plan.variables if self.variables is None or name in self.variables]
        return tuple(
            Shown(column, name, tuple(everything if attributes.get(name) is None else attributes[name] or ()))
            for column, name in zip(variable_columns(shown, plan.partition), shown, strict=True)
        )


EVERYTHING = Selection()


def variable_columns(variables: Iterable[str], partition: Iterable[str] = ()) -> tuple[str, ...]:
    """The column that holds each variable, in every form of a result, local and Spark's.

    It has the variable's name, followed by `_` if results have a column of that name, in upper or lower case, or if the
    query is partitioned by one.

    >>> variable_columns(("End", "start", "start_", "x"))
    ('End_', 'start__', 'start_', 'x')
    """
    names = tuple(variables)
    taken = {name.casefold() for name in (*RESERVED, *partition)}
    others = taken.union(name.casefold() for name in names)
    columns: list[str] = []
    for name in names:
        column = name
        while column.casefold() in (taken if column == name else others):
            column += "_"
        others.add(column.casefold())
        columns.append(column)
    return tuple(columns)
