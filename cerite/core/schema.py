"""What events carry: event types and the kinds of their attributes.

A schema comes from `CREATE STREAM` declarations (each event type has its own attributes) or from a table's columns
(every event has all of them). Both answer the same question: of which kind is attribute `a` of an event of type `t`?
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, cast, get_args

from cerite.core.errors import SchemaError, listed, suggestion
from cerite.core.names import quoted

Kind = Literal["int", "float", "bool", "string", "timestamp"]
KINDS: tuple[str, ...] = get_args(Kind)
_ALIASES = {
    "integer": "int", "long": "int", "bigint": "int", "short": "int", "double": "float", "real": "float",
    "number": "float", "boolean": "bool", "str": "string", "text": "string", "datetime": "timestamp",
    "date": "timestamp",
}  # fmt: skip


def kind_named(name: str) -> Kind:
    """The kind a written type name stands for, e.g. `double` for float.

    >>> kind_named("Double")
    'float'
    """
    lowered = name.lower()
    kind = _ALIASES.get(lowered, lowered)
    if kind not in KINDS:
        raise SchemaError(
            f"unknown attribute type `{name}`",
            hint=suggestion(name, [*KINDS, *_ALIASES]) or f"the types are {listed(KINDS)}",
        )
    return cast(Kind, kind)


@dataclass(frozen=True)
class Schema:
    """Event types with their attributes; `columns` are attributes that events of every type have.

    >>> schema = Schema({"BUY": {"id": "int", "price": "float"}})
    >>> schema.kinds("BUY", "price")
    ('float',)
    >>> print(schema)
    CREATE STREAM S { EVENT BUY { id:int, price:float } }
    """

    events: Mapping[str, Mapping[str, Kind]] = field(default_factory=dict)
    columns: Mapping[str, Kind] | None = None
    stream: str = "S"
    declared: tuple[Schema, ...] = ()  # the streams this unites, if several
    unusable: Mapping[str, str] = field(default_factory=dict)  # a table's columns of other types, and which
    absent: frozenset[str] = frozenset()  # attributes that no event happens to have: NULL, of any kind

    @staticmethod
    def of_columns(columns: Mapping[str, str]) -> Schema:
        """The schema of a table: its columns, whatever the event types are called.

        >>> Schema.of_columns({"name": "string", "price": "double"}).attributes(None)
        {'name': 'string', 'price': 'float'}
        """
        return Schema(columns={name: kind_named(kind) for name, kind in columns.items()})

    @staticmethod
    def of_arrow(schema: object, absent: frozenset[str] = frozenset()) -> Schema:
        """The schema of an Arrow table or `pyarrow.Schema`; columns of other types cannot be used in queries."""
        import pyarrow as pa

        arrow = schema if isinstance(schema, pa.Schema) else cast(pa.Table, schema).schema
        kinds = {column.name: arrow_kind(column.type) for column in arrow}
        return Schema(
            columns={name: kind for name, kind in kinds.items() if kind is not None},
            unusable={column.name: str(column.type) for column in arrow if kinds[column.name] is None},
            absent=absent,
        )

    @property
    def column_kinds(self) -> dict[str, Kind]:
        """The kind of every column of data that holds events of all types; refused if two types need two columns.

        >>> Schema({"A": {"v": "int"}, "B": {"v": "float", "z": "string"}}).column_kinds
        {'v': 'float', 'z': 'string'}
        """
        if self.columns is not None:
            return dict(self.columns)
        kinds: dict[str, Kind] = {}
        holders: dict[str, str] = {}
        for event, attributes in self.events.items():
            for name, kind in attributes.items():
                old = kinds.setdefault(name, kind)
                if {old, kind} == {"int", "float"}:
                    kinds[name] = "float"
                elif old != kind:
                    raise SchemaError(
                        f"attribute `{name}` is {old} in `{holders[name]}`, but {kind} in `{event}`: "
                        "one column cannot be both",
                        hint="declare one type for it, or give one of them another name",
                    )
                holders.setdefault(name, event)
        return kinds

    def attributes(self, event_type: str | None) -> Mapping[str, Kind]:
        """The attributes of one event type, or of any type together for None."""
        if self.columns is not None:
            return self.columns
        if event_type is not None:
            return self.events.get(event_type, {})
        merged: dict[str, Kind] = {}
        for attributes in self.events.values():
            merged.update(attributes)
        return merged

    def kinds(self, event_type: str | None, attribute: str) -> tuple[Kind, ...]:
        """The kinds the attribute may have on such an event; empty if it has none there."""
        if self.columns is not None or event_type is not None:
            kind = self.attributes(event_type).get(attribute)
            return () if kind is None else (kind,)
        several = {attributes[attribute] for attributes in self.events.values() if attribute in attributes}
        return tuple(sorted(several))

    def knows(self, event_type: str) -> bool:
        """Whether events of this type can occur (a table may hold any)."""
        return self.columns is not None or event_type in self.events

    def __str__(self) -> str:
        if self.columns is not None:
            return f"columns {_attributes(self.columns)}"
        events = (f"EVENT {quoted(name)} {_attributes(kinds)}" for name, kinds in self.events.items())
        own = f"CREATE STREAM {quoted(self.stream)} {{ {', '.join(events)} }}"
        return "\n".join(map(str, self.declared)) or own

    @property
    def streams(self) -> tuple[Schema, ...]:
        """The streams it describes, each by itself."""
        return self.declared or (self,)


def merge(known: Schema | None, more: Schema) -> Schema:
    """One schema for several streams; an event type that two of them declare must be the same in both."""
    if known is None:
        return more
    for each in known.streams:
        if each.stream == more.stream:
            raise SchemaError(f"stream `{more.stream}` is declared twice")
        for event in each.events.keys() & more.events.keys():
            if each.events[event] != more.events[event]:
                raise SchemaError(
                    f"event type `{event}` has other attributes in stream `{each.stream}`",
                    hint="declare the same attributes in both, or give it another name",
                )
    return Schema({**known.events, **more.events}, declared=(*known.streams, more))


def _attributes(kinds: Mapping[str, Kind]) -> str:
    shown = ", ".join(f"{quoted(name)}:{kind}" for name, kind in kinds.items())
    return f"{{ {shown} }}" if shown else "{}"


def arrow_kind(arrow: object) -> Kind | None:
    """The kind of an Arrow type's values, None if queries cannot use them."""
    import pyarrow.types as is_

    value_type = arrow.value_type if is_.is_dictionary(arrow) else arrow  # type: ignore[attr-defined]
    if is_.is_integer(value_type):
        return "int"
    if is_.is_floating(value_type) or is_.is_decimal(value_type):
        return "float"
    if is_.is_boolean(value_type):
        return "bool"
    if is_.is_string(value_type) or is_.is_large_string(value_type) or is_.is_string_view(value_type):
        return "string"
    return "timestamp" if is_.is_timestamp(value_type) or is_.is_date(value_type) else None
