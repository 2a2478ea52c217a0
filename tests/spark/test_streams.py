"""FROM several streams: a mapping of DataFrames is what the local engine makes of a mapping of tables."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from cerite.api.query import query
from cerite.core.errors import StreamError
from cerite.spark import count, match

TEXT = "SELECT * FROM Sales, Prices WHERE SELL AS x ; PRICE AS y FILTER y[price > x.paid] WITHIN 3 milliseconds"
SALES = pa.table({"type": ["SELL"] * 3, "paid": [5, 3, 9], "at": [0, 2, 4]})
PRICES = pa.table({"type": ["PRICE"] * 3, "price": [4, 6, 8], "at": [1, 3, 5]})


def test_streams_are_put_together(spark: SparkSession) -> None:
    streams = {"Sales": SALES, "Prices": PRICES}
    frames = {name: spark.createDataFrame(table) for name, table in streams.items()} | {"Other": spark.range(1)}
    local = query(TEXT).run(streams, time="at")
    rows = match(frames, TEXT, time="at", partitions=2).select("start_time", "end_time").collect()
    assert sorted(map(tuple, rows)) == sorted((each.start, each.end) for each in local)
    assert count(frames, TEXT, time="at") == local.count() == 3


@pytest.mark.parametrize(
    ("data", "expected"),
    [({"Sales": SALES}, "FROM names `Prices`"), (SALES, "reads a DataFrame of Spark, not Table")],
)
def test_what_is_no_stream_is_refused(data: Any, expected: str) -> None:
    with pytest.raises(StreamError, match=expected):
        match(data, TEXT, time="at")


def test_columns_that_do_not_go_together(spark: SparkSession) -> None:
    frames = {"Sales": spark.createDataFrame(SALES), "Prices": spark.createDataFrame([(["a"],)], "at array<string>")}
    with pytest.raises(StreamError, match="do not go together"):
        match(frames, TEXT, time="at")
