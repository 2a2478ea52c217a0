"""The conditions of transitions (SRT report, definitions 10 and 13).

A condition says of single tests which must hold and which must not; a test is what one terminal of an expression asks
for: an event type, and a formula over the event and the registers. Intersection needs no more than conjunction of
conditions, and minterms no more than negation of tests. (The engine's guards test windows as well.)

A test that reads an empty register is false as a whole, whatever its formula says (docs/semantics.md, *References*); a
negated test holds exactly where the test does not. So negation is two-valued, as definition 13 has it, NULLs and empty
registers included, and ¬ may be taken of a test but not moved inside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from cerite.automaton.guards import Test
from cerite.pattern.semantics.stream import StreamEvent
from cerite.predicate.evaluate import Lookup, holds
from cerite.predicate.expression import Expression, Reference, transform, variables


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
        """The registers that it looks at."""
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
