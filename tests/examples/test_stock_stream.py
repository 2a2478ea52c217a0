"""The real stock stream and what other engines report on it (skipped where CERITE_STOCKS does not name its file)."""

from __future__ import annotations

import pytest

import cerite
from tests.corpus.loader import paper_queries
from tests.real_stocks import STOCKS, needs_expected, needs_stocks, reported

pytestmark = needs_stocks


def matches_of(text: str) -> set[tuple[int, ...]]:
    result = cerite.query(text).run(STOCKS, semantics="complex-events")
    positions = [match.positions for match in result]
    assert len(positions) == len(set(positions)) == result.count()
    return set(positions)


def test_s3_has_the_matches_it_should() -> None:
    result = cerite.query(paper_queries()["D/S3"]).run(STOCKS)
    assert result.count() == 345_816
    assert len({match.end for match in result}) == 6_566


@needs_expected
def test_s3_match_by_match_as_core() -> None:
    assert matches_of(paper_queries()["D/S3"].replace("10000", "499")) == set(reported("core_S3_500.matches"))


@needs_expected
def test_q3_partitioned_match_by_match_as_core() -> None:
    text = paper_queries()["G/Q3"].replace("30000", "9999").replace("CONSUME BY ANY", "")
    assert matches_of(text) == set(reported("core_Q3_10000.matches"))


@needs_expected
def test_q2_consuming_match_by_match_as_core() -> None:
    text = paper_queries()["G/Q2"].replace("30000", "29999") + " CONSUME BY ANY"
    assert matches_of(text) == set(reported("core_Q2_30000_consumeANY.matches"))


def test_kleene_is_counted_without_enumeration() -> None:
    """A number nobody could enumerate; it is exact."""
    text = """SELECT * FROM S WHERE SELL AS x ; BUY+ AS y ; BUY AS z
        FILTER x[name = 'INTC'] AND y[name = 'RIMM' AND price < 500] AND z[name = 'QQQ'] WITHIN 10000 [stock_time]"""
    assert cerite.query(text).run(STOCKS).count() == 5_160_977_526_575_608


SEQUENCE = "SELL[name = 'INTC'] AS x ; BUY[name = 'RIMM'] ; BUY[name = 'QQQ' AND price > x.price]"
KLEENE = SEQUENCE.replace("BUY[name = 'RIMM']", "(BUY[name = 'RIMM'])+")


def within(pattern: str, milliseconds: int) -> str:
    return f"SELECT * FROM S WHERE {pattern} WITHIN {milliseconds} [stock_time]"


@pytest.mark.parametrize(("pattern", "matches"), [(SEQUENCE, 821), (KLEENE, 1_369)])
def test_a_condition_across_events(pattern: str, matches: int) -> None:
    result = cerite.query(within(pattern, 500)).run(STOCKS)
    assert result.count() == len(list(result)) == matches


@needs_expected
def test_a_condition_across_events_match_by_match_as_core() -> None:
    """QQQ was dearer than INTC all day, so the condition changes nothing but how it is found."""
    assert matches_of(within(SEQUENCE, 499)) == set(reported("core_S3_500.matches"))


def test_kleene_across_events_is_counted_without_enumeration() -> None:
    text = within(KLEENE, 10_000)
    assert cerite.query(text).run(STOCKS).count() == 5_160_977_526_575_608
    assert len({match.end for match in cerite.query(f"{text} LIMIT 1").run(STOCKS)}) == 6_566


@pytest.mark.parametrize("strategy", ["STRICT", "NEXT", "LAST", "MAX"])
def test_strategies_select_from_the_matches(strategy: str) -> None:
    text = paper_queries()["D/S3"].replace("SELECT *", f"SELECT {strategy} *")
    selected = list(cerite.query(text).run(STOCKS, semantics="complex-events"))
    if strategy in ("NEXT", "LAST"):
        assert len(selected) == 6_566
    if strategy == "MAX":
        assert len(selected) == 345_816
    assert all(match.positions == tuple(sorted(match.positions)) for match in selected)
