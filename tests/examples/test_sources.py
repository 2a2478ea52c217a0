"""Every kind of data gives the same table, in order, with strings dictionary-encoded; rows can be had by position."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from cerite.core.errors import StreamError
from cerite.data import Source, open_events
from cerite.data.columns import STRINGS
from cerite.data.files import chunks

ROWS: list[dict[str, Any]] = [
    {"type": "BUY", "id": 1, "price": 12.5, "name": "INTC", "ok": True, "at": datetime(2024, 5, 1, 9, 30, 0, 250_000)},
    {"type": "SELL", "id": 2, "price": None, "name": "Žluťoučký kůň", "ok": None, "at": datetime(2024, 5, 1, 9, 31)},
    {"type": "BUY", "id": None, "price": -0.25, "name": None, "ok": False, "at": None},
    {
        "type": "SELL",
        "id": 9007199254740993,
        "price": 1e300,
        "name": 'a "b", c',
        "ok": True,
        "at": datetime(1969, 1, 1),
    },
    {"type": "BUY", "id": -5, "price": 3.0, "name": "", "ok": False, "at": datetime(2024, 5, 2)},
    {
        "type": "BUY",
        "id": 6,
        "price": 4.0,
        "name": "日本 🚀",
        "ok": None,
        "at": datetime(2024, 5, 3, 23, 59, 59, 999_999),
    },
]
TABLE = pa.Table.from_pylist(
    ROWS,
    pa.schema(
        [("type", pa.string()), ("id", pa.int64()), ("price", pa.float64()), ("name", pa.string()), ("ok", pa.bool_()),
         ("at", pa.timestamp("us"))]
    ),
)  # fmt: skip
PANDAS = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype(), pa.string(): pd.StringDtype()}
SCHEMA = pa.schema([(each.name, STRINGS if each.type == pa.string() else each.type) for each in TABLE.schema])


def csv_text(delimiter: str = ",") -> str:
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_MINIMAL, delimiter=delimiter)
    writer.writerow(TABLE.column_names)
    for row in ROWS:
        writer.writerow(["\x01" if value == "" else "" if value is None else value for value in row.values()])
    return out.getvalue().replace("\x01", '""')


def json_text() -> str:
    return "".join(json.dumps(row, default=datetime.isoformat, ensure_ascii=False) + "\n" for row in ROWS)


def core_text() -> str:
    def written(value: object) -> str:
        if isinstance(value, str):
            return "'" + value.replace("'", "''") + "'"
        return "NULL" if value is None else str(value)

    lines = []
    for row in ROWS:
        values = [f"{name}={written(value)}" for name, value in row.items() if name != "type"]
        lines.append(f"{row['type']}({','.join(values)})\n")
    return "".join(lines)


class Streams:
    """Something that streams Arrow and is no reader."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return TABLE.__arrow_c_stream__(requested_schema)


