"""From what a caller passes to a source the engine can read: streams merged, rows held, order made, names checked.

Everything that is wrong with the data's columns is told here, before anything runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cerite.data import Source, open_events
from cerite.data.columns import conform, first_line
from cerite.data.once import ReaderSource
from cerite.data.rows import RowSource
from cerite.data.unify import unified
from cerite.engine.intake import Columns, Intake
from cerite.engine.plan import Plan
from cerite.errors import CeriteError, Hint, Setting, StreamError, listed
from cerite.pattern.atoms import Event
from cerite.pattern.base import walk
from cerite.pattern.check import check
from cerite.pattern.query import Query
from cerite.schema import Schema

Longs = npt.NDArray[np.int64]
READ_ONCE = (ReaderSource, RowSource)


@dataclass(frozen=True)
class Prepared:
    """A source in stream order with the columns that the query needs.

    `order` has the row of the input for every row of the source, where it was sorted; `files` is what it was read from.
    """

    source: Source
    columns: Columns
    order: Longs | None
    files: tuple[Path, ...]


def prepare(query: Query, plan: Plan, data: Any, columns: Columns, order_by: Sequence[str]) -> Prepared:
    """The data as the engine reads it: in stream order, names checked."""
    checked, several = True, isinstance(data, Mapping)
    files: tuple[Path, ...] = ()
    if isinstance(data, Mapping):
        data, files = merged(query, data, columns.time, order_by)
    elif isinstance(data, (list, tuple)) and not any(isinstance(each, (str, Path)) for each in data):
        data, checked = held(data, plan, columns), False  # dictionaries may simply lack an attribute
    source = open_events(data)
    files, order = files or source.files, None
    if order_by:
        keys = [name for name in (columns.time, *order_by, columns.position) if name is not None]
        order, data = ordered(source, keys)
        source = open_events(data)
    columns = fitted(query, plan, columns, source.schema, checked=checked and not isinstance(source, RowSource))
    read = Intake(plan, source.schema, columns).read
    if read and not isinstance(source, READ_ONCE):
        source = open_events(data, columns=read)
    numbered = columns.position is not None or several  # rows of several streams are numbered in their common order
    return Prepared(source, columns, None if numbered else order, files)


def fitted(query: Query, plan: Plan, columns: Columns, schema: pa.Schema, *, checked: bool = True) -> Columns:
    """The columns with the event type's found, after checking the query against the data's columns."""
    kind = columns.type if columns.type is not None or "type" not in schema.names else "type"
    types = {node.type for node in walk(query.where) if isinstance(node, Event) and node.type is not None}
    if kind is None and len(types) > 1:
        raise StreamError(
            f"the query tells {listed(types)} apart, but no column holds the event type",
            hint=Hint("name it: ", Setting("type")),
        )
    found = Columns(kind, columns.time, columns.position)
    try:
        if checked:
            check(query, Schema.of_arrow(schema))
        Intake(plan, schema, found)
    except CeriteError as error:
        raise error.at(query.source) from None
    return found


def merged(
    query: Query, streams: Mapping[str, Any], time: str | None, order_by: Sequence[str]
) -> tuple[pa.Table, tuple[Path, ...]]:
    """The streams that FROM names, as one in time order, ties in the order of FROM; and the files they are in."""
    missing = [name for name in query.streams if name not in streams]
    if missing:
        raise StreamError(f"FROM names {listed(missing)}, but the data has only {listed(streams)}")
    opened = {name: open_events(streams[name]) for name in query.streams}
    files = tuple(file for source in opened.values() for file in source.files)
    if len(opened) == 1:
        return next(iter(opened.values())).table(), files
    if time is None and not order_by:
        raise StreamError(
            "several streams are merged by time, but no time column is named",
            hint=Hint("name it: ", Setting("time")),
        )
    schema = unified((f"stream `{name}`", source.schema, "none") for name, source in opened.items())
    batches = [
        conform(batch, schema, f"stream `{name}`") for name, source in opened.items() for batch in source.batches()
    ]
    together = open_events(pa.Table.from_batches(batches, schema).unify_dictionaries()).table()
    return together if time is None else ordered(open_events(together), [time])[1], files


def held(rows: Sequence[Mapping[str, Any]], plan: Plan, columns: Columns) -> pa.Table:
    """A list of dictionaries, held so that it can be read again; none at all is an empty stream."""
    if rows:
        return open_events(rows).table()
    window = plan.window
    named = (columns.time, columns.position, window.attribute if window else None, *plan.partition)
    kinds = {name: pa.int64() for name in named if name is not None} | {columns.type or "type": pa.string()}
    return pa.table({name: pa.array([], kind) for name, kind in kinds.items()})


def ordered(source: Source, keys: list[str]) -> tuple[Longs, pa.Table]:
    """The rows sorted by these columns, equal ones in their order, and which row of the source each of them is."""
    table = source.table()
    for name in keys:
        if name not in table.column_names:
            raise StreamError(
                f"the stream has no column `{name}` to sort by", hint=f"it has {listed(table.column_names)}"
            )
    plain = {name: table[name].cast(_decoded(table[name].type)) for name in keys}
    try:
        order = pc.sort_indices(pa.table(plain), [(name, "ascending") for name in keys])
    except pa.ArrowException as error:
        kinds = ", ".join(f"`{name}` ({column.type})" for name, column in plain.items())
        raise StreamError(f"the events cannot be sorted by {kinds}: {first_line(error)}") from error
    return order.to_numpy().astype(np.int64), table.take(order)


def _decoded(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
