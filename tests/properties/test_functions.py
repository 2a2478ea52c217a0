"""Functions and the arithmetic of time across events: the kernels' programs say what the judge says."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from cerite.api.query import Query
from cerite.language.ceql import parse_condition
from cerite.pattern import Event, Filter, Named, On, QuerySpec, Sequence
from cerite.predicate.expression import Expression, variables
from cerite.reference.semantics import matches
from tests import strategies as random
from tests.telling import often

UTC = timezone.utc
TIMES = st.sampled_from(
    [
        datetime(1970, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(2024, 3, 31, 1),
        datetime(2024, 2, 29, 12, 30, 59), datetime(1900, 2, 3, 4), datetime(1, 1, 1),
        datetime(9999, 12, 31, 23, 59, 59),
    ]
)  # fmt: skip
KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "id": (pa.int64(), st.integers(-3, 3) | st.sampled_from([2**63 - 1, -(2**63), 2**40])),
    "price": (pa.float64(), st.sampled_from([-2.5, -0.5, 0.0, 0.5, 1.5, 2.0, 1e20, float("inf")])),
    "name": (pa.string(), st.sampled_from(random.SPELLINGS)),
    "other": (pa.string(), st.sampled_from(random.SPELLINGS)),
    "ok": (pa.bool_(), st.booleans()),
    "at": (pa.timestamp("us"), TIMES),
    "until": (
        pa.timestamp("ms", "Europe/Paris"),
        TIMES.map(lambda time: time.replace(microsecond=0, tzinfo=timezone.utc)),
    ),
}
SCHEMA = pa.schema([("type", pa.string()), *((name, kind) for name, (kind, _) in KINDS.items())])
ROWS = st.fixed_dictionaries({name: st.none() | values | values | values for name, (_, values) in KINDS.items()})


@often(700)
@given(random.function_conditions(("x",)), st.lists(ROWS, min_size=2, max_size=4))
def test_differential_functions_across_events(condition: Expression, rows: list[dict[str, Any]]) -> None:
    assert parse_condition(str(condition)) == condition
    parts = Sequence((Named(Event("A"), "x"), Named(Event("A"), "y")))
    query = QuerySpec(Filter(parts, (On("y", condition),)))
    given_ = [{"type": "A", **row} for row in rows]
    expected = matches(query, given_)
    event(f"{'across events' if variables(condition) else 'one event'}, {'matches' if expected else 'none'}")
    assert set(Query(query).run(pa.Table.from_pylist(given_, SCHEMA))) == set(expected)


def test_nanoseconds_are_exact() -> None:
    at = pa.array([0, 1_500, 10**18], pa.timestamp("ns"))
    table = pa.table({"type": ["A", "A", "A"], "at": at})
    near = Query(QuerySpec(Filter(
        Sequence((Named(Event("A"), "x"), Named(Event("A"), "y"))),
        (On("y", parse_condition("at - x.at > 1 microsecond AND x.at + 2 microseconds > at")),),
    )))  # fmt: skip
    assert [str(match) for match in near.run(table)] == ["[0,1] A=0,1, x=0, y=1"]


ALWAYS_NULL = [
    "name = coalesce(name, x.name)", "coalesce(name, x.name) = name", "coalesce(x.name, name) < other",
    "coalesce(name, x.name) = coalesce(x.other, other)", "coalesce(name, x.name) LIKE 'a%'",
    "coalesce(name, x.name) IN {'a', 'b'}", "coalesce(coalesce(name, x.name), lower(x.other), other) != 'a'",
    "upper(coalesce(name, x.name)) = other", "length(coalesce(name, x.name)) > 1", "id = coalesce(id, x.id)",
    "abs(coalesce(price, x.price)) > 0", "floor(coalesce(x.price, price)) IN RANGE(0, 5)", "coalesce(ok, x.ok)",
    "at = coalesce(x.at, at)", "coalesce(until, x.until) - x.at > 1 second", "year(coalesce(at, x.at)) = 2024",
]  # fmt: skip
TIME = datetime(2024, 2, 29, 12, 30, 59)
GIVEN = {"id": 1, "price": 1.0, "name": "a", "other": "b", "ok": True, "at": TIME, "until": TIME.replace(tzinfo=UTC)}
NOTHING = dict.fromkeys(KINDS)


@pytest.mark.parametrize("condition", ALWAYS_NULL)
def test_not_of_null_is_not_true_across_events(condition: str) -> None:
    """Once `NOT (name = coalesce(name, x.name))` matched two events that have no name at all."""

    def matched(condition: str, first: dict[str, Any]) -> list[str]:
        parts = Sequence((Named(Event("A"), "x"), Named(Event("A"), "y")))
        query = QuerySpec(Filter(parts, (On("y", parse_condition(condition)),)))
        rows = [{"type": "A", **first}, {"type": "A", **NOTHING}]
        actual = [str(match) for match in Query(query).run(pa.Table.from_pylist(rows, SCHEMA))]
        assert actual == [str(match) for match in matches(query, rows)]
        return actual

    assert matched(f"NOT ({condition})", NOTHING) == matched(condition, NOTHING) == []
    assert matched(f"({condition}) IS TRUE", NOTHING) == []
    assert matched(f"NOT (({condition}) IS TRUE)", NOTHING) == ["[0,1] A=0,1, x=0, y=1"]
    for name, value in GIVEN.items():  # one value of the earlier event is there
        for text in (condition, f"NOT ({condition})"):
            matched(text, {**NOTHING, name: value})
