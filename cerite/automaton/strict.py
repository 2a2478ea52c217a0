"""STRICT (ICDT 2019, section 4) as a construction on automata: keep the runs whose marked events lie side by side.

Every state is split by phase: nothing marked yet, marking, done marking. An unmarked event ends the marking, and a run
that is done never marks again. Invariant: the matches are those of the given automaton whose marked positions form an
interval of the (partition's) stream; what can no longer become one is trimmed away.
"""

from dataclasses import replace

from cerite.automaton.automaton import Automaton

_BEFORE, _INSIDE, _AFTER = range(3)


def strict(automaton: Automaton) -> Automaton:
    """The automaton of STRICT(φ) for the automaton of φ."""
    transitions = []
    for t in automaton.transitions:
        for phase in (_BEFORE, _INSIDE, _AFTER):
            if t.label and phase == _AFTER:
                continue
            unmarked = _BEFORE if phase == _BEFORE else _AFTER
            following = _INSIDE if t.label else unmarked
            transitions.append(replace(t, source=3 * t.source + phase, target=3 * t.target + following))
    return replace(
        automaton,
        n_states=3 * automaton.n_states,
        initial=3 * automaton.initial + _BEFORE,
        finals=frozenset(3 * q + phase for q in automaton.finals for phase in (_BEFORE, _INSIDE, _AFTER)),
        transitions=tuple(t for t in transitions if t.source % 3 == _BEFORE or t.source // 3 != automaton.initial),
    ).trim()
