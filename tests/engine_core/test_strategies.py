"""Selection strategies against their definitions (ICDT 2019, section 4) over the oracle's matches."""

import random
from typing import Any

import pytest
from hypothesis import given, settings

from cerite.engine.subset.recogniser import Recogniser
from cerite.engine.tecs import select as sk
from cerite.engine.tecs.select import Selector
from tests.engine_core.cases import Case, cases
from tests.engine_core.common import by_end, in_order, read
from tests.engine_core.oracle import Match, matches


def positions(match: Match) -> frozenset[int]:
    return frozenset(position for position, _ in match[2])


def below_next(a: frozenset[int], b: frozenset[int]) -> bool:
    return a == b or min(a ^ b) in b


def below_last(a: frozenset[int], b: frozenset[int]) -> bool:
    return a == b or max(a ^ b) in b


def selected(strategy: str, reported: set[Match]) -> set[Match]:
    every = {positions(match) for match in reported}
    if strategy == "next":
        return {m for m in reported if all(below_next(other, positions(m)) for other in every)}
    if strategy == "last":
        return {m for m in reported if all(below_last(other, positions(m)) for other in every)}
    return {m for m in reported if not any(positions(m) < other for other in every)}


@pytest.mark.parametrize("strategy", ["next", "last", "max"])
@settings(max_examples=150, deadline=None)
@given(case=cases(max_events=9))
def test_oracle_strategy(strategy: str, case: Case) -> None:
    recogniser = Recogniser(case.automaton, consume="none", strategy=strategy)
    reported = [match for batch in case.batches() for match in read(recogniser, batch)]
    assert len(reported) == len(set(reported))
    want = [selected(strategy, at) for at in matches(case.automaton, case.events)]
    assert by_end(reported) == in_order(want)


@pytest.mark.parametrize("strategy", ["next", "last", "max"])
@settings(max_examples=60, deadline=None)
@given(case=cases(max_events=9))
def test_oracle_strategy_with_consumption_and_compaction(strategy: str, case: Case) -> None:
    recogniser = Recogniser(case.automaton, consume=case.consume, strategy=strategy)
    reported = []
    for batch in case.batches():
        reported += read(recogniser, batch)
        recogniser.reclaim()
    want = [selected(strategy, at) for at in matches(case.automaton, case.events, case.consume)]
    assert by_end(reported) == in_order(want)


def chooser_of(strategy: str, sets: list[frozenset[int]]) -> tuple[sk.Chooser, list[int]]:
    """Sets entered into a chooser, and their numbers."""
    selector, numbers = Selector(strategy), []
    for each in sets:
        number = 0
        for position in sorted(each):
            assert selector.chooser is not None
            if selector.chooser.sets[0] == selector.chooser.before.size:
                selector.more_sets()
            number = sk.intern(number, position, selector.chooser)
        numbers.append(number)
    assert selector.chooser is not None
    return selector.chooser, numbers


@pytest.mark.parametrize("strategy", ["next", "last"])
def test_sets_are_compared_by_where_they_differ(strategy: str) -> None:
    draw = random.Random(1)
    sets = [frozenset(draw.sample(range(30), draw.randrange(12))) for _ in range(60)]
    sets += [frozenset(range(k)) for k in range(0, 2000, 400)]
    chooser, numbers = chooser_of(strategy, sets)
    above: Any = sk.earlier if strategy == "next" else sk.later
    below = below_next if strategy == "next" else below_last
    for a, m in zip(sets, numbers, strict=True):
        for b, n in zip(sets, numbers, strict=True):
            assert (m == n) == (a == b)
            if m != n:
                assert above.py_func(m, n, chooser) == below(b, a)


def test_long_sets_are_compared_without_walking_them() -> None:
    length = 20_000
    chooser, (whole,) = chooser_of("next", [frozenset(range(length))])
    for size in range(0, length, 997):
        steps, at = 0, whole
        while chooser.size[at] > size:
            jump = chooser.jump[at]
            at = jump if chooser.size[jump] >= size else chooser.before[at]
            steps += 1
        assert steps <= 3 * length.bit_length()
