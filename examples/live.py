"""A live job from end to end: payments arrive as files (or in Kafka), a fraud rule watches them, alerts are written.

    ./dev live                                  half a minute of payments through files
    ./dev live --seconds 120 --rate 20000       more of them
    ./dev live --kafka localhost:9092           the same through topics `payments` and `alerts` of a Kafka broker

It shows how many events a second it takes and how long after its last event an alert is written, of which the watermark
is a part. Stop it with Ctrl-C and start it again with `--folder` to see it go on where it was.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from rich.console import Console

from cerite import spark

RULE = """
SELECT probe, large FROM Payments
WHERE PAY AS probe ; NOT CONFIRM ; PAY AS large
FILTER probe[amount < 5.0] AND large[amount > 500.0 AND country != probe.country]
PARTITION BY [card]
WITHIN 30 seconds
"""
COLUMNS = "type string, card bigint, country string, amount double, at timestamp, id bigint"
WATERMARK = "2 seconds"  # payments arrive up to so much out of order
COUNTRIES = ("DE", "FR", "NL", "PL", "SE")


def payments(first: int, count: int, cards: int) -> pa.Table:
    """The payments of the last second, a little out of order; one in ten is confirmed by the card's owner."""
    rng = np.random.default_rng(first)
    now = time.time_ns() // 1_000
    at = np.linspace(now - 1_000_000, now, count, endpoint=False) - rng.uniform(0, 1_000_000, count)
    amount = np.where(rng.random(count) < 0.02, rng.uniform(1, 5, count), rng.exponential(120, count)).round(2)
    return pa.table({
        "type": rng.choice(["PAY", "CONFIRM"], count, p=[0.9, 0.1]), "card": rng.integers(0, cards, count),
        "country": rng.choice(COUNTRIES, count), "amount": amount,
        "at": pa.array(at.astype(np.int64), pa.timestamp("us", "UTC")), "id": np.arange(first, first + count),
    })  # fmt: skip


class Files:
    """Payments and alerts as Parquet files in a folder."""

    def __init__(self, session: SparkSession, folder: Path) -> None:
        self._session, self._folder = session, folder
        (folder / "payments").mkdir(parents=True, exist_ok=True)

    def send(self, events: pa.Table) -> None:
        """Deliver payments: a file appears at once and whole."""
        draft = self._folder / "payments" / ".draft"
        pq.write_table(events, draft)
        draft.rename(self._folder / "payments" / f"{time.time_ns()}.parquet")

    def stream(self) -> DataFrame:
        """The payments as a stream."""
        return self._session.readStream.schema(COLUMNS).parquet(str(self._folder / "payments"))

    def write(self, alerts: DataFrame, number: int) -> None:
        """The alerts of a micro-batch; one that is written again replaces itself."""
        alerts.write.mode("overwrite").parquet(str(self._folder / "alerts" / f"batch={number}"))


class Kafka:
    """Payments and alerts as topics; an alert's key is the id of its match, so that one sent again is the same."""

    def __init__(self, session: SparkSession, servers: str) -> None:
        self._session = session
        self._options = {"kafka.bootstrap.servers": servers}

    def send(self, events: pa.Table) -> None:
        """Deliver payments as JSON."""
        self._put(self._session.createDataFrame(events), "payments", "card")

    def stream(self) -> DataFrame:
        """The payments as a stream; Kafka's partition and offset break ties."""
        reader = self._session.readStream.format("kafka").options(**self._options, startingOffsets="earliest")
        event = fn.from_json(fn.col("value").cast("string"), COLUMNS).alias("event")
        return reader.option("subscribe", "payments").load().select(event, "partition", "offset").select(
            "event.*", "partition", "offset"
        )  # fmt: skip

    def write(self, alerts: DataFrame, number: int) -> None:
        """The alerts of a micro-batch as JSON."""
        self._put(alerts, "alerts", "match")

    def _put(self, rows: DataFrame, topic: str, key: str) -> None:
        message = rows.select(fn.col(key).cast("string").alias("key"), fn.to_json(fn.struct("*")).alias("value"))
        message.write.format("kafka").options(**self._options, topic=topic).save()


