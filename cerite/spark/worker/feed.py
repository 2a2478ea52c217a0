"""A task's rows on their way into the engine: packs of many small groups, checked, numbered, and kept while needed.

Python runs once per pack, not per key: a pack has many groups, and the engine takes them as partitions of one stream.
After some hundred thousand rows the next group begins a new run of the engine, so that its memory follows the largest
group, not the task. Rows are kept until no match can contain them any more.

Invariant: rows arrive group by group and in stream order inside a group; equal order keys, missing times and positions
that do not rise are refused, because then the result would depend on how Spark happened to place the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cerite.core.arrays import Flags, Longs
from cerite.core.errors import Setting, StreamError
from cerite.data import Source
from cerite.engine.events.keys import keys_of, numbers, value_keys
from cerite.engine.events.order import equal_to_next, positions_fall, tied, whole_positions
from cerite.engine.results.match_ids import ROW
from cerite.spark.worker import Batches
from cerite.spark.worker.job import BIT, GROUP, OWNED, WORD, Job
from cerite.spark.worker.row_buffer import RowBuffer

PACK = 1 << 17  # rows that are handed to the engine at once
ENOUGH = 1 << 18  # rows after which a new group begins a new run of the engine


@dataclass(frozen=True)
class Pack:
    """Rows with their groups' numbers, and where a group begins."""

    rows: pa.RecordBatch
    groups: Longs
    begins: Flags

    def cut(self, at: int) -> tuple[Pack, Pack]:
        """The rows before and from a place."""
        first = Pack(self.rows.slice(0, at), self.groups[:at], self.begins[:at])
        return first, Pack(self.rows.slice(at), self.groups[at:], self.begins[at:])


class Packs:
    """The packs of a task, one after the other; the last one can be put back."""

    def __init__(self, job: Job, batches: Batches) -> None:
        self._job = job
        self._batches = batches
        self._last: pa.RecordBatch | None = None
        self._groups = 0
        self._back: Pack | None = None

    def next(self) -> Pack | None:
        """The next pack, None at the end."""
        if self._back is not None:
            pack, self._back = self._back, None
            return pack
        some: list[pa.RecordBatch] = []
        while sum(batch.num_rows for batch in some) < PACK and (batch := next(self._batches, None)) is not None:
            some.append(batch)
        table = pa.Table.from_batches(some).combine_chunks() if some else None
        if table is None or not table.num_rows:
            return None
        return self._numbered(table.rename_columns(list(self._job.columns)).to_batches()[0])

    def put_back(self, pack: Pack) -> None:
        """Have `next` return this pack again."""
        self._back = pack

    def _numbered(self, rows: pa.RecordBatch) -> Pack:
        watched = tuple(dict.fromkeys((*self._job.unit, *self._job.order)))
        before = self._last
        whole = {name: _joined(before, rows, name) for name in watched}
        self._last = rows.slice(rows.num_rows - 1).select(list(watched))
        count = rows.num_rows - (before is None)
        begins = _differ([whole[name] for name in self._job.unit], count)
        check_order(self._job, whole, begins)
        if before is None:
            begins = np.append(True, begins)
            self._groups -= 1
        groups = self._groups + np.cumsum(begins)
        self._groups = int(groups[-1])
        return Pack(rows, groups + 0, begins)


