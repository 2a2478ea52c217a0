"""The corpus as live streams in process: events come in any order that the watermark allows for, pushed some at a time.

Every case gives what the corpus says, wherever its stream is cut and restored. A case whose rows have no time is
ordered by the number of each row, which is what its positions are.
"""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from cerite.api.query import Query
from cerite.api.stream import EventStream
from cerite.core.match import Match
from cerite.data.open import open_events
from tests.corpus.loader import load
from tests.corpus.support import Known, known

CASES = [each for case in load() if not (each := known(case)).refusal("local engine") and each.case.rows]
NUMBER = "number of the row"
UNITS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
WAYS = 3  # in which the rows of a case arrive


def rows_of(each: Known) -> pa.Table:
    """The rows of a case with their numbers."""
    rows = [dict.fromkeys(each.case.columns) | dict(row) for row in each.case.rows]
    table = open_events(rows).table()
    known = [field.with_type(pa.int64()) if pa.types.is_null(field.type) else field for field in table.schema]
    table = table.cast(pa.schema(known))  # a live stream has to say what a column holds that is NULL so far
    return table.append_column(NUMBER, pa.array(range(table.num_rows), pa.int64()))


def opened(each: Known, schema: pa.Schema, watermark: str) -> EventStream:
    return Query(each.query).stream(
        schema, time=each.case.time or NUMBER, order_by=NUMBER, watermark=watermark, late="raise",
        semantics=each.case.semantics,
    )  # fmt: skip


def delivered(each: Known, table: pa.Table, chance: Random) -> list[Match]:
    """The matches of a case whose rows arrive in some order, with a snapshot restored now and then."""
    time = table.column(each.case.time or NUMBER)
    ticks = time.cast(pa.int64()).to_pylist()
    span = max(ticks) - min(ticks)
    delay = chance.choice([0, 1, 3, span + 1])
    unit = time.type.unit if pa.types.is_timestamp(time.type) else "ms"
    order = sorted(range(table.num_rows), key=lambda row: (ticks[row] + chance.uniform(0, delay), chance.random()))
    stream = opened(each, table.schema, f"{delay} {UNITS[unit]}")
    matches: list[Match] = []
    while order:
        size = chance.choice([1, 1, 2, 5])
        matches += stream.push(table.take(order[:size]))
        order = order[size:]
        if chance.random() < 0.3:
            saved, stream = stream.snapshot(), opened(each, table.schema, f"{delay} {UNITS[unit]}")
            stream.restore(saved)
    return [*matches, *stream.close()]


@pytest.mark.parametrize("each", CASES, ids=[each.case.name for each in CASES])
def test_a_live_stream_agrees(each: Known) -> None:
    table = rows_of(each)
    for way in range(WAYS):
        matches = delivered(each, table, Random(f"{each.case.name} {way}"))
        assert not each.case.disagreement(matches), f"arrival {way}"
