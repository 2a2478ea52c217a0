"""Comparisons by exact value: decimals with constants as written, whole numbers with floats, instants of all units."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import cerite
from cerite.core.errors import CeriteError
from cerite.predicate.columns.read import digits
from tests.exact import agreed, table

D = Decimal
BIG = 2**53
NOON = datetime(2024, 5, 1, 12, tzinfo=timezone.utc)


@pytest.mark.parametrize("kind", [pa.decimal128(8, 2), pa.decimal128(38, 18), pa.decimal256(60, 2), pa.decimal32(8, 2)])
def test_decimals_compare_as_decimals_with_constants_as_written(kind: pa.DataType) -> None:
    prices = table(kind, D("0.35"), D("0.40"), D("0.35"))
    assert agreed("A[v = 0.35]", prices)
    assert agreed("A[v IN {0.1, 0.35}]", prices)
    assert agreed("B[v = 0.40 AND v > 0.39999999999999999999]", prices)
    assert not agreed("A[v != 0.35] OR A[v > 0.35] OR A[v < 0.35]", prices)
    assert agreed("(A AS x ; C AS y) FILTER y[v = x.v]", prices)
    assert agreed("(A AS x ; B AS y) FILTER y[v > x.v]", prices)


def test_a_constant_of_many_digits_is_kept_as_written() -> None:
    exact = table(pa.decimal128(38, 25), D("0.1234567890123456789012345"))
    assert agreed("A[v = 0.1234567890123456789012345]", exact)
    assert not agreed("A[v = 0.1234567890123456789012346]", exact)
    assert agreed("A[v = -0.1234567890123456789012345]", table(pa.decimal128(38, 25), -exact["v"][0].as_py()))


def test_decimals_calculate_exactly() -> None:
    prices = table(pa.decimal128(8, 2), D("0.35"), D("0.40"), D("0.30"))
    assert agreed("(A AS x ; B AS y) FILTER y[v - x.v = 0.05]", prices)
    assert agreed("(A AS x ; C AS y) FILTER y[v - x.v = -0.05]", prices)
    assert agreed("B[v * 1.1 = 0.44]", prices)
    assert agreed("(A AS x ; B AS y) FILTER y[v > x.v * 1.14 AND v < x.v * 1.15]", prices)
    assert agreed("(A AS x ; B AS y) FILTER y[(v - x.v) / x.v > 0.14]", prices)
    assert agreed("A[v % 0.1 = 0.05]", prices)


@pytest.mark.parametrize(
    ("mine", "value", "others", "other", "order"),
    [
        (pa.int64(), BIG + 1, pa.float64(), float(BIG), ">"),
        (pa.int64(), 2**63 - 1, pa.float64(), 2.0**63, "<"),
        (pa.uint64(), 2**63, pa.int64(), -1, ">"),
        (pa.uint64(), 2**64 - 1, pa.uint64(), 2**64 - 2, ">"),
        (pa.decimal128(8, 2), D("0.10"), pa.float64(), 0.1, "<"),
        (pa.decimal128(8, 2), D("0.50"), pa.float64(), 0.5, "="),
        (pa.decimal128(8, 2), D("35.00"), pa.int32(), 35, "="),
        (pa.decimal128(38, 2), D(BIG + 1), pa.int64(), BIG, ">"),
        (pa.decimal128(8, 2), D("0.35"), pa.decimal128(38, 20), D("0.35000000000000000001"), "<"),
        (pa.float64(), -0.0, pa.float64(), 0.0, "="),
        (pa.date32(), date(2024, 5, 1), pa.timestamp("ns", "Asia/Tokyo"), NOON, "<"),
        (pa.timestamp("s"), NOON.replace(tzinfo=None), pa.timestamp("us", "America/New_York"), NOON, "="),
        (pa.dictionary(pa.int8(), pa.timestamp("ns")), NOON.replace(tzinfo=None), pa.timestamp("s", "UTC"), NOON, "="),
        (pa.string_view(), "b", pa.dictionary(pa.int8(), pa.string()), "a", ">"),
    ],
    ids=str,
)
def test_kinds_meet_by_their_values(mine: Any, value: Any, others: Any, other: Any, order: str) -> None:
    """Within an event, and across events where that is not refused."""
    events = pa.table({"type": ["A", "B"], "v": _column(value, mine), "w": _column(other, others)})
    for op in ("=", "<", ">"):
        assert bool(agreed(f"A[v {op} w]", events)) == (op == order)
        assert bool(agreed(f"A[NOT (v {op} w)]", events)) == (op != order)
        try:
            matches = agreed(f"(A AS x ; B AS y) FILTER y[v {op} x.w]", events)
        except CeriteError as error:
            assert "exactly" in str(error)  # noqa: PT017
            assert max(abs(value), abs(other)) > BIG
        else:
            assert bool(matches) == (op == order)


def _column(value: Any, kind: pa.DataType) -> pa.Array:
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    column = pa.array([value, value], plain)
    return column.dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else column


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint64()], ids=str)
@pytest.mark.parametrize("value", [BIG + 1, 2**62 + 1, 2**63 - 1])
def test_large_numbers_meet_floats_of_other_events_exactly(kind: pa.DataType, value: int) -> None:
    near = float(value)
    events = pa.table({"type": ["A", "B"], "v": pa.array([value, value], kind), "w": [near, near]})
    assert not agreed("(A AS x ; B AS y) FILTER y[v = x.w]", events)
    assert bool(agreed("(A AS x ; B AS y) FILTER y[v < x.w]", events)) == (value < int(near))
    assert bool(agreed("(A AS x ; B AS y) FILTER y[w < x.v]", events)) == (value > int(near))


def test_computed_decimals_meet_floats_of_other_events_exactly() -> None:
    """0.3 as a float is less than the decimal 0.3."""
    events = pa.table({"type": ["A", "B"], "v": pa.array([D("0.10"), D("0.40")], pa.decimal128(8, 2)), "w": [0.3, 0.3]})
    assert agreed("(A AS x ; B AS y) FILTER y[v - x.v > w]", events)
    assert not agreed("(A AS x ; B AS y) FILTER y[v - x.v = x.w]", events)
    assert agreed("(A AS x ; B AS y) FILTER y[x.w + 0 < v - x.v]", events)


def test_what_is_not_exact_is_refused_with_advice() -> None:
    far = pa.array([D("1E-30"), D("2E-30")], pa.decimal128(38, 30))
    events = pa.table({"type": ["A", "B"], "v": far, "w": [0.5, 0.5]})
    with pytest.raises(CeriteError, match="cannot be compared with exactly") as refused:
        cerite.query("SELECT * FROM S WHERE (A AS x ; B AS y) FILTER y[v > x.w]").run(events).count()
    assert "cast" in str(refused.value)


def test_a_single_decimal_that_is_null_is_not_written_to() -> None:
    """A batch of one row may be a view of memory that is not ours."""
    shared = [pa.py_buffer(b"\0"), pa.py_buffer(bytes(16))]
    assert digits(pa.Array.from_buffers(pa.decimal128(8, 2), 1, shared)) == [0]
