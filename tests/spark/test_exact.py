"""Exact values on Spark: the ends of windows at every cut, partitions, comparisons; what the local engine finds."""

from __future__ import annotations

from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import types as ty

from cerite.api.query import query
from cerite.automaton import guards
from cerite.core.errors import StreamError
from cerite.predicate.evaluate import holds
from cerite.predicate.expression import Arithmetic, Attribute, Comparison, Expression, Literal
from cerite.spark import match
from cerite.spark.driver.condition_columns import Conditions
from cerite.spark.driver.frame import Frame
from tests.spark.support import POSITION, collect_all, difference, frame, some_by_day
from tests.telling import LARGE

D = Decimal
ROWS = 120
STEPS = [0, 1, 1, 2, 3, 3, 7, 10, 11, 13]  # the ends of windows of 10 steps are met again and again
PLACES = [20 * (row // 10) + STEPS[row % 10] for row in range(ROWS)]
CLOCKS: dict[str, tuple[pa.DataType, list[Any], str]] = {
    "tenths as floats": (pa.float64(), [place / 10 for place in PLACES], "1"),
    "tenths as decimals": (pa.decimal128(10, 1), [D(place) / 10 for place in PLACES], "1"),
    "wide decimals": (pa.decimal128(38, 2), [D(place) / 10 + 2**45 for place in PLACES], "1"),
    "large numbers": (pa.int64(), [2**60 + place for place in PLACES], "10"),
    "large steps": (pa.int64(), [(2**54 + 1) * place - 2**62 for place in PLACES], str(10 * (2**54 + 1))),
    "microseconds": (pa.timestamp("us", "UTC"), [1_700_000_000_000_000 + place for place in PLACES], "0.01"),
}
BY_DAY = ("tenths as floats", "wide decimals", "large steps")


def stream(name: str) -> pa.Table:
    kind, values, _ = CLOCKS[name]
    rng = np.random.default_rng(5)
    return pa.table(
        {
            "type": rng.choice(["A", "B", "C"], ROWS),
            "k": pa.array(rng.choice([0.0, -0.0, 1.0], ROWS)),
            "at": pa.array(values, kind),
        }
    )


@pytest.mark.parametrize("name", some_by_day(CLOCKS, BY_DAY))
def test_the_ends_of_windows_are_exact_wherever_the_stream_is_cut(
    quick: SparkSession, tmp_path: Path, name: str
) -> None:
    table, width = stream(name), CLOCKS[name][2]
    df = frame(quick, table)
    pq.write_table(table.append_column(POSITION, pa.array(range(ROWS))), tmp_path / "s.parquet", row_group_size=30)
    ordered = quick.read.parquet(str(tmp_path))
    for clause in ("", "PARTITION BY [k]"):
        text = f"SELECT * FROM S WHERE A AS x ; B AS y {clause} WITHIN {width} milliseconds"
        expected = list(query(text).run(table, time="at"))
        assert len(expected) > ROWS / 8
        results = [match(df, text, time="at", position=POSITION, partitions=tasks) for tasks in (1, 7)]
        results += [match(ordered, text, time="at", partitions=5)]
        for answers in collect_all(results):
            assert not difference(answers.values(), expected), text


KINDS: dict[str, tuple[ty.DataType, list[Any]]] = {
    "i": (ty.LongType(), [-(2**63), -(2**53) - 1, 0, 35, 2**53 + 1, 2**63 - 1, None, 1]),
    "n": (ty.IntegerType(), [0, 1, 35, -7, None, 2, 3, 4]),
    "f": (ty.DoubleType(), [0.1, 0.35, -0.0, 2.0**53, 2.0**63, None, float("nan"), 35.0]),
    "d": (ty.DecimalType(8, 2), [D("0.35"), D("0.10"), D("35.00"), D("-7.50"), None, D("0.00"), D("1.00"), D("9.99")]),
    "e": (ty.DecimalType(18, 4), [D("0.3500"), D("0.1000"), None, D("35.0001"), D("99999999999999.9999"), D("1.0000")]),
    "w": (ty.DecimalType(30, 10), [D("0.35"), D(2**53 + 1), None, D(10) ** 19, D("1E-10"), D("35")]),
}
LITERALS = st.sampled_from([0, 1, 35, 2**53 + 1, 0.35, 0.1, -7.5, 2.0**63, 1e-10, 1e22, 1e300]).map(Literal)
PLAIN = st.sampled_from(list(KINDS)).map(Attribute)
SMALL = st.sampled_from(list("infde")).map(Attribute)
CALCULATED = st.builds(Arithmetic, st.sampled_from("+-*/%"), SMALL | LITERALS, SMALL)
OPERATORS = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
CONDITIONS = st.builds(Comparison, OPERATORS, PLAIN, PLAIN | LITERALS) | st.builds(
    Comparison, OPERATORS, CALCULATED, CALCULATED | PLAIN | LITERALS
)


@settings(
    max_examples=2, deadline=None, phases=[Phase.generate],
    suppress_health_check=[*LARGE, HealthCheck.function_scoped_fixture],  # a session's settings, for all cases
)  # fmt: skip
@given(some=st.lists(CONDITIONS, min_size=100, max_size=100))
def test_differential_numbers_of_all_kinds(quick: SparkSession, some: list[Expression]) -> None:
    rows = [{name: values[row % len(values)] for name, (_, values) in KINDS.items()} for row in range(56)]
    schema = ty.StructType([ty.StructField(name, kind) for name, (kind, _) in KINDS.items()])
    compiled = Conditions(Frame(quick.createDataFrame([tuple(row.values()) for row in rows], schema)), None)
    columns, compilable = [], []
    for condition in some:
        try:
            columns.append(compiled.column(compiled.test(guards.Test(None, condition))))
            compilable.append(condition)
        except StreamError as error:
            assert error.hint  # noqa: PT017
    assert len(compilable) > 0.5 * len(some)
    answers = compiled._values._frame.df.select(*columns).collect()
    quantum = {name: kind.scale for name, (kind, _) in KINDS.items() if isinstance(kind, ty.DecimalType)}
    events = [{name: _of_scale(value, quantum.get(name)) for name, value in row.items()} for row in rows]
    for k, condition in enumerate(compilable):
        expected = [holds(condition, event) for event in events]
        assert [row[k] is True for row in answers] == expected, str(condition)


def _of_scale(value: Any, scale: int | None) -> Any:
    """A decimal with all its places, as columns have them."""
    return value if value is None or scale is None else value.quantize(D(1).scaleb(-scale), context=Context(prec=60))
