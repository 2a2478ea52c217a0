"""A register automaton as flat tables for the kernels: programs, transitions, what is stored where and how long.

Registers hold only values that some later condition reads, and only while one may: `live[q]` is the set of stored
values that some path from q on still reads before they are written again. What is not live is zero, so that
configurations with equal futures are equal rows and merge (docs/registers.md, *How it runs*).

Every guard is split. Tests of the event alone become one bit per event (`guards`), evaluated by columns; the rest is a
list of programs that must hold and of negated groups, each of which is a bit and programs that must not all hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import pyarrow as pa

from cerite.automaton import TRUE, Automaton
from cerite.automaton.absences import END, POSITION, START
from cerite.automaton.automaton import Watcher
from cerite.automaton.guards import Guard, Reach, Test
from cerite.core.errors import PatternError, StreamError
from cerite.engine.events.keys import time_of, width_of
from cerite.engine.registers.column_types import ColumnTypes
from cerite.engine.registers.condition_programs import Compiler
from cerite.engine.registers.interpret import MAXIMUM_TEXT, MINIMUM_TEXT
from cerite.engine.registers.leaves import Leaf, LeafColumns, Mark, Running, Value
from cerite.engine.registers.programs import Operands, Postfix, Slot
from cerite.pattern.nodes import Size
from cerite.predicate.expression import Attribute, Expression, attributes

KEEP, DROP = -1, -2  # what becomes of a stored value: it stays, or nothing is stored; else the leaf that is stored
MOST_STORED, MOST_LEAVES = 31, 64
# an aggregate's action: the leaf that joins it and how, `UPDATE` * (how + 1) + leaf; from `RENEW` on it is begun anew
UPDATE = MOST_LEAVES
RENEW = 16 * UPDATE

# columns of the table of transitions
(BIT, PROGRAMS, PROGRAMS_END, GROUPS, GROUPS_END, LABEL, TARGET, ACTIONS, OPS, OPS_END, EARLY, MARKS, APART,
 FIXED) = range(14)  # fmt: skip


@dataclass(frozen=True)
class Split:
    """A guard in two parts: what the event alone decides, and what needs stored values."""

    alone: Guard
    programs: tuple[int, ...] = ()
    groups: tuple[tuple[Guard, tuple[int, ...]], ...] = ()


class Machine:
    """The tables of one automaton over columns of known kinds."""

    def __init__(self, automaton: Automaton, schema: pa.Schema, time: str | None, unit: str = "ms") -> None:
        self.automaton = automaton
        types = ColumnTypes.of_arrow(schema)
        operands = Operands()
        self._compiler = Compiler(types, operands)
        self.programs: list[Postfix] = []
        self._known: dict[object, int] = {}
        self.splits = [self._split(guard) for guard in automaton.conditions]
        # what runs in tails know: when the windows that they wait for began (`waits`) and with which event (`began`),
        # or where the match began; and where it ended
        self.waits = tuple(operands.slot(register, Mark(size, low=False)) for register, size in automaton.waits)
        place, waits = Value(Attribute(POSITION), "int"), automaton.waits if automaton.tails else ()
        self.began = tuple(operands.slot(register, place) for register, _ in waits)  # LIMIT counts by these
        longest = max((size for _, size in automaton.waits), key=lambda size: size.width, default=None)
        self.tick = -1 if longest is None else operands.leaf(Mark(longest, low=True))
        self.sooner = _sooner([size for _, size in automaton.waits], schema, time, unit)
        self.begun, self.ended = (
            operands.slot(name, place) if known else -1
            for name, known in ((START, automaton.tails and not self.waits), (END, automaton.ends))
        )
        self.guards = self._bits()
        self.slots = tuple(operands.slots)
        self.constants = operands.constants
        self.leaves: tuple[Leaf, ...] = tuple(operands.leaves)
        if len(self.slots) > MOST_STORED or len(self.leaves) > MOST_LEAVES:
            raise PatternError(
                f"the conditions keep {len(self.slots)} values of earlier events; the engine keeps {MOST_STORED}",
                hint="read fewer attributes of other variables",
            )
        self.live = self._liveness()
        self.watching = self._watching()
        orders = any(program.orders_strings for program in self.programs)
        orders |= any(isinstance(leaf, Running) and leaf.how in (MINIMUM_TEXT, MAXIMUM_TEXT) for _, leaf in self.slots)
        self._leaf_columns = partial(LeafColumns, self.leaves, types.kinds, (time, unit), types.finest, ordered=orders)
        self.read = frozenset(leaf_name for leaf in self.leaves for leaf_name in _attributes(leaf, time))

    def leaf_columns(self) -> LeafColumns:
        """An evaluator of the leaves for one run, which numbers the strings that it meets."""
        return self._leaf_columns()

    def _split(self, guard: Guard) -> Split:
        alone, programs = self._tests(guard.tests)
        groups = []
        negated_alone: set[Test | Reach] = set()
        for test in guard.negated:
            if not test.reads:
                negated_alone.add(test)
                continue
            when, what = self._tests(frozenset((test,)))
            groups.append((Guard(when), what))
        groups.sort(key=str)
        return Split(Guard(alone, frozenset(negated_alone)), programs, tuple(groups))

    def _tests(self, tests: frozenset[Test | Reach]) -> tuple[frozenset[Test | Reach], tuple[int, ...]]:
        alone: set[Test | Reach] = set()
        programs: list[int] = []
        for test in sorted(tests, key=str):
            if isinstance(test, Reach):
                programs.append(self._program(test))
                continue
            unary, across = test.split()
            if unary != Test(None, None):
                alone.add(unary)
            programs += [self._program(part) for part in across]
        return frozenset(alone), tuple(dict.fromkeys(programs))

    def _program(self, what: Reach | Expression) -> int:
        if what not in self._known:
            self._known[what] = len(self.programs)
            make = self._compiler
            self.programs.append(make.window(what) if isinstance(what, Reach) else make.condition(what))
        return self._known[what]

    def _bits(self) -> tuple[Guard, ...]:
        """The distinct guards that are evaluated by columns; one without tests needs no bit."""
        guards: dict[Guard, None] = {}
        for split in self.splits:
            for guard in (split.alone, *(when for when, _ in split.groups)):
                if guard != Guard():
                    guards.setdefault(guard)
        return tuple(guards)

    def bit(self, guard: Guard) -> int:
        """The number of a guard's bit; -1 for the guard that always holds."""
        return -1 if guard == Guard() else self.guards.index(guard)

    def split(self, condition: int) -> Split:
        """The parts of a transition's condition."""
        return Split(Guard()) if condition == TRUE else self.splits[condition]

    def reads(self, split: Split) -> frozenset[int]:
        """The stored values that a condition reads."""
        used = set(split.programs) | {p for _, group in split.groups for p in group}
        return frozenset().union(*(self.programs[p].slots for p in used))

    def _liveness(self) -> list[frozenset[int]]:
        live: list[frozenset[int]] = [frozenset()] * self.automaton.n_states
        for state in self.automaton.tails:
            live[state] = frozenset((*self.waits, *self.began, self.begun, self.ended)) - {-1}
        changed = True
        while changed:
            changed = False
            for t in self.automaton.transitions:
                gone = {k for k, slot in enumerate(self.slots) if slot[0] in self._ended(slot, t.writes, t.clears)}
                more = live[t.source] | self.reads(self.split(t.condition)) | (live[t.target] - gone)
                for op in t.ops:
                    watcher = self.automaton.watchers[op.watcher]
                    if op.spawns and watcher.reads_around:
                        more |= live[watcher.entry]
                if more != live[t.source]:
                    live[t.source] = more
                    changed = True
        return live

    @staticmethod
    def _ended(slot: Slot, writes: frozenset[str], clears: frozenset[str]) -> frozenset[str]:
        """The registers whose stored value ends with a step; an event that is written joins an aggregate instead."""
        return clears if isinstance(slot[1], Running) else writes | clears

    def _watching(self) -> list[frozenset[int]]:
        """The watchers whose sets some path on from a state still looks at."""
        watching: list[frozenset[int]] = [frozenset()] * self.automaton.n_states
        changed = True
        while changed:
            changed = False
            for t in self.automaton.transitions:
                renewed = {op.watcher for op in t.ops if op.resets or op.starts}
                used = {op.watcher for op in t.ops if not (op.resets or op.starts)}
                for op in t.ops:
                    watcher = self.automaton.watchers[op.watcher]
                    if op.starts and watcher.others is not None:
                        used.add(watcher.others)
                    if op.spawns and watcher.reads_around:
                        used |= watching[watcher.entry]
                more = watching[t.source] | used | (watching[t.target] - renewed)
                if more != watching[t.source]:
                    watching[t.source] = more
                    changed = True
        return watching

    @cached_property
    def inner(self) -> frozenset[int]:
        """The states of watched patterns."""
        return self.automaton.watched

    def actions(self, writes: frozenset[str], clears: frozenset[str], target: int) -> list[int]:
        """What becomes of every stored value on the way to a state."""
        values = []
        for slot, (register, leaf) in enumerate(self.slots):
            if slot not in self.live[target] or (register in clears and register not in writes):
                values.append(DROP)
            elif register not in writes:
                values.append(KEEP)
            elif isinstance(leaf, Running):
                update = UPDATE * (leaf.how + 1) + self.leaves.index(leaf.of)
                values.append(update + RENEW if register in clears else update)
            else:
                values.append(self.leaves.index(leaf))
        values += [KEEP if k in self.watching[target] else DROP for k in range(len(self.automaton.watchers))]
        return values

    def opening(self, watcher: Watcher) -> list[int]:
        """What a watched pattern begins with: the registers around it, or none if runs from all starts are compared."""
        if watcher.reads_around:
            return self.actions(frozenset(), frozenset(), watcher.entry)
        return [DROP] * (len(self.slots) + len(self.automaton.watchers))


def _sooner(sizes: list[Size], schema: pa.Schema, time: str | None, unit: str) -> tuple[int, ...]:
    """How much sooner windows of these sizes end than the longest of them, in steps of their keys; none if all do."""
    if len({size.width for size in sizes}) < 2:
        return (0,) * len(sizes)
    if sizes[0].unit == "events":
        most = max(int(size.amount) for size in sizes)
        return tuple(most - int(size.amount) for size in sizes)
    kind = schema.field(time_of(sizes[0], time)).type
    widths = [width_of(size, kind, unit) for size in sizes]
    if pa.types.is_floating(kind) or any(width.denominator != 1 for width in widths):
        raise StreamError(
            "parts that end in NOT in windows of several lengths need times in which all of them are whole numbers",
            hint="cast the time column to timestamps or to whole numbers, or give all parts the same window",
        )
    return tuple(int(max(widths) - width) for width in widths)


def _attributes(leaf: Leaf, time: str | None) -> set[str]:
    if isinstance(leaf, Mark):
        name = time if leaf.size.is_time else leaf.size.attribute
        return set() if name is None or leaf.size.unit == "events" else {name}
    return set(attributes(leaf.expression))
