"""Reading on the command line: standard input, delimiters, missing values, declarations, units of time."""

from __future__ import annotations

import io
import json
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


def test_faults_in_standard_input_are_told_as_such() -> None:
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
