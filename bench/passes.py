"""The passes that are timed: reading conditions, updating the tECS, counting, enumerating into Arrow."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

import cerite
from bench.streams import Stream
from bench.workloads import Workload
from cerite.api.result import Matches
from cerite.data.source import BATCH_ROWS
from cerite.engine.bind import bind
from cerite.engine.events.rows import Columns
from cerite.engine.run import Run


@dataclass
class Passes:
    """One workload on one stream, ready to be run over and over."""

    workload: Workload
    stream: Stream

    def __post_init__(self) -> None:
        self.query = cerite.query(self.workload.text)
        self.plan = self.query.plan(self._semantics)

    @property
    def _semantics(self) -> Any:
        return self.workload.semantics

    def matches(self) -> Matches:
        """A fresh, lazy result."""
        return self.query.run(self.stream.table, time=self.stream.time, type="type", semantics=self._semantics)

    def conditions(self) -> None:
        """Brings the batches into the form that the kernels read, and nothing else."""
        run = self.run()
        for batch in self._batches(run):
            run.intake.take(batch)

    def update(self) -> int:
        """Builds the tECS for every event and enumerates nothing; returns the number of occurrences."""
        run = self.run()
        return self._update(run, self._batches(run))

    def update_batches(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> int:
        """The same on batches that come one by one."""
        return self._update(self.run(schema), batches)

    def count(self) -> int:
        """The number of matches."""
        return self.matches().count()

    def tables(self) -> int:
        """All matches as Arrow tables, each dropped when the next comes."""
        return sum(table.num_rows for table in self.matches().tables())

    def to_arrow(self) -> int:
        """All matches in one Arrow table."""
        rows: int = self.matches().to_arrow().num_rows
        return rows

    def _update(self, run: Run, batches: Iterable[pa.RecordBatch]) -> int:
        for batch in batches:
            run.recogniser.discard(run.find(batch))
        return run.recogniser.occurrences

    def run(self, schema: pa.Schema | None = None) -> Run:
        """A run over the stream's batches, or those of a schema."""
        return Run(bind(self.plan, schema or self.stream.table.schema, Columns("type", self.stream.time, None)))

    def _batches(self, run: Run) -> list[pa.RecordBatch]:
        batches: list[pa.RecordBatch] = self.stream.table.select(list(run.program.read)).to_batches(BATCH_ROWS)
        return batches
