"""Columns of every Arrow type in every role: they work or are refused in words, and Arrow's errors stay inside."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import date, time
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import cerite
from cerite.core.errors import CeriteError

PAIR = "SELECT * FROM S WHERE A AS x ; B AS y"
COLUMNS: dict[str, pa.Array] = {
    "float16": pa.array(np.array([1, 2], np.float16)),
    "float32": pa.array([1, 2], pa.float32()),
    "uint64": pa.array([1, 2**64 - 1], pa.uint64()),
    "decimal": pa.array([Decimal("1.5"), Decimal("2.5")]),
    "decimal256": pa.array([Decimal("1.5"), Decimal("2.5")], pa.decimal256(50, 2)),
    "bool": pa.array([False, True]),
    "string": pa.array(["a", "b"]),
    "string_view": pa.array(["a", "b"], pa.string_view()),
    "large_string": pa.array(["a", "b"], pa.large_string()),
    "coded string": pa.array(["a", "b"]).dictionary_encode(),
    "coded int": pa.array([1, 2]).dictionary_encode(),
    "coded float16": pa.DictionaryArray.from_arrays(pa.array([0, 0]), pa.array(np.array([1], np.float16))),
    "run-end encoded": pa.RunEndEncodedArray.from_arrays([2], ["a"]),
    "binary": pa.array([b"a", b"b"]),
    "binary_view": pa.array([b"a", b"b"], pa.binary_view()),
    "fixed binary": pa.array([b"ab", b"cd"], pa.binary(2)),
    "uuid": pa.array([b"0" * 16, b"1" * 16], pa.uuid()),
    "date32": pa.array([date(2020, 1, 1), date(2020, 1, 2)]),
    "date64": pa.array([date(2020, 1, 1), date(2020, 1, 2)], pa.date64()),
    "time": pa.array([time(1), time(2)]),
    "timestamp": pa.array([1, 2], pa.timestamp("ns", "Europe/Berlin")),
    "duration": pa.array([1, 2], pa.duration("s")),
    "interval": pa.array([(1, 2, 3), (1, 2, 3)], pa.month_day_nano_interval()),
    "list": pa.array([[1], [2]]),
    "struct": pa.array([{"a": 1}, {"a": 2}]),
    "map": pa.array([[("a", 1)], [("b", 2)]], pa.map_(pa.string(), pa.int64())),
    "null": pa.nulls(2),
}


def pushed(query: str) -> Callable[[pa.Table], int]:
    """How many matches a stream finds, also after a restart, in one batch and as dictionaries."""

    def count(table: pa.Table) -> int:
        stream = cerite.query(query).stream(table.schema)
        matches = stream.push(table).count()
        again = cerite.query(query).stream(table.schema)
        again.restore(stream.snapshot())
        assert cerite.query(query).stream(table.schema).push(table.to_pylist()).count() == matches
        return matches

    return count


def ran(query: str, **options: Any) -> Callable[[pa.Table], int]:
    return lambda table: cerite.query(query).run(table, **options).count()


ROLES: dict[str, Callable[[pa.Table], object]] = {
    "a key": ran(PAIR + " PARTITION BY [k]"),
    "two keys": ran(PAIR + " PARTITION BY [k, type]"),
    "the time": ran(PAIR + " WITHIN 5 seconds", time="k"),
    "a window": ran(PAIR + " WITHIN 5 [k]"),
    "the position": ran(PAIR, position="k"),
    "the order": ran(PAIR, order_by=["k"]),
    "the type": ran("SELECT * FROM S WHERE A", type="k"),
    "compared with another event": ran(PAIR + " FILTER y[k > x.k]"),
    "equal to another event": ran(PAIR + " FILTER y[k = x.k]"),
    "compared with a constant": ran(PAIR + " FILTER y[k = 2]"),
    "known": ran(PAIR + " FILTER y[k IS NOT NULL]"),
    "a key of a stream": pushed(PAIR + " PARTITION BY [k]"),
    "a column of a stream": pushed(PAIR),
    "an event": lambda table: cerite.query(PAIR).run(table)[0].x,
    "JSON": lambda table: cerite.query(PAIR).run(table).to_jsonl(io.StringIO(), events=True),
}


@pytest.mark.parametrize("role", ROLES)
def test_every_type_works_in_every_role_or_is_refused_in_words(role: str) -> None:
    worked = 0
    for column in COLUMNS.values():
        try:
            ROLES[role](pa.table({"type": ["A", "B"], "k": column}))
            worked += 1
        except CeriteError:
            continue
    assert worked >= (1 if role in ("the type", "the position") else 3)


@pytest.mark.parametrize("name", ["float16", "string_view", "coded float16", "uint64", "decimal", "date64"])
def test_keys_of_unusual_types_tell_partitions_apart(name: str) -> None:
    column = COLUMNS[name]
    same = pa.table({"type": ["A", "B"], "k": pa.chunked_array([column.slice(0, 1), column.slice(0, 1)])})
    other = pa.table({"type": ["A", "B"], "k": column})
    query = cerite.query(PAIR + " PARTITION BY [k]")
    assert query.run(same).count() == query.stream(same.schema).push(same).count() == 1
    assert query.run(other).count() == (1 if name == "coded float16" else 0)
