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
from cerite.engine.engines import recogniser_of
from cerite.engine.intake.intake import Columns, Intake


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

    def found(self) -> Matches:
        """A fresh, lazy result."""
        return self.query.run(self.stream.table, time=self.stream.time, type="type", semantics=self._semantics)

    def conditions(self) -> None:
        """The batches as the kernels read them, and nothing else."""
        intake = self.intake()
        for batch in self._batches(intake):
            intake.take(batch)

    def update(self) -> int:
        """The tECS is built for every event, and nothing is enumerated; gives the occurrences."""
        intake = self.intake()
        return self._update(intake, self._batches(intake))

    def update_batches(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> int:
        """The same on batches that come one by one."""
        intake = self.intake(schema)
        return self._update(intake, batches)

    def count(self) -> int:
        """The number of matches."""
        return self.found().count()

    def tables(self) -> int:
        """All matches as Arrow tables, each dropped when the next comes."""
        return sum(table.num_rows for table in self.found().tables())

    def to_arrow(self) -> int:
        """All matches in one Arrow table."""
        rows: int = self.found().to_arrow().num_rows
        return rows

    def _update(self, intake: Intake, batches: Iterable[pa.RecordBatch]) -> int:
        engine = recogniser_of(intake)
        for batch in batches:
            rows = intake.take(batch)
            engine.discard(engine.read(rows))
        return engine.occurrences

    def intake(self, schema: pa.Schema | None = None) -> Intake:
        """What reads the stream's batches, or those of a schema."""
        return Intake(self.plan, schema or self.stream.table.schema, Columns("type", self.stream.time, None))

    def _batches(self, intake: Intake) -> list[pa.RecordBatch]:
        batches: list[pa.RecordBatch] = self.stream.table.select(list(intake.read)).to_batches(BATCH_ROWS)
        return batches
