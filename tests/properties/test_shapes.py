"""Results with events hold what the judge's matches consist of, whichever engine runs and wherever batches are cut."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
from hypothesis import assume
from hypothesis import strategies as st

from cerite.api.shown import EVERYTHING, variable_columns
from cerite.core.match import Match
from cerite.pattern import QuerySpec, Size
from tests import strategies as random
from tests.dressed import PLAIN
from tests.properties.agreement import (
    SEMANTICS,
    cases,
    engine_queries,
    judged,
    looked_at,
    ready,
    runnable,
    sorted_window,
    unpicked,
)
from tests.properties.arrivals import REGISTERS
from tests.telling import Share, often, telling

Rows = list[dict[str, Any]]
STREAMS = random.streams(9, random.full_rows | random.rows)


@cases(often(250), engine_queries() | REGISTERS, STREAMS, SEMANTICS, st.randoms(use_true_random=True))
def test_results_hold_the_events_of_the_judges_matches(
    share: Share, query: QuerySpec, rows: Rows, semantics: Any, rng: Any
) -> None:
    query, rows = telling(unpicked(query), rows, partial(looked_at, semantics=semantics))
    if not sorted_window(query, rows):
        query = replace(query, within=Size.events(4))
    assume(runnable(query) and rows)
    table = PLAIN.table(rows)
    rows = table.to_pylist()
    expected = judged(query, rows, semantics)
    share.note(bool(expected))
    whole = ready(query).run(table, time="at", semantics=semantics)
    result = whole.to_arrow(events=True)
    assert result.schema.equals(whole.table_schema(events=True))
    assert len(set(result["match"].to_pylist())) == result.num_rows, "every match has an id of its own"
    assert _counted(result.drop_columns("match").to_pylist()) == _counted(
        [_row(each, rows, query, semantics) for each in expected]
    )
    assert _counted(whole.to_arrow(long=True).to_pylist()) == _counted(_exploded(result, query, semantics, table))
    once = ready(query).run(pa.Table.from_batches(table.to_batches(2)).to_reader(), time="at", semantics=semantics)
    assert rng.random() < 0.5 or once.exists() == bool(expected)
    assert repr(once.to_arrow(events=True).to_pylist()) == repr(result.to_pylist())  # NaN is unlike itself
    pushed = _pushed(query, table, semantics, rng)
    assert pushed["end_time"].to_pylist() == result["end_time"].to_pylist(), "in the order of their ends"
    assert _counted(pushed.to_pylist()) == _counted(result.to_pylist())  # those of one end come in any order


def _row(match: Match, rows: Rows, query: QuerySpec, semantics: Any) -> dict[str, Any]:
    """A judge's match as a row of a result, without its id."""
    compiled = ready(query).plan(semantics)
    row = {"start_time": rows[match.start]["at"], "end_time": rows[match.end]["at"]}
    row |= {name: rows[match.end][name] for name in query.partition}
    if semantics != "valuations":
        return row | {"events": [rows[position] for position in match.positions]}
    for column, name in zip(variable_columns(compiled.variables, compiled.partition), compiled.variables, strict=True):
        row[column] = [rows[position] for position in match.variables.get(name, ())]
    return row


def _exploded(result: pa.Table, query: QuerySpec, semantics: Any, table: pa.Table) -> Rows:
    shown = EVERYTHING.columns(ready(query).plan(semantics), table.column_names)
    return [
        {"match": row["match"], "variable": each.variable, "rank": rank, **event}
        for row in result.to_pylist()
        for each in shown
        for rank, event in enumerate(row[each.column])
    ]


def _pushed(query: QuerySpec, table: pa.Table, semantics: Any, rng: Any) -> pa.Table:
    """The result of a stream that is cut anywhere, restored now and then, and read at once or later."""
    stream = ready(query).stream(table.schema, time="at", semantics=semantics)
    pushed = []
    at = 0
    while at < table.num_rows:
        size = rng.randint(0, 3)
        completed = stream.push(table.slice(at, size))
        pushed.append(completed.to_arrow(events=True) if rng.random() < 0.5 else completed)
        at += size
        if rng.random() < 0.3:
            again = ready(query).stream(table.schema, time="at", semantics=semantics)
            again.restore(stream.snapshot())
            stream = again
    pushed.append(stream.close())
    return pa.concat_tables([each if isinstance(each, pa.Table) else each.to_arrow(events=True) for each in pushed])


def _counted(rows: Rows) -> Counter[str]:
    return Counter(map(repr, rows))
