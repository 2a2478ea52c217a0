"""Guards: what an event must satisfy for a transition, as a conjunction of tests and negated tests.

A test is what one event of a pattern demands: a type and a condition, which may read registers. Guards of several tests
come from intersection, negated tests from `NOT` in a gap. A negated test holds where the test is not true, NULLs and
empty registers included. `Reach` is the test of a window around a part of a pattern.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cerite.core.names import quoted
from cerite.pattern.nodes import Size
from cerite.predicate.expression import And, Expression, aggregates, conjunction, variables


@dataclass(frozen=True, slots=True)
class Test:
    """One event of this type (None: any) that satisfies this condition (None: always)."""

    type: str | None
    condition: Expression | None

    @property
    def reads(self) -> frozenset[str]:
        """The registers that it reads."""
        return frozenset() if self.condition is None else variables(self.condition)

    @property
    def gathers(self) -> frozenset[str]:
        """The registers of which it reads all events, not only the last."""
        return frozenset() if self.condition is None else frozenset(
            each.variable for each in aggregates(self.condition) if each.variable is not None
        )  # fmt: skip

    def split(self) -> tuple[Test, tuple[Expression, ...]]:
        """The part that looks at the event alone, and the parts of its conjunction that read registers.

        >>> from cerite.language.ceql import parse_condition
        >>> alone, across = Test("A", parse_condition("price > 3 AND price > x.price")).split()
        >>> str(alone), [str(each) for each in across]
        ('A[price > 3]', ['price > x.price'])
        """
        if self.condition is None or not self.reads:
            return self, ()
        parts = self.condition.operands if isinstance(self.condition, And) else (self.condition,)
        alone = conjunction(*(part for part in parts if not variables(part)))
        return Test(self.type, alone), tuple(part for part in parts if variables(part))

    def __str__(self) -> str:
        kind = "_" if self.type is None else quoted(self.type)
        return kind if self.condition is None else f"{kind}[{self.condition}]"


@dataclass(frozen=True, slots=True)
class Reach:
    """The event lies inside the window that began with the event in `register`, or, if `past`, after its end."""

    register: str
    size: Size
    past: bool = False

    @property
    def reads(self) -> frozenset[str]:
        """The registers that it reads."""
        return frozenset((self.register,))

    def __str__(self) -> str:
        return f"{'AFTER' if self.past else 'WITHIN'} {self.size} of {self.register}"


@dataclass(frozen=True, slots=True)
class Guard:
    """All of `tests` hold and none of `negated`; without either, any event passes."""

    tests: frozenset[Test | Reach] = frozenset()
    negated: frozenset[Test | Reach] = frozenset()

    @staticmethod
    def of(type: str | None, condition: Expression | None) -> Guard:
        """The guard of a single event."""
        trivial = type is None and condition is None
        return ANY if trivial else Guard(frozenset((Test(type, condition),)))

    def __and__(self, other: Guard) -> Guard:
        return Guard(self.tests | other.tests, self.negated | other.negated)

    @property
    def reads(self) -> frozenset[str]:
        """The registers that some test reads."""
        return frozenset().union(*(test.reads for test in self.tests | self.negated))

    @property
    def gathers(self) -> frozenset[str]:
        """The registers of which some test reads all events."""
        return frozenset().union(*(test.gathers for test in self.tests | self.negated if isinstance(test, Test)))

    @property
    def possible(self) -> bool:
        """False if the guard contradicts itself: two event types at once, or a test and its negation."""
        types = {test.type for test in self.tests if isinstance(test, Test) and test.type is not None}
        return len(types) <= 1 and not self.tests & self.negated

    def __str__(self) -> str:
        parts = sorted(map(str, self.tests)) + [f"NOT {test}" for test in sorted(map(str, self.negated))]
        return " AND ".join(parts) or "TRUE"


ANY = Guard()


def distinct_tests(guards: Iterable[Guard]) -> tuple[Test, ...]:
    """The tests that guards consist of, each once; windows are not among them."""
    tests: dict[Test, None] = {}
    for guard in guards:
        for test in sorted(guard.tests | guard.negated, key=str):
            if isinstance(test, Test):
                tests.setdefault(test)
    return tuple(tests)
