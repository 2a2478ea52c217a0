"""Live streams in trouble: disorder beyond the watermark, clocks that jump, no times, duplicates, poison."""

from __future__ import annotations

import asyncio
import struct
import warnings
from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import cerite
from cerite.api.stream import EventStream
from cerite.core.errors import ArgumentError, CeriteWarning, LateWarning, SnapshotError, StreamError

PAIR = cerite.query("SELECT * FROM S WHERE A AS x ; B AS y WITHIN 10 milliseconds")
SCHEMA = pa.schema([("type", pa.string()), ("v", pa.int64()), ("at", pa.int64())])


def event(kind: str, at: int | None, v: int = 0) -> dict[str, Any]:
    return {"type": kind, "v": v, "at": at}


def opened(**settings: Any) -> EventStream:
    return PAIR.stream(SCHEMA, **{"time": "at", "watermark": "5 milliseconds"} | settings)


def texts(matches: Any) -> list[str]:
    return [str(match) for match in matches]


# ------------------------------------------------------------ order and lateness
def test_events_are_read_in_the_order_of_time_when_the_watermark_has_passed() -> None:
    stream = opened()
    assert not stream.push([event("B", 3), event("A", 1)])
    matches = stream.push(event("C", 9))
    assert [[each["at"] for each in match.events] for match in matches] == [[1, 3]]
    assert stream.metrics.pending == 1
    assert stream.metrics.watermark == 4


def test_an_event_at_the_watermark_waits_and_is_not_late() -> None:
    stream = opened()
    stream.push(event("A", 10))
    assert stream.metrics.watermark == 5
    stream.push(event("A", 5))
    assert stream.metrics.late == 0
    with pytest.warns(LateWarning):
        stream.push(event("A", 4))
    assert stream.metrics.late == 1


def test_what_one_push_brings_is_not_late_because_of_the_push() -> None:
    stream = opened()
    matches = stream.push([event("C", 1000), event("B", 2), event("A", 1)])
    assert texts(matches) == ["[0,1] A=0, B=1, x=0, y=1"]
    assert stream.metrics.late == 0


def test_late_events_are_counted_and_told_once() -> None:
    stream = opened()
    stream.push(event("C", 100))
    with pytest.warns(LateWarning, match=r"an event is late(.|\n)*late='side'"):
        matches = stream.push(event("A", 94))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stream.push([event("A", 1), event("A", 2), event("A", 99)])
    metrics = stream.metrics
    assert (metrics.events, metrics.late, metrics.read, metrics.pending) == (5, 3, 0, 2)
    assert matches.late.to_pylist() == [{"type": "A", "v": 0, "at": 94, "late_by": 1, "reason": "late"}]


def test_late_events_are_given_with_how_late_they_are() -> None:
    schema = {"type": "string", "late_by": "int", "at": pa.timestamp("us")}
    stream = PAIR.stream(schema, time="at", watermark=timedelta(seconds=5), late="side")
    noon = datetime(2026, 1, 1, 12)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        none = stream.push({"type": "A", "late_by": 1, "at": noon}).late
        matches = stream.push(
            [{"type": "A", "late_by": 2, "at": noon - timedelta(seconds=7)}, {"type": "A", "late_by": 3, "at": None}]
        )
    assert matches.late.column_names == ["type", "late_by", "at", "late_by_", "reason"]
    assert none.equals(matches.late.slice(0, 0))
    assert matches.late["late_by_"].to_pylist() == [timedelta(seconds=2), None]
    assert matches.late["reason"].to_pylist() == ["late", "no time"]
    assert (stream.metrics.late, stream.metrics.untimed) == (1, 1)
    assert stream.metrics.watermark == noon - timedelta(seconds=5)


def test_a_clock_that_jumps_loses_nothing_silently() -> None:
    """One event from the far future: what comes then is late, all of it counted; what was pending is read."""
    stream = opened(late="side")
    stream.push([event("A", 1), event("B", 2)])
    assert stream.push(event("C", 10**15)).count() == 1
    after = stream.push([event("A", 10), event("B", 11)])
    assert after.late["late_by"].to_pylist() == [10**15 - 15, 10**15 - 16]
    metrics = stream.metrics
    assert metrics.events == metrics.read + metrics.pending + metrics.late + metrics.untimed + metrics.duplicates == 5
    assert stream.close().count() == 0


