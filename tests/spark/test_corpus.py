"""The corpus on Spark: every case that the local engine runs gives what the corpus says."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession

from cerite.engine.plan import plan
from cerite.errors import PatternError
from cerite.pattern import Query
from cerite.results import shown_attributes
from cerite.spark import OneTaskWarning, match
from tests.corpus.loader import Case, load
from tests.spark.support import POSITION, frame, matches, rows_table

AT_ONCE = 4  # jobs that wait for each other's tasks: a tiny job is mostly waiting


def test_the_corpus(quick: SparkSession) -> None:
    cases = [case for case in load() if _runs(case)]
    assert len(cases) > 290
    with ThreadPoolExecutor(AT_ONCE) as pool, warnings.catch_warnings():
        warnings.simplefilter("ignore", OneTaskWarning)
        wrong = list(pool.map(lambda case: _disagreement(quick, case), cases))
    told = [f"{case.name}: {what}" for case, what in zip(cases, wrong, strict=True) if what]
    assert not told, "\n".join(told)


def _query(case: Case) -> Query:
    parsed = case.parsed()
    return parsed if isinstance(parsed, Query) else Query(parsed)


def _runs(case: Case) -> bool:
    """`SELECT x[a]` hides the positions that this test tells events by; `test_faults` has such a query."""
    query = _query(case)
    try:
        plan(query)
    except PatternError:
        return False
    return shown_attributes(query) is None


def _disagreement(spark: SparkSession, case: Case) -> str:
    query = _query(case)
    df = frame(spark, rows_table(map(dict, case.rows), case.columns), parts=1)
    try:
        result = match(df, query, time=case.time, position=POSITION, semantics=case.semantics, partitions=2)
        return case.disagreement(matches(result, keys=query.partition))
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:600]}"
