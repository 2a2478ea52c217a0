"""Constructions on automata against their meaning, on the oracle's runs."""

import pytest
from hypothesis import given, settings

from cerite.automaton import TRUE, Automaton, Transition
from tests.engine_core.cases import Case, cases
from tests.engine_core.oracle import matches


@settings(max_examples=100, deadline=None)
@given(cases())
def test_oracle_trim_keeps_the_matches(case: Case) -> None:
    trimmed = case.automaton.trim()
    assert trimmed.n_states <= case.automaton.n_states
    assert matches(trimmed, case.events) == matches(case.automaton, case.events)


@settings(max_examples=100, deadline=None)
@given(cases())
def test_oracle_plain_marks_forget_labels(case: Case) -> None:
    plain = matches(case.automaton.with_plain_marks(), case.events)
    forgotten = [
        {(start, end, tuple((p, 1) for p, _ in marks)) for start, end, marks in at}
        for at in matches(case.automaton, case.events)
    ]
    assert plain == forgotten


@pytest.mark.parametrize(
    ("transition", "message"),
    [
        (Transition(1, TRUE, 0, 0), "enters the initial"),
        (Transition(0, 3, 0, 1), "condition or label"),
        (Transition(0, TRUE, 9, 1), "condition or label"),
        (Transition(0, TRUE, 0, 7), "state that does not exist"),
    ],
)
def test_malformed_automata_are_refused(transition: Transition, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Automaton(2, 0, frozenset({1}), (transition,), ("c",), (frozenset(), frozenset("x")))
