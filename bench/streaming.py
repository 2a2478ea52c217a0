"""Live streams on Spark: `python -m bench streaming [throughput|latency|day] [--events N] [--keys 10,10000] …`.

`throughput` runs one stream through (a) a stateless `mapInArrow`, (b) Spark's own stateful aggregate, and two queries
of Cerite, one of them with many matches; it gives events per second of processor time (driver, JVM and Python workers
together) and of elapsed time, the best of some rounds after one that warms up. `latency` delivers events at a fixed
rate and measures how long after its last event a match is in the sink, beyond the watermark's delay. `day` is 86,400
seconds of event time with ever-new keys, and measures the bytes of state over the day, which must not grow. All matches
go to sinks that drop their rows. Results are printed and written to build/bench/streaming.json; those in bench/results
are on the page. `--add` keeps what the file already has of suites that are not measured.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from bench.machine import code, commit, machine
from bench.processor import processor_seconds
from bench.streaming_data import PER_SECOND, SCHEMA, day_files, keyed_files, paced_batch
from cerite import spark

Row = dict[str, Any]
Route = Callable[[DataFrame], DataFrame]
QUERY = """SELECT x, y FROM S WHERE A AS x ; B AS y FILTER x[v > 0.9] AND y[v > 0.9] PARTITION BY [k]
WITHIN {} milliseconds"""
DELAY = 1.0  # seconds of the watermark
TARGET = Path("build/bench/streaming.json")


def passed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pass every row to Python and back."""
    yield from batches