def written(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def parquet(path: Path, table: pa.Table = TABLE, **options: Any) -> Path:
    pq.write_table(table, path, **options)
    return path


def ipc_stream(path: Path) -> Path:
    with pa.ipc.new_stream(path, TABLE.schema) as writer:
        writer.write_table(TABLE, max_chunksize=2)
    return path


def feather(path: Path, **options: Any) -> Path:
    pyarrow.feather.write_feather(TABLE, path, **options)
    return path


def arrow_csv(path: Path) -> Path:
    pyarrow.csv.write_csv(TABLE, path)
    return path


def two_files(folder: Path) -> list[Path]:
    return [parquet(folder / "z.parquet", TABLE.slice(0, 2)), parquet(folder / "a.parquet", TABLE.slice(2))]


def folder_of(folder: Path) -> Path:
    (folder / "data" / "in").mkdir(parents=True)
    parquet(folder / "data" / "in" / "part-0.parquet", TABLE.slice(0, 4))
    parquet(folder / "data" / "part-1.parquet", TABLE.slice(4))
    written(folder / "data" / "_SUCCESS", "")
    written(folder / "data" / ".part-0.crc", "x")
    return folder / "data"


AGAIN: dict[str, Callable[[Path], Any]] = {
    "table": lambda _: TABLE,
    "chunked table": lambda _: pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1, 3), TABLE.slice(4)]),
    "sliced table": lambda _: pa.concat_tables([TABLE, TABLE]).slice(len(TABLE), len(TABLE)),
    "dictionary table": lambda _: TABLE.set_column(3, "name", TABLE["name"].dictionary_encode()),
    "batch": lambda _: TABLE.combine_chunks().to_batches()[0],
    "pandas": lambda _: TABLE.to_pandas(types_mapper=pd.ArrowDtype),
    "pandas, nullable": lambda _: TABLE.to_pandas(types_mapper=PANDAS.get),
    "polars": lambda _: pl.from_arrow(TABLE),
    "polars, lazy": lambda _: pl.from_arrow(TABLE).lazy(),  # type: ignore[union-attr]
    "polars, categories": lambda _: pl.DataFrame(pl.from_arrow(TABLE)).with_columns(
        pl.col("name").cast(pl.Categorical)
    ),
    "list": lambda _: ROWS,
    "parquet": lambda folder: parquet(folder / "x.parquet", row_group_size=2),
    "parquet as text": lambda folder: str(parquet(folder / "x.pq")),
    "csv": lambda folder: written(folder / "x.csv", csv_text()),
    "csv, Windows": lambda folder: written(folder / "x.csv", b"\xef\xbb\xbf" + csv_text().encode()),
    "csv of Arrow": lambda folder: arrow_csv(folder / "x.csv"),
    "csv.gz": lambda folder: written(folder / "x.csv.gz", gzip.compress(csv_text().encode())),
    "tsv": lambda folder: written(folder / "x.tsv", csv_text("\t")),
    "json lines": lambda folder: written(folder / "x.jsonl", json_text()),
    "json, blank lines": lambda folder: written(folder / "x.json", "\n " + json_text().replace("\n", "\r\n\r\n")),
    "ndjson.bz2": lambda folder: written(folder / "x.ndjson.bz2", bz2.compress(json_text().encode())),
    "feather": lambda folder: feather(folder / "x.feather"),
    "feather, chunks": lambda folder: feather(folder / "x.arrow", chunksize=2, compression="zstd"),
    "ipc stream": lambda folder: ipc_stream(folder / "x.arrows"),
    "core": lambda folder: written(folder / "x.stream", core_text()),
    "core.gz": lambda folder: written(folder / "x.txt.gz", gzip.compress(core_text().replace("\n", "\r\n").encode())),
    "list of files": two_files,
    "folder": folder_of,
}
ONCE: dict[str, Callable[[], Any]] = {
    "reader": lambda: TABLE.to_reader(max_chunksize=4),
    "arrow stream": Streams,
    "generator": lambda: (row for row in ROWS),
}


def checked(source: Source) -> pa.Table:
    """The source's rows as plain strings, after a look at each batch's schema. CORE's form has no timestamps."""
    schema = source.schema
    if pa.types.is_dictionary(schema.field("at").type):
        schema = schema.set(5, SCHEMA.field("at"))
    assert schema == SCHEMA
    batches = list(source.batches())
    assert all(batch.schema == source.schema and batch.num_rows for batch in batches)
    return (
        pa.Table.from_batches(batches)
        .cast(pa.schema([(each.name, _plain(each.type)) for each in source.schema]))
        .cast(TABLE.schema)
    )


def _plain(arrow: pa.DataType) -> pa.DataType:
    return pa.string() if arrow == STRINGS else arrow


@pytest.mark.parametrize("batch_rows", [1, 4, 1 << 20])
@pytest.mark.parametrize("kind", AGAIN)
def test_every_kind_of_input_gives_the_same_table(kind: str, batch_rows: int, tmp_path: Path) -> None:
    source = open_events(AGAIN[kind](tmp_path), batch_rows=batch_rows)
    assert checked(source).equals(TABLE)
    assert checked(source).equals(TABLE), "a second time"
    assert source.rows == len(ROWS)
    assert source.available == tuple(TABLE.column_names)
    assert all(batch.num_rows <= batch_rows for batch in source.batches())
    assert source.table().num_rows == len(ROWS)


@pytest.mark.parametrize("kind", AGAIN)
def test_rows_by_position(kind: str, tmp_path: Path) -> None:
    source = open_events(AGAIN[kind](tmp_path), columns=["price"], batch_rows=2)
    assert source.take([5, 0, 3, 0]).to_pylist() == [{"price": ROWS[at]["price"]} for at in (5, 0, 3, 0)]
    table = source.take(np.array([4, 1, 2]), columns=["name", "id"])
    assert table.to_pylist() == [{"name": ROWS[at]["name"], "id": ROWS[at]["id"]} for at in (4, 1, 2)]
    assert source.take([]).to_pydict() == {"price": []}