@pytest.mark.parametrize("time", [2**63 - 1, -(2**63)])
def test_times_at_the_ends_of_64_bits(time: int) -> None:
    stream = opened(late="side")
    stream.push([event("A", 0), event("B", 1)])
    matches = texts(stream.push([event("A", time), event("B", time)])) + texts(stream.close())
    metrics = stream.metrics
    assert (metrics.read, metrics.pending) == (metrics.events - metrics.late, 0)
    expected = PAIR.run(pa.Table.from_pylist(
        sorted([event("A", 0), event("B", 1), event("A", time), event("B", time)], key=lambda row: row["at"]), SCHEMA
    ), time="at")  # fmt: skip
    assert sorted(matches) == sorted(texts(expected)) if time > 0 else metrics.late == 2


def test_duplicates_within_the_watermark_are_dropped_and_counted() -> None:
    stream = opened(deduplicate="v")
    twice = [event("A", 1, v=7), event("A", 1, v=7), event("A", 2, v=8)]
    stream.push(twice)
    stream.push(twice)
    stream.push(event("B", 3, v=9))
    assert set(texts(stream.close())) == {"[0,2] A=0, B=2, x=0, y=2", "[1,2] A=1, B=2, x=1, y=2"}
    assert stream.metrics.duplicates == 4


def test_an_event_without_an_id_is_no_duplicate() -> None:
    stream = opened(deduplicate=["v", "type"])
    stream.push([{"type": "A", "at": 1}, {"type": "A", "at": 1}, event("A", 1, v=3), event("B", 2, v=3)])
    stream.close()
    assert (stream.metrics.duplicates, stream.metrics.read) == (0, 4)


def test_ids_behind_the_watermark_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cerite.engine.events.ids.FEWEST", 16)
    stream = opened(deduplicate="v")
    sizes = []
    for at in range(0, 4000, 10):
        stream.push([event("A", at + k, v=at + k) for k in range(10)] * 2)
        sizes.append((stream.metrics.ids, len(stream.snapshot())))
    assert stream.metrics.duplicates == 4000
    assert max(ids for ids, _ in sizes) <= 50
    assert max(size for _, size in sizes[100:]) <= max(size for _, size in sizes[:100]) + 64


# ------------------------------------------------------------ refused pushes
def test_ties_are_broken_by_columns_then_by_arrival() -> None:
    rows = [event("A", 1, v=2), event("B", 1, v=1), event("B", 1, v=3)]
    assert opened(order_by=["v"]).push([*rows, event("C", 99)]).count() == 1
    assert opened().push([*rows, event("C", 99)]).count() == 2


