"""Both ends belong to a window, exactly: whatever the column's type, how large its values are and how it is written."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import cerite
from cerite.core.errors import StreamError
from tests.exact import agreed, table

D = Decimal
BIG = 2**53
NEW_YEAR = datetime(2024, 1, 1, tzinfo=timezone.utc)
TEN = timedelta(seconds=10)
UNITS = {"s": TEN, "ms": TEN, "us": TEN, "ns": TEN}


def test_a_window_of_floats_includes_its_end() -> None:
    """`10000.1 - 0.1` is 10000.0 in floats, thousands of floats away from the least start that rounding allows."""
    assert agreed("A ; B WITHIN 10 seconds", table(pa.float64(), 0.1, 10000.1), time="v")
    assert agreed("A ; B WITHIN 10000 [v]", table(pa.float64(), 0.1, 10000.1))
    assert agreed("A ; B WITHIN 0.1 [v]", table(pa.float64(), -0.0, 0.1))
    assert not agreed("A ; B WITHIN 0.1 [v]", table(pa.float64(), 0.0, 0.10000000000000002))


@pytest.mark.parametrize(
    ("kind", "start", "width", "step"),
    [
        (pa.decimal128(8, 2), D("0.10"), D("10.01"), D("0.01")),
        (pa.decimal128(18, 0), D(BIG + 1), D(7), D(1)),
        (pa.decimal128(38, 2), D("90071992547409.93"), D("0.01"), D("0.01")),
        (pa.decimal256(76, 3), D("-1.001"), D("0.25"), D("0.001")),
        (pa.int64(), BIG + 1, 1, 1),
        (pa.int64(), -(2**63), BIG + 1, 1),
        (pa.int64(), 2**63 - 2, 0, 1),
        (pa.uint64(), 2**63 - 3, 5, 1),
        (pa.uint64(), 2**64 - 3, 1, 1),
        (pa.uint64(), 2**63, 2**63 - 2, 1),
        (pa.uint8(), 0, 254, 1),
        (pa.float32(), 0.5, 0.25, 2.0**-24),
        (pa.dictionary(pa.int8(), pa.int64()), BIG + 1, 1, 1),
    ],
    ids=str,
)
def test_the_end_of_a_window_is_exact(kind: pa.DataType, start: Any, width: Any, step: Any) -> None:
    inside, outside = table(kind, start, start + width), table(kind, start, start + width + step)
    for window in (f"WITHIN {width} [v]", f"WITHIN {width} milliseconds"):
        time = "v" if "milli" in window else None
        assert agreed(f"A ; B {window}", inside, time)
        assert not agreed(f"A ; B {window}", outside, time)
        assert agreed(f"(A ; B {window}) FILTER A[v = v]", inside, time)
    together = f"((A AS x ; B AS y) WITHIN {width} [v]) OR (C AS x ; C AS x)"  # a part's window: a register
    assert agreed(together, inside)
    assert not agreed(together, outside)


def test_a_window_is_as_long_as_written() -> None:
    """1.001 seconds are 1001 milliseconds, although 1.001 * 1000 is less in floats."""
    assert agreed("A ; B WITHIN 1.001 seconds", table(pa.int64(), 0, 1001), time="v")
    assert not agreed("A ; B WITHIN 1.001 seconds", table(pa.int64(), 0, 1002), time="v")
    assert agreed("A ; B WITHIN 0.1 [v]", table(pa.decimal128(3, 1), D("0.2"), D("0.3")))


@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
@pytest.mark.parametrize("unit", UNITS)
def test_timestamps_of_every_unit_and_zone_include_the_end(unit: str, zone: str | None) -> None:
    kind = pa.timestamp(unit, zone)
    ticks = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    begin = int(NEW_YEAR.timestamp()) * ticks
    for more, expected in ((0, 1), (1, 0)):
        column = pa.array([begin, begin + 10 * ticks + more], pa.int64()).cast(kind)
        events = pa.table({"type": ["A", "B"], "at": column})
        assert len(agreed("A ; B WITHIN 10 seconds", events, time="at")) == expected


def test_dates_are_times() -> None:
    events = pa.table({"type": ["A", "B", "C"], "at": [date(2024, 2, 28), date(2024, 2, 29), date(2024, 3, 1)]})
    assert agreed("A ; B WITHIN 1 days", events, time="at")
    assert not agreed("A ; C WITHIN 1 days", events, time="at")
    assert agreed("A ; C WITHIN 2 days", events, time="at")


def test_decimals_of_too_many_digits_are_refused_with_what_to_do() -> None:
    events = table(pa.decimal128(38, 18), D("100.35"), D("101"))
    with pytest.raises(StreamError, match="more digits than 64 bits") as refused:
        cerite.query("SELECT * FROM S WHERE A ; B WITHIN 1 [v]").run(events).count()
    assert "decimal(18, 6)" in str(refused.value)


def test_infinite_values_are_in_the_windows_of_their_equals_only() -> None:
    infinite = float("inf")
    assert agreed("B ; C WITHIN 5 [v]", table(pa.float64(), 1.0, infinite, infinite))
    assert agreed("A ; B WITHIN 5 [v]", table(pa.float64(), -infinite, -infinite))
    assert not agreed("A ; B WITHIN 5 [v]", table(pa.float64(), 1.0, infinite))
    assert not agreed("A ; B WITHIN 5 [v]", table(pa.float64(), -infinite, 1.0))


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.float16(), pa.dictionary(pa.int8(), pa.float64())])
def test_zero_and_minus_zero_are_one_partition(kind: pa.DataType) -> None:
    values = pa.array([0.0, -0.0, float("nan"), float("nan")])
    column = values.dictionary_encode() if pa.types.is_dictionary(kind) else values.cast(kind)
    events = pa.table({"type": ["A", "B", "A", "B"], "v": column})
    assert len(agreed("A ; B PARTITION BY [v]", events)) == 1
    assert len(agreed("A ; B PARTITION BY [v], [type]", events)) == 0
    assert len(agreed("(A AS x ; B AS y) FILTER y[v = x.v]", events)) == 1


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.string_view(), ["a", "a"]),
        (pa.dictionary(pa.int32(), pa.string()), ["a", "a"]),
        (pa.decimal128(38, 2), [D("0.1"), D("0.10")]),
        (pa.decimal256(76, 2), [D(10) ** 60, D(10) ** 60]),
        (pa.uint64(), [2**64 - 1, 2**64 - 1]),
        (pa.date32(), [date(2024, 1, 1)] * 2),
        (pa.timestamp("ns", "Asia/Tokyo"), [NEW_YEAR] * 2),
        (pa.bool_(), [True, True]),
    ],
    ids=str,
)
def test_partitions_of_every_type(kind: pa.DataType, values: list[Any]) -> None:
    assert len(agreed("A ; B PARTITION BY [v]", table(kind, *values))) == 1


def test_events_out_of_order_are_named_by_their_values() -> None:
    with pytest.raises(StreamError, match=r"`v` decreases at row 1: 0\.25 after 0\.35"):
        cerite.query("SELECT * FROM S WHERE A").run(table(pa.decimal128(8, 2), D("0.35"), D("0.25")), time="v").count()
    with pytest.raises(StreamError, match="decreases at row 1: 18446744073709551614 after 18446744073709551615"):
        cerite.query("SELECT * FROM S WHERE A").run(table(pa.uint64(), 2**64 - 1, 2**64 - 2), time="v").count()


@pytest.mark.parametrize(
    ("kind", "later", "earlier"),
    [
        (pa.decimal128(8, 2), D("1.50"), D("0.50")),
        (pa.decimal256(60, 2), D("1.50"), D("0.50")),
        (pa.uint64(), 2**64 - 1, 2**64 - 2),
        (pa.int64(), 2**60 + 1, 2**60),
        (pa.float64(), 0.5, -0.0),
    ],
    ids=str,
)
def test_order_by_sorts_exactly(kind: pa.DataType, later: Any, earlier: Any) -> None:
    events = pa.table({"type": ["B", "A"], "v": pa.array([later, earlier], kind)})
    matches = cerite.query("SELECT * FROM S WHERE A ; B WITHIN 1 [v]").run(events, order_by=["v"])
    assert list(map(str, matches)) == ["[1,0] A=1, B=0"]


def test_zeros_of_both_signs_keep_the_order_they_arrive_in() -> None:
    events = pa.table({"type": ["B", "A"], "v": [0.0, -0.0]})
    assert not list(cerite.query("SELECT * FROM S WHERE A ; B WITHIN 1 [v]").run(events, order_by=["v"]))
