"""The corpus on Spark: every case that the local engine runs gives what the corpus says, on any number of partitions.

Most cases have neither a window nor a partition, so that one ordered task runs them whatever the number: what the local
engine does, which runs them all in its own tests. With every change some of them run, which have every kind of pattern,
strategy and window between them: as they are, and with their stream there three times, each time as a partition of its
own; at night all of them. The others run over one number of partitions each, at night over all. Many cases go into one
Spark job, and some jobs run at once: a tiny job mostly waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import cycle

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from cerite.api.shown import Selection
from cerite.core.match import Match
from cerite.engine.plan import Plan, plan
from cerite.pattern import QuerySpec
from cerite.pattern.nodes import walk
from cerite.spark import match
from cerite.spark.driver.choose import choose
from tests.corpus import support
from tests.corpus.loader import Case, load
from tests.spark.support import POSITION, collect_all, frame, rows_table, shifted

TASKS = (1, 2, 7)
MANY_TASKS = 200
COPY = "copy of the stream"
COPIES = 3
BY_DAY = {  # what runs over very many partitions with every change
    "chunks: registers", "chunks: within events", "chunks: within time", "chunks: Concat", "partitions: within events",
}  # fmt: skip
IN_A_JOB = 20
AT_ONCE = 3


@dataclass(frozen=True)
class Known:
    """A case, its query and its plan."""

    case: Case
    query: QuerySpec
    plan: Plan

    @property
    def operator(self) -> str:
        return choose(self.plan, POSITION).operator

    @property
    def may_be_copied(self) -> bool:
        shared = self.plan.suppress is not None and not self.plan.suppress.per_partition
        return self.query.schema is None and self.plan.consume != "any" and not shared

    @property
    def features(self) -> set[str]:
        features = {type(node).__name__ for node in walk(self.query.where)} | {f"consume {self.plan.consume}"}
        if self.query.strategy is not None:
            features.add(f"select {self.query.strategy.value}")
        if self.plan.window is not None:
            features.add("within events" if self.plan.window.unit == "events" else "within time")
        if self.plan.has_registers:
            features.add("registers")
        if self.plan.suppress is not None:
            features.add("suppress")
        return {f"{self.operator}: {each}" for each in features}


@dataclass(frozen=True)
class Run:
    """A case on Spark, over so many partitions; its stream may be there several times, as partitions."""

    known: Known
    tasks: int
    copies: int = 1

    def __str__(self) -> str:
        return f"{self.known.case.name}, {self.tasks} partitions, {self.copies} streams"

    def result(self, spark: SparkSession) -> DataFrame:
        case, query = self.known.case, self.known.query
        table = rows_table(map(dict, case.rows), case.columns)
        if self.copies > 1:
            query = replace(query, partition=(COPY, *query.partition), source=None)
            numbers = [pa.array([copy] * table.num_rows, pa.int64()) for copy in range(self.copies)]
            table = pa.concat_tables([table.append_column(COPY, each) for each in numbers])
        return match(
            frame(spark, table, parts=1), query, time=case.time, position=POSITION, semantics=case.semantics,
            partitions=self.tasks,
        )  # fmt: skip

    def wrong(self, matches: Iterable[Match]) -> str:
        """What is wrong with the matches in some copy of the stream."""
        size = max(1, len(self.known.case.rows))
        copies: list[list[Match]] = [[] for _ in range(self.copies)]
        for each in matches:
            copies[each.start // size].append(shifted(each, -(each.start // size) * size))
        return "\n".join(filter(None, map(self.known.case.disagreement, copies)))


@pytest.fixture(scope="module")
def corpus() -> list[Known]:
    cases = [known for case in load() if (known := _known(case)) is not None]
    assert len(cases) > 290
    return cases


@pytest.mark.filterwarnings("ignore::cerite.spark.OneTaskWarning")
def test_the_corpus(quick: SparkSession, corpus: list[Known]) -> None:
    alone = [known for known in corpus if known.operator == "sequence"]
    copied = [known for known in alone if known.may_be_copied]
    others = [known for known in corpus if known.operator != "sequence"]
    runs = [Run(known, tasks) for known, tasks in zip(others, cycle(TASKS), strict=False)]
    runs += [Run(known, TASKS[-1]) for known in alone if not known.may_be_copied]
    for number, known in enumerate(_of_every_kind(copied)):
        runs += [Run(known, TASKS[-1]), Run(known, 1 + number % COPIES, COPIES)]
    _check(quick, runs)


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::cerite.spark.OneTaskWarning")
def test_the_corpus_over_every_number_of_partitions(quick: SparkSession, corpus: list[Known]) -> None:
    copied = [known for known in corpus if known.operator == "sequence" and known.may_be_copied]
    runs = [Run(known, tasks) for known in corpus for tasks in TASKS]
    _check(quick, runs + [Run(known, tasks, COPIES) for known in copied for tasks in TASKS])


def test_two_hundred_partitions(quick: SparkSession, corpus: list[Known]) -> None:
    """Cases in chunks and in partitions, by time and by number, with registers and neighbours; and a stream copied."""
    chosen = _of_every_kind([known for known in corpus if known.operator != "sequence"], BY_DAY)
    copied = next(known for known in corpus if known.may_be_copied and "sequence: registers" in known.features)
    _check(quick, [*(Run(known, MANY_TASKS) for known in chosen), Run(copied, MANY_TASKS, COPIES)])


@pytest.mark.nightly
def test_two_hundred_partitions_with_every_kind_of_pattern(quick: SparkSession, corpus: list[Known]) -> None:
    chosen = _of_every_kind([known for known in corpus if known.operator != "sequence"])
    _check(quick, [Run(known, MANY_TASKS) for known in chosen])


def _of_every_kind(corpus: Iterable[Known], wanted: set[str] | None = None) -> list[Known]:
    """Cases that have between them every feature that the cases have, or all that are wanted: few, each with many."""
    cases = list(corpus)
    missing = set[str]().union(*(known.features for known in cases)) if wanted is None else set(wanted)
    chosen = list[Known]()
    while missing:
        most = max(cases, key=lambda known: len(known.features & missing))
        assert most.features & missing, f"no case has {missing}"
        chosen.append(most)
        missing -= most.features
    return chosen


def _known(case: Case) -> Known | None:
    """Nothing where no engine runs the case, and for `SELECT x[a]` and measures, which hide positions."""
    described = support.known(case)
    selection = Selection.of(described.query)
    if described.refusal("Spark") or selection.attributes is not None or described.query.measures:
        return None
    return Known(case, described.query, plan(described.query, case.semantics))


def _check(spark: SparkSession, runs: list[Run]) -> None:
    jobs = [runs[begin : begin + IN_A_JOB] for begin in range(0, len(runs), IN_A_JOB)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        disagreements = [each for some in pool.map(lambda job: list(_disagreements(spark, job)), jobs) for each in some]
    assert not disagreements, "\n".join(disagreements)


def _disagreements(spark: SparkSession, runs: list[Run]) -> Iterator[str]:
    """What is wrong, by name; the runs of a job that fails are run again, each alone."""
    try:
        results = collect_all([run.result(spark) for run in runs])
    except Exception as error:
        if len(runs) == 1:
            yield f"{runs[0]}: {type(error).__name__}: {str(error)[:600]}"
        else:
            for run in runs:
                yield from _disagreements(spark, [run])
        return
    wrong = [run.wrong(mine.values()) for run, mine in zip(runs, results, strict=True)]
    yield from (f"{run}: {what}" for run, what in zip(runs, wrong, strict=True) if what)
