"""Streams as DataFrames in a random order of rows, and results of `cerite.spark.match` as `Match` objects."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from cerite.data import open_events
from cerite.match import Match

POSITION = "position in the stream"
FIXED = {"match", "start_time", "end_time", "start", "end"}


def frame(spark: SparkSession, table: pa.Table, *, seed: int = 1, parts: int = 2) -> DataFrame:
    """The rows with their positions, shuffled: Spark promises no order either."""
    order = list(range(table.num_rows))
    random.Random(seed).shuffle(order)
    numbered = table.append_column(POSITION, pa.array(range(table.num_rows), pa.int64()))
    plain = [column.cast(_plain(column.type)) for column in numbered.take(pa.array(order, pa.int64())).columns]
    made = spark.createDataFrame(pa.table(plain, names=numbered.column_names))
    return made if parts == 1 else made.repartition(parts)


def rows_table(rows: Iterable[dict[str, Any]], columns: Iterable[str]) -> pa.Table:
    """A list of dictionaries as a table that has every column."""
    found = [dict.fromkeys(columns) | row for row in rows]
    return (
        open_events(found).table()
        if found
        else pa.table({name: pa.array([], pa.string() if name == "type" else pa.int64()) for name in columns})
    )


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return kind.value_type
    return pa.int64() if pa.types.is_null(kind) else kind


def matches(result: DataFrame, *, keys: Iterable[str] = ()) -> list[Match]:
    """The rows of a result; events are told by their positions. Ids must differ."""
    variables = [name for name in result.columns if name not in FIXED | set(keys)]
    rows = result.collect()
    assert len({row["match"] for row in rows}) == len(rows), "every match has an id of its own"
    return [_match(row, variables) for row in rows]


def _match(row: Any, variables: list[str]) -> Match:
    bound = {name: tuple(event[POSITION] for event in row[name]) for name in variables}
    positions = tuple(sorted({position for each in bound.values() for position in each}))
    if variables == ["events"]:
        return Match(row["start"], row["end"], positions, ())
    bindings = tuple((name, bound[name]) for name in sorted(bound) if bound[name])
    return Match(row["start"], row["end"], positions, bindings)
