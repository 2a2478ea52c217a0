"""The Spark benchmark: `python -m bench.spark [--events 1000000,10000000] [--masters "local[1],local[2]"] [--only …]`.

Every master has a process of its own. The measurements of a query take turns, with a first round to warm up and then
some that count; the best time counts. So the start of Java and of Python workers, compilation by Java and the loading
of kernels are not included, and a busy moment affects all alike. Matches go to Spark's no-op sink. Also measured are
Spark's own floor (reading and filtering the same rows, and counting them), S3 in plain Spark, and the local engine on
these files. All of it runs on files in time order, and again on files with the same rows in random order, which have to
be shuffled: read by the tasks, and read by Spark.

Results are JSON lines. `--publish FILE` puts those of a file, from runs on this machine and of this code, into
bench/results and on the page of benchmarks; those of `bench.spark_processor` belong to them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import cerite
from bench.publish import publish, result
from bench.spark_cases import KEYED, TIME, keyed_folder, plain_s3, queries, stock_folder, unordered_folder
from cerite import spark
from cerite.spark.api import Reading, routed
from cerite.spark.driver.request import Options, make_request

Row = dict[str, Any]
KEYS = (10, 1_000, 100_000, 1_000_000)
SMALL = 200_000
MOST_DRAINED = 6_000_000  # more matches are only counted: otherwise the measurement would be of writing them out
MOST_JOINED = 50_000_000


def best(calls: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """The shortest of some runs of each call, taken in turn, after one that does not count."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(1 + repeats):
        for name, call in calls.items():
            begin = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - begin)
    return {name: round(min(seconds[1:]), 3) for name, seconds in times.items()}


def drained(result: DataFrame) -> None:
    """Compute every row of the result and drop it."""
    result.write.format("noop").mode("overwrite").save()