REFUSED: dict[str, tuple[dict[str, Any], list[dict[str, Any]], str]] = {
    "late": ({"late": "raise"}, [event("A", 1), event("A", 100)], "1 of the pushed events are late: one is of 1, but"),
    "no time": ({}, [event("A", None), event("A", 50)], "1 of the pushed events have no time in `at`"),
    "no time, ids": ({"deduplicate": "v"}, [event("A", None), event("A", 50, v=9)], "have no time"),
    "another column": ({}, [{"type": "A", "w": 1}], "`w` is unknown"),
    "another type": ({}, [{"type": "A", "at": "soon"}], "holds string, but the stream has int64"),
    "a position": ({"position": "v"}, [{"type": "A", "at": 50}], "must hold whole numbers"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_push_changes_nothing(name: str) -> None:
    settings, rows, message = REFUSED[name]
    stream, undisturbed = opened(**settings), opened(**settings)
    for each in (stream, undisturbed):
        each.push([event("A", 10, v=1), event("B", 12, v=2), event("A", 20, v=3)])
    before = stream.snapshot(), stream.metrics
    with pytest.raises(StreamError, match=message):
        stream.push(rows)
    assert (stream.snapshot(), stream.metrics) == before
    assert stream.snapshot() == undisturbed.snapshot()
    assert texts(stream.push(event("B", 25, v=9))) == texts(undisturbed.push(event("B", 25, v=9)))


def test_an_event_that_cannot_be_read_is_refused_when_it_is_pushed_not_when_it_is_read() -> None:
    """Else it would be pending, and refuse every push after it."""
    query = cerite.query("SELECT * FROM S WHERE A AS x ; B AS y FILTER y[n > x.m]")
    schema = {"type": "string", "m": pa.timestamp("s"), "n": pa.timestamp("ns"), "at": "int"}
    stream = query.stream(schema, time="at", watermark="5 milliseconds")
    stream.push([{"type": "A", "m": datetime(2026, 1, 1), "at": 1}, {"type": "B", "n": datetime(2026, 1, 2), "at": 2}])
    saved = stream.snapshot()
    with pytest.raises(StreamError, match="too far from 1970"):
        stream.push({"type": "A", "m": datetime(9999, 1, 1), "at": 3})
    assert stream.snapshot() == saved
    assert stream.close().count() == 1


BEHIND: dict[str, tuple[dict[str, Any], str]] = {  # events that only others make unreadable: known when they are read
    "a position": ({"position": "v"}, "A AS x ; B AS y"),
    "a window's attribute": ({}, "A AS x ; B AS y WITHIN 9 [v]"),
    "a partition's": ({}, "A AS x ; B AS y PARTITION BY [name] WITHIN 9 [v]"),
}


@pytest.mark.parametrize("name", BEHIND)
def test_an_event_that_another_column_puts_behind_is_refused_or_set_aside(name: str) -> None:
    settings, pattern = BEHIND[name]
    query, schema = cerite.query(f"SELECT * FROM S WHERE {pattern}"), pa.schema([*SCHEMA, ("name", pa.string())])
    careless, careful = (
        query.stream(schema, time="at", watermark="5 milliseconds", late=late, **settings) for late in ("count", "side")
    )
    rows = [("C", 1, 1, None), ("A", 2, 5, "n"), ("C", 3, 6, None), ("B", 4, 4, "n"), ("B", 5, 7, "n")]
    careless.push([dict(zip(("type", "at", "v", "name"), row, strict=True)) for row in rows])
    saved, last = careless.snapshot(), {**event("C", 99, v=9), "name": None}
    for _ in range(2):
        with pytest.raises(StreamError, match=r"`v` (does not rise|decreases)(.|\n)*late='side'"):
            careless.push(last)
    assert careless.snapshot() == saved
    careful.restore(saved)
    matches = careful.push(last)
    assert matches.late.select(["v", "late_by", "reason"]).to_pylist() == [
        {"v": 4, "late_by": None, "reason": "behind in `v`"}
    ]
    metrics = careful.metrics
    assert (metrics.events, metrics.read, metrics.pending, metrics.late) == (6, 4, 1, 1)
    assert [[each["v"] for each in match.events] for match in matches] == [[5, 7]]


# ------------------------------------------------------------ settings
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"watermark": "5 EVENTS"}, "`watermark` is a length of time, not 5 EVENTS"),
    ({"watermark": "soon"}, "`watermark` is a length of time, and 'soon' is none"),
    ({"watermark": 5}, r"`watermark` is text \(`30 seconds`\), a timedelta or a Size, not 5"),
    ({"watermark": timedelta(seconds=-1)}, "`watermark` is negative"),
    ({"time": None}, "no time column is named"),
    ({"late": "drop"}, "`late` is 'count' or 'side' or 'raise', not 'drop'"),
    ({"order_by": "w"}, "no column `w`, which `order_by` names"),
    ({"deduplicate": [1]}, "`deduplicate` names columns, not 1"),
    ({"watermark": None, "deduplicate": "v"}, "`deduplicate` needs a watermark"),
    ({"watermark": None, "order_by": "v"}, "`order_by` needs a watermark"),
]


@pytest.mark.parametrize(("settings", "message"), WRONG)
def test_settings_that_say_nothing_are_refused(settings: dict[str, Any], message: str) -> None:
    query = cerite.query("SELECT * FROM S WHERE A ; B")
    with pytest.raises((StreamError, ArgumentError), match=message):
        query.stream(SCHEMA, **{"time": "at", "watermark": "5 milliseconds"} | settings)