@pytest.mark.parametrize("kind", AGAIN)
def test_columns_in_the_order_asked_for(kind: str, tmp_path: Path) -> None:
    source = open_events(AGAIN[kind](tmp_path), columns=["name", "type"])
    assert source.schema.names == ["name", "type"]
    assert source.table().to_pylist() == [{"name": row["name"], "type": row["type"]} for row in ROWS]


@pytest.mark.parametrize("kind", ONCE)
def test_what_can_be_read_once(kind: str) -> None:
    source = open_events(ONCE[kind](), batch_rows=2)
    assert source.rows is None
    assert checked(source).equals(TABLE)
    with pytest.raises(StreamError, match="only once, and has been"):
        source.batches()
    with pytest.raises(StreamError, match="pass a table or a file"):
        source.take([0])


def test_dictionaries_are_consumed_lazily() -> None:
    seen: list[int] = []

    def events() -> Iterator[dict[str, int]]:
        for number in range(10):
            seen.append(number)
            yield {"a": number}

    batches = open_events(events(), batch_rows=3).batches()
    assert len(seen) == 3
    next(batches)
    next(batches)
    assert len(seen) == 6


def test_globs_are_sorted_and_schemas_unified(tmp_path: Path) -> None:
    parquet(tmp_path / "2.parquet", pa.table({"a": [2.5], "b": ["x"]}))
    parquet(tmp_path / "1.parquet", pa.table({"a": pa.array([1], pa.int32())}))
    parquet(tmp_path / "3.parquet", pa.table({"c": pa.array([True]), "a": pa.nulls(1)}))
    source = open_events(tmp_path / "*.parquet")
    assert source.schema == pa.schema({"a": pa.float64(), "b": STRINGS, "c": pa.bool_()})
    assert source.table().to_pydict() == {"a": [1.0, 2.5, None], "b": [None, "x", None], "c": [None, None, True]}
    assert source.take([2, 0]).to_pydict() == {"a": [None, 1.0], "b": [None, None], "c": [True, None]}
    assert open_events(tmp_path / "*.parquet", columns=["c"]).table().to_pydict() == {"c": [None, None, True]}


