"""Data that cannot be read: the message names the file, the row or line, and the column, and says what to do."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cerite.core.errors import StreamError
from cerite.data import open_events
from cerite.data.files import chunks

TABLE = pa.table({"id": range(1000), "name": [str(number * 7919) for number in range(1000)]})
HUGE = 2**60 + 1


@pytest.fixture(autouse=True)
def _inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def written(name: str, content: str | bytes) -> str:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return name


def parquet(name: str, table: pa.Table = TABLE, cut: int = 0, broken: bool = False) -> str:
    pq.write_table(table, name, row_group_size=100)
    data = bytearray(Path(name).read_bytes())
    if broken:
        data[30:400] = bytes(370)
    return written(name, bytes(data[: len(data) - cut]))


def message(data: Any, **options: Any) -> str:
    """What the user sees, whether the fault shows on opening or on reading."""
    with pytest.raises(StreamError) as caught:
        open_events(data, **options).table()
    return str(caught.value)


FILES: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "missing": (
        lambda: written("events.csv", "a\n1\n") and "evnets.csv",
        ["evnets.csv: there is no such file", "did you mean `events.csv`?"],
    ),
    "missing folder": (lambda: "no/such.csv", ["no/such.csv", "the folder no does not exist"]),
    "remote": (lambda: "s3://bucket/x.parquet", ["no such file", "only local files"]),
    "empty glob": (lambda: "*.parquet", ["*.parquet: no file matches this pattern"]),
    "unknown extension": (
        lambda: written("x.xlsx", "PK"),
        ["x.xlsx: the extension `.xlsx` is unknown", ".parquet .pq .csv", ".gz"],
    ),
    "no extension": (lambda: written("events", "a"), ["events: the file name has no extension", ".parquet"]),
    "packed Parquet": (lambda: written("x.parquet.gz", "a"), ["x.parquet.gz", "unpack"]),
    "only packed": (lambda: written("x.gz", "a"), ["x.gz: the file name has no extension"]),
    "zero bytes": (lambda: written("x.parquet", ""), ["x.parquet: the file is empty (0 bytes)"]),
    "zero bytes of CSV": (
        lambda: [written("a.csv", "a\n1\n"), written("x.csv", "")],
        ["x.csv: the file is empty (0 bytes)"],
    ),
    "zero bytes, packed": (lambda: written("x.csv.gz", gzip.compress(b"")), ["x.csv.gz: the file is empty"]),
    "blank CSV": (lambda: written("x.csv", "\n\n"), ["x.csv: the file is empty"]),
    "folder without data": (
        lambda: Path(written("dir/_SUCCESS", "")).parent,
        ["dir: the folder has no data files", ".parquet"],
    ),
    "folder with other things": (
        lambda: Path(written("dir/x.dat", "?")).parent,
        ["dir/x.dat", "`.dat` is unknown", "pattern such as dir/*.parquet"],
    ),
    "partitioned folder": (
        lambda: Path(written("dir/day=1/x.csv", "a\n1\n")).parent.parent,
        ["dir is partitioned by day", "partitioning='hive'"],
    ),
    "truncated Parquet": (
        lambda: parquet("x.parquet", cut=100),
        ["x.parquet: cannot be read", "damaged, cut off, or of another format"],
    ),
    "Parquet that is not": (lambda: written("x.parquet", "a,b\n1,2\n"), ["x.parquet: cannot be read"]),
    "corrupted Parquet": (lambda: parquet("x.parquet", broken=True), ["x.parquet: cannot be read"]),
    "truncated IPC": (lambda: written("x.arrow", b"ARROW1\0\0" + bytes(50)), ["x.arrow: cannot be read"]),
    "IPC that is not": (lambda: written("x.feather", "a,b\n1,2\n"), ["x.feather: cannot be read"]),
    "truncated gzip": (
        lambda: written("x.csv.gz", gzip.compress(b"a\n" + bytes(range(48, 58)) * 9999)[:-20]),
        ["x.csv.gz: cannot be read"],
    ),
    "gzip that is not": (lambda: written("x.csv.gz", "a,b\n1,2\n"), ["x.csv.gz: cannot be read"]),
    "CSV, too few": (
        lambda: written("x.csv", "a,b\n1,2\n\n3\n4,5\n"),
        ["x.csv, line 4: 1 value, but the header names 2 columns", "  3\n", "^"],
    ),
    "CSV, too many": (
        lambda: written("x.csv", 'a,b\n1,"x\ny"\n3,4,5\n'),
        ["x.csv, line 4: 3 values, but the header names 2 columns", "  3,4,5\n", "^^^^^"],
    ),
    "CSV, open quote": (
        lambda: written("x.csv", 'a,b\n1,2\n"3,4\n5,6\n'),
        ["x.csv, line 3: 1 value", "does a quote stay open?"],
    ),
    "CSV, Latin-1": (
        lambda: written("x.csv", "a,b\n1,ü\n".encode("latin-1")),
        ["x.csv, line 2: the text is not UTF-8 (byte 0xfc)"],
    ),
    "CSV, two columns of a name": (lambda: written("x.csv", "a,b,a\n1,2,3\n"), ["x.csv: two columns are called `a`"]),
    "JSON, broken": (
        lambda: written("x.jsonl", '{"a": 1}\n\n{"a": }\n'),
        ["x.jsonl, line 3: not JSON: Expecting value", '  {"a": }\n', "        ^"],
    ),
    "JSON, cut off": (lambda: written("x.jsonl", '{"a": 1}\n{"a": 2'), ["x.jsonl, line 2: not JSON"]),
    "JSON, null": (lambda: written("x.jsonl", "null\n"), ["x.jsonl, line 1: a null where an object should be"]),
    "JSON, list": (
        lambda: written("x.jsonl", '{"a": 1}\n[1]\n'),
        ["x.jsonl, line 2: a list where an object should be"],
    ),
    "JSON, two on a line": (
        lambda: written("x.jsonl", '{"a": 1}\n{"a": 1} {"a": 2}\n'),
        ["x.jsonl, line 2: not JSON: Extra data"],
    ),
    "JSON, array": (lambda: written("x.json", '[{"a": 1}]'), ["x.json: holds a JSON array", "one object a line"]),
    "JSON, two of a name": (
        lambda: written("x.jsonl", '{"a": 1, "a": 2}\n'),
        ["x.jsonl, line 1: two values are called `a`"],
    ),
    "JSON, mixed": (
        lambda: written("x.jsonl", '{"a": 1}\n{"a": null}\n{"a": "x"}\n'),
        ['x.jsonl, line 3, column `a`: "x" is a string, but line 1 has a number'],
    ),
    "JSON, Latin-1": (
        lambda: written("x.jsonl", '{"a": 1}\n{"a": "ü"}\n'.encode("latin-1")),
        ["x.jsonl, line 2: the text is not UTF-8"],
    ),
    "JSON, large number": (
        lambda: written("x.jsonl", f'{{"a": 1}}\n{{"a": {2**70}}}\n'),
        [f"x.jsonl, line 2, column `a`: {2**70} does not fit in 64 bits"],
    ),
    "JSON, no keys": (lambda: written("x.jsonl", "{}\n{}\n"), ["x.jsonl has no columns"]),
    "CORE, no bracket": (
        lambda: written("x.stream", "A(x=1)\n\nB x=1\n"),
        ["x.stream, line 3: expected `(` after the event type", "  B x=1\n    ^\n", "hint: one event a line"],
    ),
    "CORE, no value": (
        lambda: written("x.stream", "A(x)\n"),
        ["x.stream, line 1: expected `=` after `x`", "  A(x)\n     ^\n"],
    ),
    "CORE, comma at the end": (
        lambda: written("x.stream", "A(x=1,)\n"),
        ["line 1: expected an attribute", "  A(x=1,)\n        ^\n"],
    ),
    "CORE, not closed": (lambda: written("x.stream", "A(x=1,y=2"), ["line 1: expected `,` or `)`", "           ^\n"]),
    "CORE, open quote": (
        lambda: written("x.stream", "A(x='a,y=2)\n"),
        ["line 1: the quote of `x` is not closed", "      ^^^^^^^"],
    ),
    "CORE, text after": (
        lambda: written("x.stream", "A(x=1) B\n"),
        ["line 1: there is text after the event", "         ^\n"],
    ),
    "CORE, twice": (lambda: written("x.stream", "A(x=1,x=2)\n"), ["line 1: attribute `x` is given twice"]),
    "CORE, type": (lambda: written("x.stream", "A(type=1)\n"), ["line 1: no attribute can be called `type`"]),
    "CORE, tabs": (lambda: written("x.txt", "type\tv\nA\t1\n"), ["x.txt: the file looks like tsv", "format='tsv'"]),
    "CORE, commas": (lambda: written("x.txt", "type,v\nA,1\n"), ["looks like csv", "format='csv'"]),
    "CORE, JSON": (lambda: written("x.txt", '{"type": "A"}\n'), ["looks like jsonl", "format='jsonl'"]),
    "semicolons": (
        lambda: written("x.csv", "\ntype;v\nA;1,5\n"),
        ["x.csv: there is one column; the separator seems to be `;`", "delimiter=';'"],
    ),
    "bars": (lambda: written("x.csv", "type|v\nA|1\n"), ["the separator seems to be `|`", "delimiter='|'"]),
    "tabs": (lambda: written("x.csv", "type\tv\nA\t1\n"), ["the separator seems to be a tab", "format='tsv'"]),
    "commas in TSV": (lambda: written("x.tsv", "type,v\nA,1\n"), ["seems to be `,`", "format='csv'"]),
    "UTF-16": (lambda: written("x.csv", "type,v\nA,1\n".encode("utf-16")), ["x.csv: the text is UTF-16", "iconv"]),
    "UTF-16 without a mark": (lambda: written("x.csv", "type,v\nA,1\n".encode("utf-16-le")), ["the text is UTF-16"]),
    "UTF-16 JSON": (lambda: written("x.jsonl", '{"v": 1}\n'.encode("utf-16")), ["x.jsonl: the text is UTF-16"]),
    "gzip without its ending": (
        lambda: written("x.csv", gzip.compress(b"type,v\nA,1\n")),
        ["x.csv: this is gzip, which the file's name does not say", "let the name end in .gz"],
    ),
    "types that clash": (
        lambda: [parquet("x.parquet", pa.table({"a": [1]})), parquet("y.parquet", pa.table({"a": ["x"]}))],
        ["column `a` is int64 in x.parquet, but string in y.parquet"],
    ),
    "numbers that floats cannot hold": (
        lambda: [parquet("x.parquet", pa.table({"a": [HUGE]})), parquet("y.parquet", pa.table({"a": [0.5]}))],
        ["x.parquet, column `a`", str(HUGE)],
    ),
}


def test_one_column_may_hold_separators_where_they_separate_nothing() -> None:
    assert open_events(written("x.csv", "text\na;b\nc\n")).table().to_pydict() == {"text": ["a;b", "c"]}
    assert open_events(written("y.csv", "a;b\nc\n")).table().to_pydict() == {"a;b": ["c"]}
    assert open_events(written("z.csv", "a;b\nc;d\n"), delimiter=",").table().to_pydict() == {"a;b": ["c;d"]}
    assert open_events(written("x.txt", "A(name='a,b')\n")).table().to_pydict() == {"type": ["A"], "name": ["a,b"]}


@pytest.mark.parametrize("fault", FILES)
def test_files(fault: str) -> None:
    make, expected = FILES[fault]
    said = message(make())
    assert [part for part in expected if part not in said] == [], said


ROWS: dict[str, tuple[list[Any], list[str]]] = {
    "mixed": ([{"a": 1}, {"a": "x"}], ["row 1 (from 0), column `a`: 'x' is a string, but row 0 holds an int"]),
    "later": (
        [{"a": 1}] * 3 + [{"a": "x"}],
        ["row 3 (from 0), column `a`: 'x' does not fit", "a string where the column has int"],
    ),
    "later float": ([{"a": 1}] * 3 + [{"a": 1.5}], ["row 3 (from 0), column `a`: 1.5 does not fit"]),
    "later bool": ([{"a": 1.0}] * 3 + [{"a": True}], ["row 3 (from 0), column `a`: True does not fit"]),
    "later value at all": (
        [{"a": None, "b": 1}] * 3 + [{"a": 5, "b": 1}],
        ["row 3 (from 0), column `a`: 5 does not fit", "only NULL so far"],
    ),
    "later large": ([{"a": 0.5}] * 3 + [{"a": HUGE}], [f"row 3 (from 0), column `a`: {HUGE} does not fit"]),
    "later zone": (
        [{"a": datetime(2024, 1, 1)}] * 3 + [{"a": datetime(2024, 1, 1, tzinfo=timezone.utc)}],
        ["row 3 (from 0), column `a`", "timestamp with zone"],
    ),
    "time among days": ([{"a": date(2024, 1, 1)}, {"a": datetime(2024, 1, 1, 9)}], ["row 1 (from 0), column `a`"]),
    "bytes among strings": ([{"a": "x"}, {"a": b"y"}], ["row 1 (from 0), column `a`: b'y' is a bytes"]),
    "large": ([{"a": 2**70}], ["row 0 (from 0), column `a`"]),
    "later key": (
        [{"price": 1}] * 3 + [{"pirce": 1}],
        ["row 3 (from 0), column `pirce` is not in the first 2 rows", "did you mean `price`?"],
    ),
    "no dictionary": ([{"a": 1}, 5], ["row 1 (from 0) is an int, not a dictionary"]),
    "key": ([{1: 1}], ["the key 1 is not a string"]),
    "none": ([], ["is empty, so its columns are unknown"]),
}


@pytest.mark.parametrize("stream", [list, iter])
@pytest.mark.parametrize("fault", ROWS)
def test_dictionaries(fault: str, stream: Callable[[list[Any]], Any]) -> None:
    rows, expected = ROWS[fault]
    said = message(stream(rows), batch_rows=2)
    assert [part for part in expected if part not in said] == [], said


def test_pandas() -> None:
    said = message(pd.DataFrame({"a": [1, 2], "b": ["x", 7]}))
    assert "column `b` has mixed types: row 0 (from 0) holds a string, row 1 a number" in said
    assert "astype" in said
    assert "mixed types" in message(pd.DataFrame({"b": [None, b"x", "y"]}))
    assert "column `b`" in message(pd.DataFrame({"b": [object(), object()]}))
    assert "two columns are called `a`" in message(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    assert "two columns are called `1`" in message(pd.DataFrame([[1, 2]], columns=["1", 1]))


def test_polars() -> None:
    assert "no column `prise`" in message(pl.DataFrame({"price": [1]}), columns=["prise"])
    assert "the Polars frame" in message(pl.DataFrame({"a": [object()]}))
    assert "the Polars lazy frame" in message(pl.LazyFrame({"a": [1]}).select("b"))


def test_columns() -> None:
    for data in (TABLE, TABLE.to_reader(), parquet("x.parquet"), TABLE.to_pandas(), TABLE.to_pylist()):
        said = message(data, columns=["id", "nmae"])
        assert "has no column `nmae`" in said
        assert "did you mean `name`?" in said
    assert "the columns are `id`, `name`" in message(TABLE, columns=["whatever"])
    assert "two columns are called `id`" in message(TABLE, columns=["id", "id"])
    assert "two columns are called `a`" in message(pa.table([[1], [2]], names=["a", "a"]))
    assert "two columns are called `a`" in message(parquet("y.parquet", pa.table([[1], [2]], names=["a", "a"])))
    assert "a list of names" in message(TABLE, columns="id")
    assert "no columns are requested" in message(TABLE, columns=[])
    assert "has no columns" in message(pa.table({}))
    with pytest.raises(StreamError, match="did you mean `name`"):
        open_events(TABLE).take([0], columns=["nmae"])


def test_positions() -> None:
    for data in (TABLE, parquet("x.parquet"), TABLE.to_pylist()):
        source = open_events(data)
        for wrong in ([1000], [0, -1]):
            with pytest.raises(StreamError, match="has no position"):
                source.take(wrong)
        with pytest.raises(StreamError, match="whole numbers"):
            source.take([0.5])  # type: ignore[list-item]


def test_other_things() -> None:
    assert "cannot be read from an int" in message(5)
    assert "pyarrow.table(data)" in message({"a": [1]})
    assert "cannot be read from a bytes" in message(b"a,b")
    assert "batch_rows" in message(TABLE, batch_rows=0)


def test_a_stream_that_breaks_off() -> None:
    def batches() -> Any:
        yield TABLE.to_batches()[0]
        raise OSError("connection lost")

    assert "the reader broke off: connection lost" in message(
        pa.RecordBatchReader.from_batches(TABLE.schema, batches())
    )


def test_a_file_that_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cerite.data.files.source._CACHED_BYTES", 0)
    source = open_events(written("x.csv", "a\n" + "1\n" * 100))
    written("x.csv", "a\n1\n")
    with pytest.raises(StreamError, match="changed while it was read"):
        source.table()


def test_lines_are_counted_across_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "CHUNK", 64)
    assert "x.csv, line 102: 1 value" in message(written("x.csv", "a,b\n" + "1,2\n" * 100 + "3\n"))
    assert "x.jsonl, line 101: not JSON" in message(written("x.jsonl", '{"a": 1}\n' * 100 + "{\n"))
    assert "x.stream, line 101: expected" in message(written("x.stream", "A(x=1)\n" * 100 + "A\n"))
    said = message(written("y.jsonl", '{"a":        1}\n' * 100 + '{"a": "x"}\n' * 20))
    assert "column `a` is int64 in y.jsonl from line 97, but string in y.jsonl from line 101" in said
