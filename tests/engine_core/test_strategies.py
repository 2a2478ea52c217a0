"""Selection strategies against their definitions (ICDT 2019, section 4) over the oracle's matches."""

import pytest
from hypothesis import given, settings

from cerite.engine.recogniser import Recogniser
from tests.engine_core.cases import Case, cases
from tests.engine_core.oracle import Match, matches
from tests.engine_core.test_recogniser import by_end, in_order, read


def positions(match: Match) -> frozenset[int]:
    return frozenset(position for position, _ in match[2])


def below_next(a: frozenset[int], b: frozenset[int]) -> bool:
    return a == b or min(a ^ b) in b


def below_last(a: frozenset[int], b: frozenset[int]) -> bool:
    return a == b or max(a ^ b) in b


def selected(strategy: str, found: set[Match]) -> set[Match]:
    every = {positions(match) for match in found}
    if strategy == "next":
        return {m for m in found if all(below_next(other, positions(m)) for other in every)}
    if strategy == "last":
        return {m for m in found if all(below_last(other, positions(m)) for other in every)}
    return {m for m in found if not any(positions(m) < other for other in every)}


@pytest.mark.parametrize("strategy", ["next", "last", "max"])
@settings(max_examples=150, deadline=None)
@given(case=cases(max_events=9))
def test_oracle_strategy(strategy: str, case: Case) -> None:
    recogniser = Recogniser(case.automaton, consume="none", strategy=strategy)
    found = [match for batch in case.batches() for match in read(recogniser, batch)]
    assert len(found) == len(set(found))
    want = [selected(strategy, at) for at in matches(case.automaton, case.events)]
    assert by_end(found) == in_order(want)


@pytest.mark.parametrize("strategy", ["next", "last", "max"])
@settings(max_examples=60, deadline=None)
@given(case=cases(max_events=9))
def test_oracle_strategy_with_consumption_and_compaction(strategy: str, case: Case) -> None:
    recogniser = Recogniser(case.automaton, consume=case.consume, strategy=strategy)
    found = []
    for batch in case.batches():
        found += read(recogniser, batch)
        recogniser.reclaim()
    want = [selected(strategy, at) for at in matches(case.automaton, case.events, case.consume)]
    assert by_end(found) == in_order(want)
