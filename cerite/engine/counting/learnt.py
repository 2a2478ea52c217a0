"""What runs have learnt about a query, for its next runs: deterministic states and classes of events, which are found
while events are read, with Python between the kernels.

A lazy automaton never changes, but its cache does; so runs that go on at the same time need a cache each, and a run
that is done leaves its cache for the next (as the regex crate pools the caches of its lazy automata). Where several
threads count a stream, this avoids most of the time in which they would wait for each other, for Python's lock.

Invariants: tables belong to one run at a time. They follow from the automaton and from the conditions that some events
satisfied, never from when or where these came; what was kept of partitions is dropped. The more states are known, the
longer counting takes, so large tables are not kept: the events that led to them should not slow down other streams.
"""

from __future__ import annotations

from typing import NamedTuple

from cerite.automaton import Automaton
from cerite.core.budget import most_states
from cerite.engine.counting.steps import CountedStates
from cerite.engine.subset.classes import EventClasses

FEW = 16  # deterministic states, at most, of tables that are kept
MOST = 16  # tables that are kept
FEWEST_NODES, MOST_NODES = 1 << 6, 1 << 14  # of a queue, to begin with


class Tables(NamedTuple):
    """A trimmed automaton, what is known of its deterministic states, and the classes of events that were met."""

    automaton: Automaton
    states: CountedStates
    classes: EventClasses


class Learnt:
    """The tables of a program that no run is using at the moment.

    >>> from cerite.engine.plan import plan
    >>> from cerite.language.ceql import parse_query
    >>> learnt, automaton = Learnt(), plan(parse_query("SELECT * FROM S WHERE A ; B")).automaton
    >>> tables = learnt.take(automaton)
    >>> learnt.keep(tables, nodes=64)
    >>> learnt.take(automaton) is tables, learnt.take(automaton) is tables
    (True, False)
    """

    def __init__(self) -> None:
        self._kept: list[Tables] = []  # appended to and popped from by any thread
        self.nodes = FEWEST_NODES  # how many the queue of a run had at its end: as many as a window has starts

    def __len__(self) -> int:
        return len(self._kept)

    def take(self, automaton: Automaton) -> Tables:
        """Tables of the program's automaton, from an earlier run if there are some."""
        most = most_states()
        while self._kept:
            try:
                tables = self._kept.pop()
            except IndexError:  # another thread took the last one
                break
            if tables.states.n_dstates <= most:
                tables.states.most = most
                return tables
        trimmed = automaton.trim()
        states = CountedStates(trimmed)
        return Tables(trimmed, states, EventClasses(trimmed, states))

    def keep(self, tables: Tables, nodes: int) -> None:
        """Take over the tables of a run that has ended and will not be used any more."""
        self.nodes = min(nodes, MOST_NODES)
        if tables.states.n_dstates <= FEW and len(self._kept) < MOST:
            tables.classes.forget()
            self._kept.append(tables)
