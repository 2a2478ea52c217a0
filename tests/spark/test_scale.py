"""Many keys, a key too large for one task, times of every type: the same matches."""

from __future__ import annotations

from collections import Counter
from functools import reduce
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from cerite.api.query import query
from cerite.spark import match
from cerite.spark.api import routed
from cerite.spark.driver.request import Options, make_request
from tests.spark.support import ends, letters, some_by_day

TEXT = "SELECT * FROM S WHERE A AS x ; B AS y FILTER x[v > 0.5] PARTITION BY [k] WITHIN 200 milliseconds"


@pytest.mark.parametrize("numbers", some_by_day(((1, 7), (2, 200)), ((1, 7),)))
def test_a_hundred_thousand_keys(spark: SparkSession, numbers: tuple[int, int]) -> None:
    table = letters(300_000, np.random.default_rng(2).integers(0, 100_000, 300_000))
    text = TEXT.replace("200 milliseconds", "200000 milliseconds")
    local = Counter((each.start, each.end) for each in query(text).run(table, time="at"))
    sums = [sum(pair[side] * times for pair, times in local.items()) for side in (0, 1)]
    df = spark.createDataFrame(table)
    every = [match(df, text, time="at", partitions=tasks) for tasks in numbers]
    figures = [fn.count("match"), fn.sum("start_time"), fn.sum("end_time"), fn.bit_xor(fn.xxhash64("match"))]
    sums_seen = {tuple(row) for row in reduce(DataFrame.unionAll, [each.agg(*figures) for each in every]).collect()}
    assert len(sums_seen) == 1, "the same matches with the same ids"
    assert list(sums_seen.pop()[:3]) == [sum(local.values()), *sums]


@pytest.mark.parametrize("tasks", some_by_day((2, 7, 200), (7,)))
def test_a_hot_key_is_cut(spark: SparkSession, tasks: int) -> None:
    rng = np.random.default_rng(4)
    keys = np.where(rng.random(6000) < 0.8, 0, rng.integers(1, 200, 6000))
    table = letters(6000, keys)
    df = spark.createDataFrame(table)
    request = make_request(df, TEXT, Options(time="at"))
    route = routed(request, tasks, "auto")
    assert route.shuffle is not None
    assert route.shuffle.layout.hot is not None
    assert len(route.shuffle.layout.hot.cuts) == 1
    expected = Counter((each.start, each.end) for each in query(TEXT).run(table, time="at"))
    result = route.matches()
    assert ends(result.collect()) == expected
    assert result.select(fn.countDistinct("match")).collect()[0][0] == sum(expected.values())


TIMES = {
    "zoned": pa.timestamp("us", "UTC"),
    "without a zone": pa.timestamp("us"),
    "float": pa.float64(),
    "int": pa.int32(),
}


@pytest.mark.parametrize("name", TIMES)
def test_times_of_every_type(quick: SparkSession, tmp_path: Path, name: str) -> None:
    """Over two days, across a change of the session's clock: windows are lengths of time, not of the clock."""
    timed = pa.types.is_timestamp(TIMES[name])
    steps = np.arange(400) * (432_000_000 if timed else 432_000) + (1_710_000_000_000_000 if timed else 0)
    at = pa.array(steps).cast(TIMES[name])
    table = letters(400, np.zeros(400, np.int64)).set_column(3, "at", at).append_column("n", pa.array(np.arange(400)))
    text = "SELECT * FROM S WHERE A AS x ; B AS y FILTER x[v > 0.5] WITHIN 2 hours"
    pq.write_table(table, tmp_path / "events.parquet", row_group_size=50)
    df = quick.read.parquet(str(tmp_path))
    expected = Counter((each.start, each.end) for each in query(text).run(table, time="at"))
    for shuffled in (df, df.filter("n >= 0")):
        rows = match(shuffled, text, time="at", position="n", partitions=5).collect()
        assert Counter((row["start"], row["end"]) for row in rows) == expected
