"""Binding: a plan and the columns of some data become a program, everything about a run that never changes.

    query ──► plan ──► program ──► run          (Query.plan, bind, Run)

`bind` is the one place where a query meets a schema: names and kinds are checked, conditions are split into what one
event decides and what needs stored values, and the engine is chosen. A `Program` is immutable and may be shared by any
number of runs; all that changes while events are read is in `cerite.engine.run.Run` and the `Engines` that it drives,
just as the cache of a lazy automaton is kept apart from the automaton.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from cerite.automaton.absences import LOW, POSITION, is_own, low, since
from cerite.automaton.guards import Guard, Test, distinct_tests
from cerite.core.errors import suppress_without_time, unknown_column
from cerite.core.rejected import Rejected
from cerite.engine.counting.learnt import Learnt
from cerite.engine.events.keys import Measure, measure, time_of
from cerite.engine.events.masks import Masks, masks_of
from cerite.engine.events.rows import Columns
from cerite.engine.events.since import Since, SinceStates
from cerite.engine.groups.grouping import Grouping, grouped, moved_one_by_one
from cerite.engine.plan import Plan
from cerite.engine.registers.compile import tables
from cerite.engine.registers.latest import SinceSets
from cerite.engine.registers.tables import Machine
from cerite.predicate.columns.bits import ConditionBits


@dataclass(frozen=True)
class Choice:
    """An engine and why it runs the program."""

    engine: str
    why: str


SUBSETS = Choice("subsets", "every condition looks at one event: deterministic states are sets of automaton states")
STORED = Choice("registers", "conditions read other events: deterministic states hold the values that are still read")
LATER = Choice("registers", "the pattern ends in NOT: runs wait, each by its start, until their windows are over")
PENDING = Choice("registers", "a part ends in NOT: what is complete before its window is over waits until then")
WATCHED = Choice("registers", "a part of the pattern is compared with what else could match: its runs are watched")
LATE = Choice("registers", "the pattern begins with events that it does not mark: a match starts after its run does")


@dataclass(frozen=True)
class Program:
    """A plan over columns of known types.

    `guards` are evaluated by columns, one bit each; they combine `tests`, and if every guard is a single test (`plain`)
    the two are the same. `read` are the columns that are read, `machine` is the tables of the register engine.
    """

    plan: Plan
    schema: pa.Schema
    columns: Columns
    choice: Choice
    machine: Machine | None
    guards: tuple[Guard, ...]
    tests: tuple[Test, ...]
    plain: bool
    conditions: ConditionBits
    read: tuple[str, ...]
    measured: Measure | None = None  # what the window is measured on, if it is one of time or of an attribute
    ticking: Measure | None = None  # the same for the window that decides what waits, if it is another one
    own: tuple[str, ...] = ()  # columns that the intake adds for the conditions, about absences
    preceding: tuple[Since, ...] = ()  # these follow the patterns that must be absent before a match or a part

    @cached_property
    def grouping(self) -> Grouping | Rejected | None:
        """How matches are counted with registers moved in groups, or why not; None where there are no registers."""
        if self.machine is None:
            return None
        return grouped(self.plan, self.machine, typed=self.columns.type is not None)

    @cached_property
    def grouping_for_matches(self) -> Grouping | None:
        """How matches are found with registers moved in groups; None if they are not."""
        grouping = self.grouping
        if not isinstance(grouping, Grouping) or moved_one_by_one(self.plan, grouping) is not None:
            return None
        return grouping

    @cached_property
    def learnt(self) -> Learnt:
        """What finished runs have learnt about counting: a cache, like the one of dictionaries in `conditions`."""
        return Learnt()

    @cached_property
    def relevant(self) -> Masks | None:
        """The bits by which events matter; None if all may, as far as the bits of one event tell.

        Where every event moves the clock of its partition, on which matches wait, all matter.
        """
        if self.machine is None:
            return masks_of(self.plan.automaton)
        ticks = self.plan.late and not self.shared_clock
        return None if ticks else tables(self.machine, maximal=self.plan.strategy == "max")[1]

    @property
    def by_codes(self) -> bool:
        """Whether codes of columns and the window decide everything about an event, as long as nothing is NULL."""
        return (
            not self.plan.partition
            and self.machine is None
            and self.plain
            and not self.own
            and self.conditions.by_codes
        )

    @property
    def shared_clock(self) -> bool:
        """Whether one clock drives the windows of all partitions: they measure time, or the attribute that holds it."""
        window = self.plan.deciding
        return self.plan.shared_clock or (
            window is not None and window.attribute is not None and window.attribute == self.columns.time
        )


def bind(plan: Plan, schema: pa.Schema, columns: Columns) -> Program:
    """The program of a plan over data with these columns.

    >>> from cerite.language.ceql import parse_query
    >>> from cerite.engine.plan import plan
    >>> query = parse_query("SELECT * FROM S WHERE A AS x ; B AS y FILTER y[v > x.v AND v < 9] WITHIN 5 EVENTS")
    >>> program = bind(plan(query), pa.schema({"type": pa.string(), "v": pa.int64(), "w": pa.int64()}), Columns("type"))
    >>> program.choice.engine, program.read, [str(guard) for guard in program.guards]
    ('registers', ('type', 'v'), ['A', 'B AND _[v < 9]'])
    """
    needed = _needed(plan, columns)
    for name in needed:
        if name not in schema.names:
            raise unknown_column(name, schema.names)
    own = _own_columns(plan)
    every = pa.schema([*schema, *((name, pa.int64()) for name in own)])
    machine = Machine(plan.automaton, every, columns.time, columns.unit) if plan.has_registers else None
    guards = plan.guards if machine is None else machine.guards
    plain = all(len(guard.tests) == 1 and not guard.negated for guard in guards)
    tests = tuple(test for guard in guards for test in distinct_tests((guard,))) if plain else distinct_tests(guards)
    conditions = ConditionBits([(test.type, test.condition) for test in tests], every, columns.type)
    stored = () if machine is None else sorted(machine.read & set(schema.names))
    preceding = tuple(
        SinceSets.of(each, every, columns) if each.is_stateful else SinceStates(each, every, columns)
        for each in plan.automaton.preceding
    )
    before = (name for each in preceding for name in each.columns)
    read = tuple(dict.fromkeys((*conditions.columns, *needed, *stored, *before)))
    read = tuple(name for name in read if not is_own(name))
    measured, ticking = (measure(size, columns.time, columns.unit) for size in (plan.window, plan.tick))
    return Program(
        plan, schema, columns, chosen(plan), machine, guards, tests, plain, conditions, read, measured, ticking, own,
        preceding,
    )  # fmt: skip


def _own_columns(plan: Plan) -> tuple[str, ...]:
    automaton = plan.automaton
    sizes = [each.size for each in automaton.preceding]
    before = (*map(since, range(len(sizes))), *((LOW,) if None in sizes else ()))
    parts = (low(k) for k, size in enumerate(sizes) if size is not None)
    return (*((POSITION,) if automaton.tails else ()), *before, *parts)


def chosen(plan: Plan) -> Choice:
    """The engine that runs a plan; the choice does not depend on the data."""
    if not plan.has_registers:
        return SUBSETS
    if plan.late:
        return PENDING if plan.automaton.waits else LATER
    if plan.automaton.watchers:
        return WATCHED
    return STORED if any(guard.reads for guard in plan.guards) else LATE


def _needed(plan: Plan, columns: Columns) -> tuple[str, ...]:
    measured = measure(plan.window, columns.time, columns.unit)
    silent = None if plan.suppress is None else plan.suppress.size
    if silent is not None and silent.is_time and columns.time is None:
        raise suppress_without_time()
    timed = None if silent is None else time_of(silent, columns.time)
    windowed = None if measured is None else measured.name
    named = (columns.type, columns.time, columns.position, windowed, timed, *plan.partition)
    return tuple(name for name in named if name is not None)
