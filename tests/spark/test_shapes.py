"""A result with events is the same in process, pushed, on Spark at rest and live: columns, values, ids."""

from __future__ import annotations

import json
import warnings
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from rich.table import Table

import cerite
from cerite import spark as cs
from cerite.api.shown import Selection
from tests.command import EVENTS, UNARY
from tests.command import cerite as command
from tests.corpus import load
from tests.spark.live import Folder
from tests.spark.support import POSITION, frame, rows_table

ROWS = 60
RNG = np.random.default_rng(12)
EVENTS_TABLE = pa.table(
    {
        "type": RNG.choice(["A", "B", "C"], ROWS).tolist(),
        "k": RNG.choice(["m", "n"], ROWS).tolist(),
        "v": RNG.integers(0, 9, ROWS),
        "at": pa.array(np.arange(ROWS) * 500, pa.timestamp("ms", "UTC")).cast(pa.timestamp("us", "UTC")),
        "n": np.arange(ROWS),
        "price": pa.array([None if k % 7 == 0 else Decimal(k) / 4 for k in range(ROWS)], pa.decimal128(8, 2)),
    }
)
MEASURED = """
    SELECT x.v AS low, SUM(y.v) AS sum, AVG(y.v) AS mean, MAX(y.v) - x.v AS rise, COUNT(y), COUNT(DISTINCT y.v) AS d,
    FIRST(y.k), COLLECT(y.v) AS vs, LAST(y.at) AS last, START_TIME(), DURATION() AS took, SUM(y.price) AS price
    FROM S WHERE A AS x ; B+ AS y FILTER y[v > 3] PARTITION BY [k] WITHIN 5 seconds
"""
PAIRS = "WHERE A AS x ; B+ AS y FILTER y[v > 3]"
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "by time alone": (f"SELECT * FROM S {PAIRS} WITHIN 2 seconds", {}),
    "partitioned": (f"SELECT x[v], y FROM S {PAIRS} PARTITION BY [k] WITHIN 2 seconds", {"order_by": "n"}),
    "with positions": (f"SELECT y FROM S {PAIRS} PARTITION BY [k] WITHIN 9 EVENTS", {"position": "n"}),
    "measured": (MEASURED, {"order_by": "n"}),
    "measured beside events": (f"SELECT x[v], COUNT(*) AS n FROM S {PAIRS} WITHIN 2 seconds", {}),
    "plain sets": (f"SELECT x[v], y[k] FROM S {PAIRS} WITHIN 2 seconds", {"semantics": "complex-events"}),
}


