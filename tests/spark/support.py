"""Streams as DataFrames in a random order of rows, and results of `cerite.spark.match` as `Match` objects."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Container, Hashable, Iterable, Sequence
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, StructType

from cerite.core.match import Match
from cerite.data import open_events

POSITION = "position in the stream"
_LIMITS = {"start": "array_min", "end": "array_max"}  # without a column of positions, from the marked events


def frame(spark: SparkSession, table: pa.Table, *, seed: int = 1, parts: int = 2) -> DataFrame:
    """The rows with their positions, shuffled, because Spark promises no order."""
    order = list(range(table.num_rows))
    random.Random(seed).shuffle(order)
    numbered = table.append_column(POSITION, pa.array(range(table.num_rows), pa.int64()))
    plain = [column.cast(_plain(column.type)) for column in numbered.take(pa.array(order, pa.int64())).columns]
    df = spark.createDataFrame(pa.table(plain, names=numbered.column_names))
    return df if parts == 1 else df.repartition(parts)


def some_by_day(cases: Iterable[Any], by_day: Container[Any]) -> list[Any]:
    """A test's parameters: those in `by_day` are in every CI run, the others are nightly: Spark jobs are not cheap."""
    return [case if case in by_day else pytest.param(case, marks=pytest.mark.nightly) for case in cases]


def rows_table(rows: Iterable[dict[str, Any]], columns: Iterable[str]) -> pa.Table:
    """A list of dictionaries as a table that has every column."""
    whole = [dict.fromkeys(columns) | row for row in rows]
    return (
        open_events(whole).table()
        if whole
        else pa.table({name: pa.array([], pa.string() if name == "type" else pa.int64()) for name in columns})
    )


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return kind.value_type
    return pa.int64() if pa.types.is_null(kind) else kind


def collect_all(results: Sequence[DataFrame]) -> list[dict[str, Match]]:
    """The matches of every result by their ids, from one Spark job; events are identified by their positions."""
    schemas = [result.schema for result in results]
    plain = [_positions(number, *each) for number, each in enumerate(zip(results, schemas, strict=True))]
    variables = [[each.name for each in schema if isinstance(each.dataType, ArrayType)] for schema in schemas]
    matches: list[dict[str, Match]] = [{} for _ in results]
    for number, name, start, end, bound in united(plain).collect():
        assert name not in matches[number], "every match has an id of its own"
        matches[number][name] = _match(start, end, dict(zip(variables[number], map(tuple, bound), strict=True)))
    return matches


def united(frames: Sequence[DataFrame]) -> DataFrame:
    """All rows; the frames are joined in pairs, because Spark looks at a whole plan again with every union."""
    while len(frames) > 1:
        pairs = [frames[place : place + 2] for place in range(0, len(frames), 2)]
        frames = [reduce(DataFrame.unionAll, pair) for pair in pairs]
    return frames[0]


def matches(result: DataFrame) -> list[Match]:
    """The matches of one result."""
    return list(collect_all([result])[0].values())


def difference(actual: Iterable[Hashable], expected: Iterable[Hashable]) -> str:
    """The first of what is missing or too much; pytest's own comparison of long lists takes minutes."""
    one, other = Counter(actual), Counter(expected)
    missing, more = list((other - one).elements()), list((one - other).elements())
    return f"{len(missing)} missing: {missing[:3]}; {len(more)} too many: {more[:3]}" if missing or more else ""


def shifted(match: Match, by: int) -> Match:
    """The match, moved by this many positions."""

    def moved(positions: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(position + by for position in positions)

    bindings = tuple((name, moved(positions)) for name, positions in match.bindings)
    return Match(match.start + by, match.end + by, moved(match.positions), bindings)


def _positions(number: int, result: DataFrame, schema: StructType) -> DataFrame:
    """Rows of one shape whatever the query, in SQL: a DataFrame's methods would talk to Java a hundred times."""
    names = {each.name: f"c{place}" for place, each in enumerate(schema)}
    events = [names[each.name] for each in schema if isinstance(each.dataType, ArrayType)]
    bound = ", ".join(f"transform({each}, event -> event.`{POSITION}`)" for each in events)
    bound = f"CAST(array({bound}) AS array<array<bigint>>)"
    first, last = (names.get(name, f"{least}(flatten({bound}))") for name, least in _LIMITS.items())
    return result.toDF(*names.values()).selectExpr(str(number), names["match"], first, last, bound)


def _match(start: int, end: int, bound: dict[str, tuple[int, ...]]) -> Match:
    positions = tuple(sorted({position for each in bound.values() for position in each}))
    if list(bound) == ["events"]:
        return Match(start, end, positions, ())
    return Match(start, end, positions, tuple((name, bound[name]) for name in sorted(bound) if bound[name]))


def letters(rows: int, keys: Any) -> pa.Table:
    """Random events A, B and C, one every millisecond."""
    rng = np.random.default_rng(9)
    kinds = pa.array(rng.choice(["A", "B", "C"], rows))
    return pa.table({"type": kinds, "k": keys, "v": np.round(rng.random(rows), 3), "at": np.arange(rows)})


def ends(rows: Any) -> Counter[tuple[int, int]]:
    """The start and end of every match, counted."""
    return Counter((row["start_time"], row["end_time"]) for row in rows)
