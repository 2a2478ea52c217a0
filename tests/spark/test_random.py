"""Spark finds what the judge and the local engine find, on random queries, streams and numbers of partitions.

A Spark job costs half a second whatever its size, so one job takes many queries, and each many streams: for queries
that are partitioned, the stream's number joins the key, and the judge looks at each stream alone; the others run on one
longer stream. Every query runs over two numbers of partitions, which must give the same matches with the same ids.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given
from pyspark.sql import DataFrame, SparkSession

from cerite.api.query import Query
from cerite.core.errors import PatternError, StreamError
from cerite.core.match import Match
from cerite.engine.plan import plan
from cerite.pattern import QuerySpec, Size
from cerite.spark import OneTaskWarning, count, match
from cerite.spark.driver.request import Options, make_request
from cerite.spark.worker.job import unary_tests
from tests import telling
from tests.properties.agreement import Rows, judged, picks, runnable, sorted_window
from tests.spark.drawn import Drawn, Question, drawn, random_cases
from tests.spark.support import POSITION, collect_all, difference, frame, shifted
from tests.telling import Share
from tests.telling import refused as inexact

Answered = tuple[Question, list[Match]]
MANY_TASKS = 200 if telling.at_night else 23  # of which most are empty; by day the corpus runs over 200
TASKS = ((1, 7), (2, MANY_TASKS), (1, 2), (7, 1), (2, 7), (7, 2), (1, MANY_TASKS), (2, 1))
COUNTED = 3  # every third query is counted, too


def many_streams(spark: SparkSession, case: Drawn, share: Share) -> None:
    """Every stream is a partition of its own."""
    answered = []
    tables = [case.dress.table(rows) for rows in case.streams]
    streams = [table.to_pylist() for table in tables]
    for query, semantics in case.questions:
        sorted_ = all(sorted_window(query, rows) for rows in streams)
        changed = query if sorted_ else replace(query, within=Size.events(4))
        if runnable(changed) and plan(changed).consume != "any" and not silences_all(changed):
            begin, expected = 0, list[Match]()
            for rows in streams:
                expected += [shifted(each, begin) for each in judged(changed, rows, semantics)]
                begin += len(rows)
            silent = None if changed.suppress is None else replace(changed.suppress, per_partition=True)
            keyed = replace(changed, partition=("stream", *changed.partition), suppress=silent, source=None)
            answered.append(((keyed, semantics), expected))
    numbers = [number for number, rows in enumerate(streams) for _ in rows]
    check(spark, pa.concat_tables(tables).append_column("stream", pa.array(numbers, pa.int64())), answered, share)


def silences_all(query: QuerySpec) -> bool:
    """Whether one of several partitions silences the others."""
    return bool(query.partition) and query.suppress is not None and not query.suppress.per_partition


def one_stream(spark: SparkSession, case: Drawn, share: Share) -> None:
    """All streams one after the other."""
    rows: Rows = []
    for stream in case.streams:
        begin = rows[-1]["at"] + 2 if rows else 0
        rows += [{**row, "at": begin + row["at"] % 50 if row["at"] % 50 else begin + 49} for row in stream]
    rows.sort(key=lambda row: int(row["at"]))
    table = case.dress.table(rows)
    answered = []
    for query, semantics in case.questions:
        sorted_ = query.within is not None and sorted_window(query, rows)
        changed = query if sorted_ else replace(query, within=Size(6, "milliseconds"))
        if runnable(changed):
            local = Query(changed).run(table, time="at", semantics=semantics)
            if local.count() < 5_000:
                answered.append(((changed, semantics), list(local)))
    check(spark, table, answered, share)


def check(spark: SparkSession, table: pa.Table, answered: list[Answered], share: Share) -> None:
    """Ask Spark some of the questions, of those with registers at least a few: what matches tells most."""
    most_telling = sorted(answered, key=lambda each: not each[1])
    reading = [each for each in most_telling if plan(each[0][0]).has_registers]
    drawn = [each for each in most_telling if each not in reading][:6] + reading[:3]
    df = frame(spark, table)
    runnable = [each for each in drawn if not refused(df, table, *each[0])]
    share.refused += len(drawn) - len(runnable)
    share.drawn += len(drawn)
    assume(runnable)
    for _, expected in runnable:
        share.note(bool(expected))
    drawn = runnable
    results = by_spark(df, [question for question, _ in drawn])
    for ((query, _), expected), mine in zip(drawn, results, strict=True):
        wrong = difference(comparable(query, mine), comparable(query, expected))
        assert not wrong, f"{query}: {wrong}"


def refused(df: DataFrame, table: pa.Table, query: QuerySpec, semantics: Any) -> bool:
    """Whether the query compares decimals with floats that it computes, which is not exact everywhere."""
    how: Any = {"time": "at", "order_by": (), "semantics": semantics}
    request = make_request(df, query, Options(type="type", position=POSITION, **how))
    try:
        for test in unary_tests(request.plan):
            request.conditions.column(request.conditions.test(test))
        Query(query).run(table, time="at", semantics=semantics).count()
    except (StreamError, PatternError) as error:  # streams one after the other go back in time, which Spark sorts
        return inexact(error)
    return False


def by_spark(df: DataFrame, questions: list[Question]) -> list[list[Match]]:
    """What Spark finds for every query; the number of partitions must not matter."""
    pairs = [TASKS[place % len(TASKS)] for place in range(len(questions))]
    options = [{"time": "at", "position": POSITION, "semantics": semantics} for _, semantics in questions]
    jobs = list(zip(questions, pairs, options, strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OneTaskWarning)
        results = collect_all(
            [match(df, query, partitions=each, **how) for (query, _), pair, how in jobs for each in pair]
        )
        counted = [count(df, query, partitions=pair[1], **how) for (query, _), pair, how in jobs[::COUNTED]]
    for (query, _), pair, one, other in zip(questions, pairs, results[::2], results[1::2], strict=True):
        ids = difference(one.items(), other.items()) if not picks(query) else ""
        wrong = ids or difference(comparable(query, one.values()), comparable(query, other.values()))
        assert not wrong, f"{query} over {pair} partitions: {wrong}"
    assert counted == [len(each) for each in results[:: 2 * COUNTED]], questions[::COUNTED]
    return [list(each.values()) for each in results[::2]]


def comparable(query: QuerySpec, results: Iterable[Match]) -> list[Match] | list[int]:
    """What is compared: the matches, or under LIMIT their ends, because any of them may be reported."""
    return list(results) if not picks(query) else [each.end for each in results]


def asked_of_spark(spark: SparkSession, examples: int, *ask: Callable[[SparkSession, Drawn, Share], None]) -> None:
    """Random cases; more than a third of the questions must have a match, and few be refused."""
    share = Share("questions to Spark")

    @random_cases(examples)
    @given(case=drawn())
    def run(case: Drawn) -> None:
        for each in ask:
            each(spark, case, share)

    run()
    share.check()


def test_differential_judge(quick: SparkSession) -> None:
    asked_of_spark(quick, 2, many_streams)


def test_differential_local(quick: SparkSession) -> None:
    asked_of_spark(quick, 2, one_stream)


@pytest.mark.nightly
def test_differential_at_length(quick: SparkSession) -> None:
    asked_of_spark(quick, 300, many_streams, one_stream)
