"""Checks that need a Spark of their own, run as `python -m tests.spark.apart connect|cluster|kill FOLDER`.

Each recognises two queries in a generated stream, one that is shuffled and one that is read in order, and compares
with the local engine. `kill` ends one executor process in the middle of the job.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import cerite
from cerite.spark import match, session

PARTITIONED = "SELECT * FROM S WHERE A AS x ; B AS y FILTER y[v > 0.5] PARTITION BY [k] WITHIN 300 milliseconds"
CHUNKED = "SELECT * FROM S WHERE A AS x ; B AS y FILTER x[v > 0.9] AND y[v < 0.1] WITHIN 50 milliseconds"


def stream(rows: int) -> pa.Table:
    rng = np.random.default_rng(5)
    kinds, values = rng.choice(["A", "B", "C"], rows), np.round(rng.random(rows), 3)
    return pa.table({"type": kinds, "k": rng.integers(0, 40, rows), "v": values, "at": np.arange(rows)})


def ends(found: Any) -> Counter[tuple[int, int]]:
    return Counter((row["start_time"], row["end_time"]) for row in found.collect())


def slowly(batches: Any) -> Any:
    for batch in batches:
        time.sleep(0.7)
        yield batch


def executors() -> list[int]:
    """The processes of this Spark's executors: children of the JVM that this process started."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
            mine = f"spark.driver.port={_port()}".encode() in command
        except OSError:
            continue
        if b"CoarseGrainedExecutorBackend" in command and mine:
            found.append(int(folder.name))
    return sorted(found)


def _port() -> str:
    from pyspark import SparkContext

    running = SparkContext._active_spark_context
    return "" if running is None else str(running.getConf().get("spark.driver.port"))


def main(kind: str, folder: str) -> None:
    table = stream(6_000)
    path = str(Path(folder) / "events.parquet")
    pq.write_table(table, path, row_group_size=1000)
    small = {"spark.sql.shuffle.partitions": "4", "spark.sql.execution.arrow.maxRecordsPerBatch": "500"}
    if kind == "connect":
        spark = session(remote="local[2]", conf=small)
    else:
        spark = session("local-cluster[2,1,1024]", conf=small)
    df = spark.read.parquet(path)
    for text, read in ((PARTITIONED, "spark"), (CHUNKED, "auto"), (CHUNKED, "spark")):
        expected = Counter((each.start, each.end) for each in cerite.query(text).run(table, time="at"))
        slow = df.mapInArrow(slowly, df.schema) if kind == "kill" and text == PARTITIONED else df
        order = {"order_by": ["v"]} if slow is not df else {}
        result = match(slow, text, time="at", partitions=4, read=read, **order)  # type: ignore[arg-type]
        if slow is not df:
            victims = executors()
            threading.Timer(1.5, os.kill, (victims[0], signal.SIGKILL)).start()
        found = ends(result)
        if slow is not df:
            assert victims[0] not in executors(), "the executor was to be killed"
        assert found == expected, f"{kind}: {text} gives {sum(found.values())}, not {sum(expected.values())}"
    print("the same matches", flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
