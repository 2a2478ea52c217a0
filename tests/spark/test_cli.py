"""`cerite run --engine spark` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.command import EVENTS, UNARY, cerite


@pytest.fixture
def events(tmp_path: Path) -> str:
    path = tmp_path / "events.csv"
    path.write_text(EVENTS, "utf-8")
    return str(path)


def test_run(spark: SparkSession, events: str, tmp_path: Path) -> None:
    options = ("--time", "at", "--engine", "spark")
    assert cerite("run", UNARY, events, *options, "--count").stdout == "1\n"
    row = json.loads(cerite("run", UNARY, events, *options, "-o", "-").stdout)
    assert row["start_time"] == 10
    assert row["y"] == [{"type": "BUY", "price": 4.5, "at": 20}]
    shown = cerite("run", UNARY, events, *options).stdout
    assert "start_time" in shown
    assert "1 match\n" in shown
    for ending in ("parquet", "csv"):
        folder = tmp_path / f"matches.{ending}"
        assert "written" in cerite("run", UNARY, events, *options, "-o", str(folder)).stderr
        assert list(folder.glob("part-*"))
    folder = tmp_path / "matches.parquet"
    before = sorted(folder.iterdir())
    assert "exists already" in cerite("run", UNARY, events, *options, "-o", str(folder), code=1).stderr
    assert sorted(folder.iterdir()) == before
    cerite("run", UNARY, events, *options, "-o", str(folder), "--overwrite")
    assert sorted(folder.iterdir()) != before
    done = cerite("run", UNARY, str(folder), *options, "-o", str(folder), "--overwrite", code=1)
    assert "is among the events that are read" in done.stderr
    assert not [each for each in tmp_path.iterdir() if each.name.startswith(".")]
    assert cerite("run", UNARY, events, *options, "--show", "0").stdout == "1 match\n"
    assert "T-CER" in cerite("run", UNARY, events, *options, "--explain").stdout


def test_faults(spark: SparkSession, events: str, tmp_path: Path) -> None:
    tied = tmp_path / "tied.csv"
    tied.write_text("type,price,at\nSELL,3.5,10\nBUY,4.5,20\nBUY,9.5,20\n", "utf-8")
    done = cerite("run", UNARY, str(tied), "--time", "at", "--engine", "spark", "--count", code=1)
    assert "two events cannot be ordered: both have at = 20" in done.stderr
    assert "--order-by …, or a column of positions: --position …" in done.stderr
    assert "Spark cannot read" in cerite("run", UNARY, "no_table", "--engine", "spark", code=1).stderr
    assert "name=value" in cerite("run", UNARY, events, "--engine", "spark", "--conf", "x", code=1).stderr


def test_auto_says_what_it_picked(events: str) -> None:
    assert "engine: local" in cerite("run", UNARY, events, "--time", "at", "--count").stderr


def test_a_master_means_spark(spark: SparkSession, events: str) -> None:
    done = cerite("run", UNARY, events, "--time", "at", "--count", "--master", "local[2]")
    assert done.stdout == "1\n"
    assert "engine: spark (--master" in done.stderr
