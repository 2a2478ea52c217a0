"""Random queries on random live streams give what they give at rest, which `test_random` compares with the judge.

Some queries run in one streaming query; files arrive in any order that the watermark allows for, one in a micro-batch;
half-way the query is started anew, and at last the stream is over. `tests/properties/test_shards` has many more cases,
without Spark.
"""

from __future__ import annotations

import warnings
from contextlib import suppress
from functools import reduce
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from cerite.api.query import Query
from cerite.core.errors import CeriteError
from cerite.pattern import QuerySpec
from cerite.spark import OneTaskWarning, finish, match
from tests.dressed import PLAIN
from tests.properties.agreement import runnable, sorted_window
from tests.spark.live import Folder
from tests.spark.test_random import Drawn, Rows, drawn, random_cases

SCHEMA = "type string, id long, price double, name string, ok boolean, at long, n long"
ARROW = pa.schema({"type": pa.string(), "id": pa.int64(), "price": pa.float64(), "name": pa.string(), "ok": pa.bool_(),
                   "at": pa.int64(), "n": pa.int64()})  # fmt: skip
QUERIES = 6  # in one streaming query
MICRO_BATCHES = 6
DELAY = 20
HOW: dict[str, Any] = {"time": "at", "order_by": "n"}
LIVE: dict[str, Any] = {"watermark": f"{DELAY} milliseconds"}
Asked = tuple[QuerySpec, dict[str, Any], int | None]  # how at rest, and in how many shards


def one_after_the_other(streams: list[Rows]) -> Rows:
    """All streams as one, times rising."""
    rows: Rows = []
    for stream in streams:
        begin = rows[-1]["at"] + 2 if rows else 0
        rows += [{**row, "at": begin + row["at"] % 50} for row in stream]
    rows.sort(key=lambda row: int(row["at"]))
    return [{**row, "n": n} for n, row in enumerate(PLAIN.table(rows).to_pylist())]


def chosen(case: Drawn, folder: Folder, rows: Rows, chance: Random) -> list[Asked]:
    """Questions that have matches here, not too many, and that a live stream can be asked; some run in three shards."""
    found: list[Asked] = []
    table = pa.Table.from_pylist(rows, ARROW)
    for query, semantics in case.questions:
        if len(found) == QUERIES or query.limit is not None or not runnable(query) or not sorted_window(query, rows):
            continue
        if not 0 < Query(query).run(table, time="at", semantics=semantics).count() < 5_000:
            continue
        how = {**HOW, "semantics": semantics}
        with suppress(CeriteError), warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", OneTaskWarning)
            match(folder.stream, query, **how, **LIVE)
            found.append((query, how, None if told else chance.choice([1, 3])))
    return found


def at_rest(folder: Folder, asked: list[Asked]) -> list[tuple[int, str]]:
    """The ids that data at rest gives, with the query's number."""
    results = [
        match(folder.rest, query, **how).select(fn.lit(number), "match") for number, (query, how, _) in enumerate(asked)
    ]
    return sorted(tuple(row) for row in reduce(DataFrame.union, results).collect())


def agree(spark: SparkSession, home: Path, case: Drawn, chance: Random) -> int:
    """How many matches a drawn case has, live as at rest."""
    rows = one_after_the_other(case.streams)
    arrival = sorted(rows, key=lambda row: row["at"] + chance.uniform(0, DELAY))
    size = -(-len(arrival) // MICRO_BATCHES)
    files = [arrival[begin : begin + size] for begin in range(0, len(arrival), size)]
    folder, final = Folder(spark, home, SCHEMA, arrow=ARROW), str(home / "final")
    folder.put(files[0])
    asked = chosen(case, folder, rows, chance)
    if not asked:
        return 0
    live = [(query, {**how, **LIVE, "final": final, "shards": shards}) for query, how, shards in asked]
    for half in (files[1 : len(files) // 2], files[len(files) // 2 :]):
        for file in half:
            folder.put(file)
        folder.run(folder.several(live))
    finish(spark, final)
    found = sorted((row["query"], row["match"]) for row in folder.run(folder.several(live)))
    expected = at_rest(folder, asked)
    for number, (query, _, _) in enumerate(asked):
        mine, right = ([name for which, name in some if which == number] for some in (found, expected))
        assert mine == right, f"{query}"
    return len(expected)


@pytest.mark.nightly
def test_live_at_length(quick: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> None:
    matches: list[int] = []

    @random_cases(5)
    @given(case=drawn())
    def check(case: Drawn) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OneTaskWarning)
            matches.append(agree(quick, tmp_path_factory.mktemp("live"), case, Random(len(matches))))

    check()
    assert sum(map(bool, matches)) >= 3, "most streams have matches"
