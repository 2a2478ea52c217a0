"""Matches as rows of the result: id, times, partition values, and per variable the structs of its events."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cerite.engine.output import MatchChunk, lists_of
from cerite.spark.worker.ids import Ids
from cerite.spark.worker.job import OWNED, Job

MOST = 1 << 16  # events in a batch of results


class Output:
    """Makes result batches for one job."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.ids = Ids(job)
        self._rows: pa.RecordBatch | None = None
        self._owned = np.zeros(0, np.bool_)  # which of these rows the chunk owns

    def batches(self, chunk: MatchChunk, base: int, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The matches as batches; `base` is the position of the first of the rows."""
        shifted = MatchChunk(chunk.starts - base, chunk.ends - base, chunk.offsets, chunk.positions - base,
                             chunk.labels, chunk.sequence)  # fmt: skip
        if self.job.owned:
            if rows is not self._rows:
                self._rows, self._owned = rows, rows.column(OWNED).to_numpy(zero_copy_only=False)
            mine = self._owned[shifted.ends]
            shifted = shifted if mine.all() else shifted.select(np.flatnonzero(mine))
        for piece in _pieces(shifted):
            yield self._batch(piece, rows)

    def _batch(self, chunk: MatchChunk, rows: pa.RecordBatch) -> pa.RecordBatch:
        job = self.job
        starts, ends = pa.array(chunk.starts), pa.array(chunk.ends)
        columns: dict[str, pa.Array] = {"match": self.ids.of(chunk, rows)}
        if job.time is not None:
            columns["start_time"], columns["end_time"] = (_taken(rows, job.time, each) for each in (starts, ends))
        if job.position is not None:
            position = pc.cast(rows.column(job.position), pa.int64())
            columns["start"], columns["end"] = position.take(starts), position.take(ends)
        columns |= {name: _taken(rows, name, ends) for name in job.keys}
        variables = tuple(shown.variable for shown in job.shown if shown.variable is not None)
        every, *lists = lists_of(chunk, job.plan.automaton.labels, variables)
        structs: dict[tuple[int, tuple[str, ...]], pa.Array] = {}  # variables of the same marks share their lists
        for shown, mine in zip(job.shown, lists if variables else [every] * len(job.shown), strict=True):
            key = (id(mine), shown.attributes)
            if key not in structs:
                structs[key] = _structs(mine, rows, shown.attributes)
            columns[shown.column] = structs[key]
        return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _pieces(chunk: MatchChunk) -> Iterator[MatchChunk]:
    begin = 0
    while begin < len(chunk):
        stop = int(np.searchsorted(chunk.offsets, chunk.offsets[begin] + MOST, side="right")) - 1
        stop = min(max(stop, begin + 1), len(chunk))
        yield chunk.slice(begin, stop)
        begin = stop


def _structs(lists: pa.ListArray, rows: pa.RecordBatch, attributes: tuple[str, ...]) -> pa.Array:
    places = lists.flatten()
    taken = [_taken(rows, name, places) for name in attributes]
    fields = [pa.field(name, array.type) for name, array in zip(attributes, taken, strict=True)]
    structs = pa.StructArray.from_arrays(taken, fields=fields)
    return pa.ListArray.from_arrays(lists.offsets, structs)


def _taken(rows: pa.RecordBatch, name: str, places: pa.Array) -> pa.Array:
    """A column's values at these places, as Spark reads them: dictionaries decoded."""
    values = rows.column(name).take(places)
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values
