"""What runs in Spark's tasks, and what travels there; it depends neither on the driver nor on `cerite.api`."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

Batches = Iterator[pa.RecordBatch]  # what a task reads, and what it gives
