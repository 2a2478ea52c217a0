"""Conditions that columns cannot evaluate are refused when they are given, in words."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

import cerite
from cerite.core.errors import CeriteWarning, PatternError, SchemaError
from cerite.language.ceql import parse_condition
from cerite.predicate.columns.bits import ConditionBits
from cerite.predicate.expression import Attribute, Comparison, Expression, Like, Literal

SCHEMA = pa.schema({
    "type": pa.string(), "id": pa.int32(), "price": pa.float64(), "name": pa.dictionary(pa.int32(), pa.string()),
    "ok": pa.bool_(), "at": pa.timestamp("us"), "list": pa.list_(pa.int64()), "raw": pa.binary(),
    "clock": pa.time64("us"),
})  # fmt: skip


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("id LIKE 'a%'", "LIKE needs a string, but `id` is a number"),
        ("name > 3", "`>` compares things of one kind, but `name` is a string and `3` is a number"),
        ("name + 1 > 3", "`+` needs numbers, but `name` is a string"),
        ("-ok > 3", "`-` needs a number, but `ok` is a bool"),
        ("ok < TRUE", "booleans have no order for `<`"),
        ("price", "a condition must be true or false, but `price` is a number"),
        ("NOT name", "NOT and IS TRUE need a condition, but `name` is a string"),
        ("id IN {1, 'a'}", "`=` compares things of one kind, but `id` is a number and `'a'` is a string"),
        ("at > 'yesterday'", "`>` compares things of one kind, but `at` is a timestamp and `'yesterday'` is a string"),
        ("at + 1 > at", "`+` needs numbers, but `at` is a timestamp"),
        ("list IS NULL", "column `list` is list<item: int64>, which conditions cannot read"),
        ("raw = 'a'", "column `raw` is binary, which conditions cannot read"),
        ("clock IS NULL", "column `clock` is time64[us], which conditions cannot read"),
    ],
)
def test_wrong_kinds(text: str, says: str) -> None:
    with pytest.raises(SchemaError) as refused:
        ConditionBits([(None, parse_condition(text))], SCHEMA, "type")
    assert refused.value.message == says
    assert refused.value.span is not None


def test_references() -> None:
    with pytest.raises(PatternError, match=r"`x\.price` reads another event"):
        ConditionBits([(None, parse_condition("price > x.price"))], SCHEMA, None)


def test_a_type_column_that_is_no_string() -> None:
    with pytest.raises(SchemaError, match="`id` is a number and `'BUY'` is a string"):
        ConditionBits([("BUY", None)], SCHEMA, "id")
    with pytest.raises(SchemaError, match="column `list` is list"):
        ConditionBits([("BUY", None)], SCHEMA, "list")


def test_two_columns_of_one_name() -> None:
    schema = pa.schema([("id", pa.int64()), ("id", pa.string())])
    with pytest.raises(SchemaError, match="two columns are called `id`"):
        ConditionBits([(None, parse_condition("id = 1"))], schema, None)


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        (Comparison("=", Attribute("id"), Literal(2**64)), "integers have 64 bits"),
        (Comparison("=", Attribute("name"), Literal("\ud83e")), "is not text"),
        (Like(Attribute("name"), "a\ud83e"), "is not text"),
        (Like(Attribute("name"), "a%_" * 4000), "at most 10000 characters"),
    ],
)
def test_constants_that_no_column_can_hold(condition: Expression, says: str) -> None:
    with pytest.raises(SchemaError, match=says):
        ConditionBits([(None, condition)], SCHEMA, None)


def test_a_batch_of_another_kind() -> None:
    bits = ConditionBits([(None, parse_condition("id = 1 AND name = 'a'"))], SCHEMA, None)
    with pytest.raises(SchemaError, match="column `id` is string in this batch, but the stream was opened with int32"):
        bits.bits(pa.record_batch({"id": ["1"], "name": ["a"]}))
    with pytest.raises(SchemaError, match="column `name` is list<item: string> in this batch"):
        bits.bits(pa.record_batch({"id": [1], "name": [["a"]]}))
    assert bits.bits(pa.record_batch({"id": [1, 2], "name": ["a", "a"]})).tolist() == [[1], [0]]


def test_it_can_be_sent_to_another_process() -> None:
    """Also after it has read a batch."""
    batch = pa.record_batch({"id": [1, 2, 1], "name": ["a", "b", None], "price": [1.0, 2.0, None]})
    pairs = [(None, parse_condition(text)) for text in ("name = 'a' OR price > 1", "id = 1", "name IS NULL")]
    bits = ConditionBits(pairs, batch.schema, None)
    before = bits.bits(batch).tolist()
    assert before == [[3], [1], [6]]
    assert pickle.loads(pickle.dumps(bits)).bits(batch).tolist() == before


def test_a_dictionary_that_changes_between_runs_is_looked_at_again() -> None:
    """What a query found out about a dictionary it takes up again with that dictionary, and no other."""
    query = cerite.query("SELECT * FROM S WHERE A ; B")
    for values, count in (("AB", 1), ("AB", 1), ("BA", 0), ("AB", 1)):
        column = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), pa.array(list(values)))
        assert query.run(pa.table({"type": column})).count() == count, values
    for _ in range(2):
        column = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), pa.array(["A", "C"]))
        with pytest.warns(CeriteWarning, match="no event has the type `B`"):
            assert query.run(pa.table({"type": column})).count() == 0
