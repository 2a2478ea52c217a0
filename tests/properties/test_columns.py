"""Conditions evaluated by columns say the same as `holds` says row by row, whatever the columns' types and layout."""

from __future__ import annotations

from datetime import date, datetime, timezone
from itertools import pairwise, product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from cerite.core.errors import StreamError
from cerite.core.schema import Schema
from cerite.language.ceql import parse_condition
from cerite.predicate.columns import bits as module
from cerite.predicate.columns import codes as columns_codes
from cerite.predicate.columns.bits import Condition, ConditionBits
from cerite.predicate.evaluate import compare, holds
from cerite.predicate.expression import (
    Attribute,
    Comparison,
    Expression,
    Like,
    Literal,
)
from tests.properties.columns import TEXTS, batches, conditions
from tests.telling import often, refused

MANY = often(600)
SOME = often(100)


def typed() -> st.SearchStrategy[Condition]:
    return st.tuples(st.sampled_from([None, "a", "ab", ""]), st.none() | conditions())


# ---------------------------------------------------------------- the reference
def _plain(value: Any) -> Any:
    """An Arrow value as `holds` wants it: numbers as int, float and Decimal, times as instants in UTC."""
    if isinstance(value, np.floating):
        return float(value)
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc) if value.tzinfo else value
    return datetime(value.year, value.month, value.day) if isinstance(value, date) else value


def read(bits: ConditionBits, batch: pa.RecordBatch) -> Any:
    """The bits; a case that calculates with decimals of too many digits is refused and tells nothing."""
    try:
        return bits.bits(batch)
    except StreamError as error:
        if not refused(error):
            raise
        reject()


