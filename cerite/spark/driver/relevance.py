"""Which rows can matter to a query: the filter that Spark applies, and pushes into the source, before anything travels.

It is what the local engine drops before its loop (`engine.classes`), read off the automaton without its data. An event
may *move* a run: some transition that marks it or changes the state may fire. It may *end* a run that waits under a
condition (`NOT` in a gap): that condition's loop may not hold. And where states have no loop at all (contiguity), any
event ends runs that wait there; but then the next such event finds nothing left to end, so of events in a row that
neither move nor end anything else, the first is enough.

Invariant: recognition on the rows kept gives the matches of all rows, provided that, where `gaps` is set, every row
that follows a kept one in its (partition's) stream is kept as well.
"""

from __future__ import annotations

from dataclasses import dataclass

from cerite.automaton.automaton import TRUE, Automaton, Transition
from cerite.automaton.guards import Guard, Reach, Test
from cerite.engine.plan import Plan
from cerite.predicate.formula import Formula
from cerite.spark.driver.conditions import Conditions


@dataclass(frozen=True)
class Relevance:
    """Where a row matters by itself, and whether the row after such a row matters too."""

    formula: Formula
    gaps: bool

    @property
    def every_row(self) -> bool:
        """Whether nothing can be dropped."""
        return self.formula is True


def relevance(plan: Plan, conditions: Conditions) -> Relevance:
    """The rows that a plan needs."""
    automaton = plan.automaton.trim()
    moving = [_possible(automaton, each, conditions) for each in automaton.transitions if _moves(each, automaton)]
    waiting = {each.source for each in automaton.transitions} - {automaton.initial}
    ending: list[Formula] = []
    gaps = False
    for state in sorted(waiting):
        loops = [each for each in automaton.transitions if each.source == state and not _moves(each, automaton)]
        if not loops:
            gaps = True
        elif all(each.condition != TRUE for each in loops):
            ending.append(conditions.negated(conditions.some(_certain(automaton, each, conditions) for each in loops)))
    return Relevance(conditions.some([*moving, *ending]), gaps)


def _unary(tests: frozenset[Test | Reach]) -> frozenset[Test | Reach]:
    return frozenset(test.split()[0] for test in tests if isinstance(test, Test))


def _moves(transition: Transition, automaton: Automaton) -> bool:
    changes = transition.label or transition.writes or transition.clears or transition.source != transition.target
    anew = any(op.resets or op.starts for op in transition.ops)  # other ops follow what the watched steps do
    return bool(changes) or anew or transition.source in automaton.finals


def _possible(automaton: Automaton, transition: Transition, conditions: Conditions) -> Formula:
    """Where the transition may fire, as far as one event can tell."""
    if transition.condition == TRUE:
        return True
    guard: Guard = automaton.conditions[transition.condition]
    certain = frozenset(test for test in guard.negated if not test.reads)
    return conditions.guard(Guard(_unary(guard.tests), certain))


def _certain(automaton: Automaton, transition: Transition, conditions: Conditions) -> Formula:
    """Where the transition fires whatever other events hold."""
    guard: Guard = automaton.conditions[transition.condition]
    if any(test.reads for test in guard.tests) or any(isinstance(test, Reach) for test in guard.negated):
        return False
    return conditions.guard(Guard(guard.tests, _unary(guard.negated)))
