"""The pictures of the docs are what Cerite draws."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pictures import drawn, pages


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.name)
def test_the_pictures_are_drawn_as_the_engine_is(path: Path) -> None:
    text = path.read_text("utf-8")
    assert drawn(text) == text, "run `python -m tests.pictures --write`"


def test_there_are_pictures_and_a_wrong_one_is_noticed() -> None:
    assert "engine.md" in [path.name for path in pages()]
    page = '<!-- picture: cerite.query("SELECT * FROM S WHERE A").draw() -->\n\n```mermaid\nwrong\n```\n'
    assert "q0 -->|" in drawn(page)
    assert "wrong" not in drawn(page)
