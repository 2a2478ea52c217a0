"""The command line as a user meets it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from io import StringIO
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cerite import CeriteError
from cerite.cli.spark_run import form_of
from cerite.data.reading import Reading
from tests.command import EVENTS, UNARY, cerite

QUERY = "SELECT * FROM S WHERE SELL AS x ; BUY AS y FILTER y[price > x.price] WITHIN 30 seconds"


def test_the_installed_command() -> None:
    command = [sys.executable, "-m", "cerite"]
    done = subprocess.run([*command, "check", QUERY], capture_output=True, text=True, encoding="utf-8", check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ok\n", "")
    done = subprocess.run([*command, "check", "SELECT "], capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: the query ends too early")


def test_check_says_ok() -> None:
    assert cerite("check", QUERY).stdout == "ok\n"


def test_check_warns_on_standard_error() -> None:
    done = cerite("check", "SELECT * FROM S WHERE A AS x ; B AS x")
    assert done.stdout == "ok (2 warnings)\n"
    assert "warning: `x` is bound more than once" in done.stderr


def test_a_bad_query_ends_with_its_message_and_code_1() -> None:
    done = cerite("check", "SELECT * FROM S WHERE A FILTER A[price > ", code=1)
    assert done.stdout == ""
    assert "error: this `[` is never closed" in done.stderr
    assert "^" in done.stderr


def test_a_query_may_be_a_file(tmp_path: Path) -> None:
    path = tmp_path / "größe.ceql"
    path.write_text("-- a comment\n" + QUERY, "utf-8")
    assert cerite("check", str(path)).stdout == "ok\n"


@pytest.mark.parametrize("path", ["fraud.ceql", "./fraud", "queries/fraud", "fraud"])
def test_a_missing_file_is_named(path: str) -> None:
    assert f"there is no file `{path}`" in cerite("check", path, code=1).stderr


def test_a_folder_or_bytes_are_no_query(tmp_path: Path) -> None:
    assert "is a folder" in cerite("check", str(tmp_path), code=1).stderr
    (tmp_path / "picture.ceql").write_bytes(b"\x89PNG\xff")
    assert "cannot be read as text" in cerite("check", str(tmp_path / "picture.ceql"), code=1).stderr


def test_a_query_may_come_from_standard_input() -> None:
    with patch.object(sys, "stdin", StringIO(QUERY)):
        assert cerite("check", "-").stdout == "ok\n"


SCHEMAS = {
    "stream.txt": "CREATE STREAM S { EVENT BUY { price:float }, EVENT SELL { price:float } }",
    "stream.json": '{"BUY": {"price": "float"}, "SELL": {"price": "double"}}',
    "columns.json": '{"price": "float"}',
    "columns.csv": "type,price\nBUY,1.5\n",
    "rows.jsonl": '{"type": "BUY", "price": 1.5}\n',
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_of_every_kind(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(SCHEMAS[name], "utf-8")
    assert cerite("check", QUERY, "--schema", str(path)).stdout == "ok\n"
    done = cerite("check", QUERY.replace("y[price", "y[prize"), "--schema", str(path), code=1)
    assert "did you mean `price`?" in done.stderr


def test_a_parquet_file_is_a_schema(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    pq.write_table(pa.table({"type": ["BUY"], "price": ["expensive"], "tags": [["a"]]}), path)
    done = cerite("check", QUERY.replace("y[price", "y[tags"), "--schema", str(path), code=1)
    assert "queries cannot use the column `tags`, which holds list<" in done.stderr
    done = cerite("check", QUERY.replace("x.price", "3"), "--schema", str(path), code=1)
    assert "`price` is a string and `3` is a number" in done.stderr


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"PAR1 not really", b"[1, 2]", b'{"BUY": {"price": null}}'])
@pytest.mark.parametrize("ending", ["parquet", "json", "txt", "csv"])
def test_broken_schema_files_are_refused(ending: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / f"broken.{ending}"
    path.write_bytes(content)
    cerite("check", QUERY, "--schema", str(path), code=1)


def test_explain_shows_the_tree() -> None:
    shown = cerite("explain", "SELECT NEXT x FROM S WHERE A AS x ; NOT B ; C+ FILTER x[id > 1] WITHIN 5 EVENTS").stdout
    for line in (
        "sequence ;",
        "NOT, in the gap",
        "repeated 1 or more times",
        "strategy NEXT",
        "x: 1 event of A",
        "LP-normal",
    ):
        assert line in shown


def test_explain_reads_sremo() -> None:
    shown = cerite("explain", "-l", "sremo", "BUY^o>r . (true^x)* . SELL[id = r.id]^o").stdout
    assert "r keeps id" in shown


def test_help_has_examples() -> None:
    for command in ((), ("check",), ("explain",), ("run",)):
        assert "Examples" in cerite(*command, "--help").stdout


def test_names_are_shown_as_they_are_not_as_markup() -> None:
    assert "FROM `[red]S`" in cerite("explain", "SELECT * FROM `[red]S` WHERE A").stdout


def test_a_terminal_without_unicode_is_served() -> None:
    command = [sys.executable, "-m", "cerite", "explain", "SELECT * FROM S WHERE SKIP_ANY(A, B)"]
    done = subprocess.run(command, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "ascii"}, check=False)
    assert done.returncode == 0
    assert b"skip till any ?" in done.stdout


@pytest.fixture
def events(tmp_path: Path) -> str:
    path = tmp_path / "events.csv"
    path.write_text(EVENTS, "utf-8")
    return str(path)


def test_run_counts_and_prints_nothing_else(events: str) -> None:
    assert cerite("run", UNARY, events, "--time", "at", "--count").stdout == "1\n"


def test_run_prints_json_lines(events: str) -> None:
    run = ("run", UNARY, events, "--time", "at", "--output", "-")
    line = '{"start":0,"end":1,"positions":[0,1],"bindings":{"BUY":[1],"SELL":[0],"x":[0],"y":[1]}}\n'
    assert cerite(*run, "--form", "positions").stdout == line
    plain = cerite(*run, "--form", "positions", "--semantics", "complex-events").stdout
    assert plain == '{"start":0,"end":1,"positions":[0,1]}\n'
    sell, buy = {"type": "SELL", "price": 3.5, "at": 10}, {"type": "BUY", "price": 4.5, "at": 20}
    row = json.loads(cerite(*run, "--position", "at").stdout)
    ends = {"start_time": 10, "end_time": 20, "start": 10, "end": 20}
    assert row == {"match": row["match"], **ends, "BUY": [buy], "SELL": [sell], "x": [sell], "y": [buy]}
    events_of = [json.loads(each) for each in cerite(*run, "--form", "long").stdout.splitlines()]
    assert [(each["variable"], each["rank"]) for each in events_of] == [("BUY", 0), ("SELL", 0), ("x", 0), ("y", 0)]
    assert events_of[1] == {"match": events_of[0]["match"], "variable": "SELL", "rank": 0, **sell}


def test_run_shows_a_table(events: str) -> None:
    shown = cerite("run", UNARY, events, "--time", "at", "--progress").stdout
    assert "start" in shown
    assert "1 match" in shown


@pytest.mark.parametrize("ending", ["parquet", "jsonl", "csv"])
def test_run_writes_files(ending: str, events: str, tmp_path: Path) -> None:
    path = tmp_path / f"matches.{ending}"
    done = cerite("run", UNARY, events, "--time", "at", "-o", str(path))
    assert "1 match written" in done.stderr
    assert path.stat().st_size > 0


def test_explain_shows_the_engine() -> None:
    shown = cerite("explain", "SELECT * FROM S WHERE A AS x ; B+ WITHIN 5 EVENTS").stdout
    for line in (
        "automaton: 4 states",
        "tests, each evaluated once",
        "dropped before the loop",
        "keeps: what is in the window; what has left it is forgotten",
    ):
        assert line in shown


@pytest.mark.parametrize(
    ("query", "events", "advised"),
    [
        ("data.csv", "q.ceql", "cerite run q.ceql data.csv"),
        ("data.csv.gz", "SELECT * FROM S WHERE A", "cerite run 'SELECT * FROM S WHERE A' data.csv.gz"),
        ("data.parquet", "more.parquet", "cerite run QUERY data.parquet"),
    ],
)
def test_the_query_comes_first(query: str, events: str, advised: str) -> None:
    done = cerite("run", query, events, code=1)
    assert f"`{query}` is a file of events, and the query comes first" in done.stderr
    assert f"hint: {advised}\n" in done.stderr
    assert "hint: cerite why " in cerite("why", query, events, code=1).stderr


def test_warm_up_promises_what_it_does() -> None:
    assert "after --all hardly any does" in " ".join(cerite("warm-up", "--help").stdout.replace("│", " ").split())


FOLDERS = {  # the files of a folder, and the format that they tell
    "csv": (["1.csv", "2.csv.gz", "_SUCCESS", ".1.csv.crc"], "csv"),
    "json": (["day=1/1.jsonl", "day=2/2.json"], "json"),
    "parquet": (["part-0.snappy.parquet"], "parquet"),
    "nothing": (["_SUCCESS"], None),
}


@pytest.mark.parametrize("name", FOLDERS)
def test_spark_reads_a_folder_in_the_format_of_its_files(name: str, tmp_path: Path) -> None:
    files, form = FOLDERS[name]
    folder = tmp_path / ".hidden" / name
    for each in files:
        (folder / each).parent.mkdir(parents=True, exist_ok=True)
        (folder / each).write_text("x")
    assert form_of(str(folder), Reading()) == form
    assert form_of(f"{folder}/*", Reading()) == form
    assert form_of(str(folder), Reading.of(format="tsv")) == "tsv"


@pytest.mark.parametrize("files", [["1.csv", "2.jsonl"], ["1.csv", "part-0"], ["1.stream"]])
def test_spark_guesses_no_format(files: list[str], tmp_path: Path) -> None:
    for each in files:
        (tmp_path / each).write_text("x")
    with pytest.raises(CeriteError, match="do not say that they have one format that Spark reads") as caught:
        form_of(str(tmp_path), Reading())
    assert "say which: --format csv" in str(caught.value)
    assert form_of("s3://bucket/folder", Reading()) is None
    assert form_of("a_table", Reading()) is None
