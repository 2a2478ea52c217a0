"""Reading on Spark: the kinds of the local readers, declarations, units of time, nested attributes, guessed text."""

from __future__ import annotations

import csv
import json
import random
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from cerite import query
from cerite.core.errors import CeriteError, TextWarning
from cerite.core.schema import Schema
from cerite.data import open_events
from cerite.data.guesses import MISSING
from cerite.data.reading import Reading
from cerite.spark import count, explain, match
from cerite.spark.driver.frame import Frame
from cerite.spark.texts import read_csv
from tests.command import cerite

RISING = "SELECT * FROM S WHERE A AS x ; B AS y FILTER y[v > x.v]"
SOON = query("SELECT * FROM S WHERE A AS x ; B AS y WITHIN 10 seconds")
ODD = """a,b,c,d,e,f,g,h,i
1,1.5,true,2024-05-01T12:00:00,2024-05-01T12:00:00Z,007,Ann,NA, 5
NA,-,N/A,n/a,NaN,7,None,NA,NA
,2e3,False,2024-05-02 00:00:00.25,2024-05-01T12:00:00+02:00,15,,,-7
"""


def refused(*arguments: Any, **options: Any) -> str:
    with pytest.raises(CeriteError) as caught:
        count(*arguments, **options)
    return str(caught.value)


def test_csv_has_the_kinds_and_values_that_it_has_locally(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(ODD)
    source = open_events(path)
    df = read_csv(spark, str(path), ",", Reading())
    assert Frame(df).kinds == Schema.of_arrow(source.schema).columns
    local = source.table().to_pylist()
    for row, mine in zip(df.collect(), local, strict=True):
        assert {name: row[name] for name in "abcdfghi"} == {name: mine[name] for name in "abcdfghi"}
    declared = Reading.of({"a": "string", "f": "int"}, null_values=["Ann"])
    assert [(row["a"], row["f"], row["g"]) for row in read_csv(spark, str(path), ",", declared).collect()] == [
        ("1", 7, None),
        ("NA", 7, "None"),
        (None, 15, None),
    ]
    with pytest.raises(CeriteError, match=r"x\.csv, column `g`: `Ann` is not an int, as declared"):
        read_csv(spark, str(path), ",", Reading.of({"g": "int"}))


@pytest.mark.parametrize("many", [60, pytest.param(300, marks=pytest.mark.nightly)])
def test_random_columns_are_what_they_are_locally(quick: SparkSession, tmp_path: Path, many: int) -> None:
    """Many columns of few spellings each: mixtures, missing values and doubtful numbers in all combinations."""
    chance = random.Random(7)
    pools = ("1", "-2", "+5", "2.5", "1e3", "007", "0", "0x7", "9223372036854775808", "inf", "true", "False", "Ann",
             "2024-05-01", "2024-05-01T12:00:00", "2024-05-01 12:00:00.5", "2024-05-01T12:00:00Z", "1,000")  # fmt: skip
    columns = []
    for _ in range(many):
        own = chance.sample(pools, chance.choice((1, 1, 2, 3))) + chance.sample(MISSING, 2)
        columns.append([chance.choice(own) for _ in range(8)])
    path = tmp_path / "x.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([f"c{at}" for at in range(len(columns))])
        writer.writerows(zip(*columns, strict=True))
    source = open_events(path)
    df = read_csv(quick, str(path), ",", Reading())
    mine, theirs = Schema.of_arrow(source.schema).columns or {}, Frame(df).kinds
    unlike = {
        name: (columns[int(name[1:])], mine.get(name), theirs[name])
        for name in theirs
        if mine.get(name, "string") != theirs[name]
    }
    assert unlike == {}
    for row, local in zip(df.collect(), source.table().to_pylist(), strict=True):
        unzoned = [name for name in local if getattr(local[name], "tzinfo", None) is None]
        assert {name: _plain(row[name]) for name in unzoned} == {name: _plain(local[name]) for name in unzoned}


def _plain(value: Any) -> str:
    return str(datetime.combine(value, time()) if type(value) is date else value)


def test_text_that_a_reader_guessed_is_not_ordered(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("type,v,at\nA,9,0\nB,oops,1\nB,10,2\n")
    df = spark.read.csv(str(path), header=True, inferSchema=True)
    said = refused(df, RISING, time="at")
    assert "`v` is compared by order, but column `v` holds a number (`9`, " in said
    assert "other text (`oops`, " in said
    assert "x.csv" in said
    assert count(df, RISING, time="at", schema={"v": "string"}) == 1
    assert count(df, "SELECT * FROM S WHERE B AS y FILTER y[v = '10']", time="at") == 1
    assert "`v` is a string and `5` is a number" in refused(
        df, "SELECT * FROM S WHERE B AS y FILTER y[v > 5]", time="at"
    )


def test_the_command_line_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    path, schema = tmp_path / "x.csv", tmp_path / "s.json"
    path.write_text("type;v;z;at\nA;9;007;0\nB;NA;007;1\nB;oops;7;2\nB;10;007;3\nB;11;7;11\n")
    schema.write_text('{"z": "string"}')
    same = "SELECT * FROM S WHERE A AS x ; B AS y FILTER y[v > x.v AND z = x.z] WITHIN 10 seconds"
    options = ("--delimiter", ";", "--schema", str(schema), "--time", "at", "--time-unit", "s", "--count")
    for engine in ("local", "spark"):
        done = cerite("run", same, str(path), *options, "--null", "oops", "--engine", engine)
        assert done.stdout == "1\n"
        done = cerite("run", same, str(path), *options, "--engine", engine, code=1)
        assert "column `v` holds a number (`9`, " in done.stderr
    assert "Spark cannot read standard input" in cerite("run", same, "-", "--engine", "spark", code=1).stderr


def test_declared_kinds_order_and_times(spark: SparkSession) -> None:
    rows = [("A", "9", 0, "2024-01-01T00:00:00"), ("B", "10", 10, "2024-01-01T00:00:01"), ("B", "7", 11, "x")]
    df = spark.createDataFrame(rows, "type string, v string, ts bigint, at string")
    said = refused(df, RISING, order_by="ts", schema={"v": "int"})
    assert "column `v` holds string, but it is declared int" in said
    assert "declare it string" in said
    assert count(df, "SELECT * FROM S WHERE A ; B", order_by="ts", schema={"ts": "float"}) == 2
    assert "to_timestamp('at')" in refused(df, SOON, time="at")
    assert [count(df, SOON, time="ts", time_unit=unit) for unit in ("s", "ms")] == [1, 2]
    assert "no time unit" in refused(df, SOON, time="ts", time_unit="h")
    assert "S&P" in explain(df, SOON, time="ts", time_unit="s", order_by="v")


def test_units_of_time_in_ordered_parquet(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"type": ["A", "B", "B"], "at": [0, 10, 11]}), tmp_path / "x.parquet")
    df = spark.read.parquet(str(tmp_path / "x.parquet"))
    assert "no shuffle" in explain(df, SOON, time="at", time_unit="s")
    assert count(df, SOON, time="at", time_unit="s") == 1


