"""Streams of odd shapes: on any number of partitions Spark finds what the local engine finds, with the same ids."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from cerite.api.query import query
from cerite.core.match import Match
from cerite.spark import match, task_error
from tests.spark.support import POSITION, collect_all, difference, frame, some_by_day

TASKS = (1, 7)
MANY_TASKS = 40  # many more than keys
ROUTES = {
    "chunks": "WITHIN 20 milliseconds",
    "chunks of events": "WITHIN 6 EVENTS",
    "partitions": "PARTITION BY [k]",
    "partitions under a window": "PARTITION BY [k] WITHIN 20 milliseconds",
}
BY_DAY = ("chunks of events", "partitions under a window")


def stream(rows: int, keys: Any, *, at: Any = None) -> pa.Table:
    rng = np.random.default_rng(7)
    kinds, times = rng.choice(["A", "B", "C"], rows), np.arange(rows) if at is None else at
    return pa.table({"type": kinds, "k": keys, "v": rng.integers(0, 9, rows), "at": times})


def query_for(route: str) -> str:
    return f"SELECT * FROM S WHERE A AS x ; B AS y FILTER x[v > 4] AND y[v > x.v] {ROUTES[route]}"


def agreed(
    spark: SparkSession, table: pa.Table, text: str, numbers: tuple[int, ...] = TASKS, **options: Any
) -> list[Match]:
    """The matches, which are the local engine's and the same for all numbers of partitions."""
    df = frame(spark, table)
    options = options or {"position": POSITION}
    results = collect_all([match(df, text, time="at", partitions=tasks, **options) for tasks in numbers])
    expected = list(query(text).run(table, time="at"))
    assert not difference(results[0].values(), expected)
    for each in results[1:]:
        assert not difference(each.items(), results[0].items())
    return expected


@pytest.mark.parametrize("route", some_by_day(("partitions", "partitions under a window"), BY_DAY))
def test_skewed_keys(quick: SparkSession, route: str) -> None:
    rng = np.random.default_rng(1)
    keys = np.where(rng.random(300) < 0.9, 0, rng.integers(1, 20, 300))
    results = agreed(quick, stream(300, keys), query_for(route), (*TASKS, MANY_TASKS) if "window" in route else TASKS)
    assert len({each.start for each in results}) > 15


@pytest.mark.parametrize("route", some_by_day(ROUTES, BY_DAY))
def test_all_times_equal(quick: SparkSession, route: str) -> None:
    table = stream(60, np.arange(60) % 3, at=np.full(60, 5))
    assert agreed(quick, table, query_for(route), position=POSITION)
    assert agreed(quick, table, query_for(route), order_by=[POSITION])


@pytest.mark.parametrize("route", ROUTES)
def test_all_times_equal_and_nothing_to_tell_them_apart(quick: SparkSession, route: str) -> None:
    df = frame(quick, stream(60, np.arange(60) % 3, at=np.full(60, 5)))
    for tasks in TASKS:
        with pytest.raises(Exception, match="StreamError") as caught:
            match(df, query_for(route), time="at", partitions=tasks).collect()
        assert "two events cannot be ordered: both have at = 5" in str(task_error(caught.value))


@pytest.mark.parametrize("route", some_by_day(ROUTES, BY_DAY))
def test_no_rows_and_one_row(quick: SparkSession, route: str) -> None:
    table = stream(1, ["a"]).set_column(0, "type", pa.array(["A"]))
    assert agreed(quick, table.slice(0, 0), query_for(route)) == []
    results = agreed(quick, table, f"SELECT * FROM S WHERE A AS x {ROUTES[route]}")
    assert [str(each) for each in results] == ["[0,0] A=0, x=0"]


@pytest.mark.parametrize("route", some_by_day(("partitions", "partitions under a window"), BY_DAY))
def test_events_without_a_key_are_in_no_partition(quick: SparkSession, route: str) -> None:
    keys = [None if row % 3 else row % 2 for row in range(120)]
    results = agreed(quick, stream(120, pa.array(keys, pa.int64())), query_for(route))
    assert results
    assert not any(keys[position] is None for each in results for position in each.positions)
    numbers = pa.array([float("nan") if key is None else key for key in keys], pa.float64())
    assert agreed(quick, stream(120, numbers), query_for(route)) == results


def test_unicode(quick: SparkSession) -> None:
    """Keys, values, types, variables and columns; é in one character is not e with an accent."""
    keys = pa.array(["é", "e\u0301", "日本", "🦊", "", "ß", "SS"] * 20)
    table = stream(140, keys).rename_columns(["type", "Schlüssel.`日本`", "größe 🦊", "at"])
    kinds = {"A": "Verkäufe", "B": "買う", "C": "c"}
    table = table.set_column(0, "type", pa.array([kinds[each] for each in table["type"].to_pylist()]))
    text = """SELECT * FROM `Bücher` WHERE `Verkäufe` AS `é` ; 買う AS 本 FILTER `é`[`größe 🦊` > 2] AND 本[CONDITION]
              PARTITION BY [`Schlüssel.``日本```] WITHIN 90 milliseconds"""
    both = agreed(quick, table, text.replace("CONDITION", "`Schlüssel.``日本``` IN {'é', '🦊'}"))
    one = agreed(quick, table, text.replace("CONDITION", "`Schlüssel.``日本``` = 'é'"))
    assert 0 < len(one) < len(both)
    assert {keys[each.start].as_py() for each in both} == {"é", "🦊"}