def test_advance_takes_times_and_text_and_refuses_what_is_neither() -> None:
    stream = PAIR.stream({"type": "string", "at": pa.timestamp("us")}, time="at", watermark="1 hour")
    stream.push([{"type": kind, "at": datetime(2026, 1, 1, 0, 0, 0, 1000 * k)} for k, kind in enumerate("ABB")])
    assert stream.advance(datetime(2026, 1, 1, 0, 0, 0, 1001)).count() == 1
    assert stream.advance("2026-01-01T00:00:00.5").count() == 1
    assert stream.advance(datetime(2020, 1, 1)).count() == 0  # never back
    assert stream.metrics.watermark == datetime(2026, 1, 1, 0, 0, 0, 500_000)
    for wrong in ("soon", object(), None):
        with pytest.raises(StreamError, match=r"is not a time: `at` holds timestamp\[us\]"):
            stream.advance(wrong)
    with pytest.raises(StreamError, match="no time column"):
        cerite.query("SELECT * FROM S WHERE A").stream({"type": "string"}).advance(1)


def test_without_a_watermark_nothing_comes_before_what_advance_said() -> None:
    stream = PAIR.stream(SCHEMA, time="at")
    stream.push(event("A", 1))
    assert stream.advance(5).count() == 0
    with pytest.raises(StreamError, match=r"at 4 comes after advance\(5\)"):
        stream.push(event("B", 4))
    assert stream.push(event("B", 5)).count() == 1


def test_a_closed_stream_takes_nothing_more() -> None:
    stream = opened()
    stream.push([event("A", 1), event("B", 2)])
    assert stream.close().count() == 1
    again = opened()
    again.restore(stream.snapshot())
    for closed in (stream, again):
        assert closed.closed
        with pytest.raises(StreamError, match="the stream is closed"):
            closed.push(event("A", 3))
        with pytest.raises(StreamError, match="the stream is closed"):
            closed.advance(9)
        with pytest.raises(StreamError, match="the stream is closed"):
            closed.close()


def test_with_closes_and_tells_of_matches_that_nobody_reads() -> None:
    with (
        pytest.warns(CeriteWarning, match="1 matches were completed when `with` closed the stream"),
        opened() as stream,
    ):
        stream.push([event("A", 1), event("B", 2)])
    assert stream.closed
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with opened() as stream:
            stream.push([event("A", 1), event("B", 2)])
            assert stream.close().count() == 1
    with pytest.raises(ZeroDivisionError), opened() as stream:
        raise ZeroDivisionError
    assert not stream.closed


# ------------------------------------------------------------ results with their events
def test_matches_carry_their_events_after_any_number_of_pushes() -> None:
    stream = opened()
    matches: list[cerite.Match] = []
    for at in range(0, 3000, 3):
        matches += stream.push([event("A", at, v=at), event("B", at + 1, v=-at)])
    matches += stream.close()
    assert len(matches) > 1000
    for match in matches:
        assert match.x == match["x"] == [event("A", match.x[0]["at"], v=match.x[0]["at"])]
        assert match["y"][0]["type"] == "B"
        assert match.events[-1]["at"] - match.events[0]["at"] <= 10


def test_events_are_kept_only_while_the_engine_holds_their_positions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cerite.engine.results.event_buffer.FEWEST", 64)
    for text in ("A AS x ; B AS y WITHIN 10 milliseconds", "A AS x ; B AS y PARTITION BY [v] WITHIN 10 milliseconds",
                 "A AS x ; B AS y FILTER y[v > x.v] WITHIN 20 EVENTS"):  # fmt: skip
        stream = cerite.query(f"SELECT * FROM S WHERE {text}").stream(SCHEMA, time="at", watermark="5 milliseconds")
        most = size = 0
        for at in range(0, 20_000, 50):
            stream.push([event("AAC"[k % 3], at + k, v=at + k) for k in range(50)])
            most = max(most, stream.metrics.kept)
            size = max(size, len(stream.snapshot())) if at > 15_000 else size
        assert most < 400, text
        assert size < 60_000, text