def test_nested_attributes(spark: SparkSession, tmp_path: Path) -> None:
    rows = [
        {"type": "A", "ctx": {"ip": "a", "geo": {"zone": 3}}, "at": 0},
        {"type": "B", "ctx": {"ip": "b", "geo": {"zone": 5}}, "at": 1},
        {"type": "B", "ctx": {"ip": "a", "geo": {"zone": 4}}, "at": 2},
    ]
    path = tmp_path / "x.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    text = "SELECT x[`ctx.ip`], y FROM S WHERE A AS x ; B AS y FILTER y[`ctx.ip` = x.`ctx.ip` AND `ctx.geo.zone` > 3]"
    for df in (spark.read.json(str(path)), spark.createDataFrame(pa.Table.from_pylist(rows))):
        (result,) = match(df, text, time="at").collect()
        assert result["x"][0].asDict() == {"ctx.ip": "a"}
        assert result["y"][0]["ctx"]["geo"]["zone"] == 4
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "x.parquet")
    windowed = text + " WITHIN 5 seconds"
    assert count(spark.read.parquet(str(tmp_path / "x.parquet")), windowed, time="at") == 1
    unquoted = "SELECT * FROM S WHERE A AS ctx ; B AS y FILTER y[at > ctx.ip]"
    assert "or a nested attribute" in refused(spark.read.json(str(path)), unquoted, time="at")


def test_text_numbers_in_typed_tables_are_warned_about(spark: SparkSession) -> None:
    df = spark.createDataFrame([("A", "9", 0), ("B", "10", 1)], "type string, v string, at long")
    with pytest.warns(TextWarning, match=r"column `v` is text and compared as text, but holds `9` \(the DataFrame\)"):
        assert count(df, RISING + " WITHIN 5 seconds", time="at") == 0
    assert count(df, RISING + " WITHIN 5 seconds", time="at", schema={"v": "string"}) == 0
