"""Streams: results that stay readable, pushes that change nothing when refused, types, and whose snapshot it is."""

from __future__ import annotations

from datetime import datetime, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import cerite
from cerite.core.errors import CeriteError, SnapshotError, StreamError

PAIR = "SELECT * FROM S WHERE A AS x ; B AS y WITHIN 5 EVENTS"
SCHEMA = pa.schema([("type", pa.string()), ("v", pa.int64())])


def events(text: str, **more: Any) -> list[dict[str, Any]]:
    return [{"type": letter, "v": at, **more} for at, letter in enumerate(text)]


# ------------------------------------------------------------ results
@pytest.mark.parametrize(
    "query", [PAIR, "SELECT MAX * FROM S WHERE A+ ; B", "SELECT * FROM S WHERE A AS x ; B AS y FILTER y[v > x.v]"]
)
def test_results_of_a_push_are_read_after_the_next(query: str) -> None:
    stream, at_once = cerite.query(query).stream(SCHEMA), cerite.query(query).stream(SCHEMA)
    batches = [events("AAB"), events("ABB"), [], events("BA")]
    read = [list(at_once.push(batch)) for batch in batches]
    later = [stream.push(batch) for batch in batches]
    stream.snapshot()
    assert [list(matches) for matches in later] == read
    assert (
        [matches.count() for matches in later]
        == [len(matches) for matches in later]
        == [len(matches) for matches in read]
    )
    assert [bool(matches) for matches in later] == [bool(matches) for matches in read]
    assert sum(map(len, read)) > 2
    assert [matches.to_arrow().num_rows for matches in later] == list(map(len, read))


def test_half_read_results_go_on_after_the_next_push() -> None:
    stream = cerite.query("SELECT * FROM S WHERE A+").stream(SCHEMA)
    first = stream.push(events("A" * 16))
    reader = iter(first)
    some = [next(reader) for _ in range(5)]
    stream.push(events("B"))
    assert len(some + list(reader)) == first.count() == 2**16 - 1


def test_two_readers_of_one_result_see_all_of_it() -> None:
    matches = cerite.query("SELECT * FROM S WHERE A+").stream(SCHEMA).push(events("A" * 16))
    chunks = [len(chunk) for chunk in cerite.query("SELECT * FROM S WHERE A+").run(events("A" * 16)).chunks()]
    assert len(chunks) > 2
    one, other = matches.chunks(), matches.chunks()
    sizes = [(len(a), len(b)) for a, b in zip(one, other, strict=True)]
    assert sizes == [(size, size) for size in chunks]


