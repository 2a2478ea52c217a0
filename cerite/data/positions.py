"""Rows by position, from data that comes in segments (row groups, chunks of text, chunks of a table).

Invariant: only segments that hold a wanted row are read, each once, in order; the result has the requested order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from cerite.core.errors import StreamError

Positions = Sequence[int] | np.ndarray
Read = Callable[[int], Iterable[pa.RecordBatch]]


def gather(positions: Positions, counts: Sequence[int], read: Read, schema: pa.Schema, name: str) -> pa.Table:
    """The rows at `positions`; segment i has `counts[i]` rows and `read(i)` gives them with this schema.

    >>> segments = [pa.record_batch({"a": [0, 1]}), pa.record_batch({"a": [2, 3, 4]})]
    >>> gather([4, 0], [2, 3], lambda i: [segments[i]], segments[0].schema, "S").column("a").to_pylist()
    [4, 0]
    """
    wanted, order = np.unique(_checked(positions, sum(counts), name), return_inverse=True)
    starts = np.concatenate([[0], np.cumsum(np.asarray(counts, dtype=np.int64))])
    batches: list[pa.RecordBatch] = []
    segments = np.searchsorted(starts, wanted, side="right") - 1
    for segment in np.unique(segments).tolist():
        batches.extend(_picked(read(segment), wanted[segments == segment] - starts[segment]))
    # concat, not take, of many dictionaries: each batch has its own
    rows = pa.Table.from_batches(batches, schema).unify_dictionaries().combine_chunks()
    return rows.take(pa.array(order.reshape(-1), pa.int64()))


def _picked(batches: Iterable[pa.RecordBatch], local: np.ndarray) -> Iterator[pa.RecordBatch]:
    done, seen = 0, 0
    for batch in batches:
        stop = int(np.searchsorted(local, seen + batch.num_rows))
        if stop > done:
            yield batch.take(pa.array(local[done:stop] - seen, pa.int64()))
        done, seen = stop, seen + batch.num_rows
        if done == len(local):
            return
    raise StreamError("the data changed while it was read", hint="open it again")


def _checked(positions: Positions, rows: int, name: str) -> np.ndarray:
    wanted = np.asarray(positions)
    if wanted.size == 0:
        return np.empty(0, np.int64)
    if wanted.ndim != 1 or not np.issubdtype(wanted.dtype, np.integer):
        raise StreamError("positions must be a list of whole numbers", hint="a position is a row's rank, from 0")
    wrong = wanted[(wanted < 0) | (wanted >= rows)]
    if wrong.size:
        raise StreamError(f"{name} has no position {int(wrong[0])}: its {rows} rows are counted from 0")
    return wanted.astype(np.int64)
