"""Arguments that are not what they must be are refused in words, before anything runs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cerite
from cerite import attr, event
from cerite.errors import ArgumentError, TextWarning
from cerite.language import parse_condition
from tests.command import cerite as command

PAIR = event("A").as_("x") >> event("B").as_("y")
ROWS = [{"type": "A", "name": "n"}, {"type": "B", "name": "n"}]
REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "limit of 0": (lambda: cerite.query(PAIR, limit=0), "`limit` is a positive whole number, not 0"),
    "limit as text": (lambda: cerite.query(PAIR, limit="3"), "positive whole number"),  # type: ignore[arg-type]
    "limit of 1.5": (lambda: cerite.query(PAIR, limit=1.5), "positive whole number"),  # type: ignore[arg-type]
    "consume": (lambda: cerite.query(PAIR, consume="some"), "`consume` is one of 'NONE', 'PARTITION', 'ANY'"),
    "strategy": (lambda: cerite.query(PAIR, strategy="foo"), "`strategy` is one of"),
    "a number as strategy": (lambda: cerite.query(PAIR, strategy=3), "`strategy` is one of"),  # type: ignore[arg-type]
    "within": (lambda: cerite.query(PAIR, within=30), "`within` is text (`30 seconds`)"),  # type: ignore[arg-type]
    "a negative silence": (lambda: cerite.query(PAIR, suppress=timedelta(-1)), "`suppress` is negative"),
    "a negative window": (lambda: cerite.query(PAIR, within=timedelta(-1)), "`within` is negative"),
    "select": (lambda: cerite.query(PAIR, select=[1]), "`select` takes names"),  # type: ignore[list-item]
    "schema": (lambda: cerite.query(PAIR, schema=3), "a schema cannot be read from 3"),
    "clauses beside text": (lambda: cerite.query("SELECT * FROM S WHERE A", within="3 seconds"), "WITHIN 30 seconds"),
    "clauses beside a query": (lambda: cerite.query(cerite.query(PAIR), limit=3), "keywords go with a pattern"),
    "no query": (lambda: cerite.query(3), "not a query or pattern"),  # type: ignore[arg-type]
    "an event type": (lambda: event(3), "an event type is a name"),  # type: ignore[arg-type]
    "a variable": (lambda: event("A").as_(""), "a variable has a name"),
    "an unknown unit": (lambda: event("A").within(4, "weeks"), "microseconds, milliseconds"),
    "half a repetition": (lambda: event("A").repeat(1.5), "cannot happen"),  # type: ignore[arg-type]
    "a window without a unit": (lambda: event("A").within(4), "a window has a unit"),
    "a window's example": (lambda: event("A").within(10), "write (10, 'seconds'), (10, 'events')"),
    "& between comparisons": (lambda: attr.x > 3 & attr.y == "FR", "put each comparison in parentheses"),
    "| between comparisons": (lambda: attr.x == "FR" | attr.y, "`|` joins conditions, and 'FR' is none"),
    "not": (lambda: not attr.x, "write `~c`, not `not c`"),
    "in": (lambda: attr.x in (1, 2), "`attr.x.isin(1, 2)`"),
    "compared twice": (lambda: 1 < attr.x < 3, "`attr.x.between(1, 3)`"),
    "Python's max": (lambda: max(attr.x, attr.y), "`functions.max(var.y.x)`"),
    "text inside text": (lambda: "FR" in attr.x, "write `attr.x.like('%FR%')`"),
    "a list as a constant": (lambda: attr.x == [1, 2], "for several values, write `attr.x.isin(1, 2)`"),
    "a decimal too large": (lambda: attr.x > Decimal("1e999"), "does not fit 64 bits"),
    "a decimal too long": (lambda: attr.x > Decimal("1" * 500), "too long"),
    "a decimal that is no number": (lambda: attr.x > Decimal("NaN"), "write .is_null()"),
    "select of everything": (lambda: cerite.query(PAIR, select="*"), "leave `select` out"),
    "an event type for any": (lambda: event("_"), "write event() for any type"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_an_argument_is_refused_in_words(name: str) -> None:
    call, expected = REFUSED[name]
    with pytest.raises(ArgumentError) as caught:
        call()
    assert expected in str(caught.value)


@pytest.mark.parametrize("text", ["3.5", "-0.10", "3", "-7", "1E+2", "0.12345678901234567890123", "1E-400"])
def test_a_decimal_is_the_constant_that_its_text_is(text: str) -> None:
    assert repr((attr.x > Decimal(text)).expression) == repr(parse_condition(f"x > {text}"))


def test_conditions_are_joined_with_truth_values_from_either_side() -> None:
    assert str((True & (attr.x > 3)).expression) == "TRUE AND x > 3"
    assert str((False | (attr.x > 3)).expression) == "FALSE OR x > 3"


def test_a_query_is_one_already() -> None:
    query = cerite.query(PAIR, within="5 events")
    assert cerite.query(query) is query
    with pytest.raises(cerite.SchemaError, match="unknown event type `B`"):
        cerite.query(query, schema={"A": {"name": "string"}})


def test_one_name_is_one_column() -> None:
    query = cerite.query(PAIR, partition_by="name", select="x")
    assert "PARTITION BY [name]" in str(query)
    assert [match.variables for match in query.run(ROWS)] == [{"x": (0,)}]


def test_numbers_in_text_are_not_sorted_as_text_without_a_word(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("type,v\nA,9\nB,10\n")
    (tmp_path / "2.csv").write_text("type,v\nB,bad\nB,11\n")
    with pytest.raises(cerite.StreamError, match=r"`v` is compared by order(.|\n)*bad"):
        cerite.query(PAIR).run(tmp_path, order_by="v")
    with pytest.warns(TextWarning, match="column `v` is text and compared as text"):
        cerite.query(PAIR).run(pd.DataFrame({"type": ["A", "B"], "v": ["9", "10"]}), order_by="v")


@pytest.mark.parametrize("options", [("--count", "--output", "-"), ("--form", "long")])
def test_options_that_would_be_ignored_are_refused(options: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("type\nA\nB\n")
    done = command("run", "SELECT * FROM S WHERE A ; B", str(tmp_path / "1.csv"), *options, code=1)
    assert "hint: " in done.stderr


def test_a_late_push_is_not_told_to_sort() -> None:
    stream = cerite.query("SELECT * FROM S WHERE A ; B").stream({"type": "string", "at": "int"}, time="at")
    stream.push({"type": "A", "at": 5})
    with pytest.raises(cerite.StreamError, match=r"`at` decreases(.|\n)*push the events in that order"):
        stream.push({"type": "B", "at": 4})
