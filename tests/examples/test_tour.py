"""`examples/tour.py` is a user's program: it uses every public name, runs, and `./dev lint` checks its types.

mypy reads it in strict mode with the rest (`files` in pyproject.toml); the calls that it marks as mistakes must be
mistakes for mypy, which otherwise complains of the mark.
"""

from __future__ import annotations

import ast
import runpy
from pathlib import Path
from typing import Any

import pytest

import cerite
from cerite import datasets, errors, functions, language, reference, spark

ROOT = Path(__file__).parents[2]
TOUR = ROOT / "examples" / "tour.py"
INSIDE = {
    "between",
    "plan",
    "chunks",
    "placed",
    "objects",
    "objects_with_events",
    "fetch",
}  # what the rooms above use of what users hold


def used() -> set[str]:
    """The names that the program reads."""
    nodes = list(ast.walk(ast.parse(TOUR.read_text("utf-8"))))
    return {node.attr for node in nodes if isinstance(node, ast.Attribute)} | {
        node.id for node in nodes if isinstance(node, ast.Name)
    }


@pytest.mark.parametrize(
    "room", [cerite, datasets, errors, functions, language, reference, spark], ids=lambda room: room.__name__
)
def test_the_tour_uses_every_public_name(room: Any) -> None:
    assert set(room.__all__) - used() == set(), "add the name to examples/tour.py"


@pytest.mark.parametrize("kind", ["Query", "Matches", "EventStream"])
def test_the_tour_makes_every_call_of_what_users_hold(kind: str) -> None:
    public = {name for name, value in vars(getattr(cerite, kind)).items() if name[0] != "_" and callable(value)}
    assert public - INSIDE - used() == set(), "add the call to examples/tour.py"


def test_the_tour_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(TOUR))["main"](tmp_path)
    assert "the query ends too early" in capsys.readouterr().out


def test_mypy_reads_the_tour() -> None:
    settings = (ROOT / "pyproject.toml").read_text("utf-8")
    assert 'strict = true\npython_version = "3.11"\nfiles = ["cerite", "tests", "bench", "examples"]' in settings
