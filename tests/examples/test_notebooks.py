"""The notebooks in examples/ run from top to bottom and show what is stored in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.notebooks import code_cells, notebooks, read, run, texts


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.name)
def test_a_notebook_shows_what_is_stored(path: Path) -> None:
    pytest.importorskip("vl_convert")
    document = read(path)
    stored = [texts(cell["outputs"]) for cell in code_cells(document)]
    assert [texts(shown) for shown in run(document)] == stored, "run `python -m tests.notebooks --write`"


def test_there_is_a_notebook() -> None:
    assert [path.name for path in notebooks()] == ["cards.ipynb"]