@pytest.mark.parametrize("query", ["SELECT * FROM S WHERE A+", "SELECT * FROM S WHERE A+ LIMIT 100000000000"])
def test_results_too_many_to_hold_are_refused_when_read_later(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cerite.api.pushed.BUFFERED", 300_000)
    stream = cerite.query(query).stream(SCHEMA, counting=True)
    matches = stream.push(events("A" * 60))
    stream.push(events("B"))
    assert matches
    assert len(matches[:100]) == 100
    for read in (lambda it: [*iter(it)], type(matches).to_arrow):
        with pytest.raises(StreamError, match="too many to keep, and were not read before the stream went on"):
            read(matches)
    if "LIMIT" in query:
        with pytest.raises(StreamError, match="too many to keep"):
            matches.count()
    else:
        assert matches.count() == 2**60 - 1
        assert repr(matches).startswith(f"{2**60 - 1:,} matches, the first 10:")


def test_results_too_many_to_hold_are_read_once_before_the_next_push(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cerite.api.pushed.BUFFERED", 1000)
    query = cerite.query("SELECT * FROM S WHERE A+")
    stream = query.stream(SCHEMA)
    matches = stream.push(events("A" * 16))
    assert sum(1 for _ in matches) == 2**16 - 1
    with pytest.raises(StreamError, match="too many to keep, and were read once already"):
        list(matches)
    matches = stream.push(events("A"))
    reader = iter(matches)
    next(reader)
    stream.push(events("B"))
    with pytest.raises(StreamError, match="not read before the stream went on"):
        list(reader)


def test_a_stream_goes_on_when_one_match_of_very_many_was_read() -> None:
    stream = cerite.query("SELECT * FROM S WHERE A+ ; B").stream(SCHEMA, counting=True)
    stream.push(events("A" * 200))
    assert stream.push(events("B")).head(1)
    last = stream.push(events("CB"))
    assert last.count() == 2**200 - 1
    assert last.head(2)


def test_a_count_by_enumeration_that_would_not_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cerite.api.pushed.COUNTED", 100_000)
    stream = cerite.query("SELECT * FROM S WHERE A+ ; B").stream(SCHEMA)
    stream.push(events("A" * 200))
    with pytest.raises(StreamError, match=r"more than 100,000 matches(.|\n)*counting=True"):
        stream.push(events("B")).count()


def test_a_snapshot_without_counts_is_refused_where_they_are_asked_for() -> None:
    query = cerite.query(PAIR)
    plain, counting = query.stream(SCHEMA), query.stream(SCHEMA, counting=True)
    plain.push(events("A"))
    counting.push(events("A"))
    with pytest.raises(SnapshotError, match=r"does not count(.|\n)*counting=True"):
        query.stream(SCHEMA, counting=True).restore(plain.snapshot())
    again = query.stream(SCHEMA)
    again.restore(counting.snapshot())
    assert again.push(events("B")).count() == 1


# ------------------------------------------------------------ refused pushes
REFUSED: dict[str, tuple[str, dict[str, Any], list[list[dict[str, Any]]], list[dict[str, Any]]]] = {
    "time decreases": (
        "SELECT * FROM S WHERE A ; B WITHIN 9 milliseconds", {"time": "v"}, [[{"type": "A", "v": 5}]],
        [{"type": "B", "v": 9}, {"type": "B", "v": 1}],
    ),
    "time is missing": (
        "SELECT * FROM S WHERE A ; B WITHIN 9 EVENTS", {"time": "v"}, [[{"type": "A", "v": 5}]],
        [{"type": "B", "v": 9}, {"type": "B", "v": None}],
    ),
    "position does not rise": (
        "SELECT * FROM S WHERE A ; B WITHIN 9 EVENTS", {"position": "v"}, [[{"type": "A", "v": 5}]],
        [{"type": "B", "v": 9}, {"type": "B", "v": 9}],
    ),
    "time decreases, position rose": (
        "SELECT * FROM S WHERE A ; B WITHIN 9 EVENTS", {"time": "at", "position": "v"},
        [[{"type": "A", "v": 5, "at": 1}]], [{"type": "B", "v": 9, "at": 0}],
    ),
    "a window's attribute decreases in one partition": (
        "SELECT * FROM S WHERE A ; B PARTITION BY [key] WITHIN 9 [v]", {},
        [[{"type": "A", "v": 5, "key": "a"}, {"type": "A", "v": 7, "key": "b"}]],
        [{"type": "B", "v": 9, "key": "a"}, {"type": "B", "v": 9, "key": "new"}, {"type": "B", "v": 1, "key": "b"}],
    ),
    "a register cannot hold a value": (
        "SELECT * FROM S WHERE A AS x ; B AS y FILTER y[day > x.instant AND key != x.key] WITHIN 9 EVENTS", {},
        [[{"type": "A", "key": "a", "instant": datetime(2020, 1, 1)}]],
        [{"type": "B", "key": "new"}, {"type": "B", "key": "newer", "day": datetime(9999, 1, 1)}],
    ),
    "a window's attribute decreases, strings are held": (
        "SELECT * FROM S WHERE A AS x ; B AS y FILTER y[key = x.key] WITHIN 9 [v]", {},
        [[{"type": "A", "v": 5, "key": "a"}]],
        [{"type": "B", "v": 6, "key": "new"}, {"type": "B", "v": 4, "key": "a"}],
    ),
}  # fmt: skip
SAID = {
    "time decreases": "`v` decreases at row 2: 1 after 9",
    "time is missing": "row 2 has no time in `v`",
    "position does not rise": "`v` does not rise at row 2: 9 after 9",
    "time decreases, position rose": "`at` decreases at row 1: 0 after 1",
    "a window's attribute decreases in one partition": "the window's attribute `v` decreases at position 4",
    "a register cannot hold a value": "a timestamp is too far from 1970",
    "a window's attribute decreases, strings are held": "the window's attribute `v` decreases at position 2",
}
WIDE = pa.schema(
    [
        ("type", pa.string()), ("v", pa.int64()), ("at", pa.int64()), ("key", pa.string()),
        ("day", pa.timestamp("s")), ("instant", pa.timestamp("ns")),
    ]
)  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_push_leaves_the_stream_exactly_as_it_was(name: str) -> None:
    text, options, before, wrong = REFUSED[name]
    query = cerite.query(text)
    stream, untouched = query.stream(WIDE, **options), query.stream(WIDE, **options)
    for batch in before:
        stream.push(batch)
        untouched.push(batch)
    saved = stream.snapshot()
    for _ in range(2):
        with pytest.raises(StreamError, match=SAID[name]):
            stream.push(wrong)
        assert stream.rows == untouched.rows
        assert stream.snapshot() == saved
    good = [{"type": "B", "v": 10, "at": 10, "key": key, "day": STAMP.replace(microsecond=0)} for key in ("a", "c")][
        : 1 if options else 2
    ]
    assert list(stream.push(good)) == list(untouched.push(good))
    assert stream.snapshot() == untouched.snapshot()


@pytest.mark.parametrize("count", [2, 5000])
def test_a_refused_push_among_many_partitions(count: int) -> None:
    query = cerite.query("SELECT * FROM S WHERE A ; B PARTITION BY [v] WITHIN 9 [at]")
    stream = query.stream({"type": "string", "v": "int", "at": "int"})
    stream.push([{"type": "A", "v": key, "at": 5} for key in range(count)])
    saved = stream.snapshot()
    with pytest.raises(StreamError, match="decreases"):
        stream.push([{"type": "B", "v": key, "at": 6} for key in (1, 0, 9999)] + [{"type": "B", "v": 1, "at": 4}])
    assert stream.snapshot() == saved
    assert stream.push([{"type": "B", "v": 0, "at": 5}, {"type": "B", "v": 1, "at": 5}]).count() == 2


def test_a_refused_push_keeps_the_results_of_the_one_before() -> None:
    stream = cerite.query(PAIR).stream(SCHEMA)
    matches = stream.push(events("AB"))
    with pytest.raises(StreamError, match="`w` is unknown"):
        stream.push([{"type": "A", "w": 1}])
    assert len(list(matches)) == 1


@pytest.mark.parametrize("to_batch", [list, pa.Table.from_pylist, lambda rows: rows[0]])
def test_columns_that_the_stream_does_not_have_are_left_out_if_it_is_said(to_batch: Any) -> None:
    columns = {"type": "string", "v": "int"}
    query = cerite.query("SELECT * FROM S WHERE A AS x ; B AS y FILTER y[v > x.v]")
    rows = [{"debug": "new", "type": "A", "v": 1}]
    with pytest.raises(StreamError, match=r"`debug` is unknown(.|\n)*to leave others out: extra='ignore'"):
        query.stream(columns).push(to_batch(rows))
    stream = query.stream(columns, extra="ignore")
    assert stream.push(to_batch(rows)).count() == 0
    assert stream.push([{"type": "B", "v": 2}]).head()[0].events == [{"type": "A", "v": 1}, {"type": "B", "v": 2}]
    with pytest.raises(StreamError, match="`v` is missing"):
        stream.push(pa.table({"type": ["B"], "debug": [1]}))


def test_what_becomes_of_other_columns_is_checked() -> None:
    with pytest.raises(CeriteError, match="`extra` is 'refuse' or 'ignore', not 'drop'"):
        cerite.query(PAIR).stream(SCHEMA, extra="drop")  # type: ignore[arg-type]


@pytest.mark.parametrize("failure", [MemoryError, KeyboardInterrupt])
def test_a_stream_that_broke_off_refuses_to_go_on(
    failure: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = cerite.query(PAIR).stream(SCHEMA)
    stream.push(events("A"))

    def broken(*_: Any) -> None:
        raise failure

    monkeypatch.setattr(stream._run._run.recogniser, "read", broken)
    with pytest.raises(StreamError if failure is MemoryError else KeyboardInterrupt):
        stream.push(events("B"))
    for go_on in (lambda: stream.push(events("B")), stream.snapshot):
        with pytest.raises(StreamError, match=r"a push was interrupted(.|\n)*restore a snapshot"):
            go_on()


# ------------------------------------------------------------ what is pushed
ROWS = [{"type": "A", "v": 1}, {"type": "B", "v": 2}]
FORMS: dict[str, Any] = {
    "dictionaries": ROWS,
    "a tuple": tuple(ROWS),
    "a generator": (row for row in ROWS),
    "a table": pa.Table.from_pylist(ROWS),
    "a table in pieces": pa.concat_tables([pa.Table.from_pylist(ROWS[:1]), pa.Table.from_pylist(ROWS[1:])]),
    "columns in another order": pa.Table.from_pylist(ROWS).select(["v", "type"]),
    "a batch": pa.RecordBatch.from_pylist(ROWS),
    "a reader": pa.Table.from_pylist(ROWS).to_reader(),
    "pandas": pd.DataFrame(ROWS),
    "pandas with floats that are whole": pd.DataFrame(ROWS).astype({"v": float}),
    "Polars": pl.DataFrame(ROWS),
    "a lazy frame": pl.LazyFrame(ROWS),
    "other strings": pa.table({"type": pa.array(["A", "B"], pa.string_view()), "v": pa.array([1, 2], pa.int8())}),
    "large strings": pa.table({"type": pa.array(["A", "B"], pa.large_string()), "v": [Decimal(1), Decimal(2)]}),
    "coded strings": pa.table({"type": pa.array(["A", "B"]).dictionary_encode(), "v": [1, 2]}),
}


@pytest.mark.parametrize("name", FORMS)
def test_events_are_pushed_in_every_form(name: str) -> None:
    stream = cerite.query(PAIR + "").stream(SCHEMA)
    assert [str(match) for match in stream.push(FORMS[name])] == ["[0,1] A=0, B=1, x=0, y=1"]


def test_one_event_is_pushed_as_a_dictionary() -> None:
    stream = cerite.query(PAIR).stream(SCHEMA)
    stream.push({"type": "A", "v": 1})
    assert stream.push({"type": "B"}).count() == 1
    with pytest.raises(StreamError, match=r"`type` holds several values(.|\n)*pyarrow.table"):
        stream.push({"type": ["A", "B"], "v": [1, 2]})
    assert stream.rows == 2


STAMP = datetime(2020, 1, 1, 0, 0, 0, 1500)
MISFITS: dict[str, tuple[Any, Any, str]] = {
    "microseconds into milliseconds": ("timestamp[ms]", pa.array([STAMP], pa.timestamp("us")), "timestamp.us."),
    "microseconds of Python into milliseconds": ("timestamp[ms]", [STAMP], "timestamp.us."),
    "1.5 into int": ("int", pa.array([1.5]), "double, but the stream has int64"),
    "1.5 of Python into int": ("int", [1.5], "double, but the stream has int64"),
    "1.5 of Python into int32": ("int32", [1.5], "double, but the stream has int32"),
    "a large int into int8": ("int8", pa.array([300]), "int64, but the stream has int8"),
    "a large int into float": ("float", pa.array([2**53 + 1]), "int64, but the stream has double"),
    "a double into float": (pa.float32(), pa.array([0.1]), "0.1 in row 0"),
    "text into int": ("int", pa.array(["1"]), "string, but the stream has int64"),
    "a number into text": ("string", pa.array([1]), "int64, but the stream has string"),
    "a number of Python into text": ("string", [1], "int64, but the stream has string"),
    "truth into int": ("int", pa.array([True]), "bool, but the stream has int64"),
    "a number into truth": ("bool", pa.array([1]), "int64, but the stream has bool"),
    "text into time": ("timestamp", pa.array(["2020-01-01"]), "string, but the stream has timestamp"),
    "a number into time": ("timestamp", pa.array([5]), "int64, but the stream has timestamp"),
    "a time with a zone": ("timestamp", [STAMP.replace(tzinfo=timezone.utc)], "UTC"),
    "a time into a date": ("date32", pa.array([STAMP]), "the stream has date32"),
    "lists": ("int", pa.array([[1]]), "list<"),
    "mixed values": ("int", [1, "x"], "is a string, but row 0 holds an int"),
}


@pytest.mark.parametrize("name", MISFITS)
def test_values_of_another_type_are_refused_where_they_would_change(name: str) -> None:
    kind, values, said = MISFITS[name]
    stream = cerite.query("SELECT * FROM S WHERE A").stream({"type": "string", "v": kind})
    rows = [{"type": "A", "v": value} for value in values] if isinstance(values, list) else None
    with pytest.raises(StreamError, match=said):
        stream.push(pa.table({"type": ["A"] * len(values), "v": values}) if rows is None else rows)
    assert stream.rows == 0


FITS: dict[str, tuple[Any, Any]] = {
    "seconds into milliseconds": ("timestamp[ms]", pa.array([STAMP.replace(microsecond=0)], pa.timestamp("s"))),
    "whole milliseconds of microseconds": ("timestamp[ms]", pa.array([STAMP.replace(microsecond=5000)])),
    "a date into a time": ("timestamp", pa.array([STAMP.date()])),
    "whole floats into int": ("int", pa.array([1.0, None, -3.0])),
    "ints into float": ("float", pa.array([1, None, 3])),
    "NaN into a narrower float": (pa.float32(), pa.array([1.5, float("nan")])),
    "floats of Python into a narrower float": (pa.float32(), [0.1, None]),
    "a decimal into a wider one": (pa.decimal128(10, 4), pa.array([Decimal("1.25")])),
    "nothing but NULL": ("timestamp", pa.nulls(2)),
    "a zone into another": (pa.timestamp("us", "Europe/Berlin"), pa.array([STAMP], pa.timestamp("us", "UTC"))),
}


@pytest.mark.parametrize("name", FITS)
def test_values_of_another_type_are_taken_where_none_changes(name: str) -> None:
    kind, values = FITS[name]
    stream = cerite.query("SELECT * FROM S WHERE A").stream({"type": "string", "v": kind})
    rows = [{"type": "A", "v": value} for value in values]
    matches = stream.push(rows if isinstance(values, list) else pa.table({"type": ["A"] * len(values), "v": values}))
    assert matches.count() == len(values)


OTHERS: dict[str, tuple[Any, str]] = {
    "another column": (pa.table({"type": ["A"], "w": [1]}), "`v` is missing, `w` is unknown"),
    "a missing column": (pa.table({"type": ["A"]}), "other columns than the stream: `v` is missing"),
    "another key": ([{"type": "A", "V": 1}], "did you mean `v`"),
    "a row that is no dictionary": ([1], "is an int, not a dictionary"),
    "two columns of one name": (pa.table([["A"], [1], [2]], names=["type", "v", "v"]), "two columns"),
    "a number": (5, "cannot be pushed from an int"),
    "nothing": (None, "cannot be pushed from a NoneType"),
    "text": ("events.csv", "cannot be pushed from a str"),
    "an array": (np.zeros((2, 2)), "is a ndarray, not a dictionary"),
    "objects of Polars": (pl.DataFrame({"type": ["A"], "v": [object()]}), "holds Python objects"),
    "mixtures of pandas": (pd.DataFrame({"type": ["A", "A"], "v": [1, "x"]}), "mixed types"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_batch_of_the_stream_is_refused(name: str) -> None:
    data, said = OTHERS[name]
    with pytest.raises(StreamError, match=said):
        cerite.query(PAIR).stream(SCHEMA).push(data)


SCHEMAS: dict[str, Any] = {
    "names of kinds": {"type": "string", "v": "int"},
    "names of Arrow": {"type": "large_string", "v": "int64"},
    "Python's types": {"type": str, "v": int},
    "Arrow's types": {"type": pa.string_view(), "v": pa.int32()},
    "a schema of Cerite": cerite.Schema.of_columns({"type": "string", "v": "int"}),
    "a table": pa.Table.from_pylist(ROWS),
    "a pandas frame": pd.DataFrame(ROWS),
    "a Polars frame": pl.DataFrame(ROWS),
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_columns_of_a_stream_are_given_in_every_form(name: str) -> None:
    stream = cerite.query(PAIR + "").stream(SCHEMAS[name])
    assert stream.push(ROWS).count() == 1


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "strin"}, "did you mean `string`"),
        ({"type": 5}, "has 5 as its type"),
        ({"type": []}, "as its type"),
        ({5: "int"}, "is text, not 5"),
        ({}, "has no columns"),
        (None, "cannot be read from a NoneType"),
        ("type", "cannot be read from a str"),
        (["type", "v"], "cannot be read from a list"),
        (pa.schema([("type", pa.string()), ("type", pa.string())]), "the stream: two columns are called `type`"),
    ],
)
def test_columns_that_are_none_are_refused(schema: Any, said: str) -> None:
    with pytest.raises(CeriteError, match=said):
        cerite.query(PAIR).stream(schema)


# ------------------------------------------------------------ snapshots
TIMED = "SELECT * FROM S WHERE A AS x ; B AS y WITHIN 5 milliseconds"
COLUMNS = {"type": "string", "kind": "string", "at": "int", "then": "int"}
ELSEWHERE: dict[str, tuple[str, dict[str, Any], dict[str, Any], str]] = {
    "another query": (TIMED.replace("5", "6"), COLUMNS, {}, "another query"),
    "another name": (TIMED.replace(" x", " z"), COLUMNS, {}, "another query"),
    "another time": (
        TIMED,
        COLUMNS,
        {"time": "then"},
        "the time column `at`, but this stream has the time column `then`",
    ),
    "another type": (TIMED, COLUMNS, {"type": "kind"}, "the type column `type`, but .* `kind`"),
    "a position": (TIMED, COLUMNS, {"position": "then"}, "no position column, but .* the position column `then`"),
    "another column's type": (TIMED, {**COLUMNS, "then": "float"}, {}, "`then` is int64 there and double here"),
    "one column more": (TIMED, {**COLUMNS, "more": "int"}, {}, "`more` is missing there and int64 here"),
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_snapshot_goes_only_into_the_same_stream_and_says_what_differs(name: str) -> None:
    query, columns, options, said = ELSEWHERE[name]
    stream = cerite.query(TIMED).stream(COLUMNS, time="at")
    stream.push({"type": "A", "kind": "A", "at": 1, "then": 1})
    other = cerite.query(query).stream(columns, **{"time": "at", **options})
    with pytest.raises(SnapshotError, match=said):
        other.restore(stream.snapshot())
    assert other.rows == 0


def test_a_snapshot_is_bytes() -> None:
    stream = cerite.query(PAIR).stream(SCHEMA)
    stream.push(events("A"))
    saved = stream.snapshot()
    for wrong in ("text", None, 5):
        with pytest.raises(SnapshotError, match="a snapshot is bytes"):
            cerite.query(PAIR).stream(SCHEMA).restore(wrong)  # type: ignore[arg-type]
    for form in (bytearray(saved), memoryview(saved)):
        again = cerite.query(PAIR).stream(SCHEMA)
        again.restore(form)  # type: ignore[arg-type]
        assert again.push(events("B")).count() == 1


# ------------------------------------------------------------ merged streams
def test_merged_streams_whose_types_clash_are_refused() -> None:
    query = cerite.query("SELECT * FROM S, T WHERE A AS x ; B AS y")
    numbers, texts = pa.table({"type": ["A"], "at": [1], "v": [1]}), pa.table({"type": ["B"], "at": [2], "v": ["x"]})
    with pytest.raises(StreamError, match="column `v` is int64 in stream `S`, but string in stream `T`"):
        query.run({"S": numbers, "T": texts}, time="at")
    wider = pa.table({"type": ["B"], "at": [2], "v": [1.5]})
    assert query.run({"S": numbers, "T": wider}, time="at").count() == 1
