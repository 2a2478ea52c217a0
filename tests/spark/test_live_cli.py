"""`cerite stream` as a user meets it: files in, matches out, what is wrong said in the command line's own words."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.command import cerite

QUERY = "SELECT x, y FROM S WHERE A AS x ; B AS y FILTER y[v > x.v] PARTITION BY [k] WITHIN 10 seconds"
START = 1_767_225_600  # seconds


def rows(*events: tuple[str, int, float, float, int]) -> list[dict[str, object]]:
    names = ("type", "k", "v", "at", "n")
    rows_at: list[dict[str, object]] = []
    for event in events:
        row: dict[str, object] = dict(zip(names, event, strict=True))
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(START + event[3]))
        rows_at.append(row | {"at": f"{moment}.{int(event[3] % 1 * 1000):03}Z"})
    return rows_at


FIRST = rows(("A", 1, 1.0, 0.5, 0), ("B", 1, 2.0, 2.5, 2), ("A", 2, 5.0, 1.0, 1))  # out of order
SECOND = rows(("B", 2, 6.0, 9.0, 3), ("B", 1, 3.0, 9.5, 4))
LATE = rows(("A", 1, 0.0, 1.5, 5), ("B", 2, 9.0, 30.0, 6))


def put(folder: Path, name: str, events: list[dict[str, object]]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.json").write_text("".join(json.dumps(each) + "\n" for each in events), "utf-8")


@pytest.fixture
def options(tmp_path: Path) -> list[str]:
    put(tmp_path / "events.json", "1", FIRST)
    return [
        "--source", str(tmp_path / "events.json"), "--checkpoint", str(tmp_path / "state"), "--watermark", "2 seconds",
        "--order-by", "n", "--schema", _schema(tmp_path), "--shards", "2",
    ]  # fmt: skip


def _schema(folder: Path) -> str:
    path = folder / "schema.json"
    kinds = {"type": "string", "k": "int", "v": "float", "at": "timestamp", "n": "int"}
    path.write_text(json.dumps(kinds), "utf-8")
    return str(path)


def pairs_in(folder: Path) -> set[tuple[int, int]]:
    """The matches in a folder of Parquet, by the numbers of their events."""
    files = list(folder.rglob("*.parquet"))
    table = pa.concat_tables([pq.read_table(file, partitioning=None) for file in files])
    return {(row["x"][0]["n"], row["y"][0]["n"]) for row in table.to_pylist()}


def test_a_stream_goes_on_from_its_checkpoint(spark: SparkSession, options: list[str], tmp_path: Path) -> None:
    sink = tmp_path / "matches"
    done = cerite("stream", QUERY, *options, "--sink", str(sink), "--once")
    assert "3 events, 0 matches, 0 late, 3 pending" in done.stderr
    put(tmp_path / "events.json", "2", SECOND)
    done = cerite("stream", QUERY, *options, "--sink", str(sink), "--once")
    assert pairs_in(sink) == {(0, 2)}
    done = cerite("stream", QUERY, *options, "--sink", str(sink), "--final")
    assert "2 matches, 0 late, 0 pending" in done.stderr
    assert pairs_in(sink) == {(0, 2), (0, 4), (1, 3)}
    put(tmp_path / "events.json", "3", LATE)
    done = cerite("stream", QUERY, *options, "--sink", str(sink), "--once", code=1)
    assert "events arrived after the stream was declared over" in done.stderr


def test_late_events_and_the_console(spark: SparkSession, options: list[str], tmp_path: Path) -> None:
    put(tmp_path / "events.json", "2", SECOND)
    put(tmp_path / "events.json", "3", LATE)
    for number in (1, 2, 3):
        os.utime(tmp_path / "events.json" / f"{number}.json", (START + number,) * 2)
    more = ("--files", "1", "--late", str(tmp_path / "late.jsonl"), "--sink", "-", "--final")
    done = cerite("stream", QUERY, *options, *more)
    printed = [json.loads(line) for line in done.stdout.splitlines()]
    assert {(row["x"][0]["n"], row["y"][0]["n"]) for row in printed} == {(0, 2), (0, 4), (1, 3)}
    assert "3 matches, 1 late, 0 pending" in done.stderr
    files = [file.read_text("utf-8") for file in (tmp_path / "late.jsonl").rglob("part-*.json")]
    (late,) = [json.loads(line) for text in files for line in text.splitlines()]
    assert (late["event"]["n"], late["reason"]) == (5, "late")


REFUSED: dict[str, tuple[tuple[str, ...], dict[str, str | None], str]] = {
    "overlap": ((), {"--sink": "events.json/matches"}, "overlap"),
    "no topic": ((), {"--source": "kafka://localhost:9092"}, "write kafka://host:9092/topic"),
    "no columns": ((), {"--source": "kafka://localhost:9092/t", "--schema": None}, "--schema with a file"),
    "no connector": ((), {"--source": "kafka://localhost:9092/t"}, "--conf spark.jars.packages="),
    "a rate": ((), {"--source": "rate://fast"}, "write rate://100"),
    "no port": ((), {"--source": "socket://localhost"}, "write socket://localhost:9999"),
    "a sink of CSV": ((), {"--sink": "matches.csv"}, "cannot hold lists of events"),
    "a socket as sink": ((), {"--sink": "socket://localhost:9999"}, "cannot be written to"),
    "no files": ((), {"--source": "empty", "--schema": None}, "no files yet that tell the columns"),
    "no ties": ((), {"--order-by": None}, "have the same time, --order-by at"),
    "no such time": (("--time", "when"), {}, "no column `when`"),
    "a watermark": ((), {"--watermark": "soon"}, "soon"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_done(spark: SparkSession, options: list[str], tmp_path: Path, name: str) -> None:
    more, other, expected = REFUSED[name]
    (tmp_path / "empty").mkdir()
    given: dict[str, str | None] = {
        **dict(zip(options[::2], options[1::2], strict=True)),
        "--sink": str(tmp_path / "matches"),
    }
    for option, value in other.items():
        given[option] = value if value is None or "://" in value or option == "--watermark" else str(tmp_path / value)
    plain = [part for option, value in given.items() if value is not None for part in (option, value)]
    assert expected in cerite("stream", QUERY, *plain, *more, "--once", code=1).stderr


def test_a_checkpoint_that_cannot_be_read(spark: SparkSession, options: list[str], tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "metadata").write_text('{"id":"1d2', "utf-8")
    done = cerite("stream", QUERY, *options, "--sink", str(tmp_path / "matches"), "--once", code=1)
    assert "the stream cannot be started" in done.stderr
    assert "Unexpected end-of-input" in done.stderr
    assert "name a new --checkpoint" in done.stderr


@pytest.mark.nightly
@pytest.mark.parametrize("sink", ["matches", "-"])
def test_ctrl_c_ends_it_with_one_line(options: list[str], tmp_path: Path, sink: str) -> None:
    where = sink if sink == "-" else str(tmp_path / sink)
    few = ("--conf", "spark.sql.shuffle.partitions=2")  # and not 200 stores of state
    command = [sys.executable, "-m", "cerite", "stream", QUERY, *options, *few, "--sink", where]
    quick = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC", **os.environ}
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=quick)
    commits = tmp_path / "state" / "commits"
    until = time.monotonic() + 240
    while not (commits / "0").exists() and child.poll() is None and time.monotonic() < until:
        time.sleep(0.2)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=120)
    assert (child.returncode, out) == (130, "")
    assert err.startswith("stopped: 3 events, 0 matches"), err
    assert err.count("\n") == 1, err
