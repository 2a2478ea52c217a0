"""The picture of the rooms in docs/architecture.md is the one of today, and no two rooms import each other."""

from __future__ import annotations

from tests.layers import PAGE, drawn, edges


def test_the_picture_of_the_rooms_is_up_to_date() -> None:
    page = PAGE.read_text("utf-8")
    assert drawn(page) == page, "run `python -m tests.layers --write`"


def test_no_two_rooms_import_each_other() -> None:
    pairs = edges()
    assert ("engine", "automaton") in pairs
    assert not {(one, other) for one, other in pairs if (other, one) in pairs}
