"""Values that floats would blur: tables of them, and one query for the judge, the engine and Spark."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa

import cerite
from cerite.language.ceql import parse_query
from cerite.reference.semantics import matches

D = Decimal


def table(kind: pa.DataType, *values: Any, **more: Any) -> pa.Table:
    """Events of types A, B, C, … with these values in the column `v`, and what is given in other columns."""
    types = [chr(ord("A") + place) for place in range(len(values))]
    columns = {"type": pa.array(types), "v": pa.array(values, kind)}
    return pa.table(columns | {name: pa.array(*each) for name, each in more.items()})


def agreed(text: str, events: pa.Table, time: str | None = None) -> list[str]:
    """What judge and engine both find, even when the events come one by one and when matches are only counted."""
    query = f"SELECT * FROM S WHERE {text}"
    judged = sorted(map(str, matches(parse_query(query), events.to_pylist(), time=time)))
    run = cerite.query(query).run(events, time=time)
    assert sorted(map(str, run)) == judged
    single = pa.Table.from_batches([batch for row in range(len(events)) for batch in events.slice(row, 1).to_batches()])
    assert sorted(map(str, cerite.query(query).run(single, time=time))) == judged
    assert cerite.query(query).run(events, time=time).count() == len(judged)
    return judged
