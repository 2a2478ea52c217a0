"""The deterministic states that are explored before a run are all that the engine meets in it."""

from __future__ import annotations

from itertools import product

from hypothesis import assume
from hypothesis import strategies as st

from cerite.data.columns import canonical_schema
from cerite.data.pushed import batch_of
from cerite.engine.bind import bind
from cerite.engine.events.rows import Columns
from cerite.engine.outlook import Outlook, explored
from cerite.engine.plan import plan
from cerite.engine.run import Run
from cerite.engine.subset.recogniser import Recogniser
from cerite.language.ceql import parse_query
from cerite.pattern import QuerySpec, Size
from tests import strategies as random
from tests.properties.agreement import SCHEMA, Rows, cases, planned
from tests.telling import Share, often

QUERIES = st.builds(
    lambda pattern, within: QuerySpec(pattern, within=within),
    random.regular_patterns(size=4),
    st.none() | st.integers(1, 6).map(Size.events),
)


def met(query: QuerySpec, rows: Rows) -> int:
    """How many deterministic states the engine has after a run."""
    program = bind(plan(query), canonical_schema(SCHEMA), Columns("type", "at"))
    run = Run(program)
    assert isinstance(run.recogniser, Recogniser)
    list(run.recogniser.read(run.intake.take(batch_of(rows, program.schema))))
    return run.recogniser.det.n_dstates


def outlook(query: QuerySpec) -> Outlook | None:
    plan = planned(query)
    assume(plan is not None and not plan.has_registers)
    assert plan is not None
    return explored(plan, 100_000)


@cases(often(150), QUERIES, random.streams(10), least=1 / 5)
def test_no_run_meets_a_state_that_was_not_explored(share: Share, query: QuerySpec, rows: Rows) -> None:
    outcome = outlook(query)
    explored = outcome is not None and outcome.whole
    states = met(query, rows) if explored else 0
    assert outcome is None or not explored or states <= outcome.states
    share.note(states > 2)


def test_every_explored_state_is_met_by_some_stream() -> None:
    streams = product("ABCD", repeat=5)
    rows = [{"type": kind, "at": at} for at, kind in enumerate(kind for each in streams for kind in (*each, *"DDDDD"))]
    for text in ("A ; B+ ; C", "(A OR B)* ; A ; (A OR B){2}", "A:+ : B", "A ; B{2} ; C"):
        query = parse_query(f"SELECT * FROM S WHERE {text} WITHIN 5 EVENTS")
        assert outlook(query) == Outlook(met(query, rows), whole=True, certain=True)
