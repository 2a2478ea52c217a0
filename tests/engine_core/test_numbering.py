"""Numbers of values: by first appearance, the same over batches, layouts and snapshots, for every kind of column."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cerite.engine.events.partitions import Numbering

VALUES: dict[pa.DataType, list[Any]] = {
    pa.int64(): [0, -1, 2**63 - 1, -(2**63), 7],
    pa.uint64(): [0, 2**64 - 1, 2**63, 7],
    pa.int8(): [0, -128, 127],
    pa.string(): ["", "a", "ä", "a" * 40, "a" * 41, "12345678"],
    pa.large_string(): ["", "b", "𝄞"],
    pa.bool_(): [True, False],
    pa.float64(): [0.5, -1.0, 3.0],
    pa.decimal128(5, 2): [Decimal("1.25"), Decimal("-3.00")],
    pa.timestamp("us", "UTC"): [datetime(2024, 1, 1, tzinfo=timezone.utc), datetime(1960, 1, 1, tzinfo=timezone.utc)],
    pa.date32(): [date(2024, 1, 1), date(1960, 1, 1)],
}
BATCHES = st.sampled_from(list(VALUES)).flatmap(
    lambda kind: st.tuples(
        st.just(kind),
        st.lists(st.tuples(st.booleans(), st.lists(st.sampled_from([*VALUES[kind], None]), max_size=12)), max_size=4),
    )
)


@settings(max_examples=400, deadline=None)
@given(BATCHES)
def test_numbers_by_first_appearance(drawn: tuple[pa.DataType, list[tuple[bool, list[Any]]]]) -> None:
    kind, batches = drawn
    numbering = Numbering()
    expected: dict[Any, int] = {}
    for encoded, values in batches:
        column = pa.array(values, kind)
        numbers = numbering.of(column.dictionary_encode() if encoded else column).tolist()
        if not encoded:  # a dictionary's values may come in another order than the rows'
            assert numbers == [-1 if value is None else expected.setdefault(value, len(expected)) for value in values]
        for value, number in zip(values, numbers, strict=True):
            assert number == (-1 if value is None else expected.setdefault(value, number))
        assert sorted(expected.values()) == list(range(len(expected)))
        again = Numbering()
        again.restore(numbering.state())
        numbering = again


@pytest.mark.parametrize("kind", [pa.int64(), pa.string()])
def test_many_values(kind: pa.DataType) -> None:
    values = pa.array([k * 7919 % 50_021 for k in range(50_000)]).cast(kind)
    numbering = Numbering()
    for begin in range(0, 50_000, 9_000):
        part = values.slice(begin, 9_000)
        assert numbering.of(part).tolist() == list(range(begin, begin + len(part)))
    assert numbering.of(values).tolist() == list(range(50_000))
    assert numbering.known.to_pylist() == values.to_pylist()  # type: ignore[union-attr]


def test_a_dictionary_with_a_value_twice() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None]), pa.array(["a", "b", "a"]))
    assert Numbering().of(column).tolist() == [0, 1, 0, -1]
