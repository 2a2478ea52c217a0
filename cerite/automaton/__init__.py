"""Complex event automata: the immutable machine that patterns compile to and engines run."""

from cerite.automaton.automaton import TRUE, Automaton, Transition
from cerite.automaton.strict import strict

__all__ = ["TRUE", "Automaton", "Transition", "strict"]
