"""What runs have learnt of a query, for its next runs: deterministic states and classes of events, which are found out
while events are read, with Python between the kernels.

A lazy automaton never changes and the cache beside it does, so those who search at the same time need a cache each, and
the one who is done leaves it for the next (as the regex crate pools the caches of its lazy automata). Where a stream is
counted by several threads this is most of what they would wait for each other: Python's lock.

Invariants: tables belong to one run at a time. They follow from the automaton and from the conditions that some events
satisfied, never from when or where these came; what was kept of partitions is dropped. Counting takes the longer the
more states are known, so tables of many are not kept: events that met them should not make other streams slow.
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
    """A trimmed automaton, as far as it is determinised, and the classes of events that were met."""

    automaton: Automaton
    states: CountedStates
    classes: EventClasses


class Learnt:
    """The tables that no run of a program uses just now.

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
        self.nodes = FEWEST_NODES  # that the queue of a run had at its end: how many starts a window has

    def __len__(self) -> int:
        return len(self._kept)

    def take(self, automaton: Automaton) -> Tables:
        """Tables of the program's automaton, of a run before if there are some."""
        most = most_states()
        while self._kept:
            try:
                tables = self._kept.pop()
            except IndexError:  # another thread was faster
                break
            if tables.states.n_dstates <= most:
                tables.states.most = most
                return tables
        trimmed = automaton.trim()
        states = CountedStates(trimmed)
        return Tables(trimmed, states, EventClasses(trimmed, states))

    def keep(self, tables: Tables, nodes: int) -> None:
        """Take over the tables of a run that has come to its end and will not be used any more."""
        self.nodes = min(nodes, MOST_NODES)
        if tables.states.n_dstates <= FEW and len(self._kept) < MOST:
            tables.classes.forget()
            self._kept.append(tables)
