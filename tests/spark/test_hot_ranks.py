"""A hot key under a window that counts events is cut by its events' ranks: chunks overlap by exactly the window."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from pyspark.sql import SparkSession

from cerite.api.query import query
from cerite.spark import count
from cerite.spark.api import routed
from cerite.spark.driver.request import Options, make_request
from tests.spark.support import ends, letters

LATER = "A AS x ; B AS y FILTER x[v > 0.5]"
NEXT = "A AS x : B AS y FILTER x[v > 0.5]"


@pytest.mark.parametrize(
    ("pattern", "tasks"), [(LATER, 2), pytest.param(LATER, 7, marks=pytest.mark.nightly), (NEXT, 7)]
)
def test_a_hot_key_is_cut_by_rank(spark: SparkSession, pattern: str, tasks: int) -> None:
    rng = np.random.default_rng(4)
    table = letters(3000, np.where(rng.random(3000) < 0.8, 0, rng.integers(1, 100, 3000)))
    text = f"SELECT * FROM S WHERE {pattern} PARTITION BY [k] WITHIN 6 EVENTS"
    df = spark.createDataFrame(table)
    request = make_request(df, text, Options(time="at"))
    route = routed(request, tasks, "auto")
    assert route.shuffle is not None
    assert route.shuffle.layout.hot is not None
    assert [len(cuts) > 0 for cuts in route.shuffle.layout.hot.cuts.values()] == [True]
    expected = Counter((each.start, each.end) for each in query(text).run(table, time="at"))
    assert ends(route.matches().collect()) == expected
    assert count(df, text, time="at", partitions=tasks) == sum(expected.values())
