"""How data is read: missing values, declared kinds, mixtures, times, nested attributes. Nothing is guessed silently."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import cerite
from cerite.core.errors import CeriteError, SchemaError, StreamError, TextWarning
from cerite.data import open_events
from cerite.data.files import chunks

RISING = cerite.query("SELECT * FROM S WHERE A AS x ; B AS y FILTER y[v > x.v]")
SOON = cerite.query("SELECT * FROM S WHERE A AS x ; B AS y WITHIN 10 seconds")


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def any_of(choices: dict[str, Any], kind: str) -> Any:
    return choices[kind]()


def written(name: str, text: str) -> str:
    Path(name).write_text(text, "utf-8")
    return name


def read(text: str, name: str = "x.csv", **options: Any) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = open_events(written(name, text), **options).table().to_pydict()
    return columns


def refused(data: Any, query: cerite.Query = RISING, **options: Any) -> str:
    with pytest.raises(CeriteError) as caught:
        query.run(data, **options).count()
    return str(caught.value)


# ---------------------------------------------------------------- missing values
@pytest.mark.parametrize("spelling", ["NA", "N/A", "n/a", "null", "NULL", "None", "NaN", "nan", "-", "", '"NA"', " NA"])
def test_the_usual_spellings_of_missing_are_null_among_numbers(spelling: str) -> None:
    path = written("x.csv", f"type,v,at\nA,9,0\nB,{spelling},1\nB,10,2\n")
    assert [match.positions for match in RISING.run(path)] == [(0, 2)]


def test_missing_among_booleans_times_and_floats() -> None:
    text = "ok,at,f\ntrue,2024-05-01T12:00:00,1.5\nN/A,NA,nan\nFalse,2024-05-02T00:00:00,-\n"
    assert read(text) == {
        "ok": [True, None, False],
        "at": [datetime(2024, 5, 1, 12), None, datetime(2024, 5, 2)],
        "f": [1.5, None, None],
    }


def test_text_keeps_people_called_none() -> None:
    assert read("name\nNone\nNA\nAnn\n") == {"name": ["None", "NA", "Ann"]}
    assert read("name,n\nNA,1\nNA,2\n") == {"name": ["NA", "NA"], "n": [1, 2]}, "nothing says that these are numbers"
    assert read('name,n\n"",1\n,2\nNULL,3\n"NULL",4\nx,5\n')["name"] == ["", None, None, "NULL", "x"]


def test_named_spellings_are_null_in_every_column() -> None:
    text = 'name,v\nAnn,1\nmissing,missing\n"missing",3\n'
    assert read(text, null_values="missing") == {"name": ["Ann", None, None], "v": [1, None, 3]}
    assert read('{"a": "?!", "b": 1}\n{"a": "x", "b": "?!"}\n', "x.jsonl", null_values=["?!"]) == {
        "a": [None, "x"],
        "b": [1, None],
    }
    assert read("A(a=oops,b=1)\nA(a=x,b=oops)\n", "x.txt", null_values=["oops"])["b"] == [1, None]


def test_missing_in_json_lines_and_core_text() -> None:
    assert read('{"v": 9}\n{"v": "NA"}\n{"v": 10.5}\n', "x.jsonl") == {"v": [9.0, None, 10.5]}
    assert read('{"at": "2024-05-01T00:00:00"}\n{"at": "n/a"}\n', "y.jsonl") == {"at": [datetime(2024, 5, 1), None]}
    assert read("A(v=9)\nB(v=NA)\nB(v=-)\nB(v=10)\n", "x.txt")["v"] == [9, None, None, 10]


def test_chunks_and_files_of_missing_values_only_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    written("1.csv", "v\nNA\nNA\n")
    written("2.csv", "v\n1\n2\n")
    written("3.csv", "v\nAnn\nNone\n")
    assert open_events("[12].csv").table().to_pydict() == {"v": [None, None, 1, 2]}
    assert open_events("[13].csv").table().to_pydict() == {"v": ["NA", "NA", "Ann", "None"]}
    monkeypatch.setattr(chunks, "CHUNK", 16)
    for cached in (0, 1 << 26):
        monkeypatch.setattr("cerite.data.files.source._CACHED_BYTES", cached)
        assert read("v\n" + "NA\n" * 20 + "7\n" * 20) == {"v": [None] * 20 + [7] * 20}
        assert read("v\n" + "NA\n" * 20 + "Ann\n" * 20) == {"v": ["NA"] * 20 + ["Ann"] * 20}


# ---------------------------------------------------------------- mixtures
def test_numbers_and_other_text_are_refused_where_they_are_ordered() -> None:
    path = written("x.csv", "type,v,at\nA,9,0\nB,oops,1\nB,10,2\n")
    said = refused(path)
    assert "`v` is compared by order, but column `v` holds a number (`9`, x.csv, line 2)" in said
    assert "other text (`oops`, x.csv, line 3)" in said
    assert "null_values=['oops']" in said
    assert RISING.run(path, null_values="oops").count() == 1
    assert RISING.run(path, schema={"v": "string"}).count() == 1  # 'oops' > '9', as text
    for op in ("v > 5", "v = 5", "v + 1 > 2"):
        query = cerite.query(f"SELECT * FROM S WHERE A AS x ; B AS y FILTER y[{op}]")
        assert "`oops`, x.csv, line 3" in refused(path, query)


def test_ids_that_are_numbers_and_words_are_text_where_only_equality_is_asked() -> None:
    path = written("x.csv", "type,id\nA,007\nB,A12\nB,7\nB,007\n")
    same = cerite.query("SELECT * FROM S WHERE A AS x ; B AS y FILTER y[id = x.id]")
    assert [match.positions for match in same.run(path)] == [(0, 3)]
    assert cerite.query("SELECT * FROM S WHERE B AS y FILTER y[id > 'A']").run(path).count() == 1


def test_one_bad_file_is_named_and_hurts_only_who_asks_for_the_column() -> None:
    written("1.csv", "type,v,w\nA,1,1\n")
    written("2.csv", "type,v,w\nB,2,x\nB,three,5\n")
    said = refused("*.csv")
    assert "`three`, 2.csv, line 3" in said
    assert "`1`, 1.csv, line 2" in said
    assert cerite.query("SELECT * FROM S WHERE A ; B").run("*.csv").count() == 2


def test_lines_of_mixtures_are_right_across_chunks_and_quotes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "CHUNK", 64)
    rows = "".join(f'B,{n},"a\nb"\n\n' for n in range(50))
    assert "`oops`, x.csv, line 153" in refused(written("x.csv", f"type,v,s\nA,0,x\n{rows}B,oops,x\n"))
    rows = "".join(f"B(v={n})\n\n" for n in range(50))
    assert "`oops`, x.txt, line 102" in refused(written("x.txt", f"A(v=0)\n{rows}B(v=oops)\n"))


def test_numbers_that_would_lose_digits_are_text() -> None:
    assert read("z,n\n007,0\n7,10\n0x7,0.5\n") == {"z": ["007", "7", "0x7"], "n": [0.0, 10.0, 0.5]}
    assert "would lose digits (`009`, x.csv, line 2)" in refused(written("x.csv", "type,v\nA,009\nB,010\n"))
    assert read("z,n\n007,+5\nNA,NA\n") == {"z": ["007", "NA"], "n": [5, None]}
    assert read(f"z,n\n007,{2**63}\nNA,NA\n")["n"] == [str(2**63), "NA"]
    assert read("z\n+5\n-3\nNA\n") == {"z": [5, -3, None]}
    assert read("z\n-07\n1\n", schema={"z": "int"}) == {"z": [-7, 1]}


@pytest.mark.parametrize("value", ["1,000", "3,14", "$5", "5 %"])
def test_numbers_as_people_write_them_are_not_ordered_as_text(value: str) -> None:
    said = refused(written("x.csv", f'type,v\nA,"{value}"\nB,"{value}"\n'))
    assert f"column `v` holds a formatted number (`{value}`, x.csv, line 2)" in said


def test_a_column_that_some_files_lack_is_looked_at_in_the_others() -> None:
    written("1.csv", "type,w\nA,1\n")
    written("2.csv", "type,v\nB,1\nB,x\n")
    assert "`x`, 2.csv, line 3" in refused("[12].csv")


def test_spaces_around_numbers_do_not_make_text() -> None:
    assert read("a, b\n1, 2\n3, NA\n") == {"a": [1, 3], " b": [2, None]}
    assert read("a,b\n1,x\n NA , y\n3 ,z\n") == {"a": [1, None, 3], "b": ["x", " y", "z"]}
    assert read("a\n007\n 7\n") == {"a": ["007", " 7"]}


def test_text_numbers_in_frames_are_warned_about() -> None:
    frame = pd.DataFrame({"type": ["A", "B"], "v": ["9", "10"]})
    with pytest.warns(TextWarning, match=r"column `v` is text and compared as text, but holds `9`"):
        assert RISING.run(frame).count() == 0
    assert RISING.run(frame, schema={"v": "string"}).count() == 0


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_text_numbers_in_typed_files_are_warned_about(form: str, tmp_path: Path) -> None:
    table, path = pa.table({"type": ["A", "B"], "v": ["9", "10"], "w": ["007", "x"]}), tmp_path / f"x.{form}"
    if form == "parquet":
        pq.write_table(table, path)
    else:
        pyarrow.feather.write_feather(table, path)
    with pytest.warns(
        TextWarning, match=rf"column `v` is text and compared as text, but holds `9` \(.*x\.{form}, row 0"
    ):
        assert RISING.run(path).count() == 0
    assert RISING.run(path, schema={"v": "string"}).count() == 0
    assert cerite.query("SELECT * FROM S WHERE A AS x ; B AS y FILTER y[w > x.w]").run(path).count() == 1


@pytest.mark.parametrize("form", ["csv", "list", "table"])
def test_columns_of_different_kinds_are_not_compared(form: str) -> None:
    query = cerite.query("SELECT * FROM S WHERE A AS x ; B AS y FILTER y[v > x.w]")
    rows = [{"type": "A", "v": "a", "w": 1}, {"type": "B", "v": "b", "w": 2}]
    data: Any = {"csv": written("x.csv", "type,v,w\nA,a,1\nB,b,2\n"), "list": rows, "table": pa.Table.from_pylist(rows)}
    assert "`v` is a string and `x.w` is a number" in refused(data[form], query)


# ---------------------------------------------------------------- declarations
DECLARED = """CREATE STREAM S { EVENT A { v:int, z:string }, EVENT B { v:int, z:string } }
SELECT * FROM S WHERE A AS x ; B AS y PARTITION BY [z]"""


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl", "x.txt"])
def test_declared_kinds_decide_how_text_is_read(name: str) -> None:
    query = cerite.query(DECLARED)
    text = {
        "x.csv": "type,v,z\nA,1,007\nB,2,7\nB,3,0x7\nB,{v},007\n",
        "x.jsonl": '{{"type":"A","v":1,"z":"007"}}\n{{"type":"B","v":2,"z":7}}\n{{"type":"B","v":3,"z":"0x7"}}\n'
        '{{"type":"B","v":"{v}","z":"007"}}\n',
        "x.txt": "A(v=1,z=007)\nB(v=2,z=7)\nB(v=3,z=0x7)\nB(v={v},z=007)\n",
    }[name]
    matches = query.run(written(name, text.format(v=4)))
    assert [match.positions for match in matches] == [(0, 3)]
    assert matches.head(1)[0].events[1] == {"type": "B", "v": 4, "z": "007"}
    line = 5 if name == "x.csv" else 4
    said = refused(written(name, text.format(v="four")), query)
    assert f"{name}, line {line}, column `v`: `four` is not an int, as declared" in said
    assert "null_values=['four']" in said


def test_json_numbers_that_are_declared_text_are_as_written() -> None:
    text = '{"z": 7}\n{"z": 1.50}\n{"z": "A12"}\n{"z": null}\n{"z": true}\n'
    assert read(text, "x.jsonl", schema={"z": "string"}) == {"z": ["7", "1.50", "A12", None, "true"]}
    assert read('{"z": 7}\n', "y.jsonl", schema={"z": "string"}) == {"z": ["7"]}


ROWS = [{"type": "A", "v": "x"}, {"type": "B", "v": "y"}]
TABLE = pa.Table.from_pylist(ROWS)
TYPED: dict[str, Any] = {
    "rows": lambda: ROWS, "generator": lambda: iter(ROWS), "table": lambda: TABLE, "reader": TABLE.to_reader,
    "pandas": TABLE.to_pandas, "polars": lambda: pl.from_arrow(TABLE),
    "parquet": lambda: pq.write_table(TABLE, "x.parquet") or "x.parquet",
}  # fmt: skip


@pytest.mark.parametrize("kind", TYPED)
def test_declared_kinds_are_checked_against_typed_data(kind: str) -> None:
    query = cerite.query("SELECT * FROM S WHERE A AS x ; B AS y", schema={"v": "int"})
    said = refused(TYPED[kind](), query)
    assert "column `v` holds string, but it is declared int" in said
    assert "declare it string" in said
    assert cerite.query("SELECT * FROM S WHERE A ; B").run(TYPED[kind](), schema={"v": "string"}).count() == 1


def test_whole_numbers_may_stand_where_floats_are_declared() -> None:
    assert RISING.run([{"type": "A", "v": 1}, {"type": "B", "v": 2}], schema={"v": "float"}).count() == 1
    assert "is declared int" in refused([{"type": "A", "v": 1.5}], schema={"v": "int"})


def test_one_attribute_of_two_event_types_is_one_column() -> None:
    both = "CREATE STREAM S {{ EVENT A {{ v:int }}, EVENT B {{ v:{} }} }} SELECT * FROM S WHERE A AS x ; B AS y"
    path = written("x.csv", "type,v\nA,1\nB,2\n")
    assert cerite.query(both.format("float")).run(path).head(1)[0].events[0]["v"] == 1.0
    said = refused(path, cerite.query(both.format("string")))
    assert "attribute `v` is int in `A`, but string in `B`: one column cannot be both" in said
    with pytest.raises(SchemaError, match="is declared int by the query, but string by the schema"):
        cerite.query(both.format("int")).run(path, schema={"v": "string"})


def test_schemas_in_every_spelling() -> None:
    path = written("x.csv", "type,z\nA,1\n")
    for schema in ({"z": "string"}, {"A": {"z": "text"}}, "CREATE STREAM S { EVENT A { z:string } }",
                   pa.schema({"z": pa.string()}), cerite.Schema.of_columns({"z": "string"})):  # fmt: skip
        assert open_events(path, schema=schema).table().to_pydict()["z"] == ["1"]


def test_a_stream_has_the_declared_kinds() -> None:
    with pytest.raises(StreamError, match="column `v` holds string, but it is declared int"):
        cerite.query("SELECT * FROM S WHERE A", schema={"v": "int"}).stream(pa.schema({"v": pa.string()}))


# ---------------------------------------------------------------- time
ISO = [("A", "2024-01-01T00:00:00"), ("B", "2024-01-01T00:00:10"), ("B", "2024-01-01T00:00:10.000001")]
TIMES = [{"type": kind, "at": at} for kind, at in ISO]


@pytest.mark.parametrize("zone", ["", "Z", "+02:00"])
@pytest.mark.parametrize("kind", ["rows", "pandas", "polars", "table", "csv", "jsonl", "txt"])
def test_iso_strings_are_times(kind: str, zone: str) -> None:
    rows = [{**row, "at": row["at"] + zone} for row in TIMES]
    data = any_of(
        {
            "rows": lambda: rows,
            "pandas": lambda: pd.DataFrame(rows),
            "polars": lambda: pl.DataFrame(rows),
            "table": lambda: pa.Table.from_pylist(rows),
            "csv": lambda: written("x.csv", "type,at\n" + "".join(f"{row['type']},{row['at']}\n" for row in rows)),
            "jsonl": lambda: written("x.jsonl", "".join(f'{{"type":"{r["type"]}","at":"{r["at"]}"}}\n' for r in rows)),
            "txt": lambda: written("x.txt", "".join(f"{row['type']}(at={row['at']})\n" for row in rows)),
        },
        kind,
    )
    matches = SOON.run(data, time="at")
    assert [match.positions for match in matches] == [(0, 1)]
    assert isinstance(matches.head(1)[0].events[0]["at"], datetime)


def test_strings_that_are_no_times_are_refused_with_their_place() -> None:
    rows = [*TIMES, {"type": "B", "at": "noon"}]
    assert "the list of events, row 3 (from 0), column `at`: `noon` is not a time" in refused(rows, SOON, time="at")
    text = "type,at\nA,2024-01-01T00:00:00\nB,noon\n"
    assert "x.csv, line 3, column `at`: `noon` is not a time" in refused(written("x.csv", text), SOON, time="at")
    pq.write_table(pa.Table.from_pylist(TIMES), "x.parquet")
    assert "the time column `at` of x.parquet holds text" in refused("x.parquet", SOON, time="at")
    mixed = [TIMES[0], {"type": "B", "at": "2024-01-01T00:00:01Z"}]
    assert "all with a zone or all without" in refused(mixed, SOON, time="at")


@pytest.mark.parametrize(("unit", "ticks"), [("s", 1), ("ms", 1_000), ("us", 10**6), ("ns", 10**9)])
@pytest.mark.parametrize("cast", [int, float])
def test_times_in_other_units(unit: Any, ticks: int, cast: Any) -> None:
    rows = [{"type": "A", "at": cast(0)}, {"type": "B", "at": cast(10 * ticks)}, {"type": "B", "at": cast(11 * ticks)}]
    assert [match.positions for match in SOON.run(rows, time="at", time_unit=unit)] == [(0, 1)]
    inner = cerite.query("SELECT * FROM S WHERE (A AS x ; B AS y FILTER y[at > x.at]) WITHIN 10 seconds")
    assert inner.run(rows, time="at", time_unit=unit).count() == 1
    table = pa.Table.from_pylist(rows)
    stream = SOON.stream(table.schema, time="at", time_unit=unit)
    assert sum(stream.push(batch).count() for batch in table.to_batches(max_chunksize=1)) == 1


def test_a_stream_with_times_as_text_is_refused() -> None:
    with pytest.raises(StreamError, match="the time column `at` holds text"):
        SOON.stream(pa.schema({"type": pa.string(), "at": pa.string()}), time="at")


def test_an_unknown_unit_of_time_is_refused() -> None:
    assert "there is no time unit 'seconds'" in refused([], SOON, time="at", time_unit="seconds")


def test_errors_about_time_show_times() -> None:
    said = refused(TIMES[::-1], SOON, time="at")
    assert "`at` decreases at row 1: 2024-01-01T00:00:10 after 2024-01-01T00:00:10.000001" in said


def test_order_by_takes_one_name() -> None:
    rows = [{"type": "A", "ts": 1, "t": 5, "s": 5}, {"type": "B", "ts": 0, "t": 6, "s": 6}]
    assert cerite.query("SELECT * FROM S WHERE B ; A").run(rows, order_by="ts").count() == 1


# ---------------------------------------------------------------- nested attributes
NESTED: list[dict[str, Any]] = [
    {"type": "A", "ctx": {"ip": "10.0.0.1", "geo": {"zone": 3}}},
    {"type": "B", "ctx": {"ip": "10.0.0.2", "geo": None}},
    {"type": "B", "ctx": None},
    {"type": "B", "ctx": {"ip": "10.0.0.1", "geo": {"zone": 4}}},
]
SAME_IP = cerite.query("SELECT * FROM S WHERE A AS x ; B AS y FILTER y[`ctx.ip` = x.`ctx.ip` AND `ctx.geo.zone` > 3]")


def json_lines(rows: list[dict[str, Any]]) -> str:
    import json

    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.mark.parametrize("kind", ["jsonl", "parquet", "ipc", "table", "reader", "rows", "generator", "polars"])
def test_nested_attributes_are_read_by_dotted_names(kind: str) -> None:
    table = pa.Table.from_pylist(NESTED)
    data = any_of(
        {
            "jsonl": lambda: written("x.jsonl", json_lines(NESTED)),
            "parquet": lambda: pq.write_table(table, "x.parquet") or "x.parquet",
            "ipc": lambda: pa.feather.write_feather(table, "x.arrow") or "x.arrow",
            "table": lambda: table,
            "reader": table.to_reader,
            "rows": lambda: NESTED,
            "generator": lambda: iter(NESTED),
            "polars": lambda: pl.from_arrow(table),
        },
        kind,
    )
    matches = SAME_IP.run(data)
    positions = [match.positions for match in (matches if kind in ("reader", "generator") else list(matches))]
    assert positions == [(0, 3)]
    if kind not in ("reader", "generator"):
        assert matches.head(1)[0].events[0]["ctx"]["ip"] == "10.0.0.1"
        assert set(matches.head(1)[0].events[0]) == {"type", "ctx"}


def test_dotted_names_and_variables_are_not_confused() -> None:
    rows = [{"type": "A", "ip": 1, "x": {"ip": 1}}, {"type": "B", "ip": 1, "x": {"ip": 2}}]
    table = pa.Table.from_pylist(rows)
    query = cerite.query("SELECT * FROM S WHERE A AS x ; B AS y FILTER y[ip = x.ip]")
    assert "`x.ip` may be `ip` of the variable `x`, or a nested attribute" in refused(table, query)
    with pytest.raises(CeriteError, match="a nested attribute is written in back-quotes"):
        cerite.query("SELECT * FROM S WHERE A AS x ; B AS y FILTER y[ctx.ip = 1]")
    clash = pa.table({"x": [{"ip": 1}], "x.ip": [2]})
    with pytest.raises(StreamError, match=r"`x\.ip` could be a column of that name or a member of a struct"):
        open_events(clash)


# ---------------------------------------------------------------- options
def test_delimiters_and_formats() -> None:
    assert read("a;b\n1;x,y\n", delimiter=";") == {"a": [1], "b": ["x,y"]}
    assert read("a|b\n1|2\n", "events", format="csv", delimiter="|") == {"a": [1], "b": [2]}
    assert read('{"a": 1}\n', "log", format="jsonl") == {"a": [1]}
    with pytest.raises(StreamError, match="one ASCII character"):
        read("a\n1\n", delimiter="||")
    with pytest.raises(StreamError, match="there is no format 'xml'"):
        read("a\n1\n", format="xml")
    with pytest.raises(StreamError, match="null_values is about text files"):
        open_events(pa.table({"a": [1]}), null_values="x")
