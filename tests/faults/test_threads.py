"""Several threads: what cannot be read is said in its turn, and nobody waits for matches that nobody wants."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest

import cerite
from cerite.core.errors import BudgetError, CeriteError, CeriteWarning, OrderError, StreamError
from cerite.engine.at_rest import segments, shards, threads

PAIRS = cerite.query("SELECT * FROM S WHERE A AS x ; B AS y WITHIN 3 [at]")
BY_KEY = cerite.query(
    "SELECT * FROM S WHERE A AS x ; B AS y FILTER y[at < x.at + 40] PARTITION BY [key] WITHIN 2 EVENTS"
)
SCHEMA = pa.schema({"type": pa.string(), "at": pa.int64()})


@pytest.fixture(autouse=True)
def _short_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "SEGMENT", 4)
    monkeypatch.setattr(threads, "LONG_SEGMENT", 4)
    monkeypatch.setattr(threads, "WORTH_CUTTING", 4)
    monkeypatch.setattr(threads, "FEWEST", 1)
    monkeypatch.setattr(shards, "PIECE", 8)
    monkeypatch.setattr(shards, "ENOUGH", 0)  # shards are always worth it


def events(first: int, count: int) -> pa.RecordBatch:
    """A and B in turn, one at every instant."""
    return pa.record_batch({"type": ["AB"[k % 2] for k in range(count)], "at": [*range(first, first + count)]}, SCHEMA)


def reader(batches: Iterator[pa.RecordBatch]) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(SCHEMA, batches)


def test_matches_before_a_row_out_of_order_come_first() -> None:
    table = pa.Table.from_batches([events(0, 40), events(7, 1), events(50, 40)])
    read: list[cerite.Match] = []
    with pytest.raises(OrderError, match=r"`at` decreases at position 40"):
        read.extend(iter(PAIRS.run(table, threads=3)))  # extend() of the matches themselves would count them first
    assert {match.end for match in read} == {k for k in range(40) if k % 2}


def test_a_reader_that_fails_fails_after_the_matches_that_it_gave() -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield events(0, 20)
        raise OSError("the disk is gone")

    read: list[cerite.Match] = []
    with pytest.raises((CeriteError, OSError), match="the disk is gone"):
        read.extend(iter(PAIRS.run(reader(failing()), threads=2)))
    assert {match.end for match in read} == {k for k in range(20) if k % 2}


def test_a_window_attribute_that_is_missing_ends_the_cutting_not_the_matches() -> None:
    rows = [{"type": "AB"[k % 2], "at": None if k == 21 else k} for k in range(60)]
    assert list(PAIRS.run(rows, threads=2)) == list(PAIRS.run(rows, threads=1))


def test_very_many_matches_end_the_cutting_not_the_matches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "READY", 0)
    table = pa.Table.from_batches([events(0, 400)])
    assert list(PAIRS.run(table, threads=2)) == list(PAIRS.run(table, threads=1))


@pytest.mark.parametrize("ready", [threads.READY, 0])
def test_what_comes_piece_by_piece_is_read_in_the_callers_thread(monkeypatch: pytest.MonkeyPatch, ready: int) -> None:
    monkeypatch.setattr(threads, "READY", ready)  # 0 ends the cutting
    readers: set[int] = set()

    def read() -> Iterator[pa.RecordBatch]:
        for first in range(0, 400, 20):
            readers.add(threading.get_ident())
            yield events(first, 20)

    assert PAIRS.run(reader(read()), threads=3).count() == 399
    assert len(list(iter(PAIRS.run(reader(read()), threads=3)))) == 399
    assert readers == {threading.get_ident()}


@pytest.mark.parametrize("bad", [0, 1, 40, 399])
def test_the_first_error_of_the_stream_ends_counting(bad: int) -> None:
    before = threading.active_count()
    table = pa.Table.from_batches([events(0, bad + 1), events(bad, 400), events(7, 40)])
    with pytest.raises(OrderError, match=f"`at` decreases at position {bad + 401}"):
        PAIRS.run(table, threads=3).count()

    def failing() -> Iterator[pa.RecordBatch]:
        yield from table.to_batches()
        raise OSError("the disk is gone")

    with pytest.raises(OrderError, match=f"`at` decreases at position {bad + 401}"):
        PAIRS.run(reader(failing()), threads=3).count()
    assert threading.active_count() == before


def test_counting_that_is_interrupted_leaves_no_thread_behind() -> None:
    before = threading.active_count()

    def interrupted(rows: int, *_: int) -> None:
        if rows > 1_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        PAIRS.run(pa.Table.from_batches([events(0, 9_000)]), threads=2, progress=interrupted).count()
    assert threading.active_count() == before


def test_counting_says_how_far_it_is() -> None:
    told: list[tuple[int, int]] = []
    matches = PAIRS.run(
        pa.Table.from_batches([events(0, 4_000)]), threads=2, progress=lambda rows, some, _: told.append((rows, some))
    )
    assert matches.count() == 3_999
    assert len(told) > 10
    assert told == sorted(told)
    assert told[-1][0] <= 4_000
    assert told[-1][1] <= 3_999


def test_who_reads_the_first_match_only_leaves_no_thread_behind() -> None:
    before = threading.active_count()
    assert PAIRS.run(pa.Table.from_batches([events(0, 5_000)]), threads=2).exists()
    matches = iter(PAIRS.run(pa.Table.from_batches([events(0, 5_000)]), threads=2))
    assert next(matches).end == 1
    matches.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before


def test_an_endless_stream_is_read_as_far_as_it_is_wanted() -> None:
    produced = 0

    def endless() -> Iterator[pa.RecordBatch]:
        nonlocal produced
        while True:
            yield events(4 * produced, 4)
            produced += 1

    matches = iter(PAIRS.run(reader(endless()), threads=2))
    assert [next(matches).end for _ in range(8)] == [1, 3, 3, 5, 5, 7, 7, 9]
    matches.close()  # type: ignore[attr-defined]
    assert produced < 100


@pytest.mark.parametrize("number", [0, -1, True, 1.5, "2"])
def test_the_number_of_threads_is_a_whole_number(number: object) -> None:
    with pytest.raises(StreamError, match="threads must be a whole number from 1 on"):
        PAIRS.run([], threads=number)  # type: ignore[arg-type]


def test_the_variable_says_how_many_and_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CERITE_THREADS", "3")
    assert threads.thread_count(None) == 3
    monkeypatch.setenv("CERITE_THREADS", "all")
    with pytest.raises(StreamError, match="CERITE_THREADS must be a whole number from 1 on, not 'all'"):
        PAIRS.run([])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("A ; B", "no window"),
        ("A ; B WITHIN 3 EVENTS CONSUME BY ANY", "CONSUME BY"),
        ("A ; NOT B WITHIN 3 EVENTS", "outside the match's own window"),
        ("A ; B PARTITION BY [at] WITHIN 3 EVENTS", "each partition"),
        ("A ; B WITHIN 3 EVENTS", None),
    ],
)
def test_what_cannot_be_cut_says_why(text: str, why: str | None) -> None:
    run = cerite.query(f"SELECT * FROM S WHERE {text}").run(pa.Table.from_batches([events(0, 10)]), threads=2)
    reason = segments.uncut(run.prepared.program)
    assert (reason is None) if why is None else (reason is not None and why in reason)


# ------------------------------------------------------------ partitions that are divided among shards
KEYED = pa.schema([*SCHEMA, ("key", pa.string())])


def keyed(first: int, count: int, keys: int = 5) -> pa.RecordBatch:
    """For every key an A and a B in turn; without keys all of them are missing."""
    columns = {"type": ["AB"[k // max(keys, 1) % 2] for k in range(count)], "at": [*range(first, first + count)]}
    return pa.record_batch(columns | {"key": [f"k{k % keys}" if keys else None for k in range(count)]}, KEYED)


def keyed_reader(batches: Iterator[pa.RecordBatch]) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(KEYED, batches)


def ends(count: int) -> set[int]:
    """Where the matches of `BY_KEY` end in `keyed(0, count)`."""
    return {k for k in range(count) if k // 5 % 2}


def test_shards_find_what_one_thread_finds() -> None:
    table = pa.Table.from_batches([keyed(0, 1000), keyed(1000, 300, keys=0), keyed(1300, 200, keys=7)])
    one, many = BY_KEY.run(table, threads=1), BY_KEY.run(table, threads=3)
    assert list(many) == list(one)
    assert many.count() == one.count() > 500
    assert many.to_arrow(events=True) == one.to_arrow(events=True)


def test_matches_before_a_row_that_shards_refuse_come_first() -> None:
    query = cerite.query("SELECT * FROM S WHERE A ; B PARTITION BY [key] WITHIN 5 [at]")
    table = pa.Table.from_batches([keyed(0, 40), keyed(7, 1), keyed(50, 40)])
    read: list[cerite.Match] = []
    with pytest.raises(OrderError, match=r"`at` decreases at position 40"):
        read.extend(iter(query.run(table, threads=3)))
    assert {match.end for match in read} == ends(40)
    with pytest.raises(OrderError, match=r"`at` decreases at position 40"):
        query.run(table, threads=3).count()


@pytest.mark.parametrize("before", [0, 4, 60])
def test_a_reader_that_fails_fails_after_the_matches_that_shards_found(before: int) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield keyed(0, before)
        raise OSError("the disk is gone")

    read: list[cerite.Match] = []
    with pytest.raises((CeriteError, OSError), match="the disk is gone"):
        read.extend(iter(BY_KEY.run(keyed_reader(failing()), threads=2)))
    assert {match.end for match in read} == ends(before)


def test_what_a_shard_cannot_do_is_raised_and_leaves_no_thread_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CERITE_STATES", "10")
    query = cerite.query("SELECT * FROM S WHERE (A OR B)* ; A ; (A OR B){9} PARTITION BY [key]")
    types = [["A", "B", "B"][k * k % 7 % 3] for k in range(2000)]
    table = pa.table({"type": types, "at": range(2000), "key": [f"k{k % 3}" for k in range(2000)]}, KEYED)
    before = threading.active_count()
    with pytest.raises(BudgetError, match="more than 10 deterministic states"):
        query.run(table, threads=2).count()
    assert threading.active_count() == before


def test_who_reads_only_the_first_match_of_shards_leaves_no_thread_behind() -> None:
    before = threading.active_count()
    matches = iter(BY_KEY.run(pa.Table.from_batches([keyed(0, 5_000)]), threads=2))
    assert next(matches).end == 5
    matches.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before


def test_an_endless_stream_is_read_in_shards_as_far_as_it_is_wanted() -> None:
    produced = 0

    def endless() -> Iterator[pa.RecordBatch]:
        nonlocal produced
        while True:
            yield keyed(20 * produced, 20)
            produced += 1

    matches = iter(BY_KEY.run(keyed_reader(endless()), threads=2))
    assert {next(matches).end for _ in range(200)} == ends(400)
    matches.close()  # type: ignore[attr-defined]
    assert produced < 100


def test_types_that_no_event_of_any_shard_has_are_named() -> None:
    query = cerite.query("SELECT * FROM S WHERE A ; BB PARTITION BY [key]")
    with pytest.warns(CeriteWarning, match="no event has the type `BB`"):
        assert query.run(pa.Table.from_batches([keyed(0, 400)]), threads=2).count() == 0


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("A ; B", "no partitions"),
        ("A ; B PARTITION BY [key] CONSUME BY ANY", "CONSUME BY"),
        ("A ; B PARTITION BY [key] WITHIN 3 EVENTS SUPPRESS 3 milliseconds", "with PER PARTITION"),
        ("A ; NOT B PARTITION BY [key] WITHIN 3 EVENTS", "the order in which they are decided"),
        ("A ; B PARTITION BY [key] WITHIN 3 EVENTS SUPPRESS 3 milliseconds PER PARTITION", None),
        ("A ; B PARTITION BY [key] CONSUME BY PARTITION", None),
        ("SELECT MAX * FROM S WHERE A ; B PARTITION BY [key] LIMIT 2", None),
    ],
)
def test_partitions_that_cannot_be_divided_say_why(text: str, why: str | None) -> None:
    query = cerite.query(text if "SELECT" in text else f"SELECT * FROM S WHERE {text}")
    run = query.run(pa.Table.from_batches([keyed(0, 10)]), time="at", threads=2)
    reason = shards.undivided(run.prepared.program, counting=False)
    assert (reason is None) if why is None else (reason is not None and why in reason)


def test_few_events_or_little_gain_are_not_worth_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(shards.ShardedRun, "__init__")  # none can be made
    monkeypatch.setattr(shards, "PIECE", 10_000)
    table = pa.Table.from_batches([keyed(0, 5_000)])
    assert BY_KEY.run(keyed_reader(iter(table.to_batches())), threads=2).count() == 2500
    monkeypatch.setattr(shards, "PIECE", 8)
    monkeypatch.setattr(shards, "ENOUGH", 1000)
    assert BY_KEY.run(table, threads=2).count() == 2500


def test_pages_of_a_result_fit_together(monkeypatch: pytest.MonkeyPatch) -> None:
    query = cerite.query("SELECT * FROM S WHERE A AS x ; B AS y FILTER y[v > x.v] WITHIN 50 EVENTS")
    values = [k * 7 % 23 if k < 3_000 else k % 2 for k in range(6_000)]
    table = pa.table({"type": ["AB"[k % 5 == 0] for k in range(6_000)], "v": values})
    monkeypatch.setattr(threads, "SEGMENT", 500)
    monkeypatch.setattr(threads, "UNKNOWN", 500)
    matches = query.run(table, threads=3)
    pages = [match for first in range(0, matches.count(), 997) for match in matches[first : first + 997]]
    assert len(set(pages)) == matches.count() > 10_000
    assert pages[:10] == matches.head()
    assert matches[-1] == pages[-1]
    assert set(pages) == set(matches)
