"""A trace is of the run itself: its matches are those of `run`, and its lists mean the partial matches they are of."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import assume

from cerite.api.trace import TraceNode
from cerite.core.errors import CeriteError
from cerite.pattern import QuerySpec, Size
from tests import strategies as random
from tests.dressed import PLAIN
from tests.properties.agreement import SEMANTICS, Rows, cases, engine_queries, looked_at, ready, runnable, sorted_window
from tests.telling import Share, often, refused, telling

QUERIES = engine_queries() | random.queries(random.register_patterns(2))


@cases(often(100), QUERIES, random.streams(7), SEMANTICS)
def test_a_trace_has_the_matches_of_the_run(share: Share, query: QuerySpec, rows: Rows, semantics: Any) -> None:
    query, rows = telling(query, rows, lambda one, some: looked_at(one, some, semantics))
    if not sorted_window(query, rows):
        query = replace(query, within=Size.events(4))
    assume(runnable(query))
    table = PLAIN.table(rows)
    try:
        expected = list(ready(query).run(table, time="at", semantics=semantics))
        steps = ready(query).trace(table, time="at", semantics=semantics).steps
    except CeriteError as error:
        if not refused(error):
            raise
        share.refused += 1
        return
    assert [match for step in steps for match in step.matches] == expected
    known: dict[int, TraceNode] = {}
    for step in steps:
        for node in step.nodes:
            assert all(child in known for child in node.children)
            known[node.number] = node
        for state in step.states:
            assert state.nodes
            assert known[state.nodes[0]].kind != "union"
            assert all(node in known for node in state.nodes)
        for match in step.matches:
            assert any(node.position in match.positions for node in known.values()) or not match.positions
    share.note(bool(expected))
