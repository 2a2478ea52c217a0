"""Counting against the oracle, and against itself where the oracle cannot reach."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from cerite.automaton import TRUE, Automaton, Transition
from cerite.core.arrays import Buffers, Ints
from cerite.engine.counting import blocks
from cerite.engine.counting import counter as count_module
from cerite.engine.counting.counter import Counter
from cerite.engine.counting.learnt import FEWEST_NODES
from cerite.engine.events.keys import reach_of
from cerite.engine.events.rows import Deferred, Rows
from cerite.engine.subset.recogniser import Recogniser
from cerite.predicate.columns.kernels import Lookup
from tests.engine_core.cases import Case, cases
from tests.engine_core.common import expected_counts, kleene
from tests.engine_core.wide import WideSlot


def counted(case: Case, clock: bool = False) -> tuple[list[int], list[int]]:
    counter = Counter(case.automaton, windowed=case.windowed, consume=case.consume, shared_clock=clock)
    counts = [counter.feed(b.bits, b.key, b.low, b.partition) for b in case.batches()]
    return [c.matches for c in counts], [c.occurrences for c in counts]


@settings(max_examples=400, deadline=None)
@given(cases())
def test_oracle_count(case: Case) -> None:
    assert counted(case) == expected_counts(case)
    assert counted(case, clock=True) == expected_counts(case)


@settings(max_examples=60, deadline=None)
@given(cases(wide_conditions=True))
def test_oracle_count_many_conditions(case: Case) -> None:
    assert counted(case) == expected_counts(case)


@settings(max_examples=150, deadline=None)
@given(cases(max_events=12))
def test_oracle_count_in_wide_numbers(case: Case) -> None:
    """The same when the kernel hands everything over to wide numbers as soon as one reaches 1 or 2."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(count_module, "CEILING_BITS", 1)
        patch.setattr(count_module, "SMALL", 2)
        assert counted(case) == expected_counts(case)
        patch.setattr(count_module, "LONG", 1)
        assert counted(case) == expected_counts(case)


def in_blocks(case: Case, size: int) -> tuple[list[int], list[int]]:
    """Counted block by block: words of bits are codes, the window is how far it reaches below a key."""
    counter = Counter(case.automaton, windowed=case.windowed, consume=case.consume)
    reach = reach_of(case.events[0].key - case.events[0].low if case.windowed else None)
    counts = []
    for batch in case.batches():
        words, places = np.unique(batch.bits[:, 0], return_inverse=True)
        codes: Ints = places.astype(np.int32)
        codes.flags.writeable = False  # as Arrow's are
        lookup = Lookup(codes, words, codes, np.full(words.size, (1 << 64) - 1, np.uint64))
        deferred = Deferred(lookup, reach, Buffers())
        counts.append(counter.read(Rows(batch.key, deferred, batch.position, None, pa.record_batch({}))))
        assert counter._room is None or counter._room.low.size == size
    return [c.matches for c in counts], [c.occurrences for c in counts]


@pytest.mark.parametrize("size", [1, 3, 4_096])
@settings(max_examples=150, deadline=None)
@given(case=cases(max_events=12))
def test_oracle_count_in_blocks(size: int, case: Case) -> None:
    """Classes that are met in the middle, contiguity, consumption, and numbers that are too wide for the kernel."""
    case = replace(case, partitioned=False, events=[replace(each, partition=0) for each in case.events])
    expected = expected_counts(case)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "SIZE", size)
        assert in_blocks(case, size) == expected
        patch.setattr(count_module, "CEILING_BITS", 1)
        patch.setattr(count_module, "SMALL", 2)
        assert in_blocks(case, size) == expected


@pytest.mark.parametrize("partitioned", [False, True])
def test_counts_beyond_any_machine_number(partitioned: bool) -> None:
    b = 3000
    bits = np.array([1] + [2] * b + [4] + [0] * 10 + [1, 2, 4], np.uint64).reshape(-1, 1)
    key = np.arange(len(bits), dtype=np.int64)
    partition = np.full(len(bits), 7, np.int64) if partitioned else None
    counter = Counter(kleene())
    result = counter.feed(bits, key, key - (b + 5), partition)
    assert result.matches == 2**b - 1 + 1
    assert result.occurrences == 2
    later = key[-3:] + 10**6
    again = counter.feed(bits[-3:], later, later - 5, None if partition is None else partition[:3])
    assert (again.matches, again.occurrences) == (1, 1)
    assert not counter.wide_slots


