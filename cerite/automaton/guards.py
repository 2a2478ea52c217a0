"""Guards: what an event must satisfy for a transition, as a conjunction of tests and negated tests.

A test is what one event of a pattern asks for, its type and its unary condition; a guard of several tests comes from
intersection, a negated one from `NOT` in a gap. A negated test holds where the test is not true, NULLs included.
"""

from __future__ import annotations

from dataclasses import dataclass

from cerite.names import quoted
from cerite.predicate.expression import Expression


@dataclass(frozen=True, slots=True)
class Test:
    """One event of this type (None: any) that satisfies this condition (None: always)."""

    type: str | None
    condition: Expression | None

    def __str__(self) -> str:
        kind = "_" if self.type is None else quoted(self.type)
        return kind if self.condition is None else f"{kind}[{self.condition}]"


@dataclass(frozen=True, slots=True)
class Guard:
    """All of `tests` hold and none of `negated`; without either, any event passes."""

    tests: frozenset[Test] = frozenset()
    negated: frozenset[Test] = frozenset()

    @staticmethod
    def of(type: str | None, condition: Expression | None) -> Guard:
        """The guard of a single event."""
        trivial = type is None and condition is None
        return ANY if trivial else Guard(frozenset((Test(type, condition),)))

    def __and__(self, other: Guard) -> Guard:
        return Guard(self.tests | other.tests, self.negated | other.negated)

    @property
    def possible(self) -> bool:
        """False if the guard contradicts itself: two event types at once, or a test and its negation."""
        types = {test.type for test in self.tests if test.type is not None}
        return len(types) <= 1 and not self.tests & self.negated

    def __str__(self) -> str:
        parts = sorted(map(str, self.tests)) + [f"NOT {test}" for test in sorted(map(str, self.negated))]
        return " AND ".join(parts) or "TRUE"


ANY = Guard()
