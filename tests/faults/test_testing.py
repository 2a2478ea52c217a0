"""What the test kit is given that it cannot read."""

from __future__ import annotations

from typing import Any

import pytest

import cerite
from cerite.errors import ArgumentError
from cerite.testing import assert_matches, events


@pytest.mark.parametrize(
    ("text", "said", "column"),
    [
        ("A @0", "an event begins with its type", 3),
        ("A@0 5", "an event begins with its type", 5),
        ("A(v=1", "attributes are written name=value", 3),
        ("A(v)", "attributes are written name=value", 3),
        ("A()", "attributes are written name=value", 3),
        ("A(v=1, v=2)", "`v` is given twice", 7),
        ("A(type=1)", "`type` is given twice", 3),
        ("A@5weeks", "`weeks` is no unit of time", 4),
        ("A@5events", "`events` is no unit of time", 4),
        ("A@soon", "this is not a time", 2),
        ("A@+5s", "there is no event before", 2),
        ("A@1 B", "some events have a time and some have none", 5),
        ("A;B", "unexpected `;`", 2),
    ],
)
def test_a_notation_that_is_none_is_pointed_at(text: str, said: str, column: int) -> None:
    with pytest.raises(cerite.QuerySyntaxError, match=said) as error:
        events(text)
    assert (error.value.column, bool(error.value.hint)) == (column, True)


@pytest.mark.parametrize("given", [None, 3, b"A"])
def test_events_that_are_no_text(given: Any) -> None:
    with pytest.raises(ArgumentError, match="events are written as text"):
        events(given)


@pytest.mark.parametrize("expected", ["0 1", {"x": 0}, None, ["0"], [(0, "1")], [None], [(True,)]])
def test_matches_that_cannot_be_expected(expected: Any) -> None:
    with pytest.raises(ArgumentError, match="cannot be expected") as error:
        assert_matches("SELECT * FROM S WHERE A", "A", expected)
    assert error.value.hint


def test_events_that_are_no_rows() -> None:
    with pytest.raises(ArgumentError, match="an event is a dictionary"):
        assert_matches("SELECT * FROM S WHERE A", [1, 2], 0)  # type: ignore[list-item]
