"""A stream goes on in another process: what a snapshot holds does not depend on the process that took it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import cerite

SCHEMA = pa.schema([("type", pa.string()), ("id", pa.int64()), ("name", pa.string()), ("at", pa.int64())])
ROWS = [
    {"type": kind, "id": number % 3, "name": "äb"[number % 2], "at": number}
    for number, kind in enumerate("ABACBADCABBDCADCBABD")
]
QUERIES = [
    "A AS x ; B AS y ; D AS z FILTER z[id >= x.id AND name = y.name] WITHIN 9 EVENTS",
    "(A AS x ; B AS y FILTER y[name != x.name] WITHIN 4 milliseconds) ; D WITHIN 9 EVENTS",
    "A AS x ; NOT (B AS b ; C AS c FILTER c[id = b.id]) ; D AS z FILTER z[name = x.name] WITHIN 9 EVENTS",
    "LAST(A ; B) ; D WITHIN 9 EVENTS",
    "A+ ; B ; D WITHIN 9 EVENTS",
]
HALF = """
import sys, cerite
import pyarrow as pa
first = pa.ipc.open_stream(sys.stdin.buffer).read_all()
stream = cerite.query("SELECT * FROM S WHERE " + sys.argv[1]).stream(first.schema, time="at")
stream.push(first)
sys.stdout.buffer.write(stream.snapshot())
"""


@pytest.mark.parametrize("pattern", QUERIES)
def test_a_stream_goes_on_in_another_process(pattern: str) -> None:
    root = Path(__file__).parents[2]
    settings = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": str(root)}
    table, sink = pa.Table.from_pylist(ROWS, SCHEMA), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA) as writer:
        writer.write_table(table.slice(0, 10))
    command, half = [sys.executable, "-c", HALF, pattern], sink.getvalue().to_pybytes()
    taken = subprocess.run(command, input=half, capture_output=True, check=True, env=settings)
    query = cerite.query("SELECT * FROM S WHERE " + pattern)
    again = query.stream(SCHEMA, time="at")
    again.restore(taken.stdout)
    late = [match for match in query.run(table, time="at") if match.end >= 10]
    assert late
    assert set(again.push(ROWS[10:])) == set(late)