def routes(shards: int, keys: int) -> dict[str, Route]:
    """What is measured: the two routes that Cerite is compared with, and Cerite's own.

    The window of `cerite` holds some hundred events of a key, up to ten seconds, so that the matches do not multiply
    where keys are few: one for every sixteen events. `pairs` has a window of a second, six matches an event at 10 keys.
    """

    def matching(window: int) -> Route:
        settings: dict[str, Any] = {"time": "at", "order_by": "n", "watermark": f"{DELAY:.0f} seconds"}
        return lambda df: spark.match(df, QUERY.format(window), shards=shards, **settings)

    return {
        "stateless": lambda df: df.mapInArrow(passed, df.schema),
        "aggregate": lambda df: (
            df.withWatermark("at", f"{DELAY} seconds").groupBy(fn.window("at", "1 second"), "k").count()
        ),
        "cerite": matching(min(keys * 100_000 // PER_SECOND, 10_000)),
        "pairs": matching(1_000),
    }


def streamed(session: SparkSession, source: Path) -> DataFrame:
    """The files of a folder, one per micro-batch."""
    return session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(source))


def drained(matches: DataFrame, into: Callable[[DataFrame, int], None] | None = None) -> list[Row]:
    """Run to the end of what is there; returns the progress of every micro-batch."""
    folder = tempfile.mkdtemp(prefix="cerite-bench-")
    writer = matches.writeStream.option("checkpointLocation", folder)
    writer = writer.format("noop") if into is None else writer.foreachBatch(into)
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    progress = [dict(each) for each in query.recentProgress]
    shutil.rmtree(folder, ignore_errors=True)
    return progress


# ------------------------------------------------------------ throughput
def throughput(session: SparkSession, request: argparse.Namespace) -> list[Row]:
    """Events per second by number of keys and route, the best of the rounds."""
    rows: list[Row] = []
    for keys in map(int, request.keys.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "events"
            keyed_files(source, request.events, request.batch, keys)
            ways = routes(request.shards, keys)
            for route in ways.values():  # compiled, here and in Java
                drained(route(streamed(session, source)))
            rounds = [{name: _measured(route(streamed(session, source)), request) for name, route in ways.items()}
                      for _ in range(request.rounds)]  # fmt: skip
        best = {name: min((each[name] for each in rounds), key=lambda row: row["processor_s"]) for name in ways}
        for name, row in best.items():
            against = round(row["processor_s"] / best["stateless"]["processor_s"], 2)
            rows.append({"keys": keys, "route": name, **row, "against_stateless": against})
            rates = f"{row['per_processor_second']:>10,} of processor time {row['per_second']:>10,} elapsed"
            print(f"{_head(rows[-1])} events/s: {rates}  {against:.2f} × stateless", flush=True)
    return rows


def _measured(matches: DataFrame, request: argparse.Namespace) -> Row:
    before, begun = processor_seconds(), time.perf_counter()
    progress = drained(matches)
    used, took = processor_seconds() - before, time.perf_counter() - begun
    slow = sorted(each["durationMs"]["triggerExecution"] / 1000 for each in progress)
    numbers = [one for one in map(spark.progress, progress) if one is not None]
    return {
        "events": request.events, "batch": request.batch, "matches": sum(one.matches for one in numbers),
        "state_bytes": max((one.state_bytes for one in numbers), default=0),
        "processor_s": round(used, 2), "elapsed_s": round(took, 2),
        "per_processor_second": round(request.events / used), "per_second": round(request.events / took),
        "batch_p50_s": slow[len(slow) // 2], "batch_p99_s": slow[min(len(slow) - 1, len(slow) * 99 // 100)],
    }  # fmt: skip


def _head(row: Row) -> str:
    return f"{row['keys']:>9,} keys  {row['route']:9}"


# ------------------------------------------------------------ latency
def latency(session: SparkSession, request: argparse.Namespace) -> list[Row]:
    """How long after an event's delivery its result is in the sink, at a fixed rate."""
    rows: list[Row] = []
    for keys in map(int, request.keys.split(",")):
        for name in ("stateless", "cerite"):
            delays = _delays(session, routes(request.shards, keys)[name], keys, request)
            late = np.percentile(delays, [50, 99]) if delays.size else np.array([np.nan, np.nan])
            rows.append({
                "keys": keys, "route": name, "rate": request.rate, "results": int(delays.size),
                "latency_p50_s": round(float(late[0]), 3), "latency_p99_s": round(float(late[1]), 3),
            })  # fmt: skip
            print(
                f"{_head(rows[-1])} at {request.rate:,} events/s: p50 {late[0]:.2f} s  p99 {late[1]:.2f} s", flush=True
            )
    return rows


def _delays(session: SparkSession, route: Route, keys: int, request: argparse.Namespace) -> np.ndarray[Any, Any]:
    """Seconds between the time of a match's last event (a row's own) and when it is written, less the watermark's."""
    delays: list[np.ndarray[Any, Any]] = []

    def written(batch: DataFrame, _: int) -> None:
        column = "end_time" if "end_time" in batch.columns else "at"
        table = batch.select(fn.col(column).cast("double")).toArrow()
        allowed = DELAY if column == "end_time" else 0.0
        delays.append(time.time() - np.asarray(table.column(0), np.float64) - allowed)

    with tempfile.TemporaryDirectory() as folder:
        source, checkpoint = Path(folder) / "source", f"{folder}/checkpoint"
        paced_batch(source, 0, request.rate, keys)
        reader = session.readStream.schema(SCHEMA).parquet(str(source))
        query = route(reader).writeStream.option("checkpointLocation", checkpoint).foreachBatch(written).start()
        stop = threading.Event()

        def feed() -> None:
            number = 1
            while not stop.wait(1):
                paced_batch(source, number, request.rate, keys)
                number += 1

        feeder = threading.Thread(target=feed)
        feeder.start()
        time.sleep(request.warm)
        delays.clear()
        time.sleep(request.seconds)
        measured = list(delays)
        stop.set()
        feeder.join()
        query.stop()
    return np.concatenate(measured) if measured else np.array([])


# ------------------------------------------------------------ a day
def day(session: SparkSession, request: argparse.Namespace) -> list[Row]:
    """86,400 seconds of events whose keys are ever new: the state after every micro-batch."""
    with tempfile.TemporaryDirectory() as folder:
        day_files(Path(folder) / "day", request.day, request.batch)
        before, begun = processor_seconds(), time.perf_counter()
        progress = drained(routes(request.shards, 10_000)["cerite"](streamed(session, Path(folder) / "day")))
        used, took = processor_seconds() - before, time.perf_counter() - begun
    sizes = [one.state_bytes for one in map(spark.progress, progress) if one is not None and one.events]
    parts = [list(each) for each in np.array_split(sizes, 4)]
    quarters = [int(max(each)) for each in parts if each]
    row = {
        "events": request.day, "micro_batches": len(sizes), "processor_s": round(used, 1),
        "elapsed_s": round(took, 1), "per_processor_second": round(request.day / used), "quarters": quarters,
    }  # fmt: skip
    state = "MB of state by quarter: " + ", ".join(f"{size / 1e6:.3f}" for size in quarters)
    print(f"a day, {request.day:,} events: {row['per_processor_second']:,} events/s of processor time; {state}")
    return [row]


SUITES = {"throughput": throughput, "latency": latency, "day": day}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what was requested."""
    parser = argparse.ArgumentParser(
        prog="python -m bench streaming", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suite", nargs="*", choices=[[], *SUITES], help="what to measure (default: all)")
    parser.add_argument("--events", type=int, default=6_000_000, help="throughput: events of a stream")
    parser.add_argument("--day", type=int, default=50_000_000, help="day: events of the day")
    parser.add_argument("--batch", type=int, default=1_000_000, help="events of a micro-batch")
    parser.add_argument("--keys", default="10,10000,1000000", help="numbers of keys, separated by commas")
    parser.add_argument("--rounds", type=int, default=3, help="throughput: how often; the best round counts")
    parser.add_argument("--rate", type=int, default=20_000, help="latency: events delivered a second")
    parser.add_argument("--seconds", type=int, default=30, help="latency: how long it is measured")
    parser.add_argument("--warm", type=int, default=20, help="latency: seconds before it is measured")
    parser.add_argument("--shards", type=int, default=2)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--add", action="store_true", help="keep the other suites' results that the file has")
    parser.add_argument("--out", type=Path, default=TARGET)
    request = parser.parse_args(arguments)
    conf = {"spark.sql.shuffle.partitions": str(request.shards), "spark.driver.memory": "4g",
            "spark.sql.streaming.numRecentProgressUpdates": "10000"}  # fmt: skip
    session = spark.session(request.master, conf=conf)
    known = json.loads(request.out.read_text("utf-8")) if request.add and request.out.exists() else {}
    parts: dict[str, Row] = known.get("parts", {})
    request.out.parent.mkdir(parents=True, exist_ok=True)
    for name in request.suite or SUITES:
        facts = {"machine": machine(), "commit": commit(), "code": code(), "repeats": request.rounds}
        parts[name] = {**facts, "rows": SUITES[name](session, request)}
        result = {"suite": "streaming", "parts": {each: parts[each] for each in SUITES if each in parts}}
        request.out.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    session.stop()
    print(f"results are in {request.out}")
    return 0
