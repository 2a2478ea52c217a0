"""Behind the shards: what they report becomes the rows of the result, matches and, on request, late events."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from cerite.spark.worker import Batches
from cerite.spark.worker.live_job import LATE
from cerite.spark.worker.packing import filled, read


def unpacker(schema: StructType, events: list[str], *, side: bool) -> Callable[[Batches], Batches]:
    """The function for `mapInArrow`; with late events (`side`), a row holds a match or a late event."""

    def unpacked(batches: Batches) -> Batches:
        whole = to_arrow_schema(schema, timezone="UTC") if side else None
        for batch in batches:
            for kind, payload in zip(*(batch.column(k).to_pylist() for k in range(2)), strict=True):
                rows = read(payload)
                if kind == LATE:
                    rows = _late(rows, events)
                yield rows if whole is None else filled(rows, whole)

    return unpacked


def _late(rows: pa.RecordBatch, events: list[str]) -> pa.RecordBatch:
    """Late events as structs: the event, why it was not read, and how far it lies behind the watermark."""
    late_by, reason = rows.column(rows.num_columns - 2), rows.column(rows.num_columns - 1)
    if pa.types.is_duration(late_by.type):
        late_by = pc.cast(late_by, pa.duration("us"))
    event = pa.StructArray.from_arrays([rows.column(name) for name in events], names=events)
    struct = pa.StructArray.from_arrays([event, reason, late_by], names=["event", "reason", "late_by"])
    return pa.RecordBatch.from_arrays([struct], names=["late"])
