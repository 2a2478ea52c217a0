"""docs/ceql.md and docs/sremo.md are what grammar and corpus say, and leave nothing of the grammar out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.corpus import reference
from tests.corpus.grammar import rules, terminals
from tests.corpus.support import known


@pytest.mark.parametrize("language", reference.LANGUAGES)
def test_the_published_page_is_what_the_script_writes(language: str) -> None:
    published = (reference.DOCS / f"{language}.md").read_text("utf-8")
    assert published == reference.page(language), "run: python -m tests.corpus.reference --write"


@pytest.mark.parametrize("language", reference.LANGUAGES)
def test_every_rule_is_shown_and_every_construct_has_an_example(language: str) -> None:
    assert not list(reference.missing(language))


@pytest.mark.parametrize("language", reference.LANGUAGES)
def test_every_example_runs_in_the_engine(language: str) -> None:
    assert not [case.name for case in reference.examples(language) if known(case).refusal("local engine")]


def test_what_a_page_leaves_out_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (reference.WORDS / "ceql.md").read_text("utf-8")
    for gone in ("<!-- syntax: limit -->", "<!-- case: a limit per occurrence -->", " COMMENT"):
        assert gone in text
        text = text.replace(gone, "")
    (tmp_path / "ceql.md").write_text(text.replace("<!-- case: suppress per partition -->", ""), "utf-8")
    monkeypatch.setattr(reference, "WORDS", tmp_path)
    assert list(reference.missing("ceql")) == [
        "no section shows `limit ::= LIMIT signed`",
        "no section shows the terminal COMMENT",
        "'SUPPRESS' has no example of `per_partition ::= PER PARTITION`",
    ]


def test_the_grammar_is_read_as_it_is_written() -> None:
    postfix = rules("ceql")["postfix"]
    assert [(each.alias, each.text) for each in postfix] == [
        ("", "primary"), ("counted", "postfix count"), ("bounded", "postfix bounds"), ("named", "postfix AS name"),
    ]  # fmt: skip
    assert rules("ceql")["bounds"][0].text == '(":{" | "{") (INT ("," INT?)? | "," INT) "}"'
    assert terminals("sremo")["MARK"] == '("^o" | "↑•")'
    with pytest.raises(ValueError, match="the grammar of ceql has no 'limits'"):
        reference._chosen("ceql", "limit limits")
