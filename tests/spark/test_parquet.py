"""Parquet in time order is read by the tasks themselves; the result is that of the shuffle and of the local engine."""

from __future__ import annotations

import warnings
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from cerite.api.query import Query, query
from cerite.core.rejected import Rejected
from cerite.spark import OneTaskWarning, count, match, task_error
from cerite.spark.api import Reading, routed
from cerite.spark.driver.ordered_parquet import ParquetPlan
from cerite.spark.driver.request import Options, make_request
from tests.spark.support import POSITION, collect_all, difference, matches, some_by_day

QUERIES = {
    "chunks": "SELECT * FROM S WHERE A AS x ; B+ AS y FILTER x[v > 0.8] AND y[v < 0.1] WITHIN 30 milliseconds",
    "contiguous": "SELECT * FROM S WHERE A AS x : B AS y FILTER y[v > 0.5] WITHIN 3 milliseconds",
    "absence": "SELECT * FROM S WHERE A AS x ; NOT C ; B AS y FILTER x[v > 0.5] WITHIN 10 milliseconds",
    "count": "SELECT * FROM S WHERE A AS x ; B AS y FILTER x[v > 0.9] WITHIN 7 EVENTS",
    "partitions": "SELECT * FROM S WHERE A AS x ; B AS y FILTER x[v > 0.5] PARTITION BY [k] WITHIN 40 milliseconds",
    "registers": "SELECT x, y FROM S WHERE A AS x ; B AS y FILTER y[v > x.v AND k = x.k] WITHIN 60 milliseconds",
    "consume": "SELECT * FROM S WHERE A AS x ; B AS y PARTITION BY [k] WITHIN 40 milliseconds CONSUME BY ANY",
    "latest": "SELECT LAST * FROM S WHERE A AS x ; B AS y FILTER x[v > 0.5] WITHIN 20 milliseconds",
    "attribute": "SELECT * FROM S WHERE A AS x ; B AS y FILTER x[v > 0.9] WITHIN 20 [at]",
}


def stream(rows: int = 2000, *, ties: int = 1) -> pa.Table:
    rng = np.random.default_rng(3)
    keys = pa.array([("a", "b", "日本", None)[key] for key in rng.integers(0, 4, rows)])
    return pa.table(
        {
            "type": rng.choice(["A", "B", "C"], rows),
            "k": keys,
            "v": np.round(rng.random(rows), 2),
            "at": np.arange(rows) // ties,
            POSITION: np.arange(rows),
        }
    )