def test_strings_of_events_that_are_over_are_not_kept() -> None:
    query = cerite.query("SELECT * FROM S WHERE A AS x ; B AS y WITHIN 10 milliseconds")
    stream = query.stream({"type": "string", "name": "string", "at": "int"}, time="at", watermark="20 milliseconds")
    sizes = []
    for at in range(0, 6000, 10):
        names = [f"a name that never comes again, {at} {k}" for k in range(10)]
        stream.push([{"type": "A", "name": name, "at": at + k} for k, name in enumerate(names)])
        if at % 500 == 0:
            sizes.append(len(stream.snapshot()))
    assert max(sizes[2:]) < sizes[2] + 500


def test_rows_of_results_are_shown_as_select_says() -> None:
    query = cerite.query("SELECT x[v], y FROM S WHERE A AS x ; B AS y")
    match = query.stream(SCHEMA, time="at").push([event("A", 1, v=3), event("B", 2)])[0]
    assert (match.x, match.y) == ([{"v": 3}], [event("B", 2)])


def test_matches_are_written_with_their_events(tmp_path: Any) -> None:
    stream = opened()
    matches = stream.push([event("A", 1), event("B", 2), event("C", 99)])
    stream.push(event("C", 100))
    assert matches.to_jsonl(tmp_path / "matches.jsonl", events=True) == 1
    assert '"at": 2' in (tmp_path / "matches.jsonl").read_text().replace('":2', '": 2')


# ------------------------------------------------------------ snapshots of something else
def test_a_snapshot_goes_on_with_pending_events_ids_and_watermark() -> None:
    stream = opened(deduplicate="v", late="side")
    stream.push([event("A", 10, v=1), event("B", 12, v=2)])
    again = opened(deduplicate="v", late="side")
    again.restore(stream.snapshot())
    assert again.metrics == stream.metrics
    assert again.push([event("B", 12, v=2), event("A", 1, v=5)]).late.num_rows == 1
    assert texts(again.close()) == ["[0,1] A=0, B=1, x=0, y=1"]
    assert again.metrics.duplicates == 1


OTHERS: dict[str, tuple[Callable[[], EventStream], str]] = {
    "another watermark": (lambda: opened(watermark="6 milliseconds"), r"another watermark: 5 there and 6 here"),
    "no watermark": (lambda: opened(watermark=None), r"another watermark: 5 there and none here"),
    "another order": (lambda: opened(order_by="v"), r"another order_by: none there and v here"),
    "ids": (lambda: opened(deduplicate="v"), r"another deduplicate: none there and v here"),
    "a position": (lambda: opened(position="v"), r"no position column, but this stream has the position column `v`"),
    "another time": (lambda: opened(time="v"), r"the time column `at`, but this stream has the time column `v`"),
    "another unit": (lambda: opened(time_unit="us"), r"times in ms, but this stream has us"),
    "another type": (lambda: _other(v="float"), r"`v` is int64 there and double here"),
    "another window": (lambda: _other(clauses="WITHIN 11 milliseconds"), r"its window is 10 milliseconds there and 11"),
    "another pattern": (lambda: _other("A AS x ; C AS y"), r"its pattern is A; B there and A; C here"),
    "the same parts": (lambda: _other("A AS x : B AS y"), r"taken with another query"),
    "other variables": (lambda: _other(select="x"), r"its variables in SELECT are A, B, x, y there and x here"),
    "a strategy": (lambda: _other(select="NEXT *"), r"its selection strategy is all there and next here"),
    "a partition": (lambda: _other(clauses="PARTITION BY [v] WITHIN 10 milliseconds"), r"PARTITION BY is none there"),
    "consumption": (
        lambda: _other(clauses="WITHIN 10 milliseconds CONSUME BY ANY"),
        r"CONSUME BY is none there and any",
    ),
}


def _other(
    pattern: str = "A AS x ; B AS y", *, clauses: str = "WITHIN 10 milliseconds", select: str = "*", v: str = "int"
) -> EventStream:
    query = cerite.query(f"SELECT {select} FROM S WHERE {pattern} {clauses}")
    return query.stream({"type": "string", "v": v, "at": "int"}, time="at", watermark="5 milliseconds")


