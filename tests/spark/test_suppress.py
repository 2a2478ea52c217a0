"""SUPPRESS on Spark reports what it reports locally: by key in parallel, over the whole stream in one ordered task."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import cerite
from cerite.spark import OneTaskWarning, count, match
from tests.spark.support import frame

PAIRS = "SELECT * FROM S WHERE A AS x ; B AS y WITHIN 40 milliseconds"
PER_KEY = f"{PAIRS.replace('WITHIN', 'PARTITION BY [k] WITHIN')} SUPPRESS 300 milliseconds PER PARTITION"
WHOLE = f"{PAIRS.replace('WITHIN', 'PARTITION BY [k] WITHIN')} SUPPRESS 300 milliseconds"
UNANSWERED = "SELECT * FROM S WHERE A AS x ; NOT B PARTITION BY [k] WITHIN 40 milliseconds SUPPRESS 100 milliseconds"
READING = "SELECT * FROM S WHERE A AS x ; B AS y FILTER y[v > x.v] SUPPRESS 250 milliseconds"


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = random.Random(12)
    at, rows = 0, []
    for _ in range(900):
        at += rng.randint(1, 9)
        rows.append({"type": rng.choice("AABC"), "k": rng.randrange(7), "v": rng.random(), "at": at})
    return pa.Table.from_pylist(rows)


def local(table: pa.Table, text: str) -> list[tuple[int, int]]:
    """When the matches end; which of those that end together is reported is left open."""
    matches = cerite.query(text).run(table, time="at")
    at, keys = table.column("at").to_pylist(), table.column("k").to_pylist()
    assert 5 < matches.count() < matches.suppressed()
    return sorted((at[match.end], keys[match.end]) for match in matches)


@pytest.mark.parametrize("tasks", [1, 3])
def test_by_key(quick: SparkSession, table: pa.Table, tasks: int) -> None:
    text = PER_KEY if tasks == 1 else f"{UNANSWERED} PER PARTITION"
    rows = match(frame(quick, table), text, time="at", partitions=tasks).select("end_time", "k").collect()
    assert sorted((row["end_time"], row["k"]) for row in rows) == local(table, text)
    assert count(frame(quick, table), text, time="at", partitions=tasks) == len(rows)


@pytest.mark.parametrize("text", [UNANSWERED, READING])
def test_over_the_whole_stream_in_one_task(quick: SparkSession, table: pa.Table, text: str) -> None:
    with pytest.warns(OneTaskWarning, match="SUPPRESS: what is reported depends on the match reported before it"):
        rows = match(frame(quick, table), text, time="at").select("end_time").collect()
    assert sorted(row["end_time"] for row in rows) == [at for at, _ in local(table, text)]


@pytest.mark.filterwarnings("ignore::cerite.spark.OneTaskWarning")
@pytest.mark.parametrize("text", [PER_KEY, WHOLE])
def test_files_in_order(quick: SparkSession, table: pa.Table, text: str, tmp_path: Path) -> None:
    for part in range(3):
        pq.write_table(table.slice(300 * part, 300), tmp_path / f"part {part}.parquet", row_group_size=100)
    rows = match(quick.read.parquet(str(tmp_path)), text, time="at").select("end_time", "k").collect()
    assert sorted((row["end_time"], row["k"]) for row in rows) == local(table, text)
