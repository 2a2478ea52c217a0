"""Conditions as Spark Columns say, value by value, what `evaluate.holds` says; many conditions in one Spark job."""

from __future__ import annotations

import math
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import Column, SparkSession
from pyspark.sql import types as ty

from cerite.automaton import guards
from cerite.core.errors import CeriteError
from cerite.predicate.evaluate import holds
from cerite.predicate.expression import Expression
from cerite.spark.driver.condition_columns import Conditions
from cerite.spark.driver.frame import Frame
from tests.properties.columns import conditions
from tests.telling import LARGE, refused

INTEGERS: dict[str, list[Any]] = {"id": [0, 1, -3, 2**63 - 1, -(2**63), None, 2**53 + 1, 2]}
SMALL: dict[str, list[Any]] = {"id": [0, 1, -3, 2**15 - 1, -(2**15), None, 7, 2]}
FLOATS: dict[str, list[Any]] = {"price": [0.5, -0.0, math.nan, math.inf, -math.inf, None, 1e308, 2.0]}
SHORT: dict[str, list[Any]] = {"price": [0.5, -0.0, math.nan, math.inf, -math.inf, None, 0.25, 2.0]}
DECIMALS: dict[str, list[Any]] = {
    "price": [
        None if each is None else Decimal(each).scaleb(-2) for each in (50, 0, -150, None, 35, 25, 10, 99_999_975)
    ]
}
TEXTS: dict[str, list[Any]] = {
    "type": ["a", "ab", "", None, "a", "b", "a", "ab"],
    "name": ["", "a", "ab", "b%", "é", None, "a\nb", "🦊"],
    "other": ["a", None, "é", "日本", "\0", "'", "aaaaaaaab", "_"],
    "ok": [True, False, None, True, False, None, True, True],
}
_INSTANTS = [
    datetime(1970, 1, 1, tzinfo=timezone.utc), None, datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=timezone.utc),
    datetime(2024, 3, 31, 1, tzinfo=timezone.utc), datetime(1900, 2, 3, 4, tzinfo=timezone.utc),
    datetime(2024, 3, 10, 7, 30, tzinfo=timezone.utc), datetime(2262, 4, 10, tzinfo=timezone.utc),
    datetime(1, 1, 2, tzinfo=timezone.utc),
]  # fmt: skip
_PLAIN = [None if each is None else each.replace(tzinfo=None) for each in reversed(_INSTANTS)]
_DATES = [None if each is None else each.date() for each in _PLAIN]

TABLES: dict[str, tuple[dict[str, Any], dict[str, ty.DataType]]] = {
    "long and double": ({**INTEGERS, **FLOATS, "until": _PLAIN}, {"id": ty.LongType(), "price": ty.DoubleType()}),
    "short and float": ({**SMALL, **SHORT, "until": _DATES}, {"id": ty.ShortType(), "price": ty.FloatType()}),
    "decimal": ({**INTEGERS, **DECIMALS, "until": _DATES}, {"id": ty.LongType(), "price": ty.DecimalType(10, 2)}),
    "two integers": (
        {**SMALL, "price": INTEGERS["id"], "until": _PLAIN}, {"id": ty.IntegerType(), "price": ty.LongType()}
    ),
}  # fmt: skip


def frame_of(spark: SparkSession, name: str) -> tuple[Frame, list[dict[str, Any]]]:
    values, types = TABLES[name]
    values = {**values, **TEXTS, "at": _INSTANTS}
    until = ty.DateType() if any(type(each) is date for each in values["until"]) else ty.TimestampNTZType()
    kinds = {**types, **dict.fromkeys(("type", "name", "other"), ty.StringType()), "ok": ty.BooleanType()}
    kinds |= {"at": ty.TimestampType(), "until": until}
    schema = ty.StructType([ty.StructField(each, kinds[each]) for each in values])
    rows = [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]
    return Frame(spark.createDataFrame([tuple(row.values()) for row in rows], schema)), rows


@pytest.mark.parametrize("table", TABLES)
@settings(max_examples=2, deadline=None, suppress_health_check=LARGE, phases=[Phase.generate])
@given(some=st.lists(conditions(), min_size=60, max_size=60))
def test_differential_values(spark: SparkSession, table: str, some: list[Expression]) -> None:
    frame, rows = frame_of(spark, table)
    columns: dict[int, Column] = {}
    for k, condition in enumerate(some):
        try:
            columns[k] = column_of(frame, guards.Test("a" if k % 5 == 0 else None, condition))
        except CeriteError as error:
            if not refused(error):
                raise
    assert len(columns) > 0.8 * len(some), "few conditions are refused because of their numbers"
    result = frame.df.select(*columns.values()).collect()
    for at, k in enumerate(columns):
        expected = [(k % 5 > 0 or row["type"] == "a") and holds(some[k], row) for row in rows]
        assert [row[at] is True for row in result] == expected, f"{some[k]} on {table}"


def column_of(frame: Frame, test: guards.Test) -> Column:
    """What Spark evaluates."""
    on = Conditions(frame, "type")
    return on.column(on.test(test))
