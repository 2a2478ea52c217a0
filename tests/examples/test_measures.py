"""Measures and results with events, as users meet them: tables, frames, files, printing, the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cerite
from cerite import event, var
from cerite import functions as f
from cerite.core.errors import CeriteError
from tests.command import cerite as command

EVENTS = pa.table(
    {
        "type": ["A", "B", "B", "A", "B"],
        "k": ["m", "m", "m", "n", "n"],
        "v": [1, 2, 3, 4, None],
        "at": pa.array([0, 1000, 1000, 2000, 5000], pa.timestamp("ms")),
    }
)
TEXT = """
    SELECT x.v AS low, COUNT(y) AS n, SUM(y.v) AS sum, AVG(y.v) AS mean, DURATION() AS took, START_TIME(), x.k
    FROM S WHERE A AS x ; B+ AS y PARTITION BY [k]
"""
QUERY = cerite.query(TEXT)
COLUMNS = ["match", "start_time", "end_time", "k", "low", "n", "sum", "mean", "took"]
VALUES = [(1, 1, 2, 2.0), (1, 1, 3, 3.0), (1, 2, 5, 2.5), (4, 1, None, None)]


def values(table: pa.Table) -> list[Any]:
    return sorted(zip(*(table[name].to_pylist() for name in ("low", "n", "sum", "mean")), strict=True), key=str)


SOURCES: dict[str, Callable[[Path], Any]] = {
    "a table": lambda folder: EVENTS,
    "a reader": lambda folder: EVENTS.to_reader(2),
    "pandas": lambda folder: EVENTS.to_pandas().astype({"v": "Int64"}),
    "Polars": lambda folder: pl.from_arrow(EVENTS),
    "dictionaries": lambda folder: EVENTS.to_pylist(),
    "a generator": lambda folder: iter(EVENTS.to_pylist()),
    "Parquet": lambda folder: (pq.write_table(EVENTS, folder / "e.parquet", row_group_size=2), folder / "e.parquet")[1],
}


@pytest.mark.parametrize("source", SOURCES)
def test_measures_are_a_flat_typed_table(source: str, tmp_path: Path) -> None:
    table = QUERY.run(SOURCES[source](tmp_path), time="at").to_arrow()
    assert table.column_names == COLUMNS
    kinds = [pa.int64(), pa.int64(), pa.int64(), pa.float64(), pa.duration("us")]
    assert [table.schema.field(name).type for name in COLUMNS[4:]] == kinds
    assert values(table) == sorted(VALUES, key=str)
    assert len(set(table["match"].to_pylist())) == 4


def test_every_form_shows_the_measures(tmp_path: Path) -> None:
    matches = QUERY.run(EVENTS, time="at")
    assert values(pa.Table.from_pandas(matches.to_pandas())) == sorted(VALUES, key=str)
    assert matches.to_polars()["took"].to_list()[0] == timedelta(seconds=1)
    matches.to_csv(tmp_path / "m.csv")
    assert list(pd.read_csv(tmp_path / "m.csv").columns) == COLUMNS
    matches.to_jsonl(tmp_path / "m.jsonl")
    first = json.loads((tmp_path / "m.jsonl").read_text().splitlines()[0])
    assert {**first, "match": ""} == {
        "match": "", "start_time": "1970-01-01T00:00:00", "end_time": "1970-01-01T00:00:01", "k": "m", "low": 1, "n": 1,
        "sum": 2, "mean": 2.0, "took": "0:00:01",
    }  # fmt: skip
    assert repr(matches).splitlines()[1].split() == ["start", "end", "k", "low", "n", "sum", "mean", "took"]
    assert "<th>mean</th>" in matches._repr_html_()
    match = matches[-1]
    assert (match.low, match["n"], match.k) == (4, 1, "n")
    assert match.y == [{"type": "B", "k": "n", "v": None, "at": datetime(1970, 1, 1, 0, 0, 5)}]
    assert str(match).startswith("[3,4] low=4, n=1")
    with pytest.raises(CeriteError, match="SELECT shows no events"):
        matches.to_arrow(long=True)


def test_built_measures_are_those_of_the_text() -> None:
    built = cerite.query(
        event("A").as_("x") >> event("B").plus().as_("y"),
        select={"x": var.x, "low": var.x.v, "rise": f.avg(var.y.v) - var.x.v, "n": f.count(var.y), "all": "COUNT(*)"},
    )
    text = "SELECT x, x.v AS low, AVG(y.v) - x.v AS rise, COUNT(y) AS n, COUNT(*) AS `all`"
    assert built.query == cerite.query(f"{text} FROM S WHERE A AS x ; B+ AS y").query
    assert built.run(EVENTS).to_arrow().column_names == ["match", "x", "low", "rise", "n", "all"]
    with pytest.raises(CeriteError, match="takes measures by their names"):
        cerite.query(event("A").as_("x"), select={"y": var.x})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT DURATION() AS took FROM S WHERE A", "needs a time column"),
        ("SELECT x.w AS w FROM S WHERE A AS x", "no attribute `w`"),
        ("SELECT SUM(x.big) AS s FROM S WHERE (A OR B)+ AS x", "does not fit 64 bits"),
        ("SELECT SUM(x.wide) AS s FROM S WHERE A AS x", "more digits than 64 bits"),
        ("SELECT x.at - x.v AS s FROM S WHERE A AS x", "needs numbers"),
    ],
)
def test_what_has_no_value_is_refused(text: str, said: str) -> None:
    wide = pa.array([Decimal(10) ** 25] * 5, pa.decimal128(38, 2))
    events = EVENTS.append_column("big", pa.array([2**62] * 5)).append_column("wide", wide)
    with pytest.raises(CeriteError, match=said):
        cerite.query(text).run(events).to_arrow()


def test_ids_tell_matches_apart_that_time_does_not(tmp_path: Path) -> None:
    events = pa.table({"type": ["A", "A", "B"], "at": [1, 1, 2]})
    query = cerite.query("SELECT * FROM S WHERE A AS x ; B AS y")
    ids = query.run(events, time="at").to_arrow(events=True)["match"].to_pylist()
    assert len(set(ids)) == 2
    stream = query.stream(events.schema, time="at")
    pushed = [stream.push(events.slice(at, 1)).to_arrow(events=True) for at in range(3)]
    assert pa.concat_tables(pushed)["match"].to_pylist() == ids
    for folder in ("one", "two"):  # rows of Parquet files, wherever these lie
        (tmp_path / folder).mkdir()
        pq.write_table(events, tmp_path / folder / "e.parquet")
    tables = [query.run(tmp_path / folder, time="at").to_arrow(events=True) for folder in ("one", "two")]
    assert tables[0].equals(tables[1])
    assert len(set(tables[0]["match"].to_pylist())) == 2


def test_a_row_is_a_match_or_an_event() -> None:
    with pytest.raises(CeriteError, match="not both"):
        QUERY.run(EVENTS, time="at").to_arrow(events=True, long=True)
    odd = pa.table({"type": ["A", "A"], "match": [1, 2], "rank": [3, 4]})
    long = cerite.query("SELECT x[match], y FROM S WHERE A AS x ; A AS y").run(odd).to_arrow(long=True)
    assert long.column_names == ["match", "variable", "rank", "match_", "type", "rank_"]
    assert [(row["variable"], row["match_"], row["rank_"]) for row in long.to_pylist()] == [("x", 1, None), ("y", 2, 4)]


def test_the_command_line_shows_measures(tmp_path: Path) -> None:
    path = tmp_path / "events.csv"
    path.write_text("type,v,at\nA,1,0\nB,2,10\nB,4,20\n")
    text = "SELECT x.v AS low, AVG(y.v) AS mean FROM S WHERE A AS x ; B+ AS y"
    shown = command("run", text, str(path), "--time", "at").stdout
    assert "mean" in shown
    assert "3 matches" in shown
    lines = command("run", text, str(path), "--time", "at", "-o", "-").stdout.splitlines()
    assert list(json.loads(lines[-1])) == ["match", "start_time", "end_time", "low", "mean"]
    assert [json.loads(line)["mean"] for line in lines] == [2.0, 4.0, 3.0]


def test_a_stream_goes_on_with_other_measures() -> None:
    stream = QUERY.stream(EVENTS.schema, time="at")
    stream.push(EVENTS.slice(0, 2))
    changed = cerite.query(TEXT.replace("SUM(y.v) AS sum", "MAX(y.v) AS top"))
    again = changed.stream(EVENTS.schema, time="at")
    again.restore(stream.snapshot())
    assert [match.top for match in again.push(EVENTS.slice(2))] == [3, 3, None]
    with pytest.raises(CeriteError, match="variables in SELECT"):
        cerite.query("SELECT COUNT(y) AS n FROM S WHERE A AS x ; B+ AS y PARTITION BY [k]").stream(
            EVENTS.schema, time="at"
        ).restore(stream.snapshot())


def test_a_measure_that_is_the_partition_is_a_table_of_it() -> None:
    """`x.k AS k` is there as the partition's column, and the result is no less a table of measures."""
    matches = cerite.query("SELECT x.k AS k FROM S WHERE A AS x PARTITION BY [k]").run(EVENTS, time="at")
    assert matches.to_arrow().column_names == ["match", "start_time", "end_time", "k"]
    assert matches.to_arrow()["k"].to_pylist() == ["m", "n"]
    assert str(matches).splitlines() == ["2 matches", "start  end  k", "    0    0  m", "    3    3  n"]


