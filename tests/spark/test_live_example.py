"""`examples/live.py` for a moment: payments come, alerts are written, the numbers are printed."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from runpy import run_path

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

EXAMPLE = Path(__file__).parents[2] / "examples" / "live.py"


@pytest.mark.nightly  # by day the short form of tests/chaos follows such a stream, through a kill
def test_the_live_example(spark: SparkSession, tmp_path: Path) -> None:
    output = StringIO()
    console = Console(file=output, width=200)
    totals = run_path(str(EXAMPLE))["live"](spark, tmp_path, console, seconds=4, rate=2_000, cards=20, kafka=None)
    assert totals["events"] >= 2_000
    assert "a second" in output.getvalue()
    written = spark.read.parquet(str(tmp_path / "alerts"))
    assert written.count() == len(totals["delays"])
    assert written.select("match").distinct().count() == len(totals["delays"])
    assert all(delay > 0 for delay in totals["delays"])
