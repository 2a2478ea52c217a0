"""Column types as the engine wants them, and batches brought into that form.

Invariant: strings of any Arrow layout (plain, large, view, dictionary of any index) become `dictionary<int32, string>`
without NULL among the dictionary's values; other encodings are undone; no other type changes. Casts never lose: an
integer that a float cannot hold exactly is an error.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from cerite.core.errors import StreamError, first_line
from cerite.predicate.columns.codes import encoded

STRINGS = pa.dictionary(pa.int32(), pa.string())


def canonical(arrow: pa.DataType) -> pa.DataType:
    """The type a column of this type has in batches.

    >>> canonical(pa.large_string()) == canonical(pa.string()) == STRINGS
    True
    >>> canonical(pa.int16())
    DataType(int16)
    """
    if is_.is_dictionary(arrow) or is_.is_run_end_encoded(arrow):
        return canonical(arrow.value_type)
    if is_.is_binary_view(arrow):  # from which Arrow cannot take rows
        return pa.large_binary()
    return STRINGS if is_string(arrow) else arrow


def is_string(arrow: pa.DataType) -> bool:
    """Plain strings of any width."""
    return bool(is_.is_string(arrow) or is_.is_large_string(arrow) or is_.is_string_view(arrow))


def is_number(arrow: pa.DataType) -> bool:
    """Whole numbers and floats of any width."""
    return bool(is_.is_integer(arrow) or is_.is_floating(arrow))


def canonical_schema(schema: pa.Schema) -> pa.Schema:
    """The schema of batches made from data of this one; metadata and nullability are dropped."""
    return pa.schema([(column.name, canonical(column.type)) for column in schema])


def leaves(schema: pa.Schema) -> pa.Schema:
    """What structs hold, by dotted names: `ctx.ip` of a column `ctx` with a member `ip`, to any depth.

    >>> leaves(pa.schema({"a": pa.int64(), "ctx": pa.struct({"ip": pa.string(), "at": pa.struct({"x": pa.int8()})})}))
    ctx.ip: dictionary<values=string, indices=int32, ordered=0>
    ctx.at.x: int8
    """
    columns: list[tuple[str, pa.DataType]] = []
    for column in schema:
        if is_.is_struct(column.type):
            inner = pa.schema(list(column.type))
            members = [each for each in inner if not is_.is_struct(each.type)]
            columns += [(f"{column.name}.{each.name}", canonical(each.type)) for each in members]
            columns += [(f"{column.name}.{each.name}", each.type) for each in leaves(inner)]
    return pa.schema(columns)


def with_leaves(schema: pa.Schema, where: str) -> pa.Schema:
    """The columns and what their structs hold; a dotted name that could mean two things is refused."""
    inner = leaves(schema)
    refuse_ambiguous(schema.names, inner.names, where)
    return pa.schema([*schema, *inner])


def refuse_ambiguous(columns: Collection[str], members: Sequence[str], where: str) -> None:
    """Refuse dotted names of what structs hold that are those of columns, or of other members, as well."""
    twice = [name for name in members if name in columns or members.count(name) > 1]
    if twice:
        raise StreamError(
            f"{where}: `{twice[0]}` could be a column of that name or a member of a struct", hint="rename one of them"
        )


def root(name: str, names: Collection[str]) -> str | None:
    """The column in which a name is found: itself, or the struct that a dotted name begins with.

    >>> root("ctx.ip", ["type", "ctx"]), root("ctx.ip", ["ctx.ip"]), root("ip", ["ctx"])
    ('ctx', 'ctx.ip', None)
    """
    if name in names:
        return name
    parts = name.split(".")
    return next((head for k in range(1, len(parts)) if (head := ".".join(parts[:k])) in names), None)


def rooted(schema: pa.Schema, whole: pa.Schema) -> pa.Schema:
    """The columns of `whole` in which the wanted ones are found, each with the type that is wanted, or else its own."""
    columns: dict[str, pa.DataType] = {}
    for column in schema:
        home = root(column.name, whole.names)
        if home is not None:
            columns[home] = column.type if home == column.name else whole.field(home).type
    return pa.schema(columns)


def subschema(schema: pa.Schema, names: tuple[str, ...]) -> pa.Schema:
    """These columns in this order."""
    return pa.schema([schema.field(name) for name in names])


def conform(batch: pa.RecordBatch, schema: pa.Schema, where: str) -> pa.RecordBatch:
    """The batch with exactly these columns and types; columns it does not have are NULL.

    >>> batch = pa.record_batch({"b": ["x"], "a": pa.array([1], pa.int32())})
    >>> conform(batch, pa.schema({"a": pa.float64(), "c": pa.int64()}), "S").to_pylist()
    [{'a': 1.0, 'c': None}]
    """
    places = {name: at for at, name in enumerate(batch.schema.names)}
    arrays = []
    for column in schema:
        home = root(column.name, places)
        array = None if home is None else _member(batch.column(places[home]), column.name[len(home) + 1 :])
        arrays.append(
            pa.nulls(batch.num_rows, column.type)
            if array is None
            else converted(array, column.type, f"{where}, column `{column.name}`")
        )
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _member(array: pa.Array, name: str) -> pa.Array | None:
    """What a struct holds under a dotted name (the struct itself under none); None if it holds nothing of that name."""
    if not name:
        return array
    if not is_.is_struct(array.type):
        return None
    inner = root(name, [each.name for each in array.type])
    return None if inner is None else _member(pc.struct_field(array, [inner]), name[len(inner) + 1 :])


def converted(array: pa.Array, target: pa.DataType, where: str) -> pa.Array:
    """The array as the canonical type `target`."""
    if is_.is_run_end_encoded(array.type):
        array = pc.run_end_decode(array)
    if is_.is_dictionary(array.type):
        if target == STRINGS:
            return _strings_of(array, where)
        array = array.dictionary_decode()
    if array.type == target:
        return array
    if is_.is_null(array.type):
        return pa.nulls(len(array), target)
    try:
        if target == STRINGS:
            return encoded(array.cast(pa.string())).cast(STRINGS)
        return array.cast(target)
    except (pa.ArrowException, ValueError) as error:
        raise StreamError(f"{where}: {first_line(error)}", hint=f"the column is read as {target}") from error


def _strings_of(array: pa.DictionaryArray, where: str) -> pa.Array:
    values = array.dictionary
    if values.null_count:  # a NULL may hide behind a code; the engine looks at the codes' own NULLs only
        return converted(array.dictionary_decode(), STRINGS, where)
    if array.type == STRINGS:
        return array
    indices = cast(pa.Array, array.indices).cast(pa.int32())
    return pa.DictionaryArray.from_arrays(indices, values.cast(pa.string()))
