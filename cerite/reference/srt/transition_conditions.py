"""The conditions of transitions (SRT report, definitions 10 and 13).

A condition says which tests must hold and which must not; a test is what one terminal of an expression demands: an
event type, and a formula over the event and the registers. Intersection needs no more than conjunction of conditions,
and minterms no more than negation of tests. (The engine's guards test windows as well.)

A test that reads an empty register is false as a whole, whatever its formula says (docs/semantics.md, *References*); a
negated test holds exactly where the test does not. So negation is two-valued, as definition 13 has it, NULLs and empty
registers included, and ¬ may be taken of a test but not moved inside it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from cerite.automaton.guards import Test
from cerite.predicate.evaluate import Lookup, holds
from cerite.predicate.expression import Expression, Reference, transform, variables
from cerite.reference.semantics.short_stream import StreamEvent


@dataclass(frozen=True, slots=True)
class Condition:
    """ϕ: all of `tests` hold and none of `negated`; without either it is ⊤."""

    tests: frozenset[Test] = frozenset()
    negated: frozenset[Test] = frozenset()

    @staticmethod
    def of(type: str | None, formula: Expression | None = None) -> Condition:
        """The condition of a terminal."""
        return TOP if type is None and formula is None else Condition(frozenset((Test(type, formula),)))

    def __and__(self, other: Condition) -> Condition:
        return Condition(self.tests | other.tests, self.negated | other.negated)

    @property
    def reads(self) -> frozenset[str]:
        """The registers that the condition looks at."""
        return frozenset().union(*map(_read_by, self.tests | self.negated))

    def holds(self, event: StreamEvent, lookup: Lookup) -> bool:
        """(u, v) ⊨ ϕ, registers being read by `lookup`."""

        def passes(test: Test) -> bool:
            return test.type in (None, event.type) and holds(test.condition, event.attributes, lookup)

        return all(map(passes, self.tests)) and not any(map(passes, self.negated))

    def renamed(self, names: Mapping[str, str]) -> Condition:
        """The same condition over other registers.

        >>> from cerite.language.ceql import parse_condition
        >>> print(Condition.of("B", parse_condition("id = r.id")).renamed({"r": "t1"}))
        B[id = t1.id]
        """

        def change(node: Expression) -> Expression:
            if isinstance(node, Reference) and node.variable in names:
                return replace(node, variable=names[node.variable])
            return node

        def moved(test: Test) -> Test:
            return test if test.condition is None else Test(test.type, transform(test.condition, change))

        if not self.reads & names.keys():
            return self
        return Condition(frozenset(map(moved, self.tests)), frozenset(map(moved, self.negated)))

    def where_empty(self, registers: frozenset[str]) -> Condition | None:
        """What is left of the condition where these registers are empty; None if it cannot hold."""
        if any(_read_by(test) & registers for test in self.tests):
            return None
        return Condition(self.tests, frozenset(test for test in self.negated if not _read_by(test) & registers))

    def __str__(self) -> str:
        parts = sorted(map(str, self.tests)) + [f"NOT {test}" for test in sorted(map(str, self.negated))]
        return " AND ".join(parts) or "TRUE"


TOP = Condition()


def _read_by(test: Test) -> frozenset[str]:
    return frozenset() if test.condition is None else variables(test.condition)


# Minterms: conditions that exclude each other and together hold of every event (SRT report, algorithm 7, line 12).
#
# The algorithm lists all 2ⁿ combinations of n conditions and their negations. Here the tests inside the conditions
# are decided one after the other, and a test that the ones before it already decide is left out: an event of
# type A is not one of type B, and A[price > 3] is an A. What is left are the satisfiable minterms, those with the
# same consequences joined. Satisfiability beyond types is not examined; a minterm that no event satisfies does no
# harm.


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
        first = frozenset(rest[:1])
        undecided += [(rest[1:], known & Condition(negated=first)), (rest[1:], known & Condition(first))]


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