class Desk:
    """Writes alerts, and notes how long each took from its last event."""

    def __init__(self, write: Callable[[DataFrame, int], None], console: Console) -> None:
        self._write = write
        self._console = console
        self.delays: list[float] = []

    def take(self, batch: DataFrame, number: int) -> None:
        """A micro-batch of alerts."""
        batch.persist()
        self._write(batch, number)
        ends = [row[0] for row in batch.select(fn.col("end_time").cast("double")).collect()]
        self.delays += [time.time() - end for end in ends]
        for row in batch.limit(1).collect():
            probe, large = row["probe"][0], row["large"][0]
            text = f"{probe['amount']:.2f} in {probe['country']}, then {large['amount']:.2f} in {large['country']}"
            self._console.print(f"alert {row['match'][:8]}: card {row['card']}, {text}")
        batch.unpersist()


def live(
    session: SparkSession, folder: Path, console: Console, *, seconds: int, rate: int, cards: int, kafka: str | None
) -> dict[str, Any]:
    """Run the job for some seconds; returns the events, alerts and delays that it saw."""
    place = Files(session, folder) if kafka is None else Kafka(session, kafka)
    desk, stop = Desk(place.write, console), threading.Event()
    place.send(payments(0, rate, cards))
    order = ["id"] if kafka is None else []  # Kafka's offsets order its events
    alerts = spark.match(place.stream(), RULE, time="at", order_by=order, watermark=WATERMARK, shards=2)
    checkpoint = str(folder / "checkpoint")
    job = alerts.writeStream.foreachBatch(desk.take).option("checkpointLocation", checkpoint).start()

    def feed() -> None:
        number = 1
        while not stop.wait(1):
            place.send(payments(number * rate, rate, cards))
            number += 1

    feeder = threading.Thread(target=feed)
    feeder.start()
    seen, until = -1, time.monotonic() + seconds
    totals = {"events": 0, "alerts": 0, "late": 0}
    try:
        while job.isActive and (time.monotonic() < until or not totals["events"]):
            job.awaitTermination(1)
            for progress in filter(None, map(spark.progress, job.recentProgress)):
                if progress.batch > seen and progress.events:
                    seen = progress.batch
                    numbers = {"events": progress.events, "alerts": progress.matches, "late": progress.late}
                    totals = {name: totals[name] + number for name, number in numbers.items()}
                    console.print(
                        f"micro-batch {progress.batch}: {progress.events:,} events, "
                        f"{progress.events_per_second:,.0f} a second, {progress.matches} alerts, "
                        f"{progress.late} late, {progress.pending:,} pending, "
                        f"state {progress.state_bytes / 1e3:,.0f} KB"
                    )
    except KeyboardInterrupt:
        console.print("stopped; with the same --folder it goes on from here")
    finally:
        stop.set()
        feeder.join()
        if job.isActive:
            job.processAllAvailable()  # stopped inside a micro-batch, Spark would print that it was interrupted
        job.stop()
    return totals | {"delays": desk.delays}


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--rate", type=int, default=5_000, help="payments a second")
    parser.add_argument("--cards", type=int, default=5_000)
    parser.add_argument("--kafka", metavar="HOST:PORT", help="go through this broker instead of files")
    parser.add_argument("--conf", action="append", default=[], metavar="NAME=VALUE", help="a setting of Spark")
    parser.add_argument("--folder", type=Path, help="where files and checkpoint stay; else they are removed")
    request = parser.parse_args()
    console = Console(markup=False, highlight=False, soft_wrap=True)
    conf = dict(each.split("=", 1) for each in request.conf)
    session = spark.session(conf={"spark.sql.shuffle.partitions": "2", **conf})
    with tempfile.TemporaryDirectory() as temporary:
        folder = request.folder or Path(temporary)
        console.print(f"{RULE}\nwatermark {WATERMARK}, {request.rate:,} payments a second, {request.seconds} seconds\n")
        totals = live(
            session, folder, console,
            seconds=request.seconds, rate=request.rate, cards=request.cards, kafka=request.kafka,
        )  # fmt: skip
        delays = np.array(totals["delays"]) if totals["delays"] else np.array([np.nan])
        p50, p99 = np.percentile(delays, [50, 99])
        counts = f"{totals['events']:,} payments, {totals['alerts']:,} alerts, {totals['late']:,} late"
        delay = f"{p50:.1f} s (p50), {p99:.1f} s (p99) after their last event, the watermark included"
        console.print(f"\n{counts}; alerts were written {delay}")
    session.stop()


if __name__ == "__main__":
    main()
