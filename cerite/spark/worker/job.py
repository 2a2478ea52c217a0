"""What a task needs to know, and the plan it runs: the query's own, reading the columns that Spark has prepared.

Spark has already decided every condition on one event; its answers arrive as bits. A task's rows are groups, one per
partition value or T-CER chunk, each in stream order; to the engine a group is a partition. Windows over time or over a
number of events become windows over a column, because time starts anew with every group and not all events travel.

Invariant: `task_plan` gives the same matches on prepared rows as the query's plan on all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Union

from cerite.automaton.absences import is_own
from cerite.automaton.automaton import Automaton
from cerite.automaton.guards import Guard, Reach, Test, distinct_tests
from cerite.engine.plan import Plan
from cerite.engine.results.shape import Shape, Shown
from cerite.pattern.nodes import Size
from cerite.pattern.query import Measure
from cerite.predicate.expression import Attribute, Expression, attributes, conjunction, walk

Number = Union[int, float]
WORD = 62  # bits in a word that Spark packs: a long, sign left alone
BITS, BIT, GROUP = "cerite.bits", "cerite.bit", "cerite.group"
CHUNK, OWNED, RANK = "cerite.chunk", "cerite.owned", "cerite.rank"


@dataclass(frozen=True)
class Cut:
    """Where a chunk begins: it owns from `own` on and reads from `read` on."""

    own: Number
    read: Number


@dataclass(frozen=True)
class Job:
    """One query on prepared rows; it travels to the workers.

    `columns` are the names of the columns that arrive. `unit` are those whose change begins a new group, `order` those
    that order a group's rows. `window` is the column and size that bound a match, if there is a window. `files` and
    `root` are those of `match_ids.Ids`.
    """

    plan: Plan
    columns: tuple[str, ...]
    tests: int
    unit: tuple[str, ...]
    order: tuple[str, ...]
    keys: tuple[str, ...]
    time: str | None
    position: str | None
    shown: tuple[Shown, ...]
    window: tuple[str, Size] | None
    owned: bool
    files: tuple[str, ...]
    root: str
    measures: tuple[Measure, ...] = ()

    @property
    def shape(self) -> Shape:
        """The shape of the result."""
        return Shape(
            self.plan.automaton.labels, self.keys, self.order, self.time, self.position, self.shown, self.files,
            self.root, self.measures,
        )  # fmt: skip

    @property
    def words(self) -> tuple[str, ...]:
        """The columns of packed bits."""
        return tuple(f"{BITS}{word}" for word in range(-(-self.tests // WORD)))

    @property
    def read(self) -> tuple[str, ...]:
        """The columns that the engine reads besides bits and groups."""
        named = {*attributes_across(self.plan), *(size.attribute for size in windows(self.plan)), *self.plan.partition}
        return tuple(name for name in self.columns if name in named)


def unary_tests(plan: Plan) -> tuple[Test, ...]:
    """The distinct conditions on one event: what Spark evaluates."""
    alone = (test.split()[0] for test in distinct_tests(plan.every_guard) if not computed_by_intake(test))
    return tuple(dict.fromkeys(test for test in alone if test != Test(None, None)))


def computed_by_intake(test: Test | Reach) -> bool:
    """Whether a test looks at what the engine's intake finds out about absences, which is in no row."""
    condition = test.condition if isinstance(test, Test) else None
    return condition is not None and any(isinstance(node, Attribute) and is_own(node.name) for node in walk(condition))


def attributes_across(plan: Plan) -> tuple[str, ...]:
    """The attributes that conditions across events read, of the event itself and of registers."""
    parts = (part for test in distinct_tests(plan.every_guard) for part in test.split()[1])
    read = frozenset().union(*map(attributes, parts))
    return tuple(sorted(name for name in read if not is_own(name)))


def windows(plan: Plan) -> tuple[Size, ...]:
    """Every window of the plan, and the time that SUPPRESS measures."""
    tests = (test for guard in plan.every_guard for test in guard.tests | guard.negated)
    inner = (test.size for test in tests if isinstance(test, Reach))
    silent = None if plan.suppress is None else plan.suppress.size
    every = (plan.window, plan.tick, silent, *inner, *(each.size for each in plan.automaton.preceding))
    return tuple(size for size in every if size is not None)


def task_plan(plan: Plan, time: str | None, ticks: Fraction) -> Plan:
    """The plan that reads prepared rows; `ticks` is how many ticks of the time column make a millisecond."""

    def resized(size: Size) -> Size:
        if size.attribute is not None:
            return size
        if size.is_time:
            assert time is not None
            return Size.of(time, size.width * ticks)
        return Size.of(RANK, int(size.amount) - 1)

    return _reading_bits(plan, resized)


def live_plan(plan: Plan) -> Plan:
    """The plan that reads bits, but counts events and time itself: all rows that count come, in the order of time."""
    return _reading_bits(plan, lambda size: size)


def _reading_bits(plan: Plan, resized: Callable[[Size], Size]) -> Plan:
    number = {test: k for k, test in enumerate(unary_tests(plan))}

    def reading(automaton: Automaton) -> Automaton:
        guards = tuple(_prepared(guard, number, resized) for guard in automaton.conditions)
        preceding = tuple(
            replace(each, automaton=reading(each.automaton), size=None if each.size is None else resized(each.size))
            for each in automaton.preceding
        )
        waits = tuple((register, resized(size)) for register, size in automaton.waits)
        return replace(automaton, conditions=guards, preceding=preceding, waits=waits)

    return replace(
        plan, automaton=reading(plan.automaton),
        window=None if plan.window is None else resized(plan.window),
        suppress=None if plan.suppress is None else replace(plan.suppress, size=resized(plan.suppress.size)),
    )  # fmt: skip


def _prepared(guard: Guard, number: Mapping[Test, int], resized: Callable[[Size], Size]) -> Guard:
    def changed(test: Test | Reach) -> Test | Reach:
        if isinstance(test, Reach):
            return replace(test, size=resized(test.size))
        if computed_by_intake(test):
            return test
        alone, across = test.split()
        bit: Expression | None = Attribute(f"{BIT}{number[alone]}") if alone in number else None
        return Test(None, conjunction(bit, *across))

    return Guard(frozenset(map(changed, guard.tests)), frozenset(map(changed, guard.negated)))
