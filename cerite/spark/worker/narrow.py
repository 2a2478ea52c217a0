"""Rows on their way through the exchange: whole numbers and times in as few bytes as they need.

What a row costs between two tasks, in Java and in Python, follows its bytes: they are written, copied, compressed and
read some ten times. So a column travels as its least value and the differences of its values from that, in one, two or
four bytes; constants and consecutive numbers travel as their first value alone. Columns with NULLs or of other types
travel as they are. Invariant: `joined(map(narrowed, rows))` has the same rows, in the same order, with the same types.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from cerite.core.arrays import Longs

_WIDE, _FIRST, _STEP = b"cerite.wide", b"first", b"step"
_WIDTHS = ((8, pa.uint8(), np.uint8), (16, pa.uint16(), np.uint16), (32, pa.uint32(), np.uint32))


def narrowed(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows in narrow columns; the schema says how to get the original ones back.

    >>> narrowed(pa.record_batch({"at": [1000, 1007, 1003], "file": [3, 3, 3], "row": [5, 6, 7]})).schema.types
    [DataType(uint8), DataType(null), DataType(null)]
    """
    pairs = [_narrow(field, column) for field, column in zip(rows.schema, rows.columns, strict=True)]
    wide = {_WIDE: rows.schema.serialize().to_pybytes()}
    fields, columns = zip(*pairs, strict=True) if pairs else ((), ())
    return pa.RecordBatch.from_arrays(list(columns), schema=pa.schema(fields, metadata=wide))


def joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """The rows of one or more narrowed batches, in one batch and as they were before.

    >>> batches = [pa.record_batch({"at": times}) for times in ([7, 300], [5, 5])]
    >>> joined([narrowed(batch) for batch in batches])["at"].to_pylist()
    [7, 300, 5, 5]
    """
    schema = _wide_schema(batches[0])
    columns = [_joined([batch.schema.field(k) for batch in batches], [batch.column(k) for batch in batches], field.type)
               for k, field in enumerate(schema)]  # fmt: skip
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def wide_bytes(rows: pa.RecordBatch) -> int:
    """How many bytes narrowed rows took before they were narrowed.

    >>> wide_bytes(narrowed(pa.record_batch({"at": [7, 300]})))
    16
    """
    pairs = zip(rows.schema, _wide_schema(rows), rows.columns, strict=True)
    return sum(
        rows.num_rows * wide.type.bit_width // 8 if _is_narrow(field) else column.nbytes
        for field, wide, column in pairs
    )


def constants(batches: Sequence[pa.RecordBatch]) -> frozenset[str]:
    """The columns that have one value in all rows of some narrowed batches, as far as narrowing has noticed.

    >>> sorted(constants([narrowed(pa.record_batch({"at": [7, 3], "file": [file, file]})) for file in (3, 3)]))
    ['file']
    """
    first = batches[0].schema
    return frozenset(
        field.name for field in first
        if _is_narrow(field) and pa.types.is_null(field.type) and field.metadata[_STEP] == b"0"
        and all(batch.schema.field(field.name).equals(field, check_metadata=True) for batch in batches)
    )  # fmt: skip


def first_number(rows: pa.RecordBatch, name: str) -> int | None:
    """The number that a narrow column begins with; None if the column, or what is left of it, is not narrow.

    >>> first_number(narrowed(pa.record_batch({"row": [5, 300]})), "row")
    5
    """
    field, column = rows.schema.field(name), rows.column(name)
    if not _is_narrow(field) or not len(column):
        return None
    return int(field.metadata[_FIRST]) + (column[0].as_py() or 0)


def _narrow(field: pa.Field, column: pa.Array) -> tuple[pa.Field, pa.Array]:
    kind = field.type
    if not column.null_count and len(column) and (pa.types.is_signed_integer(kind) or pa.types.is_temporal(kind)):
        values = _longs(column)
        first, size = int(values[0]), len(column)
        if int(values[-1]) - first in (0, size - 1):
            step = int(int(values[-1]) > first)
            if (values[1:] - values[:-1] == step).all():
                return _field(field, pa.null(), first, step), pa.nulls(size)
        least = int(values.min())
        needed = (int(values.max()) - least).bit_length()
        for bits, narrow, dtype in _WIDTHS:
            if needed <= bits < kind.bit_width:
                return _field(field, narrow, least, 0), pa.array((values - least).astype(dtype))
    return field, column


def _field(field: pa.Field, kind: pa.DataType, first: int, step: int) -> pa.Field:
    return pa.field(field.name, kind, metadata={_FIRST: str(first), _STEP: str(step)})


def _is_narrow(field: pa.Field) -> bool:
    return field.metadata is not None and _FIRST in field.metadata


def _wide_schema(rows: pa.RecordBatch) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(rows.schema.metadata[_WIDE]))


def _joined(fields: list[pa.Field], columns: list[pa.Array], kind: pa.DataType) -> pa.Array:
    """One column of all batches; if it is narrow in some of them only, each is widened by itself."""
    if not any(map(_is_narrow, fields)):
        return columns[0] if len(columns) == 1 else pa.concat_arrays(columns)
    if not all(map(_is_narrow, fields)):
        pairs = zip(fields, columns, strict=True)
        return pa.concat_arrays(
            [_joined([field], [each], kind) if _is_narrow(field) else each for field, each in pairs]
        )
    values, begin = np.empty(sum(map(len, columns)), np.int64), 0
    for field, column in zip(fields, columns, strict=True):
        part, begin = values[begin : begin + len(column)], begin + len(column)
        first, step = (int(field.metadata[name]) for name in (_FIRST, _STEP))
        if not pa.types.is_null(column.type):
            np.add(column.to_numpy(), np.int64(first), out=part, dtype=np.int64, casting="unsafe")
        elif step:
            part[:] = np.arange(first, first + len(column))
        else:
            part[:] = first
    return _typed(values, kind)


def _longs(column: pa.Array) -> Longs:
    kind = column.type
    if pa.types.is_temporal(kind):
        column = column.view(pa.int64() if kind.bit_width == 64 else pa.int32())
    values: Longs = column.to_numpy().astype(np.int64, copy=False)
    return values


def _typed(values: Longs, kind: pa.DataType) -> pa.Array:
    """Numbers as a column of a type of whole numbers or times."""
    if pa.types.is_temporal(kind):
        return pa.array(values if kind.bit_width == 64 else values.astype(np.int32)).view(kind)
    return pa.array(values).cast(kind)
