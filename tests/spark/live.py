"""Live streams for tests: a folder that files are put into, queries over it that run to the end of what is there.

Many queries run in one streaming query, as a union: starting one costs seconds whatever its size.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.streaming.query import StreamingQuery

from cerite.spark import match
from tests.spark.support import united

Rows = list[dict[str, Any]]


@dataclass
class Folder:
    """Events as files that arrive one after the other, and the stream of them; `home` is a folder of the test's own."""

    spark: SparkSession
    home: Path
    schema: str
    files: int = 0
    runs: int = 0
    arrow: pa.Schema | None = None
    last: StreamingQuery | None = field(default=None, repr=False)

    def put(self, rows: Rows | pa.Table) -> None:
        """One more file."""
        table = pa.Table.from_pylist(rows, schema=self.arrow) if isinstance(rows, list) else rows
        (self.home / "in").mkdir(parents=True, exist_ok=True)
        draft = self.home / f"draft-{self.files}"
        pq.write_table(table, draft)
        draft.rename(self.home / "in" / f"{self.files:05}.parquet")
        self.files += 1

    @property
    def stream(self) -> DataFrame:
        """The stream, a file in a micro-batch."""
        return self.spark.readStream.schema(self.schema).option("maxFilesPerTrigger", 1).parquet(str(self.home / "in"))

    @property
    def rest(self) -> DataFrame:
        """The same as data at rest."""
        return self.spark.read.schema(self.schema).parquet(str(self.home / "in"))

    def run(self, result: DataFrame, name: str = "one") -> Rows:
        """Everything that the sink has when all files are read; the checkpoint and the sink have this name."""
        out, checkpoint = self.home / name / "out", self.home / name / "checkpoint"
        writing = result.writeStream.format("parquet").option("path", str(out))
        self.last = writing.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
        self.last.awaitTermination()
        return [row.asDict() for row in self.spark.read.schema(result.schema).parquet(str(out)).collect()]

    def several(self, questions: Sequence[tuple[Any, dict[str, Any]]]) -> DataFrame:
        """The ids of the matches of many queries, as one result: number of the query, id, time of the end."""
        rows = [
            match(self.stream, query, metrics=f"q{number}", **how).select(
                fn.lit(number).alias("query"), "match", fn.col("end_time").cast("string").alias("end")
            )
            for number, (query, how) in enumerate(questions)
        ]
        return united(rows)


def disordered(rows: Iterable[Any], by: int, seed: int) -> list[Any]:
    """The rows, each at most so many places from its own."""
    chance = random.Random(seed)
    return [
        row
        for _, row in sorted(
            ((place + chance.uniform(0, by), row) for place, row in enumerate(rows)), key=lambda each: each[0]
        )
    ]
