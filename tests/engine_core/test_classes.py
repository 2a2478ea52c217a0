"""Event classes: equal rows are one class for ever, and only what cannot matter is dropped."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cerite.automaton import TRUE, Automaton, Transition
from cerite.engine.subset.classes import EventClasses
from cerite.engine.subset.determinise import Determinised

SINGLE = np.zeros(0, np.int64)


def chain(gaps: bool, conditions: int = 2) -> Automaton:
    """a ; b with gaps, a : b without."""
    loops = (Transition(1, TRUE, 0, 1),) if gaps else ()
    moves = (Transition(0, 0, 1, 1), Transition(1, 1, 1, 2))
    return Automaton(3, 0, frozenset({2}), moves + loops, tuple(range(conditions)), (frozenset(), frozenset("x")))


def classes_of(automaton: Automaton) -> EventClasses:
    return EventClasses(automaton, Determinised(automaton))


def rows(*values: int) -> np.ndarray[tuple[int, int], np.dtype[np.uint64]]:
    return np.array(values, np.uint64).reshape(-1, 1)


@pytest.mark.parametrize("conditions", [3, 16, 17, 200])
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 1000))
def test_oracle_equal_rows_are_one_class(conditions: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    classes = classes_of(chain(True, conditions))
    words = -(-conditions // 64)
    pool = rng.integers(0, 1 << 62, (300, words), np.uint64)
    pool[:, -1] &= np.uint64((1 << min(62, conditions - 64 * (words - 1))) - 1)
    bits = pool[rng.integers(0, 300, 2000)]
    numbers = np.concatenate([classes.batch(part, SINGLE)[0].copy() for part in np.array_split(bits, 4)])
    seen: dict[bytes, int] = {}
    for row, number in zip(bits, numbers, strict=True):
        assert seen.setdefault(row.tobytes(), len(seen)) == number


def test_with_gaps_only_what_moves_is_kept() -> None:
    classes = classes_of(chain(gaps=True))
    assert classes.batch(rows(0, 1, 0, 0, 2, 0), SINGLE)[1].tolist() == [1, 4]


def test_with_contiguity_the_first_irrelevant_event_stays() -> None:
    classes = classes_of(chain(gaps=False))
    assert classes.batch(rows(0, 1, 0, 0, 2, 0), SINGLE)[1].tolist() == [0, 1, 2, 4, 5]
    assert classes.batch(rows(0, 0, 1), SINGLE)[1].tolist() == [2]


def test_with_contiguity_every_partition_keeps_its_first_irrelevant_event() -> None:
    classes = classes_of(chain(gaps=False))
    partition = np.array([0, 1, 0, 1, 0, 1, 0, 1], np.int64)
    assert classes.batch(rows(1, 1, 0, 0, 0, 0, 2, 0), partition)[1].tolist() == [0, 1, 2, 3, 6]


def test_a_final_state_with_a_loop_keeps_every_event() -> None:
    automaton = Automaton(
        2, 0, frozenset({1}), (Transition(0, 0, 1, 1), Transition(1, TRUE, 0, 1)), (0,), (frozenset(), frozenset("x"))
    )
    assert classes_of(automaton).batch(rows(0, 1, 0), SINGLE)[1].tolist() == [0, 1, 2]
