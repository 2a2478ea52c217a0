"""Live streams on Spark give what the same query gives on the same rows at rest: matches, ids, columns."""

from __future__ import annotations

import json
from contextlib import redirect_stdout
from datetime import datetime, timedelta, timezone
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from cerite.core.errors import ArgumentError, SnapshotError, StreamError
from cerite.spark import count, explain, finish, match, progress, split, task_error
from tests.spark.live import Folder, Rows, disordered
from tests.spark.support import some_by_day, united

SCHEMA = "type string, k long, v long, at long, n long"
KEYED = "SELECT * FROM S WHERE A AS x ; B+ AS y ; C AS z FILTER z[v > x.v] PARTITION BY [k] WITHIN 90 milliseconds"
HOW: dict[str, Any] = {"time": "at", "order_by": "n", "watermark": "200 milliseconds"}


def events(count: int, first: int = 0) -> Rows:
    """Events at every tenth millisecond, some of them at the same."""
    return [
        {"type": "ABCD"[n * 7 % 11 % 4], "k": n * 5 % 13 % 3, "v": n * 3 % 10, "at": n // 2 * 10, "n": n}
        for n in range(first, first + count)
    ]


@pytest.fixture
def folder(quick: SparkSession, tmp_path: Path) -> Folder:
    return Folder(quick, tmp_path, SCHEMA)


def fill(folder: Folder, count: int, files: int) -> None:
    rows = disordered(events(count), 15, seed=count)
    for k in range(files):
        folder.put(rows[k * count // files : (k + 1) * count // files])


def ids(rows: Rows, query: int = 0) -> set[str]:
    listed = [row["match"] for row in rows if row.get("query", 0) == query]
    assert len(listed) == len(set(listed)), "no match comes twice"
    return set(listed)


Questions = list[tuple[str, dict[str, Any]]]
QUERIES: Questions = [
    (KEYED, {"shards": 3}),
    ("SELECT * FROM S WHERE A AS x ; B AS y FILTER y[v > x.v] WITHIN 60 milliseconds", {"shards": 2}),
    ("SELECT NEXT * FROM S WHERE A AS x ; B AS y WITHIN 60 milliseconds", {"shards": 3}),
    ("SELECT * FROM S WHERE A AS x : B AS y PARTITION BY [k]", {"shards": 2}),
    (
        "SELECT * FROM S WHERE A AS x ; NOT B PARTITION BY [k] WITHIN 30 milliseconds "
        "SUPPRESS 50 milliseconds PER PARTITION",
        {"shards": 2},
    ),
    ("SELECT x[v] FROM S WHERE A AS x ; NOT D ; C PARTITION BY [k] WITHIN 9 EVENTS", {"shards": 2}),
    ("SELECT LAST * FROM S WHERE A ; B ; C CONSUME BY ANY", {}),
    ("SELECT * FROM S WHERE A AS x ; C AS y WITHIN 5 EVENTS", {}),
]
BY_DAY = [QUERIES[0], QUERIES[4]]  # registers, absence with silence; partitions both


@pytest.mark.filterwarnings("ignore::cerite.spark.OneTaskWarning")
@pytest.mark.parametrize("queries", some_by_day((BY_DAY, [each for each in QUERIES if each not in BY_DAY]), (BY_DAY,)))
def test_a_live_stream_gives_what_its_rows_give_at_rest(folder: Folder, queries: Questions) -> None:
    """Partitions, chunks of time, contiguity, ranks, strategies, consumption, absence; disorder; a restart; the end."""
    final = str(folder.home / "final")
    fill(folder, 240, 2)
    questions = [(query, {**HOW, **how, "final": final}) for query, how in queries]
    before = folder.run(folder.several(questions))
    folder.put(events(60, 240))
    finish(folder.spark, final)
    after = folder.run(folder.several(questions))
    at_rest = [
        match(folder.rest, query, time="at", order_by="n").select(fn.lit(number).alias("query"), "match", "end_time")
        for number, (query, _) in enumerate(questions)
    ]
    every = united(at_rest).collect()
    for number, (query, _) in enumerate(questions):
        batch = [row for row in every if row["query"] == number]
        assert len(batch) > 5, query
        assert ids(after, number) == {row["match"] for row in batch}, query
        decided = (239 // 2) * 10 - 200 - 30  # the watermark, and what waits for a deadline
        passed = {row["match"] for row in batch if row["end_time"] < decided}
        assert passed <= ids(before, number) < ids(after, number), query


def test_late_events_duplicates_and_those_without_time_are_reported(folder: Folder) -> None:
    """Counted in the metrics, and given out with the reason; what comes twice is dropped."""
    rows = events(80)
    folder.put(rows)
    folder.put([*events(40, 80), {**rows[3], "type": "A"}, {**rows[4], "at": None, "type": "C"}, *events(1, 119)])
    folder.put([*events(1, 76), *events(1, 119)])
    result = match(folder.stream, KEYED, **HOW, shards=2, late="side", deduplicate="n")
    rows = folder.run(result)
    late = [row["late"] for row in rows if row["late"]]
    late_events = sorted((each["event"]["n"], each["reason"], each["late_by"]) for each in late)
    assert late_events == [(3, "late", 180), (4, "no time", None), (76, "late", 10)]
    assert folder.last is not None
    steps = [one for one in map(progress, folder.last.recentProgress) if one is not None]
    sums = [sum(getattr(one, name) for one in steps) for name in ("events", "late", "untimed", "duplicates", "matches")]
    assert sums == [80 + 43 + 2, 2, 1, 2, len(rows) - 3]
    assert steps[-1].watermark == 390
    assert steps[-1].pending > 0 < steps[-1].state_bytes
    matches, rest = split(result)
    assert matches.columns == match(folder.rest, KEYED, time="at", order_by="n").columns
    assert rest.columns == ["event", "reason", "late_by"]


def test_a_checkpoint_of_something_else_is_refused_and_says_what_differs(folder: Folder) -> None:
    fill(folder, 60, 1)
    before = folder.run(match(folder.stream, KEYED, **HOW, shards=2))
    folder.put(events(20, 60))
    for query, shards, expected in (
        (KEYED.replace("x.v", "x.v + 1"), 2, "another pattern"), (KEYED, 3, "another number of shards: 2 there, 3 here")
    ):  # fmt: skip
        with pytest.raises(StreamingQueryException, match=expected) as caught:
            folder.run(match(folder.stream, query, **HOW, shards=shards))
        assert isinstance(task_error(caught.value), SnapshotError)
    fewer = KEYED.replace("*", "A, B, C, x[n], y[n], z[n]") + " LIMIT 1000"
    out = folder.run(match(folder.stream, fewer, **HOW, shards=2))
    rest = {row["match"] for row in match(folder.rest, KEYED, time="at", order_by="n").collect()}
    assert ids(before) < ids(out) <= rest


def test_events_that_nothing_orders_are_refused(folder: Folder) -> None:
    folder.put([*events(80), *events(1, 14)])
    expected = "two events cannot be ordered: both have at = 70, n = 14"
    with pytest.raises(StreamingQueryException, match=expected) as caught:
        folder.run(match(folder.stream, KEYED, **HOW, shards=1))
    assert str(task_error(caught.value)).startswith(expected)


REFUSED: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"watermark": None}, StreamError, "needs a watermark"),
    ({"watermark": "5 EVENTS"}, ArgumentError, "`watermark` is a length of time, not 5 EVENTS"),
    ({"watermark": timedelta(seconds=-1)}, ArgumentError, "`watermark` is negative"),
    ({"time": None}, StreamError, "time"),
    ({"order_by": ()}, StreamError, "nothing says which of two events"),
    ({"shards": 0}, ArgumentError, "a number from 1"),
    ({"late": "drop"}, ArgumentError, "'count' or 'side'"),
    ({"deduplicate": "id"}, StreamError, "no column `id`"),
    ({"partitions": 3}, ArgumentError, "`partitions` is for data at rest"),
    ({"read": "spark"}, ArgumentError, "`read` is for data at rest"),
]


@pytest.mark.parametrize(("how", "kind", "expected"), REFUSED, ids=[next(iter(how)) for how, *_ in REFUSED])
def test_what_a_live_stream_needs_is_said_in_words(
    quick: SparkSession, how: dict[str, Any], kind: type[Exception], expected: str
) -> None:
    live = (
        quick.readStream.format("rate")
        .load()
        .selectExpr("'A' AS type", "1L AS k", "value AS v", "value AS at", "value AS n")
    )
    with pytest.raises(kind, match=expected):
        match(live, KEYED, **{**HOW, **how})


def test_what_is_for_live_streams_alone_is_refused_at_rest(quick: SparkSession) -> None:
    rest = quick.createDataFrame(events(3), SCHEMA)
    with pytest.raises(ArgumentError, match="`watermark` is for live streams"):
        match(rest, KEYED, time="at", watermark="1 second")
    live = quick.readStream.format("rate").load()
    with pytest.raises(StreamError, match="does not end") as caught:
        count(live, "SELECT * FROM S WHERE _ AS x ; _ AS y WITHIN 5 seconds", time="timestamp", order_by="value")
    assert "progress" in str(caught.value)
    with pytest.raises(StreamError, match="are live streams"):
        match({"A": live, "B": rest}, "SELECT * FROM A, B WHERE x ; y", time="at", order_by="n", watermark="1 second")


def test_kafka_says_what_comes_first_and_a_watermark_that_is_there_is_used(quick: SparkSession) -> None:
    live = (
        quick.readStream.format("rate")
        .load()
        .selectExpr("timestamp", "'t' AS topic", "0 AS partition", "value AS offset")
    )
    query = "SELECT * FROM S WHERE _ AS x ; _ AS y FILTER y[offset > 3] WITHIN 5 seconds"
    text = explain(live.withWatermark("timestamp", "3 seconds"), query, time="timestamp", shards=4)
    assert "order: timestamp, topic, partition, offset" in text
    assert "watermark: the latest `timestamp` less 3,000 milliseconds" in text
    assert "shards: 4, fixed in the checkpoint\nchunks: 20,000,000 ticks of `timestamp` each, and the 5,000,000" in text


def instant(second: int) -> datetime:
    return datetime.fromtimestamp(second, timezone.utc)


def test_several_streams_wait_for_the_slowest(quick: SparkSession, tmp_path: Path) -> None:
    """A column that one of them does not have is NULL; an event that is late for the one is none for the other."""
    fast = Folder(quick, tmp_path / "fast", "type string, v long, at timestamp, n long")
    slow = Folder(quick, tmp_path / "slow", "type string, w long, at timestamp, n long")
    for first in (0, 3):
        fast.put([{"type": "A", "v": 1, "at": instant(100 * n), "n": n} for n in range(first, first + 3)])
        slow.put([{"type": "B", "w": 2, "at": instant(30 * n + 5), "n": 100 + n} for n in range(first, first + 3)])
    query = "SELECT * FROM Fast, Slow WHERE A AS x ; B AS y WITHIN 60 seconds"
    how: dict[str, Any] = {"time": "at", "order_by": "n"}
    result = match({"Fast": fast.stream, "Slow": slow.stream}, query, **how, watermark="10 seconds", shards=2)
    matches = fast.run(result)
    rest = match({"Fast": fast.rest, "Slow": slow.rest}, query, **how).collect()
    assert ids(matches) == {row["match"] for row in rest if row["end_time"].timestamp() < 155 - 10} != set()
    assert matches[0]["y"][0]["v"] is None


def test_the_example_of_the_documentation(quick: SparkSession, tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "spark.md").read_text("utf-8")
    example = text.partition("<!-- live: begin -->")[2].partition("<!-- live: end -->")[0]
    code, _, output = (part.strip() for part in example.replace("```python", "```").split("```")[1:4])
    (tmp_path / "payments").mkdir()
    for folder in ("payments", "alerts", "checkpoint"):
        code = code.replace(f'"{folder}/"', f'"{tmp_path}/{folder}"')
    amounts = [("4929", 1.0), ("5500", 3.5), ("4929", 820.0), ("5500", 12.0), ("5500", 9.0)]
    lines = [
        json.dumps({"id": n, "card": card, "amount": amount, "at": f"2026-05-04T10:0{n}:00Z"})
        for n, (card, amount) in enumerate(amounts)
    ]
    (tmp_path / "payments" / "1.json").write_text("\n".join(lines), "utf-8")
    with redirect_stdout(StringIO()) as printed:
        exec(code, {})
    assert printed.getvalue().strip() == output
