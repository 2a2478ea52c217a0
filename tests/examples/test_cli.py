"""The command line as a user meets it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

QUERY = "SELECT * FROM S WHERE SELL AS x ; BUY AS y FILTER y[price > x.price] WITHIN 30 seconds"


def cerite(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from cerite.cli.main import main; main()", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=120, check=False)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


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


def test_a_missing_file_is_named() -> None:
    assert "there is no file `fraud.ceql`" in cerite("check", "fraud.ceql", code=1).stderr


SCHEMAS = {
    "stream.txt": "CREATE STREAM S { EVENT BUY { price:float }, EVENT SELL { price:float } }",
    "stream.json": '{"BUY": {"price": "float"}, "SELL": {"price": "double"}}',
    "columns.json": '{"price": "float"}',
    "columns.csv": "type,price\nBUY,1.5\n",
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
    pq.write_table(pa.table({"type": ["BUY"], "price": ["expensive"]}), path)
    done = cerite("check", QUERY.replace("x.price", "3"), "--schema", str(path), code=1)
    assert "`price` is a string and `3` is a number" in done.stderr


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"PAR1 not really", b"[1, 2]"])
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
    for command in ("check", "explain"):
        assert "Examples" in cerite(command, "--help").stdout
