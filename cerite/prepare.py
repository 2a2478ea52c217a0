"""From what a caller passes to a source the engine can read: streams merged, rows held, order made, names checked.

Everything that is wrong with the data's columns is told here, before anything runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cerite.data import Source, open_events
from cerite.data.once import ReaderSource
from cerite.data.rows import RowSource
from cerite.engine.intake import Columns, Intake
from cerite.engine.plan import Plan
from cerite.errors import CeriteError, StreamError, listed
from cerite.pattern.atoms import Event
from cerite.pattern.base import walk
from cerite.pattern.check import check
from cerite.pattern.query import Query
from cerite.schema import Schema

READ_ONCE = (ReaderSource, RowSource)


def prepare(query: Query, plan: Plan, data: Any, columns: Columns, order_by: Sequence[str]) -> tuple[Source, Columns]:
    """A source with the columns the query needs, in stream order, and which of them hold what."""
    checked = True
    if isinstance(data, Mapping):
        data = merged(query, data, columns.time, order_by)
    elif isinstance(data, (list, tuple)) and not any(isinstance(each, (str, Path)) for each in data):
        data, checked = held(data, plan, columns), False  # dictionaries may simply lack an attribute
    source = open_events(data)
    if order_by:
        data = ordered(source, [name for name in (columns.time, *order_by, columns.position) if name is not None])
        source = open_events(data)
    columns = fitted(query, plan, columns, source.schema, checked=checked and not isinstance(source, RowSource))
    read = Intake(plan, source.schema, columns).read
    if read and not isinstance(source, READ_ONCE):
        source = open_events(data, columns=read)
    return source, columns


def fitted(query: Query, plan: Plan, columns: Columns, schema: pa.Schema, *, checked: bool = True) -> Columns:
    """The columns with the event type's found, after checking the query against the data's columns."""
    kind = columns.type if columns.type is not None or "type" not in schema.names else "type"
    types = {node.type for node in walk(query.where) if isinstance(node, Event) and node.type is not None}
    if kind is None and len(types) > 1:
        raise StreamError(
            f"the query tells {listed(types)} apart, but no column holds the event type", hint="name it: type=…"
        )
    found = Columns(kind, columns.time, columns.position)
    try:
        if checked:
            check(query, Schema.of_arrow(schema))
        Intake(plan, schema, found)
    except CeriteError as error:
        raise error.at(query.source) from None
    return found


def merged(query: Query, streams: Mapping[str, Any], time: str | None, order_by: Sequence[str]) -> pa.Table:
    """The streams that FROM names, as one in time order; ties keep the order of FROM."""
    missing = [name for name in query.streams if name not in streams]
    if missing:
        raise StreamError(f"FROM names {listed(missing)}, but the data has only {listed(streams)}")
    tables = [open_events(streams[name]).table() for name in query.streams]
    if len(tables) == 1:
        return tables[0]
    if time is None and not order_by:
        raise StreamError("several streams are merged by time, but no time column is named", hint="name it: time=…")
    together = open_events(pa.concat_tables(tables, promote_options="permissive")).table()
    return together if time is None else ordered(open_events(together), [time])


def held(rows: Sequence[Mapping[str, Any]], plan: Plan, columns: Columns) -> pa.Table:
    """A list of dictionaries, held so that it can be read again; none at all is an empty stream."""
    if rows:
        return open_events(rows).table()
    window = plan.window
    named = (columns.time, columns.position, window.attribute if window else None, *plan.partition)
    kinds = {name: pa.int64() for name in named if name is not None} | {columns.type or "type": pa.string()}
    return pa.table({name: pa.array([], kind) for name, kind in kinds.items()})


def ordered(source: Source, keys: list[str]) -> pa.Table:
    """The rows sorted by these columns; equal ones keep their order."""
    table = source.table()
    for name in keys:
        if name not in table.column_names:
            raise StreamError(
                f"the stream has no column `{name}` to sort by", hint=f"it has {listed(table.column_names)}"
            )
    plain = {name: table[name].cast(_decoded(table[name].type)) for name in keys}
    order = pc.sort_indices(pa.table(plain), [(name, "ascending") for name in keys])
    return table.take(order)


def _decoded(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