class TaskRows(Source):
    """The groups of one run of the engine, as a source; `buffer` holds the rows that matches may need."""

    def __init__(self, job: Job, packs: Packs) -> None:
        self._job = job
        self._packs = packs
        self._first = packs.next()
        self.buffer: RowBuffer[Pack] = RowBuffer()
        self._previous: Pack | None = None
        self.overlap: list[pa.RecordBatch] = []  # what was read, as prepared, that another chunk owns
        self.name, self.rows, self.available = "the task's rows", None, job.columns
        self.schema = pa.schema([]) if self._first is None else self._prepared(self._first).schema

    @property
    def empty(self) -> bool:
        """Whether there is nothing left to read."""
        return self._first is None

    def batches(self) -> Batches:
        """What the engine reads: bits, group, and the columns of windows and conditions across events."""
        pack, self._first = self._first, None
        while pack is not None:
            if self.buffer.seen >= ENOUGH and pack.begins.any():
                pack, rest = pack.cut(int(np.argmax(pack.begins)))
                self._packs.put_back(rest)
                if pack.rows.num_rows:
                    yield self._taken(pack)
                return
            yield self._taken(pack)
            pack = self._packs.next()

    def take(self, positions: Any, columns: Any = None) -> pa.Table:
        """Rows by position are read from `buffer` instead."""
        raise NotImplementedError

    def _taken(self, pack: Pack) -> pa.RecordBatch:
        """The pack as the engine reads it; drops packs of earlier groups, and those that have left the window."""
        first = pack.groups[0]
        if self._job.plan.late:  # what is open in earlier groups is decided at the end, in this one by the next pack
            last = self._previous
            self.buffer.add(pack.rows, pack, lambda old: bool(old.groups[0] == first) and self._outside(old, last))
            self._previous = pack
        else:
            self.buffer.add(pack.rows, pack, lambda old: bool(old.groups[-1] != first) or self._outside(old, pack))
        prepared = self._prepared(pack)
        if self._job.owned:
            self.overlap.append(prepared.filter(pc.invert(pack.rows.column(OWNED))))
        return prepared

    def _outside(self, old: Pack, new: Pack | None) -> bool:
        if self._job.window is None or new is None or old.groups[-1] != new.groups[0]:
            return False
        name, size = self._job.window
        _, low, unknown = value_keys(new.rows.column(name).slice(0, 1), name, size)
        last, missing = numbers(old.rows.column(name), name)
        return missing is None and unknown is None and bool(keys_of(last).max() < low[0])

    def _prepared(self, pack: Pack) -> pa.RecordBatch:
        rows, job = pack.rows, self._job
        words = [rows.column(name).to_numpy(zero_copy_only=False) for name in job.words]
        bits = [pa.array(((words[k // WORD] >> (k % WORD)) & 1).astype(np.bool_)) for k in range(job.tests)]
        columns = {f"{BIT}{k}": bit for k, bit in enumerate(bits)} | {GROUP: pa.array(pack.groups)}
        return pa.RecordBatch.from_pydict(columns | {name: rows.column(name) for name in job.read})


def check_order(job: Job, columns: Mapping[str, pa.Array], begins: Flags) -> None:
    """Refuse what leaves the order of events open; row k + 1 begins a group where `begins[k]`."""
    if job.time is not None and numbers(columns[job.time], job.time)[1] is not None:
        raise StreamError(f"some rows have no time in `{job.time}`", hint="filter such rows out, or fill them in")
    same = ~begins & ~_differ([columns[name] for name in job.order], begins.size)
    if same.any():
        ordering = {name: columns[name] for name in job.order}
        if ROW in ordering:
            raise StreamError(
                "the same row of a file comes twice: the DataFrame reads a file more than once",
                hint="name every path once, and no file in a folder that is named, too",
            )
        raise tied(ordering, int(np.argmax(same)), ", or a column of positions: ", Setting("position"))
    if job.position is not None:
        values = whole_positions(columns[job.position], job.position)
        if (~begins & (values[1:] <= values[:-1])).any():
            raise positions_fall(job.position, job.order)


def _joined(before: pa.RecordBatch | None, rows: pa.RecordBatch, name: str) -> pa.Array:
    return rows.column(name) if before is None else pa.concat_arrays([before.column(name), rows.column(name)])


def _differ(columns: list[pa.Array], count: int) -> Flags:
    """Which rows differ from the one before them in some column; NULLs equal each other."""
    differ = np.zeros(count, np.bool_)
    for column in columns:
        differ |= ~equal_to_next(column)
    return differ
