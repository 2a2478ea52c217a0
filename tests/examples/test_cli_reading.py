"""Reading on the command line: standard input, delimiters, missing values, declarations, units of time."""

from __future__ import annotations

import bz2
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.command import cerite as command

QUERY = "SELECT * FROM S WHERE A AS x ; B AS y FILTER y[v > x.v] WITHIN 10 seconds"
ROWS = [{"type": "A", "v": 9, "at": 0}, {"type": "B", "v": 10, "at": 10}, {"type": "B", "v": 11, "at": 11}]
CSV = "type,v,at\nA,9,0\nB,10,10\nB,11,11\n"


def cerite(*arguments: str, given: bytes = b"", code: int = 0) -> tuple[str, str]:
    """What the command prints, given this on standard input."""
    with patch("sys.stdin", io.TextIOWrapper(io.BytesIO(given))):
        done = command(*arguments, code=code)
    return done.stdout, done.stderr


def parquet_bytes() -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(ROWS), sink)
    return bytes(sink.getvalue().to_pybytes())


STANDARD_INPUT = {
    "csv": CSV.encode(), "tsv": CSV.replace(",", "\t").encode(), "parquet": parquet_bytes(),
    "jsonl": "".join(json.dumps(row) + "\n" for row in ROWS).encode(),
    "core": b"A(v=9,at=0)\nB(v=10,at=10)\nB(v=11,at=11)\n",
}  # fmt: skip


@pytest.mark.parametrize("form", STANDARD_INPUT)
def test_events_come_from_standard_input(form: str) -> None:
    options = ("--time", "at", "--time-unit", "s", "--count", "--engine", "local")
    assert cerite("run", QUERY, "-", *options, given=STANDARD_INPUT[form]) == ("1\n", "")
    if form == "csv":
        assert cerite("run", QUERY, "-", *options, "--format", "csv", given=STANDARD_INPUT[form])[0] == "1\n"


def test_faults_in_standard_input_are_reported_as_such() -> None:
    _, said = cerite("run", QUERY, "-", "--time", "at", given=b"type,v,at\nA,9,0\nB,oops,1\n", code=1)
    assert "(`oops`, standard input, line 3)" in said
    assert "--null oops if that is a missing value" in said
    assert '--schema with a file that says {"v": "string"}' in said
    assert "holds no events" in cerite("run", QUERY, "-", code=1)[1]
    assert "cannot both come from standard input" in cerite("run", "-", "-", code=1)[1]


def test_null_delimiter_and_schema_options(tmp_path: Path) -> None:
    events, schema = tmp_path / "x.csv", tmp_path / "s.json"
    events.write_text("type;v;z;at\nA;9;007;0\nB;oops;7;1\nB;10;007;2\n")
    schema.write_text('{"z": "string", "v": "int"}')
    same = "SELECT * FROM S WHERE A AS x ; B AS y FILTER y[v > x.v AND z = x.z]"
    options = (str(events), "--delimiter", ";", "--schema", str(schema), "--count")
    assert cerite("run", same, *options, "--null", "oops")[0] == "1\n"
    _, said = cerite("run", same, *options, code=1)
    assert "x.csv, line 3, column `v`: `oops` is not an int, as declared" in said


def test_check_finds_where_a_file_clashes_with_a_declaration(tmp_path: Path) -> None:
    declared = (
        "CREATE STREAM S { EVENT A { v:int, z:string } } SELECT * FROM S WHERE A AS x FILTER x[v > 1 AND z = '7']"
    )
    events = tmp_path / "x.csv"
    events.write_text("type,v,z\nA,1,007\n")
    assert cerite("check", declared, "--schema", str(events))[0].startswith("ok")
    events.write_text("type,v,z\nA,1,007\nA,one,7\n")
    assert (
        "x.csv, line 3, column `v`: `one` is not an int, as declared"
        in cerite("check", declared, "--schema", str(events), code=1)[1]
    )
    table = tmp_path / "x.parquet"
    pq.write_table(pa.table({"type": ["A"], "v": [1], "z": [7]}), table)
    said = cerite("check", declared, "--schema", str(table), code=1)[1]
    assert "column `z` holds int64, but it is declared string" in said
    other = tmp_path / "s.json"
    other.write_text('{"A": {"v": "string", "z": "string"}}')
    assert (
        "`v` is declared int by the query, but string by the schema"
        in cerite("check", declared, "--schema", str(other), code=1)[1]
    )