@pytest.mark.parametrize("name", OTHERS)
def test_a_snapshot_of_something_else_is_refused_with_what_differs(name: str) -> None:
    stream = opened()
    stream.push([event("A", 10), event("C", 20)])
    other, message = OTHERS[name]
    fresh = other()
    before = fresh.snapshot()
    with pytest.raises(SnapshotError, match=message):
        fresh.restore(stream.snapshot())
    assert fresh.snapshot() == before


@pytest.mark.parametrize("text", [
    "SELECT * FROM S WHERE A AS x ; B AS y WITHIN 10 milliseconds LIMIT 1",
    "SELECT *  FROM S  WHERE (A AS x ; B AS y) WITHIN 10 milliseconds",
])  # fmt: skip
def test_what_keeps_the_meaning_of_the_state_may_change(text: str) -> None:
    stream = opened()
    stream.push([event("A", 10), event("A", 10), event("C", 20)])
    changed = cerite.query(text).stream(SCHEMA, time="at", watermark="5 milliseconds")
    changed.restore(stream.snapshot())
    changed.push([event("B", 18)])
    assert changed.close().count() == (1 if "LIMIT" in text else 2)


def test_the_attributes_that_select_shows_may_change() -> None:
    one, other = (cerite.query(f"SELECT x{shown}, y FROM S WHERE A AS x ; B AS y") for shown in ("[v]", "[at]"))
    stream = one.stream(SCHEMA, time="at")
    stream.push(event("A", 10, v=1))
    again = other.stream(SCHEMA, time="at")
    again.restore(stream.snapshot())
    assert again.push(event("B", 11))[0].x == [{"at": 10}]


def test_another_version_and_damage_are_refused_in_words() -> None:
    stream = opened()
    stream.push([event("A", 10), event("B", 11)])
    saved = stream.snapshot()
    other = saved[:8] + struct.pack("<H", 1) + saved[10:]
    with pytest.raises(SnapshotError, match=r"the snapshot has version 1, this program reads(.|\n)*restore it with"):
        opened().restore(other)
    rng = np.random.default_rng(3)
    for at in rng.integers(10, len(saved), 60).tolist():
        damaged = bytearray(saved)
        damaged[at] ^= 1 << int(rng.integers(8))
        with pytest.raises(SnapshotError, match="damaged"):
            opened().restore(bytes(damaged))
        with pytest.raises(SnapshotError, match=r"not a snapshot|is damaged"):
            opened().restore(saved[:at])


# ------------------------------------------------------------ following a source
BATCHES = [[event("A", 1)], [event("B", 2), event("B", 3)], [event("C", 50)]]


def test_a_stream_follows_what_iterates() -> None:
    assert [matches.count() for matches in opened().follow(BATCHES)] == [0, 0, 2, 0]
    stream = opened()
    assert [matches.count() for matches in stream.follow(iter(BATCHES[:2]), close=False)] == [0, 0]
    assert not stream.closed
    assert stream.close().count() == 2


def test_a_stream_follows_what_comes_asynchronously() -> None:
    async def source() -> AsyncIterator[Any]:
        for batch in BATCHES:
            await asyncio.sleep(0)
            yield batch

    async def counts(given: Any) -> list[int]:
        return [matches.count() async for matches in opened().follow(given)]

    assert asyncio.run(counts(source())) == asyncio.run(counts(BATCHES)) == [0, 0, 2, 0]
    with pytest.raises(StreamError, match="asynchronous"):
        list(opened().follow(source()))
    for wrong in (3, "text", {"type": "A"}):
        with pytest.raises(StreamError, match="cannot follow"):
            opened().follow(wrong)


def test_metrics_for_people() -> None:
    stream = opened()
    stream.push([event("A", 1), event("B", 2), event("C", 1000)])
    said = str(stream.metrics)
    assert "events pushed" in said
    assert said.splitlines()[0].split()[-1] == "3"
    assert "995" in said
    assert "<th>watermark</th><td>995</td>" in stream.metrics._repr_html_()