def shipped(df: DataFrame, text: str) -> tuple[int, int]:
    """Rows and bytes that the shuffling plan hands to Python."""
    request = make_request(df, text, Options(time=TIME))
    route = routed(request, None, "spark")
    assert route.shuffle is not None

    def sizes(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.record_batch({"rows": [batch.num_rows], "bytes": [batch.nbytes]})

    rows = route.shuffle.rows(request)
    counted = rows.mapInArrow(sizes, "rows long, bytes long").groupBy().sum().collect()[0]
    return int(counted[0] or 0), int(counted[1] or 0)


def floor(df: DataFrame, text: str) -> Callable[[], object]:
    """Spark reading the rows, filtering those that matter, and counting them."""
    request = make_request(df, text, Options(time=TIME))
    return request.frame.df.filter(request.conditions.column(request.relevance.formula)).count


def measured(session: SparkSession, name: str, text: str, paths: tuple[str, str], repeats: int, *, whole: bool) -> Row:
    """One query on one stream, in the order of time and in random order."""
    path, mixed = paths
    df, unordered = session.read.parquet(path), session.read.parquet(mixed)
    matches = spark.count(df, text, time=TIME)
    ways: dict[str, tuple[DataFrame, Reading]] = {
        "": (df, "auto"), "unordered_": (unordered, "auto"), "shuffled_": (unordered, "spark")
    }  # fmt: skip
    calls: dict[str, Callable[[], object]] = {"floor": floor(df, text), "unordered_floor": floor(unordered, text)}
    calls |= {f"{way}count": partial(_counted, frame, text, read) for way, (frame, read) in ways.items()}
    if matches <= MOST_DRAINED:
        calls |= {f"{way}match": partial(_drained, frame, text, read) for way, (frame, read) in ways.items()}
    row: Row = {"query": name, "matches": matches}
    if whole:
        row["rows_shipped"], row["bytes_shipped"] = shipped(df, text)
        local = cerite.query(text).run(path, time=TIME)
        calls["local_count"] = lambda: cerite.query(text).run(path, time=TIME).count()
        calls["local_match"] = lambda: sum(len(chunk) for chunk in local.chunks())
        if name == "S3" and matches <= MOST_JOINED:
            row["plain_matches"] = plain_s3(df).count()
            calls["plain"] = plain_s3(df).count
    return row | best(calls, repeats)


def by_keys(session: SparkSession, folder: Path, events: int, repeats: int) -> list[Row]:
    """The cost against the number of keys, by both plans; all numbers of keys are measured in turn."""
    frames = {keys: session.read.parquet(keyed_folder(folder, events, keys)) for keys in KEYS}
    plans: tuple[tuple[str, Reading], ...] = (("match", "auto"), ("shuffled_match", "spark"))
    calls: dict[str, Callable[[], object]] = {
        f"{name} {keys}": partial(_drained_keyed, df, read) for name, read in plans for keys, df in frames.items()
    }
    times = best(calls, repeats)
    return [{"keys": keys, "events": events} | {name: times[f"{name} {keys}"] for name, _ in plans} for keys in KEYS]


def _counted(df: DataFrame, text: str, read: Reading) -> int:
    return spark.count(df, text, time=TIME, read=read)


def _drained(df: DataFrame, text: str, read: Reading) -> None:
    drained(spark.match(df, text, time=TIME, read=read))


def _drained_keyed(df: DataFrame, read: Reading) -> None:
    drained(spark.match(df, KEYED, time="at", read=read))


def process(request: argparse.Namespace, master: str) -> list[Row]:
    """Everything on one master, in this process."""
    warnings.simplefilter("ignore")
    session = spark.session(master, conf={"spark.driver.memory": "6g"})
    wanted = {name: text for name, text in queries().items() if not request.only or name in request.only.split(",")}
    for text in wanted.values():  # starts workers, loads kernels
        small = session.read.parquet(stock_folder(request.data, SMALL))
        for read in ("auto", "spark"):
            drained(spark.match(small, text, time=TIME, read=read))
    rows: list[Row] = []
    for events in map(int, request.events.split(",")):
        paths = stock_folder(request.data, events), unordered_folder(request.data, events)
        for name, text in wanted.items():
            whole = master == request.masters.split(";")[0]
            row = measured(session, name, text, paths, request.repeats, whole=whole)
            rows.append({"master": master, "events": events, **row})
            print(json.dumps(rows[-1]), flush=True)
    if request.keys:
        for row in by_keys(session, request.data, request.keys, request.repeats):
            rows.append({"master": master, **row})
            print(json.dumps(rows[-1]), flush=True)
    session.stop()
    return rows


def main() -> int:
    """Run what was requested, every master in a process of its own; results are JSON lines."""
    parser = argparse.ArgumentParser(prog="python -m bench.spark", description=__doc__)
    parser.add_argument("--events", default="1000000,10000000", help="stream lengths, separated by commas")
    parser.add_argument("--masters", default="local[1];local[2]", help="masters, separated by semicolons")
    parser.add_argument("--only", help="queries, separated by commas: S3, Q3, Q3 by key, registers")
    parser.add_argument("--keys", type=int, default=0, help="events of the streams for the cost by number of keys")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--data", type=Path, default=Path("build/bench/spark"), help="folder for the streams")
    parser.add_argument("--publish", type=Path, help="publish the JSON lines of this file, and measure nothing")
    parser.add_argument("--apart", help=argparse.SUPPRESS)
    request = parser.parse_args()
    if request.publish:
        rows = [json.loads(line) for line in request.publish.read_text().splitlines() if line.startswith("{")]
        publish(result("spark", "Stock events in Parquet", None, rows))
        return 0
    if request.apart:
        process(request, request.apart)
        return 0
    failed = 0
    for master in request.masters.split(";"):
        failed |= subprocess.run([sys.executable, "-m", "bench.spark", *sys.argv[1:], "--apart", master]).returncode
    return failed


if __name__ == "__main__":
    sys.exit(main())
