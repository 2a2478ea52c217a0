"""Random queries on random live streams give what they give at rest, which `test_random` compares with the judge.

Some queries run in one streaming query; files arrive in any order that the watermark allows for, one in a micro-batch;
half-way the query is started anew, and at last the stream is over. `tests/properties/test_shards` has many more cases,
without Spark.
"""

from __future__ import annotations

import warnings
from collections import Counter
from contextlib import suppress
from functools import reduce
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from cerite.api.query import Query
from cerite.core.errors import CeriteError
from cerite.engine.plan import plan
from cerite.pattern import QuerySpec
from cerite.spark import OneTaskWarning, finish, match
from tests.dressed import PLAIN
from tests.properties import absent
from tests.properties.agreement import SEMANTICS, Rows, picks, runnable, sorted_window
from tests.spark.drawn import Drawn, Question, drawn, random_cases
from tests.spark.live import Folder

SCHEMA = "type string, id long, price double, name string, ok boolean, at long, n long"
ARROW = pa.schema({"type": pa.string(), "id": pa.int64(), "price": pa.float64(), "name": pa.string(), "ok": pa.bool_(),
                   "at": pa.int64(), "n": pa.int64()})  # fmt: skip
QUERIES = 2  # of a kind in one streaming query
KINDS = ("plain", "registers", "absences")
MICRO_BATCHES = 6
DELAY = 20
HOW: dict[str, Any] = {"time": "at", "order_by": "n"}
LIVE: dict[str, Any] = {"watermark": f"{DELAY} milliseconds"}
Request = tuple[QuerySpec, dict[str, Any], int | None]  # how at rest, and in how many shards


def one_after_the_other(streams: list[Rows]) -> Rows:
    """All streams as one, times rising."""
    rows: Rows = []
    for stream in streams:
        begin = rows[-1]["at"] + 2 if rows else 0
        rows += [{**row, "at": begin + row["at"] % 50} for row in stream]
    rows.sort(key=lambda row: int(row["at"]))
    return [{**row, "n": n} for n, row in enumerate(PLAIN.table(rows).to_pylist())]


def chosen(questions: list[Question], folder: Folder, rows: Rows, chance: Random) -> list[Request]:
    """Questions that have matches here, not too many, and that can run on a live stream; some run in three shards."""
    requests: list[Request] = []
    table = pa.Table.from_pylist(rows, ARROW)
    for query, semantics in questions:
        if len(requests) == QUERIES or picks(query) or not runnable(query) or not sorted_window(query, rows):
            continue
        if not 0 < Query(query).run(table, time="at", semantics=semantics).count() < 5_000:
            continue
        how = {**HOW, "semantics": semantics}
        with suppress(CeriteError), warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always", OneTaskWarning)
            match(folder.stream, query, **how, **LIVE)
            requests.append((query, how, None if warned else chance.choice([1, 3])))
    return requests


def kinds(case: Drawn, absences: list[Question]) -> list[list[Question]]:
    """Questions without memory, with registers, and with NOT at an end."""
    reading = [each for each in case.questions if runnable(each[0]) and plan(each[0]).has_registers]
    return [[each for each in case.questions if each not in reading], reading, absences]


def at_rest(folder: Folder, requests: list[Request]) -> list[tuple[int, str]]:
    """The ids that data at rest gives, with the query's number."""
    results = [
        match(folder.rest, query, **how).select(fn.lit(number), "match")
        for number, (query, how, _) in enumerate(requests)
    ]
    return sorted(tuple(row) for row in reduce(DataFrame.union, results).collect())


def agree(spark: SparkSession, home: Path, case: Drawn, absences: list[Question], chance: Random) -> Counter[str]:
    """How many queries of which kind had matches, live as at rest."""
    rows = one_after_the_other(case.streams)
    arrival = sorted(rows, key=lambda row: row["at"] + chance.uniform(0, DELAY))
    size = -(-len(arrival) // MICRO_BATCHES)
    files = [arrival[begin : begin + size] for begin in range(0, len(arrival), size)]
    folder, final = Folder(spark, home, SCHEMA, arrow=ARROW), str(home / "final")
    folder.put(files[0])
    some = {name: chosen(each, folder, rows, chance) for name, each in zip(KINDS, kinds(case, absences), strict=True)}
    requests = [each for group in some.values() for each in group]
    if not requests:
        return Counter()
    live = [(query, {**how, **LIVE, "final": final, "shards": shards}) for query, how, shards in requests]
    for half in (files[1 : len(files) // 2], files[len(files) // 2 :]):
        for file in half:
            folder.put(file)
        folder.run(folder.several(live))
    finish(spark, final)
    matches = sorted((row["query"], row["match"]) for row in folder.run(folder.several(live)))
    expected = at_rest(folder, requests)
    for number, (query, _, _) in enumerate(requests):
        mine, right = ([name for which, name in some if which == number] for some in (matches, expected))
        assert mine == right, f"{query}"
    return Counter({name: len(each) for name, each in some.items()})


@pytest.mark.nightly
def test_live_at_length(quick: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> None:
    matching: Counter[str] = Counter()

    @random_cases(3)
    @given(case=drawn(), absences=st.lists(st.tuples(absent.queries(), SEMANTICS), min_size=12, max_size=12))
    def check(case: Drawn, absences: list[Question]) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OneTaskWarning)
            home = tmp_path_factory.mktemp("live")
            matching.update(agree(quick, home, case, absences, Random(sum(matching.values()))))

    check()
    assert all(matching[name] >= 3 for name in KINDS), matching
