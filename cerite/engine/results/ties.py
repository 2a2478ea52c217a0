"""Which events cannot be distinguished from an earlier one by the columns that order the stream.

The id of a match names its events by the partition and by the columns that order events, as on Spark, where two events
with equal values in these are refused. In process the order of arrival tells them apart; so the second and further ones
need a mark of their own in an id.

Invariant: what is tied does not depend on where batches are cut, and only events of one partition are compared.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cerite.core.arrays import Arrays, Flags, Longs
from cerite.engine.events.batches import joined, packed, unpacked
from cerite.predicate.columns.read import decoded


class Ties:
    """Finds the tied events of one stream, in its order.

    >>> ties = Ties(("at",), ("key",))
    >>> ties.of(pa.record_batch({"at": [1, 2, 2, 2], "key": ["a", "a", "b", "a"]})).tolist()
    [False, False, False, True]
    >>> ties.of(pa.record_batch({"at": [2, 2, 3], "key": ["b", "c", "c"]})).tolist()
    [True, False, False]
    """

    def __init__(self, order: tuple[str, ...], keys: tuple[str, ...]) -> None:
        self._order = order
        self._keys = keys
        self._names = list(dict.fromkeys((*order, *keys)))
        self._last: pa.RecordBatch | None = None  # the events that are equal to the last one, one per partition

    @property
    def everything(self) -> bool:
        """Whether all events are tied, because nothing orders them but the way they come."""
        return not self._order

    def of(self, rows: pa.RecordBatch) -> Flags:
        """Which of the next events are tied."""
        if not rows.num_rows:
            return np.ones(0, np.bool_)
        mine = rows.select(self._names)
        carried = 0 if self._last is None else self._last.num_rows
        whole = mine if self._last is None else joined([self._last, mine])
        runs = _runs([whole.column(name) for name in self._order])
        tied = np.zeros(whole.num_rows, np.bool_)
        again = np.flatnonzero(runs[1:] == runs[:-1]) + 1
        if again.size:
            inside = np.union1d(again, again - 1)
            columns = [whole.column(name).take(pa.array(inside)) for name in self._keys]
            _, first = np.unique(_codes(runs[inside], columns), return_index=True)
            tied[inside] = True
            tied[inside[first]] = False
        last = np.flatnonzero((runs == runs[-1]) & ~tied)
        self._last = whole.take(pa.array(last))
        return tied[carried:]

    def state(self) -> Arrays:
        """What a snapshot keeps."""
        return {} if self._last is None else {"last": packed(self._last)}

    def restore(self, state: Arrays) -> None:
        """Continue where a snapshot was taken."""
        self._last = unpacked(state["last"].view(np.uint8)) if "last" in state else None


def _runs(columns: list[pa.Array]) -> Longs:
    """For every row the number of the stretch of equal rows that it is in; NULLs equal each other."""
    differ = np.zeros(len(columns[0]) - 1, np.bool_)
    for column in map(decoded, columns):
        one, other = column.slice(1), column.slice(0, len(column) - 1)
        equal = pc.fill_null(pc.equal(one, other), False)
        if column.null_count:
            equal = pc.or_(equal, pc.and_(pc.is_null(one), pc.is_null(other)))
        differ |= ~equal.to_numpy(zero_copy_only=False)
    return np.concatenate([[0], np.cumsum(differ)])


def _codes(runs: Longs, columns: list[pa.Array]) -> Longs:
    """Equal numbers for rows of one stretch and equal keys."""
    codes = runs
    for column in columns:
        indices = decoded(column).dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
        _, codes = np.unique(codes * (indices.max(initial=0) + 1) + indices, return_inverse=True)
    return codes
