"""PARTITION BY: value tuples become dense numbers that stay the same from batch to batch.

An event with a NULL (or NaN) in one of the columns belongs to no partition and gets -1; 0.0 and -0.0 are one value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cerite.engine.numbering import Numbering
from cerite.predicate.columns_read import plain

Longs = npt.NDArray[np.int64]


class Groups:
    """The partitions seen so far."""

    def __init__(self, columns: tuple[str, ...]) -> None:
        self.columns = columns
        self._values = [Numbering() for _ in columns]
        self._pairs = [Numbering() for _ in columns[1:]]

    def of(self, batch: pa.RecordBatch) -> Longs:
        """The partition of every event; -1 for none."""
        found = _numbered(self._values[0], batch.column(self.columns[0]))
        for name, values, pairs in zip(self.columns[1:], self._values[1:], self._pairs, strict=True):
            other = _numbered(values, batch.column(name))
            both = np.where((found < 0) | (other < 0), -1, (found << 31) | other)
            found = pairs.of(pa.array(both, mask=both < 0))
        return found

    @property
    def counts(self) -> dict[str, int | None]:
        """How many values each numbering knows."""
        return {name: each.count for name, each in self._parts().items()}

    def forget(self, counts: dict[str, int | None]) -> None:
        """Know only what was known when `counts` was read."""
        for name, each in self._parts().items():
            each.forget(counts[name])

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """What a snapshot keeps: the values in the order of their numbers."""
        return {f"{name} {key}": kept for name, each in self._parts().items() for key, kept in each.state().items()}

    def restore(self, kept: dict[str, npt.NDArray[Any]]) -> None:
        """Continue with the partitions of a snapshot."""
        for name, each in self._parts().items():
            mine = [key for key in kept if key.startswith(f"{name} ")]
            each.restore({key.removeprefix(f"{name} "): kept[key] for key in mine})

    def _parts(self) -> dict[str, Numbering]:
        values = {f"values{k}": each for k, each in enumerate(self._values)}
        return values | {f"pairs{k}": each for k, each in enumerate(self._pairs)}


def _numbered(numbering: Numbering, column: pa.Array) -> Longs:
    coded = pa.types.is_dictionary(column.type)
    kind = column.type.value_type if coded else column.type
    if pa.types.is_string_view(kind) or (coded and pa.types.is_floating(kind)):
        column = plain(column)
    if pa.types.is_floating(column.type):  # adding 0 makes -0.0 the same as 0.0
        column = pc.add(column.cast(pa.float64()), 0.0)
        column = pc.if_else(pc.is_nan(column), None, column)
    return numbering.of(column)
