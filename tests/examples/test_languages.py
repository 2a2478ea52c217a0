"""The rows of the table in docs/patterns.md: each spelling gives the same pattern."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime

import numpy as np
import pytest

from cerite import PatternError, absent, attr, event, permute, query, skip, var
from cerite.language import empty, nothing, parse_pattern, parse_sremo, skip_any, skip_next
from cerite.language.builder import Builder

A, B, C = event("A"), event("B"), event("C")
CEQL_AND_PYTHON = {
    "_": event(),
    "A[price > 100]": event("A", attr.price > 100),
    "A AS x": A.as_("x"),
    "A INTO x": event("A", store="x"),
    "SKIP A": skip("A"),
    "SKIP A INTO r": skip("A", store="r"),
    "A AS x ; B AS y FILTER x[id > 1] AND y[id = x.id]": (A.as_("x") >> B.as_("y")).filter(
        x=attr.id > 1, y=attr.id == var.x.id
    ),
    "A ; B ; C": A >> B >> C,
    "A : B : C": A * B * C,
    "A ; NOT B ; C": A >> absent(B) >> C,
    "A ; NOT B ; NOT A ; C": A >> absent(B) >> absent(A) >> C,
    "A ; NOT B ; NOT C": A >> absent(B) >> absent(C),
    "NOT A ; NOT B ; C ; A": absent(A) >> absent(B) >> C >> A,
    "(NOT A ; B ; NOT C WITHIN 4 EVENTS) ; C": (absent(A) >> B >> absent(C)).within(4, "events") >> C,
    "A OR B OR C": A | B | C,
    "A AND B": A & B,
    "PERMUTE(A, B)": permute(A, B),
    "A+": A.plus(),
    "A*": A.star(),
    "A?": A.optional(),
    "A:?": A.optional(contiguous=True),
    "A{2,5}": A.repeat(2, 5),
    "A:+": A.plus(contiguous=True),
    "(A WITHIN 4 EVENTS)": A.within(4, "events"),
    "(A WITHIN 30 seconds)": A.within(30, "seconds"),
    "(A WITHIN 1 minutes)": A.within(1, "Minute"),
    "(A WITHIN 9 [t])": A.within(9, attribute="t"),
    "NEXT(A)": A.select("nxt"),
    "PROJECT{x, y}(A AS x)": A.as_("x").project("x", "y"),
    "SKIP_ANY(A, B)": skip_any(A, B),
    "SKIP_NEXT(A, B)": skip_next(A, B),
    "COMPLEMENT(A)": ~A,
    "EMPTY": empty(),
    "NOTHING": nothing(),
    "A[name LIKE 'A%' AND NOT (id IN {1, 5..9}) OR ok IS NULL]": event(
        "A", (attr.name.like("A%") & ~attr.id.isin(1, (5, 9))) | attr.ok.is_null()
    ),
    "A[price > 1.5 AND id IN {1, 2}]": event("A", (attr.price > np.float64(1.5)) & attr.id.isin([np.int64(1), 2])),
    "A[at > '2024-05-01T12:30:00' AND 7 % id = -9223372036854775808]": event(
        "A", (attr.at > datetime(2024, 5, 1, 12, 30)) & (7 % attr.id == -(2**63))
    ),
    "A[price > 3] AS x FILTER x[id = 1]": event("A", "price > 3").as_("x").filter(x="id = 1"),
    "A[1 - price * 2 / id % 3 IN RANGE(-x.price, 7)]": event(
        "A", (1 - attr.price * 2 / attr.id % 3).between(-var.x.price, 7)
    ),
}
CEQL_AND_SREMO = {
    "A": "A^o",
    "_": "true^o",
    "A[price > 100]": "A[price > 100]^o",
    "_[price > 100]": "[price > 100]↑•",
    "A INTO x": "A^o>x",
    "SKIP A": "A",
    "SKIP A INTO r": "A↑⊗↓r",
    "SKIP_ANY(A, B)": "#(A^o, B^o)",
    "SKIP_NEXT(A, B)": "@(A^o, B^o)",
    "A : B": "A^o . B^o",
    "A OR B": "A^o + B^o",
    "A AND B": "A^o & B^o",
    "A:*": "A^o*",
    "(A WITHIN 4 EVENTS)": "(A^o)[1..4]",
    "(A WITHIN 30 seconds)": "(A^o)[WITHIN 30 s]",
    "COMPLEMENT(A)": "!A^o",
    "EMPTY": "ε",
    "NOTHING": "∅",
}


@pytest.mark.parametrize("text", CEQL_AND_PYTHON)
def test_ceql_and_python(text: str) -> None:
    built = CEQL_AND_PYTHON[text]
    assert isinstance(built, Builder)
    assert parse_pattern(text) == built.pattern


WRONG: dict[str, Callable[[], object]] = {
    "nan cannot be compared": lambda: attr.price > float("nan"),
    "inf cannot be compared": lambda: attr.price > float("inf"),
    "does not fit 64 bits": lambda: attr.price > 2**63,
    "not a condition or constant: None": lambda: attr.price.isin(None),
    "`isin` needs a value": lambda: attr.price.isin([]),
    "the range from 5 to 1 is empty": lambda: attr.price.isin((5, 1)),
    "not a pattern: 'B'": lambda: A >> "B",  # type: ignore[operator]
    "at least one pattern is needed": permute,
    "unknown strategy 'first': one of STRICT, NEXT": lambda: A.select("first"),
    "a window cannot be 1.5 long": lambda: A.within(1.5, "events"),
    "a window cannot be nan long": lambda: A.within(float("nan"), "seconds"),
    "unknown unit 'weeks'": lambda: A.within(1, "weeks"),
    "NOT at the start": lambda: query(absent(A) >> B),
    "NOT at the end": lambda: query(A >> absent(B)),
    "not a query or pattern: NOT B (beside nothing yet)": lambda: query(absent(B)),  # type: ignore[arg-type]
    "the text of a query has its own clauses": lambda: query("SELECT * FROM S WHERE A", partition_by=["id"]),
}


@pytest.mark.parametrize("message", WRONG)
def test_what_the_builder_refuses(message: str) -> None:
    with pytest.raises((TypeError, ValueError, PatternError), match=re.escape(message)):
        WRONG[message]()


@pytest.mark.parametrize("text", CEQL_AND_SREMO)
def test_ceql_and_sremo(text: str) -> None:
    assert parse_pattern(text) == parse_sremo(CEQL_AND_SREMO[text])
