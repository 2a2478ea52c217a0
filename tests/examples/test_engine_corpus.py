"""The corpus on the local engine: every case it runs gives what the corpus says; the others are refused by name."""

from __future__ import annotations

import pytest

from cerite.engine.plan import plan
from cerite.errors import PatternError
from cerite.pattern import Query
from cerite.run import RunnableQuery
from tests.corpus.loader import Case, load

CASES = load()
REFUSALS = (
    "needs a window",
    "holds nothing yet",
)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_engine_agrees(case: Case) -> None:
    parsed = case.parsed()
    query = parsed if isinstance(parsed, Query) else Query(parsed)
    refused = _refusal(query)
    if refused:
        assert any(reason in refused for reason in REFUSALS), refused
        pytest.skip(f"not run by the local engine yet: {refused}")
    found = RunnableQuery(query).run(list(case.rows), time=case.time, semantics=case.semantics)
    assert not case.disagreement(list(found))
    assert found.count() == len(list(found))


def _refusal(query: Query) -> str:
    try:
        plan(query)
    except PatternError as error:
        return error.message
    return ""
