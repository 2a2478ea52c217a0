"""The rows of the result that a task returns: those of the matches that it owns, in the shape that all results have."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cerite.engine.results.output import MatchChunk
from cerite.spark.worker import Batches
from cerite.spark.worker.job import OWNED, Job


class Output:
    """Builds result batches for one job."""

    def __init__(self, job: Job) -> None:
        self._owning = job.owned
        self._shape = job.shape
        self._rows: pa.RecordBatch | None = None
        self._owned = np.zeros(0, np.bool_)  # which of these rows the chunk owns

    def batches(self, chunk: MatchChunk, base: int, rows: pa.RecordBatch) -> Batches:
        """The matches as batches; `base` is the position of the first of the rows."""
        shifted = MatchChunk(chunk.starts - base, chunk.ends - base, chunk.offsets, chunk.positions - base,
                             chunk.labels, chunk.sequence)  # fmt: skip
        if self._owning:
            if rows is not self._rows:
                self._rows, self._owned = rows, rows.column(OWNED).to_numpy(zero_copy_only=False)
            mine = self._owned[shifted.ends]
            shifted = shifted if mine.all() else shifted.select(np.flatnonzero(mine))
        return self._shape.batches(shifted, rows)
