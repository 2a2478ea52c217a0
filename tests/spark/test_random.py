"""Spark finds what the judge and the local engine find, on random queries, streams and numbers of tasks.

A Spark job costs half a second whatever its size, so one job takes many streams: for queries that are partitioned, the
stream's number joins the key, and the judge looks at each stream alone; the others run on one longer stream.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from cerite.engine.plan import plan
from cerite.match import Match
from cerite.pattern import Query, Size
from cerite.run import RunnableQuery
from cerite.spark import OneTaskWarning, count, match
from tests import strategies as random
from tests.properties.test_engine import SCHEMA, SEMANTICS, engine_queries, judged, runnable, sorted_window
from tests.spark.support import POSITION, frame, matches

Rows = list[dict[str, Any]]
TASKS = st.sampled_from([1, 2, 7, 200])
SETTINGS = settings(
    max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate], derandomize=True
)
REGISTERS = random.queries(random.register_patterns(3)).filter(
    lambda query: runnable(query) and plan(query).has_registers
)
STREAMS = st.lists(random.streams(8), min_size=15, max_size=15)


def many_streams(spark: SparkSession, query: Query, streams: list[Rows], semantics: Any, tasks: int) -> None:
    """Every stream is a partition of its own."""
    if not all(sorted_window(query, rows) for rows in streams):
        query = replace(query, within=Size.events(4))
    assume(runnable(query) and plan(query).consume != "any")
    numbered = [{**row, "stream": number} for number, rows in enumerate(streams) for row in rows]
    table = pa.Table.from_pylist(numbered, schema=SCHEMA.append(pa.field("stream", pa.int64())))
    asked = replace(query, partition=("stream", *query.partition), source=None)
    result = match(
        frame(spark, table), asked, time="at", position=POSITION, semantics=semantics, partitions=min(tasks, 7)
    )
    found = matches(result, keys=asked.partition)
    begin = 0
    for rows in streams:
        mine = [each for each in found if begin <= each.start < begin + len(rows)]
        same(mine, [shifted(each, begin) for each in judged(query, rows, semantics)], query.limit)
        begin += len(rows)


def one_stream(spark: SparkSession, query: Query, streams: list[Rows], semantics: Any, tasks: int) -> None:
    """All streams one after the other."""
    rows: Rows = []
    for stream in streams:
        begin = rows[-1]["at"] + 2 if rows else 0
        rows += [{**row, "at": begin + row["at"] % 50 if row["at"] % 50 else begin + 49} for row in stream]
    rows.sort(key=lambda row: int(row["at"]))
    if query.within is None or not sorted_window(query, rows):
        query = replace(query, within=Size(6, "milliseconds"))
    assume(runnable(query))
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    local = RunnableQuery(query).run(table, time="at", semantics=semantics)
    assume(local.count() < 20_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OneTaskWarning)
        result = match(frame(spark, table), query, time="at", position=POSITION, semantics=semantics, partitions=tasks)
        counted = count(frame(spark, table), query, time="at", position=POSITION, semantics=semantics, partitions=tasks)
    found = matches(result, keys=query.partition)
    same(found, list(local), query.limit)
    assert counted == len(found)


def shifted(match: Match, by: int) -> Match:
    def moved(positions: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(position + by for position in positions)

    bindings = tuple((name, moved(positions)) for name, positions in match.bindings)
    return Match(match.start + by, match.end + by, moved(match.positions), bindings)


def same(found: list[Match], expected: list[Match], limit: int | None) -> None:
    if limit is None:
        assert sorted(found, key=str) == sorted(expected, key=str)
    else:
        assert sorted(each.end for each in found) == sorted(each.end for each in expected)


@SETTINGS
@given(query=engine_queries(), streams=STREAMS, semantics=SEMANTICS, tasks=TASKS)
def test_differential_judge(quick: SparkSession, query: Query, streams: list[Rows], semantics: Any, tasks: int) -> None:
    many_streams(quick, query, streams, semantics, tasks)


@SETTINGS
@given(query=engine_queries(), streams=STREAMS, semantics=SEMANTICS, tasks=TASKS)
def test_differential_local(quick: SparkSession, query: Query, streams: list[Rows], semantics: Any, tasks: int) -> None:
    one_stream(quick, query, streams, semantics, min(tasks, 20))


@settings(SETTINGS, max_examples=10)
@given(query=REGISTERS, streams=STREAMS, semantics=SEMANTICS, tasks=TASKS)
def test_differential_registers(
    quick: SparkSession, query: Query, streams: list[Rows], semantics: Any, tasks: int
) -> None:
    many_streams(quick, query, streams, semantics, tasks)
    one_stream(quick, query, streams, semantics, min(tasks, 20))


@pytest.mark.nightly
@settings(SETTINGS, max_examples=1500)
@given(query=engine_queries() | REGISTERS, streams=STREAMS, semantics=SEMANTICS, tasks=TASKS)
def test_differential_at_length(
    quick: SparkSession, query: Query, streams: list[Rows], semantics: Any, tasks: int
) -> None:
    many_streams(quick, query, streams, semantics, tasks)
    one_stream(quick, query, streams, semantics, tasks)
