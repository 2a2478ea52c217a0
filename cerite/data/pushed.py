"""What is pushed into a stream, as one batch of exactly the stream's schema.

Invariant: no value changes on the way. A column of another type is cast only if every value comes back from it as it
was; another kind of value, an unknown column or a missing one is refused before the stream sees anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from cerite.core.errors import Hint, SchemaError, Setting, StreamError, a, first_line, listed, suggestion
from cerite.core.schema import Schema, kind_named
from cerite.data.columns import STRINGS, canonical, conform
from cerite.data.frames import is_pandas, is_polars
from cerite.data.kinds import array_of, type_of
from cerite.data.open import open_events
from cerite.data.rows import refuse_other

Extra = Literal["refuse", "ignore"]

WHERE = "the pushed events"
_LEFT_OUT, _IGNORED = "to leave others out: ", Setting("extra", "ignore")
_HINT = "push an Arrow table or batch, a pandas or Polars frame, dictionaries, or one dictionary for one event"
_ARROW = {
    "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_(), "string": pa.string(),
    "timestamp": pa.timestamp("us"),
}  # fmt: skip


def batch_of(data: Any, schema: pa.Schema, *, extra: Extra = "refuse") -> pa.RecordBatch:
    """The pushed events as one batch of a stream's (canonical) schema; `extra` says what becomes of other columns.

    >>> schema = pa.schema({"v": pa.int64()})
    >>> batch_of([{"v": 1}, {}], schema).to_pydict(), batch_of(pa.table({"v": [2.0]}), schema).to_pydict()
    ({'v': [1, None]}, {'v': [2]})
    """
    if isinstance(data, (pa.RecordBatch, pa.Table)) and (fitting := _fitting(data, schema)) is not None:
        return fitting
    if isinstance(data, Mapping):
        data = [_one_event(data)]
    elif isinstance(data, (str, bytes, bytearray)) or not _has_columns(data):
        data = _rows(data)
    if isinstance(data, list):
        return _batch_of_rows(data, schema, extra)
    table = open_events(data).table()
    _check_names(table.column_names, schema, extra)
    columns = [lossless(table[each.name], each.type, f"{WHERE}, column `{each.name}`") for each in schema]
    return _joined(pa.table(columns, names=schema.names), schema)


def _fitting(data: pa.RecordBatch | pa.Table, schema: pa.Schema) -> pa.RecordBatch | None:
    """The events as a batch, if they have the stream's columns already, at most with strings to encode; else None.

    Thousands of small batches are pushed a second, so what needs no checking is not checked.
    """
    batches = data.to_batches() if isinstance(data, pa.Table) else [data]
    if len(batches) != 1 or data.schema.names != schema.names:
        return None
    arrays = batches[0].columns
    for k, kind in enumerate(schema.types):
        array = arrays[k]
        if kind == STRINGS and is_.is_string(array.type):
            arrays[k] = array.dictionary_encode()
        elif array.type != kind or (kind == STRINGS and array.dictionary.null_count):
            return None
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def lossless(column: pa.ChunkedArray, target: pa.DataType, where: str) -> pa.ChunkedArray:
    """The column as another type; refused if a value would change."""
    source = canonical(column.type)
    if source == target or is_.is_null(source):
        return column if source == target else pa.chunked_array([pa.nulls(len(column), target)])
    if _family(source) is None or _family(source) != _family(target):
        raise _misfit(where, source, target)
    try:
        if is_.is_integer(source) and is_.is_decimal(target):  # by the digits an integer has, not those it may have
            column = column.cast(pa.decimal128(38, target.scale))
        cast = column.cast(target)
        if is_.is_decimal(column.type) and not is_.is_floating(target):
            return cast  # which Arrow has checked
        back = cast.cast(source, safe=False)
    except (pa.ArrowException, ValueError) as error:
        raise _misfit(where, source, target, _changed(column, target) or first_line(error)) from error
    same = pc.equal(column, back)
    if is_.is_floating(source):
        same = pc.or_(same, pc.is_nan(column.cast(pa.float64())))
    if not pc.all(same, min_count=0).as_py():
        place = pc.index(same, False).as_py()
        raise _misfit(where, source, target, _would_change(column, place))
    return cast


def _changed(column: pa.ChunkedArray, target: pa.DataType) -> str | None:
    """The first value that cannot be cast, where one alone is the cause."""
    for place, value in enumerate(column):
        try:
            value.cast(target)
        except (pa.ArrowException, ValueError):
            return _would_change(column, place)
    return None


def _would_change(column: pa.ChunkedArray, place: int) -> str:
    return f"{column[place].as_py()!r} in row {place} (from 0) would change"


def typed(schema: Any) -> pa.Schema:
    """An Arrow schema from anything that says which columns there are.

    >>> typed({"type": "string", "price": "double", "at": pa.timestamp("ms")}).field("price").type
    DataType(double)
    """
    if isinstance(schema, pa.Schema):
        return schema
    if isinstance(schema, Schema):
        schema = schema.attributes(None)
    if isinstance(schema, Mapping):
        return pa.schema([(_name(name), _type(name, kind)) for name, kind in schema.items()])
    if hasattr(schema, "schema") or is_pandas(schema) or is_polars(schema):
        return open_events(schema).schema
    raise StreamError(
        f"the columns of a stream cannot be read from {a(type(schema).__name__)}",
        hint="pass pyarrow.schema([…]), or names with types: {'type': 'string', 'price': 'float', 'at': 'timestamp'}",
    )


def _name(name: object) -> str:
    if not isinstance(name, str):
        raise StreamError(f"the name of a column is text, not {name!r}")
    return name


def _type(name: str, kind: Any) -> pa.DataType:
    if isinstance(kind, pa.DataType):
        return kind
    named = {int: "int", float: "float", bool: "bool", str: "string"}.get(kind, kind) if _hashable(kind) else kind
    if not isinstance(named, str):
        raise StreamError(
            f"column `{name}` has {kind!r} as its type", hint="write 'int', 'string', … or an Arrow type: pa.int64()"
        )
    try:
        return pa.type_for_alias(named) if named not in _ARROW else _ARROW[named]
    except ValueError:
        try:
            return _ARROW[kind_named(named)]
        except SchemaError as error:
            raise StreamError(f"column `{name}`: {error.message}", hint=error.hint) from None


def _hashable(kind: object) -> bool:
    return getattr(kind, "__hash__", None) is not None


def _one_event(event: Mapping[Any, Any]) -> Mapping[Any, Any]:
    columns = [name for name, value in event.items() if isinstance(value, (list, tuple, np.ndarray, pa.Array))]
    if columns:
        raise StreamError(
            f"a dictionary is pushed as one event, but its `{columns[0]}` holds several values",
            hint="for columns, push pyarrow.table(…); for several events, a list of dictionaries",
        )
    return event


def _has_columns(data: Any) -> bool:
    arrow = isinstance(data, (pa.Table, pa.RecordBatch, pa.RecordBatchReader)) or hasattr(data, "__arrow_c_stream__")
    return arrow or is_pandas(data) or is_polars(data)


def _rows(data: Any) -> list[Mapping[str, Any]]:
    if isinstance(data, (str, bytes, bytearray)) or not isinstance(data, Iterable):
        raise StreamError(f"events cannot be pushed from {a(type(data).__name__)}", hint=_HINT)
    return list(data)


def _batch_of_rows(rows: Sequence[Mapping[str, Any]], schema: pa.Schema, extra: Extra) -> pa.RecordBatch:
    known = frozenset(schema.names)
    for at, row in enumerate(rows):
        refuse_other(row, at, WHERE)
        if extra == "refuse" and not row.keys() <= known:
            key = next(key for key in row if key not in known)
            raise StreamError(
                f"{WHERE}, row {at} (from 0) has other columns than the stream: `{key}` is unknown",
                hint=suggestion(str(key), known) or Hint(f"the columns are {listed(known)}; {_LEFT_OUT}", _IGNORED),
            )
    columns = [_column([row.get(each.name) for row in rows], each) for each in schema]
    return _joined(pa.table(columns, names=schema.names), schema)


def _column(values: list[Any], column: pa.Field) -> pa.ChunkedArray:
    kind = type_of(values, WHERE, column.name)
    alike = (is_.is_floating, is_.is_integer)
    if any(is_kind(kind) and is_kind(column.type) for is_kind in alike):
        kind = column.type  # Python has one kind of float and one of integer, which stand for the column's
    try:
        array = array_of(values, pa.field(column.name, kind), 0, WHERE)
    except StreamError as error:
        raise StreamError(error.message, hint=f"the stream has {column.type} there") from error
    return lossless(pa.chunked_array([array]), column.type, f"{WHERE}, column `{column.name}`")


def _joined(table: pa.Table, schema: pa.Schema) -> pa.RecordBatch:
    """The table as one batch, with one dictionary for each column of strings."""
    if not table.num_rows:
        return pa.RecordBatch.from_arrays([pa.array([], column.type) for column in schema], schema=schema)
    batches = [conform(batch, schema, WHERE) for batch in table.combine_chunks().to_batches()]
    whole = pa.Table.from_batches(batches, schema).unify_dictionaries().combine_chunks().to_batches()
    if len(whole) > 1:
        raise StreamError(f"{WHERE} are too many for one batch", hint="push them in smaller pieces")
    return whole[0]


def _check_names(names: Sequence[str], schema: pa.Schema, extra: Extra) -> None:
    missing, unknown = set(schema.names) - set(names), set(names) - set(schema.names)
    if extra == "ignore":
        unknown = set()
    if missing or unknown:
        differences = [
            f"{listed(some)} {what}" for some, what in ((missing, "is missing"), (unknown, "is unknown")) if some
        ]
        raise StreamError(
            f"a batch has other columns than the stream: {', '.join(differences)}",
            hint=f"it has {listed(schema.names)}" if missing else Hint(
                f"it has {listed(schema.names)}; {_LEFT_OUT}", _IGNORED
            ),
        )  # fmt: skip


def _family(kind: pa.DataType) -> object:
    """What values of a type have in common with those of others, None if nothing."""
    if is_.is_integer(kind) or is_.is_floating(kind) or is_.is_decimal(kind):
        return "number"
    if is_.is_timestamp(kind):
        return "instant" if kind.tz is not None else "time"
    if is_.is_date(kind):
        return "time"
    return "string" if is_.is_dictionary(kind) else None


def _misfit(where: str, source: pa.DataType, target: pa.DataType, why: str = "") -> StreamError:
    shown = ["string" if is_.is_dictionary(each) else str(each) for each in (source, target)]
    return StreamError(
        f"{where} holds {shown[0]}, but the stream has {shown[1]}" + (f": {why}" if why else ""),
        hint="cast the column first, as you mean it; or open the stream with the type of the data",
    )
