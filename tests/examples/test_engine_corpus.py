"""The corpus on the local engine: every case it runs gives what the corpus says; the others are refused by name."""

from __future__ import annotations

import pytest

import cerite.pattern
from cerite.api.query import Query
from cerite.pattern import Pattern
from tests.corpus.loader import load
from tests.corpus.support import FEATURES, PAGE, Known, known, page, table

CASES = [known(case) for case in load()]
REFUSED = {
    "sremo reads an empty register",
    "sremo skip till next of a sequence",
}


@pytest.mark.parametrize("each", CASES, ids=[each.case.name for each in CASES])
def test_the_engine_agrees(each: Known) -> None:
    case, refusal = each.case, each.refusal("local engine")
    assert bool(refusal) == (case.name in REFUSED), refusal
    if not refusal:
        matches = Query(each.query).run(list(case.rows), time=case.time, semantics=case.semantics)
        assert not case.disagreement(list(matches))
        assert matches.count() == len(list(matches))


def test_the_table_of_what_runs_where_is_that_of_the_corpus() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert page(text, table(CASES)) == text, "run: python -m tests.corpus.support --write"


@pytest.mark.parametrize("feature", FEATURES)
def test_every_row_of_the_table_has_cases(feature: str) -> None:
    assert any(map(FEATURES[feature], CASES))


def test_every_construct_is_in_the_corpus() -> None:
    kinds = {kind for kind in vars(cerite.pattern).values() if isinstance(kind, type) and issubclass(kind, Pattern)}
    assert kinds - {Pattern} == {type(node) for each in CASES for node in each.nodes}
