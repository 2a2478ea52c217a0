"""Data that would be misread without a word: types under another name, seconds as milliseconds, empty columns."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cerite
from cerite.core.errors import CeriteWarning, SchemaError, StreamError

ROWS = [{"type": "AB"[k % 2], "key": k % 3, "v": float(k), "at": 1000 * k} for k in range(12)]
FRAME = pd.DataFrame(ROWS)
TWICE = cerite.query("SELECT * FROM S WHERE A AS x ; A AS y WITHIN 5 seconds")
Make = Callable[[pd.DataFrame], Any]


def as_rows(frame: pd.DataFrame) -> Any:
    return frame.to_dict("records")


# ------------------------------------------------------------ attributes
LOGINS = [
    {"type": "FAIL", "user": "ann", "ip": "1", "ok": False, "day": datetime(2026, 1, 1), "at": 0},
    {"type": "OK", "user": "ann", "ip": "3", "ok": True, "day": datetime(2026, 1, 2), "at": 1},
]


@pytest.mark.parametrize("make", [list, tuple, iter, lambda rows: {"S": rows}])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT * FROM S WHERE FAIL AS f ; NOT OK[usr = f.user] WITHIN 1 minute", "no event has `usr`.*mean `user`"),
        ("SELECT * FROM S WHERE FAIL AS f FILTER f[amount IS NULL]", "no event has `amount`, .*they have `at`"),
        ("SELECT f[ipp] FROM S WHERE FAIL AS f", "no event has `ipp`, which is NULL everywhere; did you mean `ip`"),
        ("SELECT f.ipp AS p FROM S WHERE FAIL AS f", "no event has `ipp`"),
    ],
)
def test_an_attribute_that_no_event_has_is_mentioned(make: Callable[[Any], Any], text: str, said: str) -> None:
    with pytest.warns(CeriteWarning, match=said):
        assert cerite.query(text).run(make(LOGINS), time="at").to_arrow().num_rows == 1


def test_warnings_point_at_the_line_of_the_caller() -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        query = cerite.query("SELECT * FROM S WHERE FAIL ; LOGOUT[usr = 1] ; COMPLEMENT(FAIL) ; OK")
        list(query.run(LOGINS, time="at"))
    assert len(said) > 2
    assert {Path(each.filename) for each in said} == {Path(__file__)}


def test_an_attribute_that_is_declared_or_null_somewhere_is_not_mentioned() -> None:
    query = cerite.query("SELECT SUM(f.n) AS n FROM S WHERE _ AS f FILTER f[n IS NULL]")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert query.run(LOGINS, time="at", schema={"n": "int"}).count() == 2
        assert query.run([{"n": None}, {}]).to_arrow()["n"].to_pylist() == [None, None]
        assert query.run([]).to_arrow()["n"].to_pylist() == []


CONDITIONS = [
    "lower(z) = 'a'", "z LIKE 'a%'", "z > 3", "z + 5 seconds > day", "z - day < 5 seconds", "hour(z) < 3", "z = 'a'",
    "z = ip OR z IN {'x'}", "z IS NOT NULL", "coalesce(z, 'b') = 'a'",
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:no event has")
@pytest.mark.parametrize("condition", CONDITIONS)
def test_an_attribute_without_a_value_is_of_any_kind(condition: str) -> None:
    """A rule goes on working on the day on which nobody has the attribute."""
    query = cerite.query(f"SELECT * FROM S WHERE OK AS o FILTER o[NOT ({condition})] OR o[{condition}]")
    without = query.run(LOGINS, time="at").count()
    assert without == query.run([row | {"z": None} for row in LOGINS], time="at").count()
    assert without == query.run(pa.Table.from_pylist([row | {"z": None} for row in LOGINS]), time="at").count()
    assert without == (condition in ("z IS NOT NULL", "coalesce(z, 'b') = 'a'"))


@pytest.mark.parametrize("make", [list, pa.Table.from_pylist])
@pytest.mark.parametrize(
    ("measure", "why"),
    [
        ("AVG(f.day)", "AVG needs numbers, but `f.day` is a timestamp"),
        ("SUM(f.ok)", "SUM needs numbers, but `f.ok` is a bool"),
        ("SUM(f.ip)", "SUM needs numbers, but `f.ip` is a string"),
    ],
)
def test_measures_of_other_kinds_are_refused_whatever_the_data_is(
    make: Callable[[Any], Any], measure: str, why: str
) -> None:
    with pytest.raises(SchemaError, match=why.replace("(", r"\(")):
        cerite.query(f"SELECT {measure} AS m FROM S WHERE _ AS f").run(make(LOGINS), time="at")


MEASURES = "SUM(a.v) AS s, MIN(a.v) AS m, a.v + 1 AS p, a.v AS v, COLLECT(a.v) AS c, COUNT(a.v) AS n"


@pytest.mark.parametrize("make", [list, iter, pa.Table.from_pylist, pd.DataFrame])
def test_measures_of_a_column_without_a_value_are_null(make: Callable[[Any], Any]) -> None:
    query = cerite.query(f"SELECT {MEASURES} FROM S WHERE A AS a")
    (row,) = query.run(make([{"type": "A", "v": None}])).to_arrow().to_pylist()
    assert {name: row[name] for name in "smpvcn"} == dict.fromkeys("smpv") | {"c": [], "n": 0}


# ------------------------------------------------------------ the column of types
@pytest.mark.parametrize("make", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas, as_rows])
def test_types_in_a_column_of_another_name_are_noticed(make: Make) -> None:
    with pytest.raises(StreamError, match=r"every row would count as `A`, but `kind` holds this text") as caught:
        TWICE.run(make(FRAME.rename(columns={"type": "kind"})), time="at")
    assert "type='kind'" in str(caught.value)
    with pytest.raises(StreamError, match="every row would count as `A`, but there is `Type`"):
        TWICE.run(make(FRAME.rename(columns={"type": "Type"})), time="at")


def test_types_in_a_file_are_noticed(tmp_path: Path) -> None:
    FRAME.rename(columns={"type": "kind"}).to_csv(tmp_path / "events.csv", index=False)
    with pytest.raises(StreamError, match="`kind` holds this text"):
        TWICE.run(tmp_path / "events.csv", time="at")
    assert TWICE.run(tmp_path / "events.csv", time="at", type="kind").count() == TWICE.run(FRAME, time="at").count()


def test_types_are_noticed_in_later_data_with_the_same_columns() -> None:
    query = cerite.query("SELECT * FROM S WHERE A")
    assert query.run([{"kind": "x"}, {"kind": "y"}]).count() == 2
    with pytest.raises(StreamError, match="`kind` holds this text"):
        query.run([{"kind": "A"}, {"kind": "y"}])


def test_events_of_one_type_need_no_column_of_types() -> None:
    table = pa.table({"v": [1, 2], "at": [1, 2], "name": ["x", "y"]})
    assert TWICE.run(table, time="at").count() == 1


def test_a_stream_with_a_column_that_differs_by_case_is_refused() -> None:
    with pytest.raises(StreamError, match="there is `TYPE`"):
        TWICE.stream({"TYPE": "string", "at": "int"}, time="at")


# ------------------------------------------------------------ the unit of time
@pytest.mark.parametrize(("unit", "factor"), [("s", 1), ("us", 10**6), ("ns", 10**9)])
def test_times_that_hardly_count_milliseconds_are_mentioned(unit: Any, factor: int) -> None:
    times = [(1_714_550_402 + k) * factor for k in range(12)]
    frame = FRAME.assign(at=times)
    with pytest.warns(CeriteWarning, match=f"`at` begins at {times[0]}, .*time_unit='{unit}'"):
        TWICE.run(frame, time="at").count()
    with pytest.warns(CeriteWarning, match=f"time_unit='{unit}'"):
        list(TWICE.run(frame, time="at", threads=2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TWICE.run(frame, time="at", time_unit=unit).count()
        TWICE.run(FRAME.assign(at=[1_714_550_402_000 + k for k in range(12)]), time="at").count()
        cerite.query("SELECT * FROM S WHERE A ; A WITHIN 5 EVENTS").run(frame, time="at").count()


# ------------------------------------------------------------ columns without a value
BIG = "SELECT * FROM S WHERE A AS x ; B AS y FILTER y[v > x.v AND name = 'n'] PARTITION BY [key] WITHIN 9 seconds"


@pytest.mark.parametrize("make", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas, as_rows])
def test_a_column_without_a_value_is_null_everywhere(make: Make) -> None:
    data = make(FRAME.assign(v=None, name=None))
    assert cerite.query(BIG).run(data, time="at").count() == 0
    empty = cerite.query("SELECT * FROM S WHERE A AS x FILTER x[v IS NULL AND name IS NULL]").run(data)
    assert empty.count() == 6
    assert {row["v"] for match in empty for row in match.events} == {None}
    assert len(empty.to_arrow(events=True)) == 6


def test_a_file_with_nothing_but_a_header_has_no_match(tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text("at,type,key,v,name\n")
    assert cerite.query(BIG).run(tmp_path / "events.csv", time="at").count() == 0


def test_a_column_without_a_value_has_the_kind_that_is_declared() -> None:
    query = cerite.query("SELECT x.v AS v FROM S WHERE A AS x FILTER x[v IS NULL]")
    table = query.run(FRAME.assign(v=None), schema={"v": "string"}).to_arrow()
    assert pa.types.is_dictionary(table.schema.field("v").type) or pa.types.is_string(table.schema.field("v").type)


def test_files_that_lack_a_column_are_mentioned(tmp_path: Path) -> None:
    table = pa.Table.from_pandas(FRAME)
    pq.write_table(table, tmp_path / "a.parquet")
    pq.write_table(table.drop_columns("v"), tmp_path / "b.parquet")
    query = cerite.query("SELECT * FROM S WHERE A AS x FILTER x[v >= 0]")
    with pytest.warns(CeriteWarning, match=r"b\.parquet has no column `v`, which is NULL in all of its rows"):
        assert query.run(tmp_path).count() == 6
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cerite.query("SELECT * FROM S WHERE A").run(tmp_path).count()


# ------------------------------------------------------------ kinds of values
def test_times_with_and_without_a_zone_are_not_mixed() -> None:
    mixed = [datetime(2024, 1, 1, tzinfo=timezone.utc if k % 2 else None) for k in range(12)]
    with pytest.raises(StreamError, match=r"row 0 .from 0. holds a timestamp, row 1 a timestamp with zone"):
        TWICE.run(FRAME.assign(at=pd.Series(mixed, dtype=object)), time="at")


@pytest.mark.parametrize("condition", ["y[size > x.size]", "y[size > 'low']"])
def test_categories_with_an_order_of_their_own_are_not_compared_as_text(condition: str) -> None:
    query = cerite.query(f"SELECT * FROM S WHERE A AS x ; B AS y FILTER {condition}")
    sizes = ["low", "mid", "high"] * 4
    frame = FRAME.assign(size=pd.Categorical(sizes, ["low", "mid", "high"], ordered=True))
    with pytest.raises(StreamError, match="orders its categories `low` < `mid` < `high`"):
        query.run(frame)
    ranked = pl.from_pandas(FRAME).with_columns(size=pl.Series(sizes, dtype=pl.Enum(["low", "mid", "high"])))
    with pytest.raises(StreamError, match="orders its categories"):
        query.run(ranked)
    assert query.run(frame.assign(size=frame["size"].astype(str))).count() > 0


def test_a_missing_time_is_in_the_row_of_the_data_as_given() -> None:
    frame = FRAME.assign(at=pd.to_datetime(FRAME["at"], unit="ms").where(FRAME.index != 5))
    with pytest.raises(StreamError, match="row 5 has no time in `at`"):
        TWICE.run(frame, time="at", order_by="key")


def test_streams_that_are_merged_all_have_the_time() -> None:
    query = cerite.query("SELECT * FROM S, T WHERE A ; B WITHIN 5 seconds")
    with pytest.raises(StreamError, match="stream `T` has no column `at`, by which streams are merged"):
        query.run({"S": FRAME, "T": FRAME.rename(columns={"at": "ts"})}, time="at")


# ------------------------------------------------------------ queries
def test_a_query_that_cannot_match_says_so_when_it_is_made() -> None:
    with pytest.warns(CeriteWarning, match="nothing can match: .* an attribute is written country"):
        cerite.query("SELECT * FROM S WHERE A AS x FILTER x[\"country\" = 'FR']")


def test_a_number_in_quotes_is_no_number() -> None:
    with pytest.raises(cerite.SchemaError, match=r"a number has no quotes: 3\.5"):
        cerite.query("SELECT * FROM S WHERE A AS x FILTER x[v > '3.5']").run(FRAME)


# ------------------------------------------------------------ times as text
@pytest.mark.parametrize("make", [list, pd.DataFrame, pa.Table.from_pylist])
@pytest.mark.parametrize(
    ("second", "mentioned"),
    [
        ("2026-01-02T01:00:00+05:00", True),  # earlier, and later as text
        ("2026-01-02T01:00:00.5Z", True),
        ("2026-01-02", True),
        ("2026-01-02T01:00:00Z", False),
        (" 2026-01-02T01:00:00Z", True),  # before all others as text
        ("NA", False),
        ("tomorrow", False),
        (None, False),
    ],
)
def test_times_in_several_forms_that_are_ordered_as_text_are_mentioned(
    make: Callable[[Any], Any], second: str | None, mentioned: bool
) -> None:
    query = cerite.query("SELECT * FROM S WHERE A AS a ; A AS b FILTER b[due > a.due] WITHIN 5 EVENTS")
    rows = [{"type": "A", "due": "2026-01-01T23:00:00Z"}, {"type": "A", "due": second}]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        query.run(make(rows)).count()
        query.run(make(rows), schema={"due": "string"}).count()
    assert [f"and `{second}` (" in str(each.message) for each in said] == [True] * mentioned
