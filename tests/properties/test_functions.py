"""Functions and the arithmetic of time across events: the kernels' programs say what the judge says."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from cerite.api.query import Query
from cerite.language.ceql import parse_condition
from cerite.pattern import Event, Filter, Named, On, QuerySpec, Sequence
from cerite.predicate.expression import Expression, variables
from cerite.reference.semantics import matches
from tests import strategies as random

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


@settings(max_examples=1200, deadline=None, suppress_health_check=list(HealthCheck))
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
