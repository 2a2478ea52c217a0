"""Small helpers that all generators use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cerite.core.arrays import Flags, Longs


def coded(codes: npt.NDArray[np.integer], words: Sequence[str]) -> pa.DictionaryArray:
    """A string column, dictionary-encoded."""
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(words, pa.string()))


def constant(word: str, count: int) -> pa.DictionaryArray:
    """A string column with the same value in every row."""
    return coded(np.zeros(count, np.int32), [word])


def renewed(fresh: Longs, renew: Flags) -> Longs:
    """`fresh` where `renew`, else the value before.

    >>> renewed(np.array([5, 6, 7, 8]), np.array([True, False, True, False])).tolist()
    [5, 5, 7, 7]
    """
    return fresh[np.maximum.accumulate(np.where(renew, np.arange(fresh.size), 0))]


def first(batches: Iterator[pa.RecordBatch], events: int) -> Iterator[pa.RecordBatch]:
    """The first events of an endless stream."""
    for batch in batches:
        if batch.num_rows >= events:
            yield batch.slice(0, events)
            return
        yield batch
        events -= batch.num_rows
