"""Spark finds what the judge and the local engine find, on random queries, streams and numbers of partitions.

A Spark job costs half a second whatever its size, so one job takes many queries, and each many streams: for queries
that are partitioned, the stream's number joins the key, and the judge looks at each stream alone; the others run on one
longer stream. Every query runs over two numbers of partitions, which must give the same matches with the same ids.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable
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
from tests.spark.support import POSITION, frame, shifted, together

Rows = list[dict[str, Any]]
Question = tuple[Query, Any]  # with its semantics
TASKS = ((1, 7), (2, 200), (1, 2), (7, 1), (2, 7), (7, 2), (1, 200), (2, 1))
REGISTERS = random.queries(random.register_patterns(3)).filter(
    lambda query: runnable(query) and plan(query).has_registers
)
QUESTIONS = st.tuples(
    st.lists(st.tuples(engine_queries(), SEMANTICS), min_size=6, max_size=6),
    st.lists(st.tuples(REGISTERS, SEMANTICS), min_size=2, max_size=2),
).map(lambda both: [*both[0], *both[1]])
COUNTED = 3  # every third query is counted, too
STREAMS = st.lists(random.streams(8), min_size=15, max_size=15)


def random_cases(examples: int) -> settings:
    return settings(
        max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate],
        derandomize=True,
    )  # fmt: skip


def many_streams(spark: SparkSession, questions: list[Question], streams: list[Rows]) -> None:
    """Every stream is a partition of its own."""
    asked = []
    for query, semantics in questions:
        sorted_ = all(sorted_window(query, rows) for rows in streams)
        changed = query if sorted_ else replace(query, within=Size.events(4))
        if runnable(changed) and plan(changed).consume != "any":
            asked.append((changed, semantics))
    assume(asked)
    numbered = [{**row, "stream": number} for number, rows in enumerate(streams) for row in rows]
    table = pa.Table.from_pylist(numbered, schema=SCHEMA.append(pa.field("stream", pa.int64())))
    keyed = [(replace(query, partition=("stream", *query.partition), source=None), how) for query, how in asked]
    for (query, semantics), found in zip(asked, found_by_spark(spark, table, keyed), strict=True):
        begin, expected = 0, list[Match]()
        for rows in streams:
            expected += [shifted(each, begin) for each in judged(query, rows, semantics)]
            begin += len(rows)
        same(query, found, expected)


def one_stream(spark: SparkSession, questions: list[Question], streams: list[Rows]) -> None:
    """All streams one after the other."""
    rows: Rows = []
    for stream in streams:
        begin = rows[-1]["at"] + 2 if rows else 0
        rows += [{**row, "at": begin + row["at"] % 50 if row["at"] % 50 else begin + 49} for row in stream]
    rows.sort(key=lambda row: int(row["at"]))
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    asked = []
    for query, semantics in questions:
        sorted_ = query.within is not None and sorted_window(query, rows)
        changed = query if sorted_ else replace(query, within=Size(6, "milliseconds"))
        if runnable(changed):
            local = RunnableQuery(changed).run(table, time="at", semantics=semantics)
            if local.count() < 20_000:
                asked.append((changed, semantics, list(local)))
    assume(asked)
    every = found_by_spark(spark, table, [(query, semantics) for query, semantics, _ in asked])
    for (query, _, expected), found in zip(asked, every, strict=True):
        same(query, found, expected)


def found_by_spark(spark: SparkSession, table: pa.Table, questions: list[Question]) -> list[list[Match]]:
    """What Spark finds for every query; the number of partitions must not matter."""
    df = frame(spark, table)
    pairs = [TASKS[place % len(TASKS)] for place in range(len(questions))]
    options = [{"time": "at", "position": POSITION, "semantics": semantics} for _, semantics in questions]
    asked = list(zip(questions, pairs, options, strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OneTaskWarning)
        found = together([match(df, query, partitions=each, **how) for (query, _), pair, how in asked for each in pair])
        counted = [count(df, query, partitions=pair[1], **how) for (query, _), pair, how in asked[::COUNTED]]
    for (query, _), one, other in zip(questions, found[::2], found[1::2], strict=True):
        assert one == other if query.limit is None else ends(one.values()) == ends(other.values()), query
    assert counted == [len(each) for each in found[:: 2 * COUNTED]], questions[::COUNTED]
    return [list(each.values()) for each in found[::2]]


def same(query: Query, found: list[Match], expected: list[Match]) -> None:
    if query.limit is None:
        assert Counter(found) == Counter(expected), query
    else:
        assert ends(found) == ends(expected), query


def ends(found: Iterable[Match]) -> Counter[int]:
    return Counter(each.end for each in found)


@random_cases(20)
@given(questions=QUESTIONS, streams=STREAMS)
def test_differential_judge(quick: SparkSession, questions: list[Question], streams: list[Rows]) -> None:
    many_streams(quick, questions, streams)


@random_cases(12)
@given(questions=QUESTIONS, streams=STREAMS)
def test_differential_local(quick: SparkSession, questions: list[Question], streams: list[Rows]) -> None:
    one_stream(quick, questions, streams)


@pytest.mark.nightly
@random_cases(300)
@given(questions=QUESTIONS, streams=STREAMS)
def test_differential_at_length(quick: SparkSession, questions: list[Question], streams: list[Rows]) -> None:
    many_streams(quick, questions, streams)
    one_stream(quick, questions, streams)