@pytest.mark.parametrize("consume", ["none", "partition"])
@pytest.mark.parametrize("windowed", [True, False])
def test_differential_limbs_and_python_integers(consume: str, windowed: bool) -> None:
    rng = np.random.default_rng(3)
    key = np.arange(3000, dtype=np.int64)
    bits = rng.choice(np.array([1, 2, 2, 2, 4], np.uint64), key.size).reshape(-1, 1)
    bits[rng.random(key.size) < 0.9] &= np.uint64(3)
    counter, reference = Counter(kleene(), consume=consume, windowed=windowed), Recogniser(kleene())
    wide, largest = WideSlot(windowed), 0
    for part in (slice(a, a + 600) for a in range(0, 3000, 600)):
        result = counter.feed(bits[part], key[part], key[part] - 400)
        classes, relevant = reference.classes.batch(bits[part], np.zeros(0, np.int64))
        want = 0
        for i in relevant:
            count = wide.step(reference.det, int(classes[i]), int(key[part][i]), int(key[part][i]) - 400)
            want += count
            if count and consume != "none":
                wide = WideSlot(windowed)
        assert result.matches == want
        largest = max(largest, want)
    assert consume != "none" or largest > 1 << 200


@settings(max_examples=20, deadline=None)
@given(cases(max_events=30))
def test_differential_long_windows_flip(case: Case) -> None:
    """The kernel's flips against the wide form, event by event."""
    if case.partitioned or case.consume != "none":
        return
    counter = Counter(case.automaton, windowed=case.windowed)
    reference = Recogniser(case.automaton)
    wide = WideSlot(case.windowed)
    for k in range(len(case.events)):
        batch = Case(case.automaton, case.events[k : k + 1], "none", case.windowed, False, []).batches()[0]
        classes, relevant = reference.classes.batch(batch.bits, np.zeros(0, np.int64))
        want = sum(wide.step(reference.det, int(classes[i]), int(batch.key[i]), int(batch.low[i])) for i in relevant)
        assert counter.feed(batch.bits, batch.key, batch.low).matches == want


def test_silent_partitions_lose_their_slots() -> None:
    key = np.arange(50_000, dtype=np.int64)
    bits = np.ones((key.size, 1), np.uint64)
    counter = Counter(kleene(), shared_clock=True)
    counter.feed(bits, key, key - 10, key)
    assert counter.slots.n_slots <= 4096  # about a sixteenth of the partitions
    assert counter.node_next.size <= 4096


def test_a_partition_that_begins_where_the_nodes_are_used_up_is_counted() -> None:
    """It took a slot, which was swept as soon as more nodes were asked for, and so for ever."""
    starts = FEWEST_NODES
    bits = np.array([1] * starts + [1, 2, 4], np.uint64).reshape(-1, 1)
    key, partition = np.arange(1, len(bits) + 1, dtype=np.int64), np.array([0] * starts + [1] * 3, np.int64)
    assert Counter(kleene(), shared_clock=True).feed(bits, key, np.ones_like(key), partition).matches == 1


def test_columns_are_checked_and_may_be_read_only() -> None:
    bits, key = np.array([[1], [2], [4]], np.uint64), np.arange(3, dtype=np.int32)
    bits.flags.writeable = key.flags.writeable = False
    assert Counter(kleene()).feed(bits, key, key - 5).matches == 1
    with pytest.raises(ValueError, match="low has the shape"):
        Counter(kleene()).feed(bits, key, key[:2])
    with pytest.raises(ValueError, match="negative"):
        Counter(kleene()).feed(bits, key, key, key - 1)


def test_dstates_that_wide_numbers_meet_fit_into_the_kernels_arrays() -> None:
    """A wide partition met new dstates between events of others, and the kernel wrote past its arrays."""
    n = 40
    steps = tuple(Transition(q, 0, 1, q + 1) for q in range(n)) + tuple(Transition(q, TRUE, 0, q) for q in range(1, n))
    automaton = Automaton(n + 1, 0, frozenset({n}), steps, (0,), (frozenset(), frozenset("a")))
    key = np.arange(60, dtype=np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(count_module, "CEILING_BITS", 1)
        counter = Counter(automaton, consume="any")
        counter.feed(np.ones((60, 1), np.uint64), key, key - 100, (key % 7 == 6).astype(np.int64))
    assert counter.det.capacity > 4
    assert counter.v.shape[1] == counter.det.capacity
    assert counter.p.shape[1:] == (counter.det.capacity, counter.det.capacity)
