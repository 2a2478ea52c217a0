"""The judge agrees with every case of the corpus (tests/corpus/README.md)."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from cerite.language.ceql import parse_pattern, parse_query
from cerite.language.sremo import parse_sremo, sremo_text
from cerite.pattern.query import QuerySpec
from cerite.reference.semantics import matches, measures
from tests.corpus import Case, load

CASES = [
    pytest.param(case, id=case.name, marks=[pytest.mark.xfail(reason=case.open, strict=True)] if case.open else [])
    for case in load()
]


@pytest.mark.parametrize("case", CASES)
def test_the_judge_agrees(case: Case) -> None:
    query = case.parsed()
    judged = matches(query, case.rows, semantics=case.semantics, time=case.time)
    if isinstance(query, QuerySpec) and query.measures:
        measured = measures(query, case.rows, semantics=case.semantics, time=case.time)
        judged = [replace(match, measures=values) for match, values in measured]
    assert not case.disagreement(judged), case.disagreement(judged)


@pytest.mark.parametrize("case", load(), ids=lambda case: case.name)
def test_printing_keeps_the_query(case: Case) -> None:
    parsed = case.parsed()
    if isinstance(parsed, QuerySpec):
        assert parse_query(str(parsed)) == parsed
    else:
        assert parse_sremo(sremo_text(parsed)) == parsed
        assert parse_pattern(str(parsed)) == parsed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("  B", "case:1: an indented line"),
        ("case: a\nquery: q\nmatches:", "case:1: the case has no `stream:`"),
        ("case: a\nstream: nowhere\nquery: q\nmatches:", "case:2: no stream is called 'nowhere'"),
        ("case: a\nstream:\n  kind\nquery: q\nmatches:", "case:2: one column of a stream is `type`"),
        ("case: a\ncolour: red", "case:2: `colour` is unknown"),
        ("case: a\nstream:\n  type\nquery: q\nmatches:\n" * 2, "2 cases are called 'a'"),
    ],
)
def test_a_mistake_in_a_file_is_pointed_at(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "wrong.case").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(message)):
        load(tmp_path)
