"""What is wrong is reported, with the remedy: names and kinds on the driver, values of the data by a task."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from cerite import query
from cerite.core.errors import CeriteError, StreamError
from cerite.spark import OneTaskWarning, count, explain, match, task_error
from cerite.spark.worker.task import mapped
from tests.spark.support import POSITION, frame

WINDOWED = "SELECT * FROM S WHERE A AS x ; B AS y FILTER y[v > 1] WITHIN 5 milliseconds"


def events(**more: Any) -> pa.Table:
    return pa.table({"type": ["A", "B", "B"], "v": [1, 2, 3], "at": [0, 1, 2], **more})


REFUSED = {
    "time is missing": (WINDOWED, {}, "name it: time=…"),
    "no such time": (WINDOWED, {"time": "ats"}, "did you mean `at`?"),
    "no such order": (WINDOWED, {"time": "at", "order_by": ["vv"]}, "no column `vv`"),
    "no such key": ("SELECT * FROM S WHERE A ; B PARTITION BY [name]", {"time": "at"}, "`name`"),
    "no such attribute": (WINDOWED.replace("v >", "prize >"), {"time": "at"}, "`prize`"),
    "kinds clash": (WINDOWED.replace("v > 1", "v = 'a'"), {"time": "at"}, "compares things of one kind"),
    "time is text": (WINDOWED, {"time": "type"}, "not numbers or timestamps"),
    "position is text": (WINDOWED, {"time": "at", "position": "type"}, "whole numbers"),
    "nothing orders": ("SELECT * FROM S WHERE A ; B", {}, "time=…, order_by=[…], position=…"),
    "names clash": ("SELECT * FROM S WHERE A AS a WITHIN 5 milliseconds", {"time": "at"}, "SELECT x, y"),
    "an array": ("SELECT * FROM S WHERE A AS x FILTER x[tags > 1] WITHIN 5 EVENTS", {"time": "at"}, "tags"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_before_anything_runs(spark: SparkSession, name: str) -> None:
    text, options, expected = REFUSED[name]
    df = spark.createDataFrame([("A", 1, 0, [1])], "type string, v int, at long, tags array<int>")
    with pytest.raises(CeriteError) as caught:
        match(df, text, **options)  # type: ignore[arg-type]
    assert expected in str(caught.value)


def test_members_of_structs_with_one_dotted_name_are_refused(spark: SparkSession) -> None:
    df = spark.createDataFrame([], "type string, v int, at long, a struct<b: struct<c: int>, `b.c`: int>")
    with pytest.raises(StreamError, match=r"`a\.b\.c` could be a column of that name or a member of a struct"):
        match(df, WINDOWED, time="at")


@pytest.mark.parametrize(
    ("table", "options", "expected"),
    [
        (events(at=[0, 1, 1]), {"time": "at"}, "order_by=[…]"),
        (events(at=[0, None, 1]), {"time": "at"}, "no time in `at`"),
        (events(place=[3, 2, 1]), {"time": "at", "position": "place"}, "do not rise"),
    ],
)
def test_refused_by_a_task(spark: SparkSession, table: pa.Table, options: dict[str, Any], expected: str) -> None:
    with pytest.raises(Exception, match="StreamError") as caught:
        match(frame(spark, table), WINDOWED, partitions=2, **options).collect()
    error = task_error(caught.value)
    assert error is not None
    assert expected in str(error)
    assert "Traceback" not in str(error)


def test_a_refusal_of_a_task_comes_first(spark: SparkSession) -> None:
    df = frame(spark, events(at=[0, 1, 1]))
    with pytest.raises(StreamError, match="two events cannot be ordered") as caught:
        count(df, WINDOWED, time="at")
    assert caught.value.hint is not None
    with pytest.raises(PythonException) as wrapped:
        match(df, WINDOWED, time="at").collect()
    first, second, *_ = str(wrapped.value).splitlines()
    assert "two events cannot be ordered" in first + second
    assert "Traceback" not in str(wrapped.value)


def test_a_worker_that_nobody_listens_to_leaves_quietly(spark: SparkSession) -> None:
    def complain(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        texts = []
        for kind in (BrokenPipeError, ConnectionResetError, ValueError):
            with redirect_stderr(StringIO()) as text:
                try:
                    raise kind("as PySpark's daemon meets it")
                except OSError:
                    traceback.print_exc()
                except ValueError:
                    traceback.print_exc()
            texts.append(text.getvalue())
        for _ in batches:
            yield pa.record_batch({"text": texts})

    schema = StructType([StructField("text", StringType())])
    rows = mapped(spark.range(1, numPartitions=1), complain, schema).collect()
    assert [row["text"] == "" for row in rows] == [True, True, False]


def test_one_task_is_warned_of(spark: SparkSession) -> None:
    df = frame(spark, events())
    with pytest.warns(OneTaskWarning, match="no window: a match may span the whole stream"):
        result = match(df, "SELECT * FROM S WHERE A ; B", time="at")
    assert result.count() == 2


def test_ties_are_broken_by_the_columns_named(spark: SparkSession) -> None:
    table = pa.table({"type": ["B", "A", "B"], "v": [9, 2, 3], "at": [5, 5, 5], "n": [3, 1, 2]})
    rows = match(frame(spark, table), WINDOWED, time="at", order_by=["n"], partitions=7).collect()
    assert sorted(row["y"][0]["v"] for row in rows) == [3, 9]


def test_variables_called_like_a_column_of_results_get_an_underscore_as_they_do_locally(spark: SparkSession) -> None:
    names = ("start", "end", "positions", "match", "id", "start_time", "events", "v")
    text = "SELECT * FROM S WHERE " + " ; ".join(f"A AS {name}" for name in names) + " PARTITION BY [v]"
    table = pa.table({"type": ["A"] * 8, "v": [1] * 8, "at": range(8)})
    result = match(frame(spark, table), text, time="at", position="at")
    local = query(text).run(table, time="at", position="at")
    assert result.columns == ["match", "start_time", "end_time", "start", "end", "v", *local.columns[3:]]
    assert local.columns[3:] == ("A", "end_", "events_", "id", "match_", "positions_", "start_", "start_time_", "v_")
    (row,) = result.collect()
    (one,) = local
    assert (row["start"], row["end"], [event["at"] for event in row["end_"]]) == (one.start, one.end, [1])
    assert one["end"] == [{name: event[name] for name in table.column_names} for event in row["end_"]]


def test_only_what_select_names_is_shown(spark: SparkSession) -> None:
    text = "SELECT x[v], y FROM S WHERE A AS x ; B AS y WITHIN 1 milliseconds"
    (row,) = match(frame(spark, events()), text, time="at").collect()
    assert row["x"][0].asDict() == {"v": 1}
    assert row["y"][0]["type"] == "B"
    assert (row["start_time"], row["end_time"]) == (0, 1)


def test_explain_says_which_operator_and_why(spark: SparkSession, tmp_path: Path) -> None:
    folder = str(tmp_path / "events")
    frame(spark, events()).drop(POSITION).write.parquet(folder)
    df = spark.read.parquet(folder)
    text = explain(df, WINDOWED.replace("*", "x[v], y[v]"), time="at", read="spark")
    for line in (
        "operator: S&P, then T-CER",
        "why: a window",
        "rows kept: where",
        "EqualTo(type,A)",
        "columns shipped to Python: v, at, cerite.file, cerite.row, cerite.bits0",
    ):
        assert line in text, text
    assert "one task" in explain(df, "SELECT * FROM S WHERE A ; B", time="at")
    assert "not a plain scan" in explain(df.filter("at >= 0"), WINDOWED, time="at")
