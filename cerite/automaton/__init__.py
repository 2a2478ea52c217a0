"""Complex event automata: the immutable machine that patterns compile to and engines run."""

from cerite.automaton.automaton import TRUE, Automaton, Transition

__all__ = ["TRUE", "Automaton", "Transition"]
