"""The Spark benchmark: `python -m bench.spark [--events 1000000,10000000] [--masters "local[1],local[2]"] [--only …]`.

Every master has a process of its own; times are the best of some runs after a warm-up, so the start of Java, of Python
workers and the loading of kernels are not in them. Matches go to Spark's no-op sink. Beside them: Spark's own floor
(reading and filtering the same rows, and counting them), S3 in plain Spark, and the local engine on the same files.
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
from bench.spark_cases import KEYED, TIME, keyed_folder, plain_s3, queries, stock_folder
from cerite import spark
from cerite.spark.matching import Reading, routed
from cerite.spark.request import request
from cerite.spark.shuffle import job_of, prepared

Row = dict[str, Any]
KEYS = (10, 1_000, 100_000, 1_000_000)
SMALL = 200_000
MOST_DRAINED = 3_000_000  # more matches are counted only: writing them out would be what is measured
MOST_JOINED = 50_000_000


def best(call: Callable[[], object], repeats: int) -> float:
    """The shortest of some runs."""
    found = []
    for _ in range(repeats):
        begin = time.perf_counter()
        call()
        found.append(time.perf_counter() - begin)
    return min(found)


def drained(found: DataFrame) -> None:
    """Compute every row of the result and drop it."""
    found.write.format("noop").mode("overwrite").save()


def shipped(df: DataFrame, text: str) -> tuple[int, int]:
    """Rows and bytes that the shuffling plan hands to Python."""
    asked = request(df, text, time=TIME, type=None, order_by=(), position=None, semantics="valuations")
    route = routed(asked, None, "spark")
    assert route.layout is not None

    def sizes(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.record_batch({"rows": [batch.num_rows], "bytes": [batch.nbytes]})

    rows = prepared(asked, route.layout, job_of(asked, route.layout))
    counted = rows.mapInArrow(sizes, "rows long, bytes long").groupBy().sum().collect()[0]
    return int(counted[0] or 0), int(counted[1] or 0)


def measured(session: SparkSession, name: str, text: str, path: str, repeats: int, *, whole: bool) -> Row:
    """One query on one stream."""
    df = session.read.parquet(path)
    asked = request(df, text, time=TIME, type=None, order_by=(), position=None, semantics="valuations")
    condition = asked.conditions.column(asked.relevance.formula)
    relevant = asked.frame.df.filter(condition)
    row: Row = {"query": name}
    row["floor_s"] = best(relevant.count, repeats)
    row["count_s"] = best(lambda: spark.count(df, text, time=TIME), repeats)
    row["shuffle_count_s"] = best(lambda: spark.count(df, text, time=TIME, read="spark"), repeats)
    row["matches"] = spark.count(df, text, time=TIME)
    if row["matches"] <= MOST_DRAINED:
        row["match_s"] = best(lambda: drained(spark.match(df, text, time=TIME)), repeats)
        row["shuffle_match_s"] = best(lambda: drained(spark.match(df, text, time=TIME, read="spark")), repeats)
    if whole:
        row["rows_shipped"], row["bytes_shipped"] = shipped(df, text)
        local = cerite.query(text).run(path, time=TIME)
        row["local_s"] = best(lambda: sum(len(chunk) for chunk in local.chunks()), repeats)
        if name == "S3" and row["matches"] <= MOST_JOINED:
            row["plain_matches"] = plain_s3(df).count()
            row["plain_s"] = best(lambda: plain_s3(df).count(), 1)
    return row


def by_keys(session: SparkSession, folder: Path, events: int, repeats: int) -> list[Row]:
    """The cost against the number of keys, by both plans."""
    rows = []
    plans: tuple[tuple[str, Reading], ...] = (("match_s", "auto"), ("shuffle_match_s", "spark"))
    for keys in KEYS:
        df = session.read.parquet(keyed_folder(folder, events, keys))
        row: Row = {"keys": keys, "events": events}
        for name, read in plans:
            row[name] = best(partial(_drained_keyed, df, read), repeats)
        rows.append(row)
    return rows


def _drained_keyed(df: DataFrame, read: Reading) -> None:
    drained(spark.match(df, KEYED, time="at", read=read))


def process(asked: argparse.Namespace, master: str) -> list[Row]:
    """Everything on one master, in this process."""
    warnings.simplefilter("ignore")
    session = spark.session(master, conf={"spark.driver.memory": "6g"})
    wanted = {name: text for name, text in queries().items() if not asked.only or name in asked.only.split(",")}
    for text in wanted.values():  # starts workers, loads kernels
        small = session.read.parquet(stock_folder(asked.data, SMALL))
        for read in ("auto", "spark"):
            drained(spark.match(small, text, time=TIME, read=read))
    rows: list[Row] = []
    for events in map(int, asked.events.split(",")):
        path = stock_folder(asked.data, events)
        for name, text in wanted.items():
            whole = master == asked.masters.split(";")[0]
            row = measured(session, name, text, path, asked.repeats, whole=whole)
            rows.append({"master": master, "events": events, **row})
            print(json.dumps(rows[-1]), flush=True)
    if asked.keys:
        for row in by_keys(session, asked.data, asked.keys, asked.repeats):
            rows.append({"master": master, **row})
            print(json.dumps(rows[-1]), flush=True)
    session.stop()
    return rows


def main() -> int:
    """Runs what is asked for; every master apart, results as JSON lines."""
    parser = argparse.ArgumentParser(prog="python -m bench.spark", description=__doc__)
    parser.add_argument("--events", default="1000000,10000000", help="stream lengths, separated by commas")
    parser.add_argument("--masters", default="local[1];local[2]", help="masters, separated by semicolons")
    parser.add_argument("--only", help="queries, separated by commas: S3, Q3, Q3 by key, registers")
    parser.add_argument("--keys", type=int, default=0, help="events of the streams for the cost by number of keys")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--data", type=Path, default=Path("build/bench/spark"), help="folder for the streams")
    parser.add_argument("--apart", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.apart:
        process(asked, asked.apart)
        return 0
    failed = 0
    for master in asked.masters.split(";"):
        failed |= subprocess.run([sys.executable, "-m", "bench.spark", *sys.argv[1:], "--apart", master]).returncode
    return failed


if __name__ == "__main__":
    sys.exit(main())
