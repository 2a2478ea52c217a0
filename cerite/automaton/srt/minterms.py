"""Minterms: conditions that exclude each other and together hold of every event (SRT report, algorithm 7, line 12).

The algorithm lists all 2ⁿ combinations of n conditions and their negations. Here the tests inside the conditions are
decided one after the other, and a test that the ones before it already decide is not asked for: an event of type A
is not one of type B, and A[price > 3] is an A. What is left are the satisfiable minterms, those with the same
consequences joined. Satisfiability beyond types is not examined; a minterm that no event satisfies does no harm.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from cerite.automaton.guards import Test
from cerite.automaton.srt.conditions import TOP, Condition


def minterms(tests: Collection[Test], given: Condition = TOP) -> Iterator[Condition]:
    """Conditions that decide every test, exactly one of which holds of an event where `given` holds.

    >>> [str(each) for each in minterms([Test("A", None), Test("B", None)])]
    ['A', 'B AND NOT A', 'NOT A AND NOT B']
    """
    undecided = [(sorted(tests, key=_order), given)]
    while undecided:
        rest, known = undecided.pop()
        rest = [test for test in rest if verdict(test, known) is None]
        if not rest:
            yield known
            continue
        asked = frozenset(rest[:1])
        undecided += [(rest[1:], known & Condition(negated=asked)), (rest[1:], known & Condition(asked))]


def verdict(test: Test, given: Condition) -> bool | None:
    """Whether the test holds where the condition does, if the condition decides it."""
    if test in given.tests or test in given.negated:
        return test in given.tests
    if any(_implies(each, test) for each in given.tests):
        return True
    if any(_implies(test, each) for each in given.negated) or any(_clash(test, each) for each in given.tests):
        return False
    return None


def entails(minterm: Condition, condition: Condition) -> bool:
    """ϕ ⊨ ψ for a minterm that decides all tests of the condition."""
    return all(verdict(test, minterm) is True for test in condition.tests) and all(
        verdict(test, minterm) is False for test in condition.negated
    )


def possible(condition: Condition) -> bool:
    """False if the condition contradicts itself: two types at once, or a test and the negation of what it implies."""
    return not any(
        any(_implies(test, each) for each in condition.negated) or any(_clash(test, each) for each in condition.tests)
        for test in condition.tests
    )


def _implies(one: Test, two: Test) -> bool:
    return two.type in (None, one.type) and two.condition in (None, one.condition)


def _clash(one: Test, two: Test) -> bool:
    return one.type is not None and two.type is not None and one.type != two.type


def _order(test: Test) -> tuple[bool, str]:
    """Types before conditions: they decide more."""
    return test.condition is not None, str(test)