def written(folder: Path, table: pa.Table, *, files: int = 3, group: int = 150) -> str:
    size = -(-table.num_rows // files)
    for number in range(files):
        part = table.slice(number * size, size)
        pq.write_table(part, folder / f"part {number}.parquet", row_group_size=group)
    return str(folder)


def ordered(df: Any, text: str, **options: Any) -> ParquetPlan | Rejected:
    request = make_request(df, text, Options(time="at", **options))
    return routed(request, 3, "auto").ordered


BY_DAY = ("chunks", "absence", "count", "partitions", "registers")


@pytest.mark.parametrize("ties", [4, pytest.param(1, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", some_by_day(QUERIES, BY_DAY))
def test_differential_plans(quick: SparkSession, tmp_path: Path, name: str, ties: int) -> None:
    table = stream(ties=ties)
    df = quick.read.parquet(written(tmp_path, table))
    plan = ordered(df, QUERIES[name])
    assert isinstance(plan, ParquetPlan)
    assert bool(plan.cuts) is (name != "consume")
    expected = sorted(Query(query(QUERIES[name]).query).run(table, time="at"), key=str)
    keys = ["k"] if "PARTITION" in QUERIES[name] else []
    ids: set[str] = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OneTaskWarning)
        for options in ({"partitions": 5}, {"partitions": 3, "order_by": [POSITION]}, {"read": "spark"}):
            result = match(df, QUERIES[name], time="at", **options)
            rows = result.collect()
            assert count(df, QUERIES[name], time="at", **options) == len(rows)
            shown = [column for column in result.columns if column not in ("match", "start_time", "end_time", *keys)]
            assert sorted(_told(row, shown) for row in rows) == sorted(map(_local, expected))
            if "order_by" not in options:
                ids = ids or {row["match"] for row in rows}
                assert {row["match"] for row in rows} == ids, "the same ids, whatever the plan"


def _told(row: Any, variables: list[str]) -> str:
    return str(sorted((name, [event[POSITION] for event in row[name]]) for name in variables if row[name]))


def _local(match: Any) -> str:
    return str(sorted((name, list(positions)) for name, positions in match.bindings))


def test_parquet_in_no_order_is_read_by_the_tasks(quick: SparkSession, tmp_path: Path) -> None:
    """By the tasks, by Spark, and sorted by Spark: the same matches and ids, which are the local engine's."""
    table = stream(900)
    mixed = table.take(np.random.default_rng(5).permutation(900))
    df = quick.read.parquet(written(tmp_path, mixed, group=130))
    names = ("absence", "partitions", "consume")
    results: list[Any] = []
    for name in names:
        request = make_request(df, QUERIES[name], Options(time="at"))
        ways: tuple[tuple[int, Reading], ...] = ((3, "auto"), (3, "spark"))
        for tasks, read in ways:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", OneTaskWarning)
                shuffle = routed(request, tasks, read).shuffle
            assert shuffle is not None
            assert shuffle.read_by_tasks is (read == "auto")
            assert shuffle.unpacked is None
            results.append(shuffle.matches(request))
        by_spark = routed(request, 3, "spark").shuffle
        assert by_spark is not None
        results.append(replace(by_spark, unpacked=Rejected("for the test")).matches(request))
    seen = collect_all(results)
    for place, name in enumerate(names):
        first, *others = seen[3 * place : 3 * place + 3]
        assert sorted(map(_local, first.values())) == sorted(map(_local, query(QUERIES[name]).run(table, time="at")))
        assert first
        for each in others:
            assert not difference(each.items(), first.items())
    for read in ("auto", "spark"):
        assert count(df, QUERIES["partitions"], time="at", partitions=3, read=read) == len(seen[3])


def test_what_is_not_in_order_is_shuffled(quick: SparkSession, tmp_path: Path) -> None:
    table = stream(600)
    plain = quick.read.parquet(written(tmp_path, table))
    assert isinstance(ordered(plain, QUERIES["chunks"]), ParquetPlan)
    assert "not a plain scan" in str(ordered(plain.filter("v > 0.1"), QUERIES["chunks"]))
    assert "gathered by key" in str(ordered(plain, "SELECT * FROM S WHERE A ; B PARTITION BY [k]"))
    assert "no statistics" in str(ordered(quick.read.parquet(_without_statistics(tmp_path, table)), QUERIES["chunks"]))


def test_files_in_the_legacy_calendar_are_read_by_spark(quick: SparkSession, tmp_path: Path) -> None:
    """Spark's versions 1 and 2 wrote days before 1582 in another calendar, which Spark converts, and Arrow does not."""
    columns = {"type": ["A", "A"], "day": [date(1500, 1, 1)] * 2, "at": [datetime(1500, 1, 1), datetime(3000, 1, 1)]}
    told = {"outputTimestampType": "TIMESTAMP_MICROS", "datetimeRebaseModeInWrite": "LEGACY"}
    before = {name: quick.conf.get(f"spark.sql.parquet.{name}") for name in told}
    rows = pa.table(columns).cast(pa.schema({"type": "string", "day": "date32", "at": pa.timestamp("us", "UTC")}))
    try:
        for name, value in told.items():
            quick.conf.set(f"spark.sql.parquet.{name}", value)
        quick.createDataFrame(rows).coalesce(1).write.parquet(str(tmp_path / "old"))
    finally:
        for name, former in before.items():
            quick.conf.set(f"spark.sql.parquet.{name}", str(former))
    df = quick.read.parquet(str(tmp_path / "old"))
    text = "SELECT x[day] FROM S WHERE A AS x FILTER x[day <= '1500-01-01'] WITHIN 1 second"
    assert "legacy calendar" in str(ordered(df, text))
    assert count(df, text, time="at") == query(text).run(rows, time="at").count() == 2


def test_a_file_that_is_read_twice_is_refused(quick: SparkSession, tmp_path: Path) -> None:
    folder = written(tmp_path, stream(60), files=2)
    df = quick.read.parquet(folder, f"{folder}/part 0.parquet")
    for read in ("auto", "spark"):
        with pytest.raises(Exception, match="reads a file more than once") as caught:
            count(df, QUERIES["chunks"], time="at", read=read)
        assert "name every path once" in str(task_error(caught.value))


def test_a_time_inside_a_struct_is_read_by_spark(quick: SparkSession, tmp_path: Path) -> None:
    table = stream(200)
    inner = pa.StructArray.from_arrays([table["at"].combine_chunks()], ["at"])
    path = written(tmp_path, table.drop_columns(["at"]).append_column("ctx", inner))
    df, text = quick.read.parquet(path), QUERIES["chunks"]
    expected = query(text).run(table, time="at").count()
    assert count(df, text, time="ctx.at") == count(df, text, time="ctx.at", read="spark") == expected > 0


def _without_statistics(folder: Path, table: pa.Table) -> str:
    path = folder / "bare"
    path.mkdir()
    pq.write_table(table, path / "bare.parquet", write_statistics=False)
    return str(path)


def test_rows_out_of_order_inside_a_row_group_are_sorted(quick: SparkSession, tmp_path: Path) -> None:
    table = stream(400)
    turned = pa.concat_tables([table.slice(at, 100).take(list(reversed(range(100)))) for at in range(0, 400, 100)])
    df = quick.read.parquet(written(tmp_path, turned, files=1, group=100))
    assert isinstance(ordered(df, QUERIES["chunks"]), ParquetPlan)
    result = matches(match(df, QUERIES["chunks"], time="at", position=POSITION, partitions=3))
    assert sorted(result, key=str) == sorted(query(QUERIES["chunks"]).run(table, time="at"), key=str)


def test_ids_tell_files_apart_but_not_where_they_lie(quick: SparkSession, tmp_path: Path) -> None:
    """Two folders with files of the same name and rows; then the same files somewhere else."""
    ids = []
    for place in ("here", "there"):
        for part in ("a", "b"):
            (tmp_path / place / part).mkdir(parents=True)
            pq.write_table(stream(60), tmp_path / place / part / "events.parquet")
        df = quick.read.parquet(*(str(tmp_path / place / part) for part in ("a", "b")))
        for read in ("auto", "spark"):
            result = match(df, QUERIES["chunks"], time="at", read=read).select("match").collect()
            ids.append([row[0] for row in result])
    assert len(set(ids[0])) == len(ids[0]) > 0
    assert all(sorted(each) == sorted(ids[0]) for each in ids)