ADVICE = {  # what is in the file, further options, and what is said of it
    "semicolons": ("x.csv", "type;v\nA;9\nB;10\n", (), ["the separator seems to be `;`", "--delimiter ';'"]),
    "tabs": ("x.txt", "type\tv\nA\t9\nB\t10\n", (), ["x.txt: the file looks like tsv", "--format tsv"]),
    "no ending": ("x", CSV, (), ["the file name has no extension", "--format csv"]),
    "strings among numbers": (
        "x.jsonl", '{"type":"A","v":9}\n{"type":"B","v":"10"}\n', (),
        ['"10" is a string, but line 1 has a number', '--schema with a file that says {"v": "string"}', "--null …"],
    ),
    "thousands": (
        "x.csv", 'type,v\nA,9\nB,"1,000"\n', (),
        ["a formatted number (`1,000`", '{"v": "string"} if the column is text; numbers must be written plainly'],
    ),
    "thousands in a column of floats": (
        "x.csv", 'type,v\nA,9\nB,"1,000"\n', ("--schema", "float.json"), ["without separators", "such as 1000.5"],
    ),
    "halves in a column of ints": (
        "x.csv", "type,v\nA,9\nB,1.5\n", ("--schema", "int.json"), ["`1.5` is not an int", "declare the column float"],
    ),
    "odd words": ("x.csv", "type,v\nA,9\nB,#DIV/0!\n", (), ["--null '#DIV/0!' if that is a missing value"]),
    "zeros before": ("x.csv", "type,v\nA,9\nB,007\n", (), ["as numbers some would lose digits (`007`, "]),
    "no such format": ("x.csv", CSV, ("--format", "foo"), ["csv, tsv, jsonl, core, parquet, arrow"]),
}  # fmt: skip


@pytest.mark.parametrize("name", ADVICE)
def test_advice_can_be_followed_on_the_command_line(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file, text, options, expected = ADVICE[name]
    Path(file).write_text(text)
    Path("float.json").write_text('{"v": "float"}')
    Path("int.json").write_text('{"v": "int"}')
    _, said = cerite("run", QUERY.partition(" WITHIN")[0], file, *options, code=1)
    assert [each for each in expected if each not in said] == [], said
    assert "schema=" not in said


@pytest.mark.parametrize(("packed", "named"), [(gzip.compress, "gzip: zcat"), (bz2.compress, "bz2: bzcat")])
def test_packed_text_on_standard_input_is_called_that(packed: Callable[[bytes], bytes], named: str) -> None:
    kind, _, tool = named.partition(": ")
    said = cerite("run", QUERY, "-", given=packed(CSV.encode()), code=1)[1]
    assert f"standard input is {kind}" in said
    assert f"{tool} events.csv" in said


def test_check_reads_data_as_run_does(tmp_path: Path) -> None:
    declared = "CREATE STREAM S { EVENT A { v:int } } SELECT * FROM S WHERE A AS x FILTER x[v > 1]"
    events = tmp_path / "x.csv"
    events.write_text("type;v\nA;1\nA;oops\n")
    options = ("--schema", str(events), "--delimiter", ";")
    assert "--null oops" in cerite("check", declared, *options, code=1)[1]
    assert cerite("check", declared, *options, "--null", "oops")[0].startswith("ok")
    schema = tmp_path / "s.json"
    schema.write_text('{"v": "int"}')
    assert "are about data" in cerite("check", declared, "--schema", str(schema), "--null", "x", code=1)[1]


def test_json_is_one_array(tmp_path: Path) -> None:
    events, out = tmp_path / "x.csv", tmp_path / "m.json"
    events.write_text(CSV)
    cerite("run", QUERY, str(events), "--time", "at", "--output", str(out))
    assert [[event["at"] for event in each["y"]] for each in json.loads(out.read_text())] == [[10], [11]]
    cerite("run", "SELECT * FROM S WHERE B ; A", str(events), "--output", str(out), "--overwrite")
    assert json.loads(out.read_text()) == []