def rows_of(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    return [{name: _plain(value) for name, value in row.items()} for row in batch.to_pylist()]


def expected(conditions: list[Condition], batch: pa.RecordBatch, type_column: str | None) -> list[list[bool]]:
    return [
        [
            (event_type is None or type_column is None or row.get(type_column) == event_type) and holds(condition, row)
            for event_type, condition in conditions
        ]
        for row in rows_of(batch)
    ]


def truth(bits: np.ndarray[Any, np.dtype[np.uint64]], count: int) -> list[list[bool]]:
    assert bits.dtype == np.uint64
    assert bits.shape[1] == max(1, -(-count // 64))
    whole = [sum(int(word) << 64 * number for number, word in enumerate(row)) for row in bits]
    assert all(row >> count == 0 for row in whole)
    return [[bool(row >> number & 1) for number in range(count)] for row in whole]


# ---------------------------------------------------------------- the properties
@MANY
@given(st.lists(typed(), min_size=1, max_size=4), batches(), st.sampled_from(["type", "type", None, "nowhere"]))
def test_bits_are_what_holds_says(given_: list[Condition], batch: pa.RecordBatch, type_column: str | None) -> None:
    bits = ConditionBits(given_, batch.schema, type_column)
    assert set(bits.columns) <= set(batch.schema.names)
    assert truth(read(bits, batch), len(given_)) == expected(given_, batch, type_column)


@SOME
@given(
    st.lists(typed(), min_size=1, max_size=4), batches(30), st.lists(st.integers(0, 30), max_size=4), st.integers(1, 9)
)
def test_batch_and_block_boundaries_do_not_matter(
    given_: list[Condition], batch: pa.RecordBatch, cuts: list[int], block: int
) -> None:
    """One object reads the pieces of a batch, in blocks of any size, with its memory of the pieces before."""
    whole = read(ConditionBits(given_, batch.schema, "type"), batch)
    pieces = ConditionBits(given_, batch.schema, "type")
    ends = [0, *sorted(min(cut, batch.num_rows) for cut in cuts), batch.num_rows]
    before, module._BLOCK = module._BLOCK, block
    try:
        parts = [pieces.bits(batch.slice(a, b - a)) for a, b in pairwise(ends)]
    finally:
        module._BLOCK = before
    assert np.array_equal(np.concatenate(parts), whole)


@SOME
@given(st.lists(typed(), min_size=1, max_size=5), st.integers(65, 140), batches(4))
def test_more_conditions_than_a_word_has_bits(some: list[Condition], count: int, batch: pa.RecordBatch) -> None:
    apart = [Comparison("=", Attribute("id"), Literal(number % 16 - 8)) for number in range(count)]
    given_ = [some[number % 7] if number % 7 < len(some) else ("a", apart[number]) for number in range(count)]
    bits = ConditionBits(given_, batch.schema, "type")
    assert truth(read(bits, batch), len(given_)) == expected(given_, batch, "type")


@SOME
@given(st.lists(conditions(), min_size=1, max_size=3), st.lists(batches(), min_size=2, max_size=4))
def test_layouts_may_change_from_batch_to_batch(given_: list[Expression], some: list[pa.RecordBatch]) -> None:
    """Plain or dictionary, narrow or wide: what counts is the kind, so batches of one kind may differ in type."""
    pairs: list[Condition] = [(None, each) for each in given_]
    bits = ConditionBits(pairs, some[0].schema, None)
    for batch in some:
        names = [name for name in batch.schema.names if _fits(batch.schema, some[0].schema, name)]
        part = batch.select(names) if names else pa.record_batch({"x": pa.nulls(batch.num_rows)})
        assert truth(read(bits, part), len(pairs)) == expected(pairs, part, None)


def _fits(schema: pa.Schema, first: pa.Schema, name: str) -> bool:
    kinds = [Schema.of_arrow(each).columns or {} for each in (schema, first)]
    return name in first.names and kinds[0].get(name) == kinds[1].get(name)


@SOME
@given(
    st.lists(st.none() | st.text(max_size=20) | TEXTS, min_size=1, max_size=60),
    st.sampled_from([1, 2, 8]),
    conditions(),
)
def test_more_strings_than_are_numbered(names: list[str | None], most: int, condition: Expression) -> None:
    before, columns_codes._MOST = columns_codes._MOST, most
    try:
        whole = pa.record_batch({"name": pa.array(names)})
        pairs: list[Condition] = [(None, condition), (None, Like(Attribute("name"), "a%")), ("é", None)]
        bits = ConditionBits(pairs, whole.schema, "name")
        for batch in (whole, whole.slice(len(names) // 2), whole):
            assert truth(bits.bits(batch), 3) == expected(pairs, batch, "name")
    finally:
        columns_codes._MOST = before


# ---------------------------------------------------------------- by hand
def _one(text: str, **values: pa.Array) -> list[bool]:
    batch = pa.record_batch(values)
    return [row[0] for row in truth(ConditionBits([(None, parse_condition(text))], batch.schema, None).bits(batch), 1)]


def test_equal_atoms_are_listed_once() -> None:
    texts = ["price > 3 AND name = 'a'", "3 < price OR name LIKE 'a%'", "NOT (price <= 3)", "name = 'a'"]
    schema = pa.schema({"name": pa.string(), "unused": pa.int8(), "price": pa.int64(), "type": pa.string()})
    bits = ConditionBits([("a", parse_condition(text)) for text in texts], schema, "type")
    assert list(map(str, bits.atoms)) == ["type = 'a'", "price > 3", "name = 'a'", "name LIKE 'a%'"]
    assert bits.columns == ("name", "price", "type")


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 128, 129])
def test_words(count: int) -> None:
    pairs: list[Condition] = [(None, Comparison("=", Attribute("id"), Literal(number))) for number in range(count)]
    batch = pa.record_batch({"id": pa.array([0, 64, 128, None, 7])})
    bits = ConditionBits(pairs, batch.schema, None)
    assert truth(bits.bits(batch), count) == expected(pairs, batch, None)
    assert bits.bits(batch.slice(0, 0)).shape == (0, max(1, -(-count // 64)))


OPERATORS = ("=", "!=", "<", "<=", ">", ">=")


@pytest.mark.parametrize("sum_", ["id", "id + price", "id - price", "price - id", "id * price", "price / id", "-price"])
def test_signed_with_unsigned(sum_: str) -> None:
    """Every pair of extremes."""
    signed = [-(2**63), -(2**63) + 1, -1, 0, 1, 2**62, 2**63 - 1]
    unsigned = [0, 1, 2**62, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1]
    pairs = list(product(signed, unsigned))
    numbers = (pa.array([pair[0] for pair in pairs], pa.int64()), pa.array([pair[1] for pair in pairs], pa.uint64()))
    batch = pa.record_batch(dict(zip(("id", "price"), numbers, strict=True)))
    texts = [f"{sum_} {op} {other}" for op in OPERATORS for other in ("price", "id", "0", f"{2**63 - 1}")]
    given_: list[Condition] = [(None, parse_condition(text)) for text in [*texts, f"({sum_}) IS NULL"]]
    assert truth(ConditionBits(given_, batch.schema, None).bits(batch), len(given_)) == expected(given_, batch, None)


@pytest.mark.parametrize(("one", "other"), list(product(("s", "ms", "us", "ns"), repeat=2)))
def test_times_in_two_units(one: str, other: str) -> None:
    units = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
    pairs = list(product([-1_000_000_001, -(10**9), -1, 0, 1, 10**9, 10**9 + 10**6, 10**9 + 10**3], repeat=2))
    at = [pair[0] // units[one] for pair in pairs]
    until = [pair[1] // units[other] for pair in pairs]
    for op in OPERATORS:
        says = [compare(op, a * units[one], b * units[other]) for a, b in zip(at, until, strict=True)]
        times = {"at": pa.array(at, pa.timestamp(one)), "until": pa.array(until, pa.timestamp(other, "Asia/Tokyo"))}
        assert _one(f"at {op} until", **times) == says


def test_strings_that_share_a_slot_are_distinguished() -> None:
    """Thousands of strings alike in length and first eight bytes: some have the same place in the hash table."""
    names = pa.array([f"the same{number:06d}{'é' * (number % 3)}" for number in range(9000)] * 2)
    coded = columns_codes.Coder().coded(names)
    assert len(coded.dictionary) == 9000
    assert coded.dictionary.take(pa.array(coded.codes)).cast(pa.string()).equals(names)


def test_remainders_are_exact() -> None:
    numbers = pa.array([2**53 + 1, 2**62 + 1, -(2**62) - 1, -(2**63), 2**63 - 1])
    assert _one(f"id % {2**62} = 1", id=numbers) == [False, True, False, False, False]
    assert _one(f"id % {2**60 - 1} = 0 - 8", id=numbers) == [False, False, False, True, False]
    assert _one("id % (0 - 1) = 0", id=numbers) == [True] * 5


def test_times_beyond_the_calendar() -> None:
    """Seconds reach further than `datetime`, nanoseconds less far than a literal."""
    seconds = pa.array([-(2**63), 0, 2**63 - 1], pa.timestamp("s"))
    assert _one("at < '0001-01-01'", at=seconds) == [True, False, False]
    assert _one("at > '9999-12-31'", at=seconds) == [False, False, True]
    nanos = pa.array([-(2**63), 0, 2**63 - 1], pa.timestamp("ns"))
    assert _one("at < until", at=nanos, until=seconds) == [False, False, True]
    assert _one("at > '9999-12-31'", at=nanos) == [False] * 3
    assert _one("at != '9999-12-31'", at=nanos) == [True] * 3


def test_unaligned_buffers() -> None:
    raw = pa.py_buffer(b"x" + np.arange(40, dtype=np.int64).tobytes()).slice(1)
    numbers = pa.Array.from_buffers(pa.int64(), 40, [None, raw])
    texts = pa.array([str(number % 5) * (number % 20) for number in range(40)])
    moved = [pa.py_buffer(b"x" + buffer.to_pybytes()).slice(1) for buffer in texts.buffers()[1:]]
    names = pa.Array.from_buffers(pa.string(), 40, [None, *moved])
    batch = pa.record_batch({"id": numbers, "name": names})
    pairs: list[Condition] = [(None, parse_condition("id > 7 AND name < '3333'"))]
    assert truth(ConditionBits(pairs, batch.schema, None).bits(batch), 1) == expected(pairs, batch, None)
