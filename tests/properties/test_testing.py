"""The test kit on random queries: what it compares agrees, and its notation is read back as it was written."""

from __future__ import annotations

from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from cerite.api.query import Query
from cerite.core.errors import CeriteError
from cerite.pattern import QuerySpec
from cerite.testing import assert_agrees, events, notation
from tests import strategies as random
from tests.properties.agreement import Rows, cases, engine_queries, looked_at, runnable, sorted_window
from tests.telling import Share, often, refused, telling

NAMES = st.text("abé_ `9", min_size=1, max_size=3)
VALUES = (
    st.integers(-3, 10**18) | st.floats(allow_nan=False, allow_infinity=False) | st.booleans() | st.text(max_size=4)
)


@cases(often(60), engine_queries(), random.streams(5), st.integers(0, 99))
def test_one_run_streams_and_orders_of_arrival_agree_with_the_judge(
    share: Share, query: QuerySpec, rows: Rows, seed: int
) -> None:
    query, rows = telling(query, rows, lambda one, some: looked_at(one, some, "valuations"))
    assume(runnable(query) and sorted_window(query, rows))
    try:
        share.note(assert_agrees(Query(query), rows, orders=2, seed=seed) > 0)
    except CeriteError as error:
        if not refused(error):
            raise
        share.refused += 1


@often(200)
@given(st.lists(st.tuples(NAMES, st.dictionaries(NAMES, VALUES, max_size=3), st.integers(0, 10**6)), max_size=4))
def test_notation_is_read_back(drawn: list[tuple[str, dict[str, Any], int]]) -> None:
    rows = [
        {"type": kind, "at": at, **{name: value for name, value in attributes.items() if name not in ("type", "at")}}
        for kind, attributes, at in drawn
    ]
    assert events(notation(rows)) == rows
