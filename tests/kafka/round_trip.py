"""Kafka → `cerite stream` → Kafka, against a real broker: what is read back by match id is exactly the batch result.

Spark's Kafka sink writes at least once. So the last micro-batch is made to run again (its commit is taken away, as a
crash between writing and committing would leave it): the same messages come a second time, under the same keys.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from cerite.spark import session
from tests.chaos.payments import DELAY, QUERY, Event, closing, expected, files, payments
from tests.command import cerite
from tests.kafka.artifacts import UnavailableError, connector
from tests.kafka.broker import Broker

KINDS = {"n": "int", "type": "string", "card": "int", "shop": "string", "amount": "float", "at": "timestamp"}


def send(spark: Any, address: str, events: list[Event]) -> None:
    """Write events to the topic, each under its card, so that a card's events stay in one partition."""
    rows = [(str(event.card), event.line) for event in events]
    kafka = spark.createDataFrame(rows, "key string, value string").coalesce(1).write.format("kafka")
    kafka.options(**{"kafka.bootstrap.servers": address, "topic": "payments"}).save()


def alerts(spark: Any, address: str) -> list[tuple[str, dict[str, Any]]]:
    """Every message of the other topic: its key and what it says."""
    reader = spark.read.format("kafka").options(**{"kafka.bootstrap.servers": address, "subscribe": "alerts"})
    rows = reader.load().selectExpr("CAST(key AS string)", "CAST(value AS string)").collect()
    return [(row[0], json.loads(row[1])) for row in rows]


def replay(checkpoint: Path) -> None:
    """Forget that the last micro-batch with events was done, and any that came after it without."""
    offsets, commits = checkpoint / "offsets", checkpoint / "commits"
    last = max(int(each.name) for each in offsets.glob("[0-9]*"))
    while last and _read_up_to(offsets / f"{last}") == _read_up_to(offsets / f"{last - 1}"):
        _remove(offsets / f"{last}")
        _remove(commits / f"{last}")
        last -= 1
    _remove(commits / f"{last}")


def _read_up_to(log: Path) -> list[str]:
    """Where every source stood: all but the version and the micro-batch's own settings."""
    return log.read_text("utf-8").splitlines()[2:]


def _remove(log: Path) -> None:
    for path in (log, log.with_name(f".{log.name}.crc")):
        path.unlink(missing_ok=True)


def round_trip(spark: Any, address: str, folder: Path) -> None:
    """Three runs of the stream, with a replay before the last; then what is there."""
    events = payments(1_500, seed=3)
    parts = files(events, 3)
    (folder / "schema.json").write_text(json.dumps(KINDS), "utf-8")
    command = [
        "stream", QUERY, "--source", f"kafka://{address}/payments", "--sink", f"kafka://{address}/alerts",
        "--checkpoint", str(folder / "state"), "--watermark", f"{DELAY.seconds} seconds",
        "--schema", str(folder / "schema.json"), "--shards", "2",
    ]  # fmt: skip
    send(spark, address, parts[0])
    cerite(*command, "--once")
    send(spark, address, parts[1])
    cerite(*command, "--once")
    before = len(alerts(spark, address))
    replay(folder / "state")
    cerite(*command, "--once")
    again = len(alerts(spark, address))
    assert again > before, "the last micro-batch was to be written again"
    send(spark, address, [*parts[2], closing(events)])
    done = cerite(*command, "--final")
    assert "0 late, 0 pending" in done.stderr, done.stderr
    rows = dict(alerts(spark, address))
    counts = Counter(
        tuple((name, tuple(event["n"] for event in value[name])) for name in ("large", "small"))
        for value in rows.values()
    )
    assert counts == expected(events, set()), "by match id, the topic is to hold exactly the batch result"
    print(f"{len(rows)} matches, {again - before} of them written twice: the same as the batch result", flush=True)


def main(folder: str) -> None:
    """Run it, or say why not."""
    try:
        settings = connector()
        with Broker() as broker:
            spark = session("local[2]", conf={"spark.sql.shuffle.partitions": "2", **settings})
            round_trip(spark, broker.address, Path(folder))
            spark.stop()
    except UnavailableError as error:
        print(f"unavailable: {error}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