def test_formats_mix_in_a_list(tmp_path: Path) -> None:
    first, second = written(tmp_path / "x.csv", "a,b\n007,x\n"), parquet(tmp_path / "y.parquet", pa.table({"a": ["z"]}))
    assert open_events([first, str(second)]).table().to_pydict() == {"a": ["007", "z"], "b": ["x", None]}
    third = written(tmp_path / "z.csv", "a,b\nfoo,\n")
    assert open_events([first, third]).table().to_pydict() == {"a": ["007", "foo"], "b": ["x", None]}


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large files in the small: chunks of 64 bytes, nothing cached."""
    monkeypatch.setattr(chunks, "CHUNK", 64)
    monkeypatch.setattr("cerite.data.files.source._CACHED_BYTES", 0)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("kind", ["csv", "csv.gz", "json lines", "ndjson.bz2", "core", "core.gz", "json, blank lines"])
def test_large_text_is_read_in_chunks(kind: str, tmp_path: Path) -> None:
    source = open_events(AGAIN[kind](tmp_path), batch_rows=100)
    assert len(list(source.batches())) > 2
    assert checked(source).equals(TABLE)
    assert source.take([5, 1, 5], ["id"]).to_pydict() == {"id": [6, 2, 6]}


@pytest.mark.usefixtures("small_chunks")
def test_types_fit_the_whole_text(tmp_path: Path) -> None:
    """Chunks in which a column looks like something else, or is not there, do not matter."""
    many = "".join(f"{number},{number},\n" for number in range(50))
    source = open_events(written(tmp_path / "x.csv", "a,b,c\n" + many + "0.5,07x,late\n"))
    assert source.schema == pa.schema({"a": pa.float64(), "b": STRINGS, "c": STRINGS})
    assert source.take([3, 50]).to_pylist() == [{"a": 3.0, "b": "3", "c": None}, {"a": 0.5, "b": "07x", "c": "late"}]
    many = "".join(f'{{"a":{number},"t":"2024-01-01T00:00:00"}}\n' for number in range(20))
    source = open_events(written(tmp_path / "x.jsonl", many + '{"a":0.5,"t":"noon","c":[1]}\n'))
    assert source.schema == pa.schema({"a": pa.float64(), "t": STRINGS, "c": pa.list_(pa.int64())})
    assert source.take([19, 20], ["t"]).to_pydict() == {"t": ["2024-01-01T00:00:00", "noon"]}
    many = "".join(f"A(x={number})\n" for number in range(50))
    source = open_events(written(tmp_path / "x.txt", many + "B(y='1')\nA(x=1.5)\nC()\n"))
    assert source.schema == pa.schema({"type": STRINGS, "x": pa.float64(), "y": STRINGS})
    assert source.take([50, 51, 52]).to_pydict() == {
        "type": ["B", "A", "C"],
        "x": [None, 1.5, None],
        "y": ["1"] + [None] * 2,
    }


@pytest.mark.usefixtures("small_chunks")
def test_quoted_line_ends_do_not_cut_records(tmp_path: Path) -> None:
    rows = [[str(number), "two\nlines, " * 12, 'a "quote"\n'] for number in range(20)]
    out = io.StringIO()
    csv.writer(out).writerows([["n", "s", "q"], *rows])
    table = open_events(written(tmp_path / "x.csv", out.getvalue())).table()
    assert table.to_pylist() == [{"n": int(n), "s": s, "q": q} for n, s, q in rows]


def test_core_form(tmp_path: Path) -> None:
    text = """BUY(id=8,name=INTC,volume=5,price=12.5,stock_time=3600)

      SELL ( id = 9 , `the name` = "so ""it"" is", ok=TRUE, name=Foo Bar )
    SELL(id=,name=NULL,`the name`='it''s (a) test',ok=false)
    HALT()
    """
    table = open_events(written(tmp_path / "x.stream", text)).table()
    assert table.to_pydict() == {
        "type": ["BUY", "SELL", "SELL", "HALT"],
        "id": [8, 9, None, None],
        "name": ["INTC", "Foo Bar", None, None],
        "volume": [5, None, None, None],
        "price": [12.5, None, None, None],
        "stock_time": [3600, None, None, None],
        "the name": [None, 'so "it" is', "it's (a) test", None],
        "ok": [None, True, False, None],
    }


def test_core_form_of_many_shapes(tmp_path: Path) -> None:
    lines = [f"T{number % 90}(a{number % 7}={number},b='it''s {number}')" for number in range(400)]
    table = open_events(written(tmp_path / "x.stream", "\n".join(lines))).table()
    assert table["b"].to_pylist() == [f"it's {number}" for number in range(400)]
    assert table["a3"].to_pylist() == [number if number % 7 == 3 else None for number in range(400)]
    assert table["type"].to_pylist() == [f"T{number % 90}" for number in range(400)]


def test_nothing_is_lost_in_numbers(tmp_path: Path) -> None:
    huge = "123456789012345678901234567890"
    assert open_events(written(tmp_path / "x.csv", f"a,b\n{huge},1e300\n7,2\n")).table().to_pydict() == {
        "a": [huge, "7"],
        "b": [1e300, 2.0],
    }
    assert open_events(written(tmp_path / "x.txt", f"A(a={huge},b=0x1F,c=+5)\n")).table()["a"].to_pylist() == [huge]
    nanos = open_events(written(tmp_path / "y.csv", "t,u\n2024-01-01T00:00:00.123456789Z,2024-01-01\n"))
    assert nanos.schema == pa.schema({"t": pa.timestamp("ns", "UTC"), "u": pa.date32()})
    assert open_events([{"t": pd.Timestamp("2024-01-01T00:00:00.000000001")}]).schema.field("t").type.unit == "ns"


def test_zones(tmp_path: Path) -> None:
    moment = datetime(2024, 5, 1, 9, 30, tzinfo=timezone.utc)
    texts = {"x.csv": f"at,n\n{moment.isoformat()},1\n", "x.jsonl": json.dumps({"at": "2024-05-01T09:30:00Z", "n": 1})}
    for name, text in texts.items():
        assert open_events(written(tmp_path / name, text)).table().to_pylist() == [{"at": moment, "n": 1}]
    assert open_events([{"at": moment, "n": 1}]).table().to_pylist() == [{"at": moment, "n": 1}]


def test_encodings_of_strings() -> None:
    hidden = pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.int8()), pa.array(["x", None]))
    ends = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array(["x", "y"]))
    numbers = pa.array([5, 5, 6]).dictionary_encode()
    views = pa.array(["x", None, "y"], pa.string_view())
    table = pa.table({"hidden": hidden, "ends": ends, "numbers": numbers, "views": views})
    source = open_events(table)
    assert source.schema == pa.schema({"hidden": STRINGS, "ends": STRINGS, "numbers": pa.int64(), "views": STRINGS})
    assert source.table().to_pydict() == {
        "hidden": ["x", None, None], "ends": ["x", "x", "y"], "numbers": [5, 5, 6], "views": ["x", None, "y"],
    }  # fmt: skip
    assert next(source.batches()).column("hidden").null_count == 2


def test_fragments_are_joined() -> None:
    table = pa.concat_tables([pa.table({"a": [number], "s": [str(number)]}) for number in range(500)])
    batches = list(open_events(table).batches())
    assert len(batches) == 1
    assert batches[0].column("a").to_pylist() == list(range(500))
    assert open_events(table).take([499, 3])["s"].to_pylist() == ["499", "3"]


def test_pandas_index_is_kept_where_it_means_something() -> None:
    times = pd.to_datetime(["2024-01-01", "2024-01-02"])
    assert open_events(pd.DataFrame({"a": [1, 2]}, index=times)).schema.names == ["index", "a"]
    assert open_events(pd.DataFrame({"a": [1, 2]}, index=times.rename("at"))).schema.names == ["at", "a"]
    assert open_events(pd.DataFrame({"a": [1, 2]}, index=[7, 3])).schema.names == ["a"]
    both = pd.DataFrame({"k": ["x", "y"], "n": [1, 2], "a": [3, 4]}).set_index(["k", "n"])
    assert open_events(both).table().to_pylist() == [{"k": "x", "n": 1, "a": 3}, {"k": "y", "n": 2, "a": 4}]


def test_frames_convert_only_what_is_wanted() -> None:
    frame = pd.DataFrame({"a": [1, 2], "mixed": [1, "x"]})
    assert open_events(frame, columns=["a"]).table().to_pydict() == {"a": [1, 2]}


def test_take_reads_only_the_row_groups_it_needs(tmp_path: Path) -> None:
    path = parquet(tmp_path / "x.parquet", pa.table({"a": range(1000)}), row_group_size=100, compression="none")
    source = open_events(path)
    footer = pq.ParquetFile(path).metadata
    begin = footer.row_group(9).column(0).dictionary_page_offset or footer.row_group(9).column(0).data_page_offset
    data = bytearray(path.read_bytes())
    data[4:begin] = bytes(begin - 4)  # everything before the last row group is destroyed
    path.write_bytes(data)
    assert source.take([999, 950]).to_pydict() == {"a": [999, 950]}
    with pytest.raises(StreamError, match="cannot be read"):
        source.take([0])


@pytest.mark.usefixtures("small_chunks")
def test_columns_that_are_always_null(tmp_path: Path) -> None:
    rows = [{"a": 1, "b": None}] * 40
    for name, text in {
        "x.csv": "a,b\n" + "1,\n" * 40,
        "x.jsonl": '{"a": 1, "b": null}\n' * 40,
        "x.stream": "T(a=1,b=NULL)\n" * 40,
    }.items():
        source = open_events(written(tmp_path / name, text), columns=["a", "b"])
        assert source.schema.field("b").type == pa.null()
        assert source.table().to_pylist() == rows


def test_values_of_numpy() -> None:
    moment = np.datetime64("2024-01-01T00:00:00")
    table = open_events(
        [{"a": np.int32(3), "b": np.float32(1.5), "c": np.bool_(True), "t": moment, "n": pd.NA}]
    ).table()
    assert table.to_pylist() == [{"a": 3, "b": 1.5, "c": True, "t": datetime(2024, 1, 1), "n": None}]


def test_header_without_rows(tmp_path: Path) -> None:
    source = open_events(written(tmp_path / "x.csv", "a,b\n"))
    assert (source.rows, source.schema.names, list(source.batches())) == (0, ["a", "b"], [])
    assert source.take([]).num_rows == 0
    assert list(open_events(TABLE.slice(0, 0)).batches()) == []


@pytest.mark.usefixtures("small_chunks")
def test_files_and_chunks_without_a_wanted_column_still_count(tmp_path: Path) -> None:
    text = "{}\n" * 100 + '{"a": 1}\n' + "{}\n" * 100
    for name, form in {"x.jsonl": text, "y.csv": "b\n" + "1\n" * 201}.items():
        files = [written(tmp_path / name, form), parquet(tmp_path / "z.parquet", pa.table({"a": [2]}))]
        source = open_events(files, columns=["a"], batch_rows=7)
        assert source.rows == source.table().num_rows == 202
        assert source.take([201, 100])["a"].to_pylist() == [2, 1 if name == "x.jsonl" else None]


def test_reading_can_be_broken_off(tmp_path: Path) -> None:
    batches = open_events(parquet(tmp_path / "x.parquet", row_group_size=1)).batches()
    assert next(batches).num_rows == 1
    batches.close()  # type: ignore[attr-defined]
