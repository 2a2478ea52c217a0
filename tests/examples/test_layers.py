"""Rooms do not import in circles, tests not one another, and the picture in docs/architecture.md is that of today."""

from __future__ import annotations

from tests.layers import PAGE, ROOT, drawn, edges, imports


def test_the_picture_of_the_rooms_is_up_to_date() -> None:
    page = PAGE.read_text("utf-8")
    assert drawn(page) == page, "run `python -m tests.layers --write`"


def test_no_two_rooms_import_each_other() -> None:
    pairs = edges()
    assert ("engine", "automaton") in pairs
    assert not {(one, other) for one, other in pairs if (other, one) in pairs}


def test_no_test_module_imports_another() -> None:
    tests = ROOT / "tests"
    pairs = [(path.name, name) for path in tests.rglob("*.py") for name in imports(path)]
    assert ("test_layers.py", "tests.layers") in pairs
    assert not [(path, name) for path, name in pairs if name.startswith("tests.") and ".test_" in name]
