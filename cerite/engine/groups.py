"""PARTITION BY: value tuples become dense numbers that stay the same from batch to batch.

An event with a NULL (or NaN) in one of the columns belongs to no partition and gets -1. Only distinct values are ever
looked at one by one, never rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Longs = npt.NDArray[np.int64]


class Groups:
    """The partitions seen so far."""

    def __init__(self, columns: tuple[str, ...]) -> None:
        self.columns = columns
        self._codes: list[dict[Any, int]] = [{} for _ in columns]
        self._numbers: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._numbers) if len(self.columns) > 1 else len(self._codes[0])

    def of(self, batch: pa.RecordBatch) -> Longs:
        """The partition of every event; -1 for none."""
        found = self._column(0, batch.column(self.columns[0]))
        for index in range(1, len(self.columns)):
            found = self._paired(found, self._column(index, batch.column(self.columns[index])), index)
        return found

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """What a snapshot keeps: the values of each column in the order of their numbers, and the pairs."""
        kept: dict[str, npt.NDArray[Any]] = {"pairs": np.array(list(self._numbers), np.int64)}
        for index, known in enumerate(self._codes):
            if known:
                kept[f"values{index}"] = _packed(pa.array(list(known)))
        return kept

    def restore(self, kept: dict[str, npt.NDArray[Any]]) -> None:
        """Continue with the partitions of a snapshot."""
        self._numbers = {pair: number for number, pair in enumerate(kept["pairs"].tolist())}
        for index in range(len(self.columns)):
            values = _unpacked(kept[f"values{index}"]) if f"values{index}" in kept else []
            self._codes[index] = {value: number for number, value in enumerate(values)}

    def _column(self, index: int, column: pa.Array) -> Longs:
        if not len(column):
            return np.zeros(0, np.int64)
        if pa.types.is_floating(column.type):
            column = pc.if_else(pc.is_nan(column), None, column)
        encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        known = self._codes[index]
        values = encoded.dictionary.to_pylist()
        numbers = np.array([-1 if value is None else known.setdefault(value, len(known)) for value in values], np.int64)
        codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
        found: Longs = np.append(numbers, np.int64(-1))[codes]
        return found

    def _paired(self, one: Longs, two: Longs, level: int) -> Longs:
        """Numbers for pairs of numbers; `level` keeps the pairs of different columns apart."""
        pairs = np.where((one < 0) | (two < 0), -1, (one << 31) | two)
        distinct, places = np.unique(pairs, return_inverse=True)
        numbers = [
            -1 if pair < 0 else self._numbers.setdefault((int(pair) << 4) | level, len(self._numbers))
            for pair in distinct.tolist()
        ]
        return np.array(numbers, np.int64)[places.reshape(-1)]


def _packed(values: pa.Array) -> npt.NDArray[np.uint8]:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pa.schema([("value", values.type)])) as writer:
        writer.write_batch(pa.record_batch([values], names=["value"]))
    return np.frombuffer(sink.getvalue(), np.uint8)


def _unpacked(data: npt.NDArray[np.uint8]) -> list[Any]:
    with pa.ipc.open_stream(data.tobytes()) as reader:
        found: list[Any] = reader.read_all().column("value").to_pylist()
    return found
