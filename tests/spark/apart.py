"""Checks that need a Spark of their own: `python -m tests.spark.apart connect|connect-all|cluster|kill FOLDER`.

Each recognises some queries in a generated stream, all in one job, and compares with the local engine; `connect-all`
also follows it as a live stream. `kill` ends an executor in the middle of that job: behind Cerite, in the same tasks,
`delayed` leaves a note with the executor's process at the first matches and waits; the executor of the first note is
killed, then all go on. So it dies while it runs a task of Cerite, holding both unfinished results and files of the
shuffle.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql import DataFrame

import cerite
from cerite.spark import finish, match, progress, session, split
from tests.spark.support import POSITION, collect_all

QUERIES = {
    "a hot key": "A AS x ; B AS y FILTER x[v > 0.5] AND y[v > 0.5] PARTITION BY [k] WITHIN 50 milliseconds",
    "chunks": "A AS x ; B AS y FILTER x[v > 0.9] AND y[v < 0.1] WITHIN 50 milliseconds",
    "a register": "A AS x ; B AS y FILTER y[v > x.v AND k = x.k] WITHIN 20 milliseconds",
    "a register in partitions": "A AS x ; B AS y FILTER y[v > x.v] PARTITION BY [k] WITHIN 20 milliseconds",
    "a negation": "A AS x ; NOT C ; B AS y FILTER x[v > 0.5] WITHIN 10 milliseconds",
    "neighbours": "A AS x : B AS y FILTER y[v > 0.5] WITHIN 3 milliseconds",
    "counted events": "A AS x ; B AS y FILTER x[v > 0.9] WITHIN 7 EVENTS",
}
BY_DAY = ("a register in partitions",)  # over Connect, at rest; at night all of them, and a live stream
IN_ORDER = 2  # queries that run a second time, of files read in order, without a shuffle, at most
WAIT = 120  # seconds


def stream(rows: int) -> pa.Table:
    """Seven events in ten have the same key."""
    rng = np.random.default_rng(5)
    keys = np.where(rng.random(rows) < 0.7, 0, rng.integers(1, 40, rows))
    kinds, values = rng.choice(["A", "B", "C"], rows), np.round(rng.random(rows), 3)
    return pa.table({"type": kinds, "k": keys, "v": values, "at": np.arange(rows), POSITION: np.arange(rows)})


def delayed(folder: Path) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Lets batches pass, but not before an executor is dead; a note says which partition is run by which executor."""

    def passed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            task = TaskContext.get()
            assert task is not None
            daemon = Path(f"/proc/{os.getppid()}/stat").read_text("utf-8")
            note = {"partition": task.partitionId(), "executor": int(daemon.rpartition(")")[2].split()[1])}
            draft = folder / f"draft {task.taskAttemptId()}"
            draft.write_text(json.dumps(note), "utf-8")
            draft.rename(folder / f"note {task.taskAttemptId()}")
            until = time.monotonic() + WAIT
            while not (folder / "killed").exists() and time.monotonic() < until:
                time.sleep(0.05)
            yield batch

    return passed


def notes(folder: Path) -> list[dict[str, int]]:
    return [json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("note *"))]


def kill(folder: Path) -> None:
    """Kill the executor of the first note."""
    until = time.monotonic() + WAIT
    while not notes(folder) and time.monotonic() < until:
        time.sleep(0.05)
    victim = notes(folder)[0]
    os.kill(victim["executor"], signal.SIGKILL)
    (folder / "killed").write_text(json.dumps(victim), "utf-8")


def lost_executors(spark: Any) -> int:
    """How many executors this application has lost, as Spark tells."""
    known = spark.sparkContext._jsc.sc().statusStore().executorList(False)
    return sum(not known.apply(place).isActive() for place in range(known.size()))


def killed_in_mid_job(spark: Any, results: list[DataFrame], folder: Path) -> list[Any]:
    """The matches of results whose job loses an executor."""
    waiting = [result.mapInArrow(delayed(folder), result.schema) for result in results]
    assert lost_executors(spark) == 0
    killer = threading.Thread(target=kill, args=(folder,))
    killer.start()
    answers = collect_all(waiting)
    killer.join()
    victim = json.loads((folder / "killed").read_text("utf-8"))
    assert lost_executors(spark) == 1, "the executor was to be killed"
    again = [note["executor"] for note in notes(folder) if note["partition"] == victim["partition"]]
    assert len(again) > 1, "its task was to run again"
    assert again.count(victim["executor"]) < len(again), "and elsewhere"
    return answers


def live_as_at_rest(spark: Any, folder: Path) -> None:
    """A live stream of the same file, over Spark Connect: the ids of data at rest, once the stream is over."""
    (folder / "in").mkdir()
    (folder / "events.parquet").rename(folder / "in" / "events.parquet")
    at_rest = spark.read.parquet(str(folder / "in"))
    name, final = "a register in partitions", str(folder / "final")
    text = f"SELECT * FROM S WHERE {QUERIES[name]}"
    stream = spark.readStream.schema(at_rest.schema).parquet(str(folder / "in"))
    live = match(
        stream, text, time="at", position=POSITION, watermark="10 milliseconds", shards=2, final=final, late="side"
    )
    writing = live.writeStream.option("path", str(folder / "out")).option("checkpointLocation", str(folder / "state"))
    steps = []
    for over in (False, True):
        if over:
            finish(spark, final)
        query = writing.trigger(availableNow=True).start()
        query.awaitTermination()
        steps += [progress(each) for each in query.recentProgress]
    matches, late = split(spark.read.schema(live.schema).parquet(str(folder / "out")))
    ids = sorted(row["match"] for row in matches.select("match").collect())
    expected = match(at_rest, text, time="at", position=POSITION).select("match").collect()
    assert ids == sorted(row["match"] for row in expected), f"{len(ids)} live, {len(expected)} at rest"
    assert ids, "there are matches"
    assert not late.count(), "nothing is late"
    assert sum(each.matches for each in steps if each is not None) == len(ids), "progress tells them"


def main(kind: str, where: str) -> None:
    folder, table = Path(where), stream(6_000)
    pq.write_table(table, folder / "events.parquet", row_group_size=1000)
    small = {"spark.sql.shuffle.partitions": "4", "spark.sql.execution.arrow.maxRecordsPerBatch": "500"}
    connected = kind.startswith("connect")
    spark = session(remote="local[2]", conf=small) if connected else session("local-cluster[2,1,1024]", conf=small)
    df = spark.read.parquet(str(folder / "events.parquet"))
    names = BY_DAY if kind == "connect" else tuple(QUERIES)
    queries = [(name, f"SELECT * FROM S WHERE {QUERIES[name]}") for name in names]
    results = [match(df, text, time="at", partitions=4, read="spark") for _, text in queries]
    results += [match(df, text, time="at", partitions=4) for _, text in queries[:IN_ORDER]]
    answers = killed_in_mid_job(spark, results, folder) if kind == "kill" else collect_all(results)
    for (name, text), mine in zip(queries, answers, strict=False):
        expected = Counter(cerite.query(text).run(table, time="at"))
        assert expected, f"{name} has no matches"
        assert Counter(mine.values()) == expected, f"{kind}, {name}: {len(mine)}, not {sum(expected.values())}"
    assert answers[: len(queries)][:IN_ORDER] == answers[len(queries) :], "the same ids, whatever the plan"
    if kind == "connect-all":
        live_as_at_rest(spark, folder)
    print("the same matches", flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
