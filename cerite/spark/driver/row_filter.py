"""Which rows can matter to a query: the filter that Spark applies, and pushes into the source, before anything travels.

`automaton.relevance` says what can happen to a run at an event; here that is said of rows: where some transition that
moves a run may fire, and where the loops of a state in which runs wait under a condition (`NOT` in a gap) may fail.

Invariant: recognition on the rows kept gives the matches of all rows, provided that, where `gaps` is set, every row
that follows a kept one in its (partition's) stream is kept as well.
"""

from __future__ import annotations

from dataclasses import dataclass

from cerite.automaton.automaton import TRUE, Automaton, Transition
from cerite.automaton.guards import Guard, Reach, Test
from cerite.automaton.relevance import relevance, unconditional
from cerite.engine.plan import Plan
from cerite.predicate.formula import Formula
from cerite.spark.driver.condition_columns import Guards
from cerite.spark.worker.job import computed_by_intake


@dataclass(frozen=True)
class RowFilter:
    """Where a row matters by itself, and whether the row after such a row matters too."""

    formula: Formula
    gaps: bool

    @property
    def every_row(self) -> bool:
        """Whether nothing can be dropped."""
        return self.formula is True


def row_filter(plan: Plan, conditions: Guards) -> RowFilter:
    """The rows that a plan needs."""
    if plan.late and plan.consume == "any":  # what is forgotten depends on which event closes a window
        return RowFilter(True, False)
    before = (each.automaton for each in plan.automaton.preceding)
    every = [_row_filter(each, conditions) for each in (plan.automaton.trim(), *before)]
    return RowFilter(conditions.some(each.formula for each in every), any(each.gaps for each in every))


def _row_filter(automaton: Automaton, conditions: Guards) -> RowFilter:
    shape = relevance(automaton)
    moving = [_possible(automaton, each, conditions) for each in shape.moving]
    ending = [
        conditions.negated(conditions.some(_certain(automaton, each, conditions) for each in loops))
        for loops in shape.loops.values()
        if loops and not unconditional(loops)
    ]
    return RowFilter(conditions.some([*moving, *ending]), shape.gaps)


def _unary(tests: frozenset[Test | Reach]) -> frozenset[Test | Reach]:
    return frozenset(test.split()[0] for test in tests if isinstance(test, Test) and not computed_by_intake(test))


def _possible(automaton: Automaton, transition: Transition, conditions: Guards) -> Formula:
    """Where the transition may fire, as far as one event can tell."""
    if transition.condition == TRUE:
        return True
    guard: Guard = automaton.conditions[transition.condition]
    certain = frozenset(test for test in guard.negated if not test.reads and not computed_by_intake(test))
    return conditions.guard(Guard(_unary(guard.tests), certain))


def _certain(automaton: Automaton, transition: Transition, conditions: Guards) -> Formula:
    """Where the transition fires whatever other events hold."""
    guard: Guard = automaton.conditions[transition.condition]
    if any(test.reads for test in guard.tests) or any(isinstance(test, Reach) for test in guard.negated):
        return False
    if any(map(computed_by_intake, guard.tests | guard.negated)):
        return False
    return conditions.guard(Guard(guard.tests, _unary(guard.negated)))
