"""Rooms do not import in circles, tests not one another, and the picture in docs/architecture.md is that of today.

Types of arrays go by their short names everywhere, and nothing that users read imports the command line.
"""

from __future__ import annotations

import re

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


def test_what_users_read_does_not_import_the_command_line() -> None:
    command = re.compile(r"\b(from|import) cerite\.cli\b|from cerite import .*\bcli\b")
    assert command.search("from cerite.cli.spark_run import opened")
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.*")]
    texts = {page.name: page.read_text("utf-8") for page in pages if page.suffix in (".md", ".py", ".ipynb")}
    assert {"README.md", "spark.md", "demo.py", "cards.ipynb"} < set(texts)
    assert not [name for name, text in texts.items() if command.search(text)]


def test_arrays_go_by_their_short_names() -> None:
    home = ROOT / "cerite" / "core" / "arrays.py"
    names = {
        long: short for short, long in re.findall(r"^(\w+) = (.*NDArray\[.*)$", home.read_text("utf-8"), re.MULTILINE)
    }
    assert {"Longs", "Ints", "Flags", "Words"} < set(names.values())
    folders = ("cerite", "tests", "bench", "examples")
    texts = {path: path.read_text("utf-8") for name in folders for path in (ROOT / name).rglob("*.py") if path != home}
    assert len(texts) > 100
    found = [(path.name, names[long]) for path, text in texts.items() for long in names if long in text]
    assert not found, "import the short name from cerite.core.arrays"
