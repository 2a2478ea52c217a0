"""Every run of the tests compares enough cases of absences, aggregates and measures with the judge."""

from __future__ import annotations

from pathlib import Path

from tests.properties.amounts import LEAST, total

SUPPORT = Path(__file__).parents[2] / "docs" / "support.md"


def test_enough_cases_have_an_absence_an_aggregate_or_a_measure() -> None:
    assert total() >= LEAST
    assert f"at least {LEAST:,} of them" in " ".join(SUPPORT.read_text("utf-8").split())
