"""PARTITION BY: value tuples become dense numbers that stay the same from batch to batch.

An event with a NULL (or NaN) in one of the columns belongs to no partition and gets -1. Distinct values are numbered by
Arrow's hash tables; nothing is looked at one by one in Python.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Longs = npt.NDArray[np.int64]


class Numbering:
    """Numbers for values in the order of their first appearance."""

    def __init__(self) -> None:
        self.known: pa.Array | None = None

    def of(self, values: pa.Array) -> Longs:
        """The numbers of distinct values without NULLs; new ones get the next numbers."""
        known = values.slice(0, 0) if self.known is None else self.known
        found = pc.index_in(values, value_set=known)
        numbers: Longs = pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int64)
        new = numbers < 0
        numbers[new] = np.arange(len(known), len(known) + int(new.sum()))
        self.known = pa.concat_arrays([known, values.filter(pa.array(new))])
        return numbers

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """What a snapshot keeps: the values in the order of their numbers."""
        return {} if self.known is None else {"known": _packed(self.known)}

    def restore(self, kept: dict[str, npt.NDArray[Any]]) -> None:
        """Continue with the numbers of a snapshot."""
        self.known = _unpacked(kept["known"]) if "known" in kept else None


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
            found = _numbered(pairs, pa.array(both, mask=both < 0))
        return found

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """What a snapshot keeps: the values in the order of their numbers."""
        parts = {f"values{k}": each for k, each in enumerate(self._values)}
        parts |= {f"pairs{k}": each for k, each in enumerate(self._pairs)}
        return {name: _packed(each.known) for name, each in parts.items() if each.known is not None}

    def restore(self, kept: dict[str, npt.NDArray[Any]]) -> None:
        """Continue with the partitions of a snapshot."""
        for kind, parts in (("values", self._values), ("pairs", self._pairs)):
            for k, each in enumerate(parts):
                each.known = _unpacked(kept[f"{kind}{k}"]) if f"{kind}{k}" in kept else None


def _numbered(numbering: Numbering, column: pa.Array) -> Longs:
    if not len(column):
        return np.zeros(0, np.int64)
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
    encoded = column if _is_encoded(column) else _plain(column).dictionary_encode()
    numbers = numbering.of(encoded.dictionary)
    codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    found: Longs = np.append(numbers, np.int64(-1))[codes]
    return found


def _is_encoded(column: pa.Array) -> bool:
    """Whether the column's dictionary holds every value once, and no NULL."""
    if not pa.types.is_dictionary(column.type):
        return False
    values = column.dictionary
    return values.null_count == 0 and len(pc.unique(values)) == len(values)


def _plain(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _packed(values: pa.Array) -> npt.NDArray[np.uint8]:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pa.schema([("value", values.type)])) as writer:
        writer.write_batch(pa.record_batch([values], names=["value"]))
    return np.frombuffer(sink.getvalue(), np.uint8)


def _unpacked(data: npt.NDArray[np.uint8]) -> pa.Array:
    with pa.ipc.open_stream(data.tobytes()) as reader:
        return reader.read_all().column("value").combine_chunks()
