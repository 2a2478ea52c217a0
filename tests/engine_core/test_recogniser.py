"""Recognition against the oracle: the same matches at every event, none twice, whatever the batches."""

import numpy as np
from hypothesis import given, settings

from cerite.engine.subset.recogniser import Recogniser
from tests.engine_core.cases import Case, cases
from tests.engine_core.common import by_end, in_order, kleene, read
from tests.engine_core.invariants import check_3_bounded, check_duplicate_free, check_lists, check_time_ordered
from tests.engine_core.oracle import matches


@settings(max_examples=400, deadline=None)
@given(cases())
def test_oracle_matches(case: Case) -> None:
    recogniser = Recogniser(case.automaton, consume=case.consume, shared_clock=len(case.events) % 2 == 0)
    reported = [match for batch in case.batches() for match in read(recogniser, batch)]
    assert len(reported) == len(set(reported))
    assert by_end(reported) == in_order(matches(case.automaton, case.events, case.consume))
    assert recogniser.occurrences == len(by_end(reported))


@settings(max_examples=60, deadline=None)
@given(cases(max_events=14))
def test_theorem_3_invariants_after_every_event(case: Case) -> None:
    recogniser = Recogniser(case.automaton, consume=case.consume)
    for k in range(len(case.events)):
        one = Case(case.automaton, case.events[k : k + 1], case.consume, case.windowed, case.partitioned, [])
        read(recogniser, one.batches()[0])
        if k % 3 == 2:
            recogniser.reclaim()
        check_time_ordered(recogniser)
        check_3_bounded(recogniser)
        check_lists(recogniser)
    check_duplicate_free(recogniser)


@settings(max_examples=100, deadline=None)
@given(cases())
def test_oracle_compaction_changes_nothing(case: Case) -> None:
    recogniser = Recogniser(case.automaton, consume=case.consume)
    reported = []
    for batch in case.batches():
        reported += read(recogniser, batch)
        recogniser.reclaim()
    assert by_end(reported) == in_order(matches(case.automaton, case.events, case.consume))


@settings(max_examples=60, deadline=None)
@given(cases())
def test_oracle_limit(case: Case) -> None:
    recogniser = Recogniser(case.automaton, consume=case.consume, limit=2)
    reported = [match for batch in case.batches() for match in read(recogniser, batch)]
    assert len(reported) == len(set(reported))
    for some, every in zip(by_end(reported), in_order(matches(case.automaton, case.events, case.consume)), strict=True):
        assert some <= every
        assert len(some) == min(2, len(every))


def test_memory_follows_the_window() -> None:
    rng = np.random.default_rng(1)
    recogniser = Recogniser(kleene())
    key = np.arange(200_000, dtype=np.int64)
    bits = rng.choice(np.array([1, 2, 4], np.uint64), key.size).reshape(-1, 1)
    total = sum(len(chunk) for chunk in recogniser.feed(bits, key, key - 10, key))
    assert total > 0
    assert recogniser.nodes.shape[0] <= 1 << 16


def test_silent_partitions_lose_their_slots() -> None:
    key = np.arange(50_000, dtype=np.int64)
    recogniser = Recogniser(kleene(), shared_clock=True)
    assert not list(recogniser.feed(np.ones((key.size, 1), np.uint64), key, key - 10, key, key))
    assert recogniser.slots.n_slots <= 4096  # about a sixteenth of the partitions
    assert recogniser.cell_next.size <= 1 << 13