def test_printed_measures_name_their_partition_even_where_no_event_is_shown() -> None:
    matches = cerite.query("SELECT DURATION() AS took FROM S WHERE A ; B PARTITION BY [k]").run(EVENTS, time="at")
    assert [line.split()[:3] for line in str(matches).splitlines()[1:]] == [
        ["start", "end", "k"], ["0", "1", "m"], ["0", "2", "m"], ["3", "4", "n"],
    ]  # fmt: skip


def test_a_match_has_all_values_that_select_lists() -> None:
    """Also those that a table has in another column: the partition, and when the match begins and ends."""
    query = cerite.query(
        "SELECT x.k AS k, x.v AS low, START_TIME() AS start_time FROM S WHERE A AS x PARTITION BY [k] WITHIN 1 second"
    )
    matches = query.run(EVENTS, time="at")
    assert [list(match.measures) for match in matches] == [["k", "low", "start_time"]] * 2
    assert [(match.k, match["low"], match.start_time.second) for match in matches] == [("m", 1, 0), ("n", 4, 2)]
    with pytest.raises(AttributeError, match="did you mean `low`"):
        _ = matches.head()[0].lowe
    with pytest.raises(AttributeError, match="the measures are `k`, `low`, `start_time`"):
        _ = matches.head()[0].other
    assert str(matches).count("start_time") <= 1


@pytest.mark.parametrize("name", ["match", "start_time"])
def test_a_partition_that_is_called_like_a_column_of_the_result_is_refused(name: str) -> None:
    query = cerite.query(f"SELECT x[v] FROM S WHERE A AS x PARTITION BY [{name}] WITHIN 1 second")
    matches = query.run(EVENTS.append_column(name, EVENTS["k"]), time="at")
    assert matches.count() == 2
    with pytest.raises(CeriteError, match=f"two columns `{name}`"):
        matches.to_arrow(events=True)