def test_spark_gives_what_is_found_in_process(quick: SparkSession, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        df = quick.createDataFrame(EVENTS_TABLE)
        for text, options in CASES.values():
            assert_same(cs.match(df, text, time="at", **options).toArrow(), text, EVENTS_TABLE, options)
        pq.write_table(EVENTS_TABLE.slice(0, 25), tmp_path / "1.parquet")
        pq.write_table(EVENTS_TABLE.slice(25), tmp_path / "2.parquet")
        text, _ = CASES["by time alone"]
        for read in ("auto", "spark"):
            result = cs.match(quick.read.parquet(str(tmp_path)), text, time="at", read=read)
            assert_same(result.toArrow(), text, str(tmp_path), {})


def test_matches_are_shown_as_in_process(quick: SparkSession) -> None:
    text, few = f"SELECT * FROM S {PAIRS} WITHIN 9 EVENTS", EVENTS_TABLE.slice(0, 20).drop_columns("at")
    local = cerite.query(text).run(few, time="n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        matches = cs.match(quick.createDataFrame(few), text, time="n").cache()
    assert shown(cs.table(matches, 1_000, time="n")) == shown(local.table(1_000))
    assert len(cs.table(matches, 3, time="n").rows) == 3 < local.count()
    matches.unpersist()


def shown(table: Table) -> list[tuple[str, ...]]:
    """The heads and the rows of a table."""
    rows = zip(*(map(str, column.cells) for column in table.columns), strict=True)
    return [tuple(str(column.header) for column in table.columns), *sorted(rows)]


def test_the_measures_of_the_corpus(quick: SparkSession) -> None:
    cases = [case for case in load() if case.file == "measures.case"]
    assert len(cases) > 9
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in cases:
            df = frame(quick, rows_table(map(dict, case.rows), case.columns), parts=1)
            result = cs.match(df, case.text, time=case.time, position=POSITION, semantics=case.semantics)
            names = [each.name for each in Selection.of(cerite.query(case.text).query).values]
            rows = result.select("start", "end", *names).collect()
            texts = [f"[{row[0]},{row[1]}] " + ", ".join(map("{}={}".format, names, row[2:])) for row in rows]
            assert sorted(texts) == sorted(case.expected), case.name


def test_measures_of_a_live_stream_are_those_of_data_at_rest_and_may_change(
    quick: SparkSession, tmp_path: Path
) -> None:
    folder = Folder(quick, tmp_path, "type string, k string, v long, at timestamp, n long, price decimal(8,2)")
    how: dict[str, Any] = {"time": "at", "order_by": "n"}
    live = {**how, "watermark": "1 second", "shards": 2}
    for begin in (0, 20):
        folder.put(EVENTS_TABLE.slice(begin, 20))
    folder.run(cs.match(folder.stream, MEASURED, **live))
    folder.put(EVENTS_TABLE.slice(40))
    folder.put(EVENTS_TABLE.slice(0, 0))
    changed = MEASURED.replace("COUNT(DISTINCT y.v) AS d", "MIN(y.v) AS d")
    result = cs.match(folder.stream, changed, **live)
    by_id = {row["match"]: row for row in folder.run(result)}
    before, after = ({row["match"]: row for row in _at_rest(text, how)} for text in (MEASURED, changed))
    assert len(by_id) > 10
    assert by_id.keys() <= after.keys()
    for name, row in by_id.items():
        mine = {column: value for column, value in row.items() if "time" not in column and column != "last"}
        assert mine in ({column: each[name][column] for column in mine} for each in (before, after))
    assert {row["d"] == after[name]["d"] for name, row in by_id.items()} == {True, False}


def _at_rest(text: str, how: dict[str, Any]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = cerite.query(text).run(EVENTS_TABLE, **how).to_arrow().to_pylist()
    return rows


def assert_same(result: pa.Table, text: str, events: Any, options: dict[str, Any]) -> None:
    local = cerite.query(text).run(events, time="at", **options).to_arrow(events=True)
    assert result.column_names == local.column_names
    assert result.num_rows == local.num_rows > 0
    assert sorted(plain(result)) == sorted(plain(local))


def plain(table: pa.Table) -> list[str]:
    """Rows as texts; Spark gives times in the session's zone."""
    kinds = [table.schema.field(name).type for name in ("start_time", "end_time")]
    assert all(pa.types.is_timestamp(kind) for kind in kinds)
    return [json.dumps(_utc(row), default=str, sort_keys=True) for row in table.to_pylist()]


def _utc(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _utc(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_utc(each) for each in value]
    return value.timestamp() if hasattr(value, "timestamp") else value


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_the_command_line_writes_the_same_columns_wherever_it_runs(
    spark: SparkSession, tmp_path: Path, ending: str
) -> None:
    events = tmp_path / "events.csv"
    events.write_text(EVENTS, "utf-8")
    run = ("run", UNARY, str(events), "--time", "at")
    command(*run, "-o", str(tmp_path / f"local.{ending}"), "--engine", "local")
    command(*run, "-o", str(tmp_path / f"spark.{ending}"), "--engine", "spark")
    parts = [each for each in (tmp_path / f"spark.{ending}").glob("part-*") if each.stat().st_size]
    files = [tmp_path / f"local.{ending}", *parts]
    if ending == "parquet":
        columns = [pq.read_schema(each).names for each in files]
    elif ending == "csv":
        columns = [each.read_text().splitlines()[0].split(",") for each in files]
    else:
        columns = [list(json.loads(line)) for each in files for line in each.read_text().splitlines()]
        on_spark = command(*run, "-o", "-", "--engine", "spark").stdout
        assert json.loads(on_spark) == json.loads(files[0].read_text())
    assert len(columns) > 1
    assert all(each == columns[0] for each in columns)
