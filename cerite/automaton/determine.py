"""Deterministic pieces: gaps in which a pattern does not occur, and stretches that a pattern does not match.

Both read the subsets of a fragment's states (SRT report, algorithms 7 and 8, without registers). From each subset one
step leads on per *minterm*, a choice of which of the tests asked for there hold; minterms exclude each other, so the
result is deterministic and can be complemented. Nothing is marked (corollary 43).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

from cerite.automaton.fragment import ENTRY, NO_LABELS, Fragment, Gap, Step, new_state
from cerite.automaton.guards import ANY, Guard, Reach, Test
from cerite.errors import PatternError

Subset = frozenset[int]
_BEGIN: Subset = frozenset((ENTRY,))
MOST_TESTS = 10
MOST_SUBSETS = 2_000


def avoiding(fragment: Fragment) -> Gap:
    """A gap in which the fragment does not occur."""
    states, steps = _subsets(fragment, restart=True)
    return Gap(states[_BEGIN], tuple(steps))


def complement(fragment: Fragment) -> Fragment:
    """Any stretch that the fragment does not match from its first to its last event."""
    states, steps = _subsets(fragment, restart=False)
    first = states.pop(_BEGIN)
    entries = tuple(replace(step, source=ENTRY) for step in steps if step.source == first)
    missed = frozenset(number for subset, number in states.items() if not subset & fragment.exits)
    rest = tuple(step for step in steps if step.source != first)
    return Fragment(entries, rest, missed, nullable=not fragment.nullable)


def _subsets(fragment: Fragment, *, restart: bool) -> tuple[dict[Subset, int], list[Step]]:
    """The subset construction; with `restart` the fragment may begin at every event and must never be complete."""
    by_source: dict[int, list[Step]] = {}
    for step in (*fragment.entries, *fragment.steps):
        by_source.setdefault(step.source, []).append(step)
    states: dict[Subset, int] = {_BEGIN: new_state()}
    todo = [_BEGIN]
    steps: list[Step] = []
    while todo:
        subset = todo.pop()
        for guard, reached in _minterms([step for state in subset for step in by_source.get(state, ())]):
            if restart and reached & fragment.exits:
                continue  # the pattern would have occurred
            following = reached | _BEGIN if restart else reached
            if following not in states:
                states[following] = new_state()
                todo.append(following)
                if len(states) > MOST_SUBSETS:
                    raise PatternError("this negated pattern is too large", hint="negate something simpler")
            steps.append(Step(states[subset], guard, NO_LABELS, states[following], False))
    return states, steps


def _minterms(leaving: list[Step]) -> Iterator[tuple[Guard, Subset]]:
    """Which states are reached, for every choice of the tests that the steps ask for."""
    tests = sorted({test for step in leaving for test in step.guard.tests | step.guard.negated}, key=str)
    if len(tests) > MOST_TESTS:
        raise PatternError(
            f"a negated pattern asks for more than {MOST_TESTS} different events at once",
            hint="negate something simpler",
        )
    for count in range(len(tests) + 1):
        for chosen in combinations(tests, count):
            guard = Guard(frozenset(chosen), frozenset(tests) - frozenset(chosen)) if tests else ANY
            if guard.possible:
                yield guard, frozenset(step.target for step in leaving if _implied(step.guard, guard.tests))


def _implied(guard: Guard, holding: frozenset[Test | Reach]) -> bool:
    return guard.tests <= holding and not guard.negated & holding
