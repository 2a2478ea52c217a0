"""Rows that stay in memory between batches: joined, packed into bytes, and merged as they grow.

Invariant: a joined batch has a dictionary that is not much longer than the batch, so that rows that come and go without
end do not leave their strings behind.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from cerite.core.arrays import Bytes
from cerite.core.errors import SnapshotError

SPARE = 1 << 8  # strings in a dictionary that are never worth clearing up
FEW, MANY = 8, 12  # parts that are merged at once, and parts that may lie side by side


def joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Batches of one schema as one."""
    if len(batches) == 1:
        return batches[0]
    schema = batches[0].schema
    arrays = [tidy(pa.concat_arrays([each.column(k) for each in batches])) for k in range(len(schema))]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def tidied(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows with dictionaries that lack the strings that none of them has, if those are many."""
    return pa.RecordBatch.from_arrays([tidy(column) for column in rows.columns], schema=rows.schema)


def tidy(column: pa.Array) -> pa.Array:
    """The column with a dictionary that lacks the strings that none of its rows has, if those are many."""
    if not pa.types.is_dictionary(column.type) or len(column.dictionary) <= SPARE + 2 * len(column):
        return column
    used, codes = np.unique(column.indices.drop_null().to_numpy(), return_inverse=True)
    indices = np.zeros(len(column), np.int32)
    missing = column.is_null().to_numpy(zero_copy_only=False)
    indices[~missing] = codes.reshape(-1)
    values = column.dictionary.take(pa.array(used))
    fresh = pa.DictionaryArray.from_arrays(pa.array(indices, mask=missing if missing.any() else None), values)
    return fresh if fresh.type == column.type else fresh.cast(column.type)


def alone(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows in memory of their own, with only the strings they have, whatever batch they were cut from."""
    arrays = []
    for column in rows.take(pa.array(np.arange(rows.num_rows))).columns:
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode().dictionary_encode().cast(column.type)
        arrays.append(column)
    return pa.RecordBatch.from_arrays(arrays, schema=rows.schema)


def packed(rows: pa.RecordBatch) -> Bytes:
    """Rows as bytes (Arrow IPC), the same for the same rows."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(alone(rows))
    return np.frombuffer(sink.getvalue(), np.uint8)


def unpacked(data: Bytes) -> pa.RecordBatch:
    """The rows that were packed."""
    try:
        with pa.ipc.open_stream(data.tobytes()) as reader:
            return reader.read_next_batch()
    except pa.ArrowException as error:
        raise SnapshotError("the snapshot is damaged: its rows cannot be read") from error


def merging(sizes: Sequence[int]) -> int | None:
    """The first of several parts, small ones being last, from which on they should be merged; None if they are few.

    How often a row is merged grows with the logarithm of the number of rows.

    >>> merging([1000, 10, 1]), merging([10**6, *[100] * 12]), merging([150, *[100] * 12])
    (None, 1, 0)
    """
    if len(sizes) <= MANY:
        return None
    first = len(sizes) - FEW
    total = sum(sizes[first:])
    while first and sizes[first - 1] <= 2 * total:
        first -= 1
        total += sizes[first]
    return first
