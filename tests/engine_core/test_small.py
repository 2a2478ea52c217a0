"""A stream of ever-new keys and strings stays small: snapshots and everything in memory are as large as the window."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import cerite
from cerite.api.stream import EventStream
from cerite.engine.recycle import Recycler

SCHEMA = pa.schema({"type": pa.string(), "t": pa.timestamp("ms"), "n": pa.int64(), "k": pa.int64(), "s": pa.string()})
EVENTS, BATCH = 200_000, 4_000
FLAT = {  # events come a millisecond apart, and two have the same key and string
    "time": "A ; B PARTITION BY [k] WITHIN 1 seconds",
    "time, compound keys of strings": "A ; B PARTITION BY [s, k] WITHIN 1 seconds",
    "the attribute is the time": "A ; B PARTITION BY [k] WITHIN 1000 [n]",
    "events, all runs over": "A : B PARTITION BY [k] WITHIN 2 EVENTS",
    "attribute, all runs over": "A : B PARTITION BY [s] WITHIN 2 [n]",
    "no window, all runs over": "A : B PARTITION BY [k]",
    "consumed": "A ; B PARTITION BY [k] CONSUME BY PARTITION",
    "suppressed": "A : B PARTITION BY [k] SUPPRESS 1 seconds PER PARTITION",
    "strings": "A AS x ; B AS y FILTER y[s = x.s] WITHIN 1 seconds",
    "strings in order": "A AS x ; B AS y FILTER y[s > x.s] WITHIN 10 milliseconds",
    "strings by key": "A AS x ; B AS y FILTER y[s = x.s] PARTITION BY [k] WITHIN 1 seconds",
}


def events(begin: int, count: int, *, silent: bool = False) -> pa.RecordBatch:
    """`silent`: every key has one event, an A."""
    rows = np.arange(begin, begin + count)
    keys = rows if silent else rows // 2
    kinds = np.where((rows % 2 == 0) | silent, "A", "B")
    texts = [f"customer {key * 7919 % 1_000_003}" for key in keys.tolist()]
    columns = [pa.array(kinds), pa.array(rows, pa.timestamp("ms")), pa.array(rows), pa.array(keys), pa.array(texts)]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def stream_of(text: str, *, counting: bool = False) -> EventStream:
    time = "n" if "1000 [n]" in text else "t"
    return cerite.query(f"SELECT * FROM S WHERE {text}").stream(SCHEMA, time=time, type="type", counting=counting)


def memory_of(thing: Any, seen: set[int] | None = None) -> int:
    """The bytes of all arrays that an object leads to."""
    seen = set() if seen is None else seen
    if id(thing) in seen or isinstance(thing, str | bytes | int | float | type | None):
        return 0
    seen.add(id(thing))
    if isinstance(thing, np.ndarray | pa.Array):
        return int(thing.nbytes)
    parts = [*thing] if isinstance(thing, list | tuple) else [*thing.values()] if isinstance(thing, dict) else []
    return sum(memory_of(part, seen) for part in (*parts, *getattr(thing, "__dict__", {}).values()))


@pytest.mark.parametrize("counting", [False, True])
@pytest.mark.parametrize("name", FLAT)
def test_ever_new_keys_and_strings_in_flat_state(name: str, counting: bool) -> None:
    stream = stream_of(FLAT[name], counting=counting)
    snapshots, memory, matches = [], [], 0
    for begin in range(0, EVENTS, BATCH):
        matches += stream.push(events(begin, BATCH)).count()
        memory.append(memory_of([stream._run._run.intake, *stream._run._run.used]))
        if begin % (EVENTS // 10) == 0:
            snapshots.append(len(stream.snapshot()))
    assert matches >= EVENTS // 2
    tenth = len(snapshots) // 10 + 1
    assert max(snapshots[tenth:]) <= 1.1 * max(snapshots[:tenth]) + 500, snapshots
    assert max(snapshots) < 400_000, snapshots
    assert max(memory[len(memory) // 2 :]) <= 1.3 * max(memory[: len(memory) // 2]), memory


@pytest.mark.parametrize("name", ["time", "strings by key"])
def test_memory_is_flat_without_any_snapshot(name: str) -> None:
    stream = stream_of(FLAT[name])
    memory = []
    for begin in range(0, EVENTS, BATCH):
        stream.push(events(begin, BATCH))
        memory.append(memory_of([stream._run._run.intake, *stream._run._run.used]))
    assert stream._run._run.intake.names < 60_000
    assert max(memory[len(memory) // 2 :]) <= 1.3 * max(memory[: len(memory) // 2]), memory


def test_silent_keys_leave_a_window_of_time_and_stay_in_others() -> None:
    sizes = {}
    for text in ("A ; B PARTITION BY [k] WITHIN 1 seconds", "A ; B PARTITION BY [k] WITHIN 5 [n]"):
        stream = stream_of(text)
        for begin in range(0, 20_000, 2_000):
            stream.push(events(begin, 2_000, silent=True))
        sizes[text] = stream._run._run.intake.names, len(stream.snapshot())
        assert stream._run._run.intake.names == (1_001 if "seconds" in text else 20_000)
    assert "what is in the windows of all keys" in str(cerite.query(f"SELECT * FROM S WHERE {text}").explain())


@pytest.mark.parametrize("watermark", [None, "5 seconds"])
@pytest.mark.parametrize("name", ["time", "strings by key"])
def test_time_that_passes_without_events_closes_windows(name: str, watermark: str | None) -> None:
    query = cerite.query(f"SELECT * FROM S WHERE {FLAT[name]}")
    stream = query.stream(SCHEMA, time="t", type="type", watermark=watermark)
    stream.push(events(0, 2_000, silent=True))
    full = len(stream.snapshot())
    stream.advance(2_500)
    stream.snapshot()
    assert stream._run._run.recogniser.active == 500
    assert len(pushed_at(stream, 2_500, 1_500, 1_499)) == 1  # the other is a millisecond too old
    stream.advance(10_000)
    assert len(stream.snapshot()) < full // 10
    assert stream._run._run.recogniser.active == 0
    assert pushed_at(stream, 11_000, 1_999) == []


def pushed_at(stream: EventStream, at: int, *keys: int) -> list[Any]:
    rows = [{"type": "B", "t": at, "n": at, "k": key, "s": f"customer {key * 7919 % 1_000_003}"} for key in keys]
    matches = list(stream.push(pa.Table.from_pylist(rows, SCHEMA).to_batches()[0]))
    return matches + list(stream.advance(at + 1))


def test_a_burst_leaves_nothing_behind() -> None:
    """What a thousand times as many open partial matches took is given back when they are over."""
    for text in ("A ; B PARTITION BY [k] WITHIN 1 seconds", "A AS x ; B FILTER B[s = x.s] WITHIN 1 seconds"):
        stream = stream_of(text, counting=True)
        stream.push(events(0, 1_000, silent=True))
        calm = len(stream.snapshot())
        columns = [*events(1_000, 100_000, silent=True).columns]
        columns[1] = pa.array(np.full(100_000, 1_000), pa.timestamp("ms"))  # all at once
        stream.push(pa.RecordBatch.from_arrays(columns, schema=SCHEMA))
        burst = len(stream.snapshot())
        stream.push(events(200_000, 1_000, silent=True))
        assert burst > 50 * calm
        assert len(stream.snapshot()) < 2 * calm


# ------------------------------------------------------------ partitions that were forgotten and come again
def pushed(stream: EventStream, *rows: tuple[str, int, int | None, int]) -> int:
    events = [{"type": kind, "t": at, "n": number, "k": key, "s": "s"} for kind, at, number, key in rows]
    return stream.push(pa.Table.from_pylist(events, pa.schema([*SCHEMA])).to_batches()[0]).count()


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Recycler, "due", True)


@pytest.mark.usefixtures("always")
def test_ranks_of_a_forgotten_partition_begin_anew() -> None:
    stream = stream_of("A ; B PARTITION BY [k] WITHIN 2 EVENTS")
    assert pushed(stream, ("A", 0, 0, 7), ("C", 1, 1, 7), ("C", 2, 2, 7)) == 0
    assert pushed(stream, ("C", 3, 3, 8)) == 0
    assert stream._run._run.intake.groups is not None
    assert stream._run._run.intake.groups.count == 1  # 7 is forgotten
    assert pushed(stream, ("A", 4, 4, 7)) == 0
    assert pushed(stream, ("B", 5, 5, 8), ("B", 6, 6, 7)) == 1


@pytest.mark.usefixtures("always")
def test_an_event_without_the_attribute_after_its_partition_was_forgotten() -> None:
    stream = stream_of("A ; B PARTITION BY [k] WITHIN 2 [n]")
    assert pushed(stream, ("A", 0, 0, 7), ("C", 1, 9, 7)) == 0
    assert pushed(stream, ("C", 2, 1, 8)) == 0
    assert pushed(stream, ("A", 3, None, 7), ("A", 4, 10, 7)) == 0
    assert pushed(stream, ("C", 5, None, 7), ("B", 6, 12, 7)) == 1


@pytest.mark.usefixtures("always")
def test_an_attribute_that_decreases_is_refused_while_something_could_be_compared_with_it() -> None:
    stream = stream_of("A ; B PARTITION BY [k] WITHIN 5 [n]")
    assert pushed(stream, ("A", 0, 5, 7)) == 0
    with pytest.raises(cerite.StreamError, match="decreases at position 1"):
        pushed(stream, ("B", 1, 4, 7))
    assert pushed(stream, ("C", 1, 20, 7)) == 0  # the start is over
    assert pushed(stream, ("C", 2, 0, 8)) == 0  # and the partition forgotten
    assert pushed(stream, ("A", 3, 1, 7), ("B", 4, 2, 7)) == 1
