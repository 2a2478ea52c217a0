"""A stretch of time, read from ordered Parquet inside a task: the rows of one chunk and of the window before it.

Strings are read as dictionaries, which suits the engine best. Invariant: rows come in stream order; a match is reported
only if its end is at or after the chunk's cut, so exactly once over all chunks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark import TaskContext

from cerite.data import Source
from cerite.data.columns import canonical
from cerite.engine.bind import Program, bind
from cerite.engine.events.keys import LEAST, Numbers, keys_of, numbers, value_keys
from cerite.engine.events.rows import Columns
from cerite.engine.results.match_ids import FILE, ROW
from cerite.engine.run import count, find
from cerite.predicate.columns.read import decoded
from cerite.spark.worker import Batches
from cerite.spark.worker.feed import check_order
from cerite.spark.worker.footers import Footers, Group, located
from cerite.spark.worker.job import OWNED, Cut, Job
from cerite.spark.worker.owned_matches import Output
from cerite.spark.worker.row_buffer import RowBuffer
from cerite.spark.worker.task import count_batch


@dataclass(frozen=True)
class OrderedParquet:
    """The chunks of some files; `sort` are the columns to sort a chunk by, none if files and rows are the order."""

    job: Job
    columns: Columns
    footers: Footers
    cuts: tuple[Cut, ...]
    sort: tuple[str, ...]

    def ends(self, chunk: int) -> tuple[Any, Any, Any]:
        """Where a chunk reads from, owns from, and ends."""
        cut = self.cuts[chunk - 1] if chunk else Cut(-math.inf, -math.inf)
        return cut.read, cut.own, self.cuts[chunk].own if chunk < len(self.cuts) else math.inf


def stretch_task(stretches: OrderedParquet) -> Callable[[Batches], Batches]:
    """The function for `mapInArrow`: numbers of chunks in, matches out."""

    def recognise(batches: Batches) -> Batches:
        for batch in batches:
            for chunk in batch.column(0).to_pylist():
                yield from recognised(stretches, chunk)

    return recognise


def counting_task(stretches: OrderedParquet) -> Callable[[Batches], Batches]:
    """The function for `mapInArrow` that only counts."""

    def count(batches: Batches) -> Batches:
        for batch in batches:
            for chunk in batch.column(0).to_pylist():
                yield count_batch(counted(stretches, chunk))

    return count


def counted(stretches: OrderedParquet, chunk: int) -> int:
    """How many matches end in a chunk: all that it reads, less those that end in what it reads but does not own."""
    read, own, end = stretches.ends(chunk)
    parts = [OrderedChunk(stretches, chunk, (read, own, end))] + [
        OrderedChunk(stretches, chunk, (read, own, own))
    ] * bool(chunk)
    counts = [count(part.program, part.batches()) for part in parts]
    return counts[0] - sum(counts[1:])


def recognised(stretches: OrderedParquet, chunk: int) -> Batches:
    """The matches that end in a chunk."""
    source, output = OrderedChunk(stretches, chunk, stretches.ends(chunk)), Output(stretches.job)
    for matches in find(source.program, source.batches()):
        base, rows = source.buffer.whole
        yield from output.batches(matches, base, rows)


class OrderedChunk(Source):
    """One chunk as a source; `buffer` holds the rows that matches may need."""

    def __init__(self, stretches: OrderedParquet, chunk: int, ends: tuple[Any, Any, Any]) -> None:
        self._of = stretches
        self._read, self._own, self._end = ends
        self._clock = stretches.job.time or ""
        schema = stretches.footers.schema
        self.schema = pa.schema([(name, canonical(schema.field(name).type)) for name in stretches.job.columns])
        self.name, self.rows, self.available = f"chunk {chunk}", None, tuple(self.schema.names)
        self.buffer: RowBuffer[int] = RowBuffer()

    @property
    def program(self) -> Program:
        """The program that is run over the rows."""
        return bind(self._of.job.plan, self.schema, self._of.columns)

    def batches(self) -> Batches:
        """The rows in order, row group by row group."""
        groups = [each for each in self._of.footers.groups if each.greatest >= self._read and each.least < self._end]
        parts: Batches = (rows for rows in map(self._rows, groups) if rows.num_rows)
        if self._of.sort:
            parts = self._ties_broken(parts)
        window = self._of.job.window
        for rows in parts:
            clock = rows.column(self._clock)
            ticks, _ = numbers(clock, self._clock)
            needed = value_keys(clock.slice(0, 1), *window, self._of.columns.unit)[1][0] if window else LEAST
            owned = pa.array(np.arange(ticks.size) >= _place(ticks, self._own))
            self.buffer.add(rows.append_column(OWNED, owned), int(keys_of(ticks[-1:])[0]), needed.__gt__)
            yield rows.select(self.schema.names)

    def take(self, positions: Any, columns: Any = None) -> pa.Table:
        """Rows by position are read from `buffer` instead."""
        raise NotImplementedError

    def _rows(self, group: Group) -> pa.RecordBatch:
        """The rows of a row group that belong to the chunk, in order of time."""
        uri = self._of.footers.files[group.file]
        system, path = located(uri)
        strings = [field.name for field in self.schema if pa.types.is_dictionary(field.type)]
        with pq.ParquetFile(path, filesystem=system, read_dictionary=strings, pre_buffer=True) as file:
            read = file.read_row_group(group.index, columns=self.schema.names, use_threads=has_cores())
            table = read.select(self.schema.names)
        table = table.cast(self.schema) if table.schema != self.schema else table
        tied = {FILE: pa.array(np.full(group.rows, group.file)),
                ROW: pa.array(np.arange(group.first_row, group.first_row + group.rows))}  # fmt: skip
        for name in self._of.job.order:
            if name in tied:
                table = table.append_column(name, tied[name])
        rows = table.unify_dictionaries().combine_chunks().to_batches()[0]
        ticks, _ = numbers(rows.column(self._clock), self._clock)
        if (ticks[1:] < ticks[:-1]).any():
            order = np.argsort(ticks, kind="stable")
            rows, ticks = rows.take(pa.array(order)), ticks[order]
        begin, stop = _place(ticks, self._read), _place(ticks, self._end)
        return rows.slice(begin, stop - begin)

    def _ties_broken(self, parts: Batches) -> Batches:
        """The rows with ties sorted; those of a part's last tick wait for the next part, which may have more."""
        waiting: list[pa.Table] = []
        for part in parts:
            ticks, _ = numbers(part.column(self._clock), self._clock)
            last = int(np.searchsorted(ticks, ticks[-1]))
            if last:
                yield self._sorted([*waiting, pa.Table.from_batches([part.slice(0, last)])])
                waiting = []
            waiting.append(pa.Table.from_batches([part.slice(last)]))
        if waiting:
            yield self._sorted(waiting)

    def _sorted(self, tables: list[pa.Table]) -> pa.RecordBatch:
        """Rows by time and the order columns, refused where that leaves a tie."""
        table = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
        plain = {name: decoded(table[name]) for name in self._of.sort}
        order = pc.sort_indices(pa.table(plain), [(name, "ascending") for name in plain])
        rows = table.take(order).to_batches()[0]
        keys = {name: decoded(rows.column(name)) for name in self._of.sort}
        check_order(self._of.job, keys, np.zeros(rows.num_rows - 1, np.bool_))
        return rows


def _place(ticks: Numbers, bound: Any) -> int:
    """Where the rising ticks reach a bound; whole numbers are never compared as floats."""
    if isinstance(bound, float) and math.isinf(bound) and ticks.dtype != np.float64:
        return 0 if bound < 0 else ticks.size
    return int(np.searchsorted(ticks, ticks.dtype.type(bound)))


def has_cores() -> bool:
    """Whether this task may use more than one core."""
    context = TaskContext.get()
    return context is None or context.cpus() > 1
