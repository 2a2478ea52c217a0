"""Where registers can be moved in groups, and what an event does to a group.

A start of a match stores one value. What an event does to the partial matches of a start depends only on the event and
on how its values compare with the stored one; so all starts whose values lie in the same stretch between values of the
event move alike. A deterministic state is a set of pairs (automaton state, whether the start's value is known there):
the determinisation of `registers/sets.py`, with the stored value as a symbol.

Invariant: `Grouping.states` holds every deterministic state that some stream leads to, and a partial match is in
exactly one of them. What does not fit is `Rejected` with the reason, and stays with `registers/`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

from cerite.automaton import TRUE, Automaton, Transition
from cerite.automaton.guards import Guard, Test
from cerite.core.rejected import Rejected
from cerite.engine.plan import Plan
from cerite.engine.registers.condition_programs import one_comparison
from cerite.engine.registers.interpret import ALL, ANY_OF, EQUAL, IS_NULL, IS_TRUE, NEGATE
from cerite.engine.registers.leaves import Running, Value
from cerite.engine.registers.programs import Postfix
from cerite.engine.registers.tables import KEEP, Machine, Split
from cerite.predicate.expression import And, Attribute, Literal
from cerite.predicate.expression import Comparison as Written

MOST_GUARDS = 16  # an event's class is looked up by the bits of its guards
MOST_COMPARISONS = 4
MOST_STATES = 12  # a pending step is a matrix over the deterministic states
FEWEST_EVENTS = 20  # in a window; with fewer, it is faster to move starts one by one
MOST_CONDITIONS = 10  # of one deterministic state, all combinations of which are tried

NO, YES, UNKNOWN = range(3)  # what a comparison says
COMPARISON = -1  # an instruction of a formula, in addition to the operations on truth values of `interpret`

Row = tuple[int, bool]  # an automaton state, and whether the start's value is known there
State = frozenset[Row]
Formula = tuple[tuple[int, int], ...]  # a condition across events in postfix order, over what comparisons say
Holds = Callable[[Guard], bool]


@dataclass(frozen=True, slots=True)
class Comparison:
    """`leaf of the event op stored value`."""

    op: int
    leaf: int


@dataclass(frozen=True, slots=True)
class Move:
    """Where runs that mark an event with a label go (None: they end), and whether they complete a match."""

    label: int
    target: State | None
    accepts: bool


@dataclass(frozen=True)
class Grouping:
    """A machine whose runs are moved in groups; `formulas` are its programs, over `comparisons`."""

    machine: Machine
    comparisons: tuple[Comparison, ...]
    formulas: tuple[Formula, ...]
    is_float: bool
    states: tuple[State, ...] = ()

    @cached_property
    def leaf(self) -> int:
        """The number of the leaf that a start stores."""
        leaf = self.machine.slots[0][1]
        assert not isinstance(leaf, Running)
        return self.machine.leaves.index(leaf)

    @property
    def is_text(self) -> bool:
        """Whether the stored value is the number of a string."""
        leaf = self.machine.slots[0][1]
        return isinstance(leaf, Value) and leaf.is_text

    @cached_property
    def leaving(self) -> dict[int, list[Transition]]:
        """The transitions by source."""
        by_source: dict[int, list[Transition]] = {}
        for t in self.machine.automaton.transitions:
            by_source.setdefault(t.source, []).append(t)
        return by_source

    def moves(self, state: State, holds: Holds, answers: tuple[int, ...]) -> list[Move]:
        """Where a state goes, label by label, on an event for which these guards hold and comparisons say this."""
        true = [is_true(formula, answers) for formula in self.formulas]
        taken = (
            (row, t) for row in sorted(state) for t in self.leaving.get(row[0], ())
            if enabled(self.machine.split(t.condition), row[1], holds, true)
        )  # fmt: skip
        return self._by_label(taken)

    def begun(self, holds: Holds) -> list[Move]:
        """The states in which runs begin at an event."""
        return self.moves(self._unstarted, holds, (UNKNOWN,) * len(self.comparisons))

    @property
    def _unstarted(self) -> State:
        return frozenset({(self.machine.automaton.initial, False)})

    def depends(self, holds: Holds) -> bool:
        """Whether what such an event does may depend on what its comparisons say."""
        splits = (self.machine.split(t.condition) for t in self.machine.automaton.transitions)
        return any(
            (bool(split.programs) and holds(split.alone)) or any(holds(when) for when, _ in split.groups)
            for split in splits
        )

    @cached_property
    def moves_many(self) -> bool:
        """Whether an event may move starts with different values, because it need not equal them."""
        begins = self.machine.automaton.initial
        for t in self.machine.automaton.transitions:
            split = self.machine.split(t.condition)
            if split.groups or (t.source != begins and (t.label or t.source != t.target) and not self._equals(split)):
                return True
        return False

    @property
    def only_equality(self) -> bool:
        """Whether values are compared only for equality."""
        return all(each.op == EQUAL for each in self.comparisons)

    def _equals(self, split: Split) -> bool:
        """Whether the condition of a step holds only if an event has the stored value."""
        for number in split.programs:
            formula = self.formulas[number]
            every = formula[:-1] if formula[-1][0] == ALL else formula
            joined = all(name == COMPARISON for name, _ in every)
            if joined and any(self.comparisons[at].op == EQUAL for _, at in every):
                return True
        return False

    def _by_label(self, taken: Iterator[tuple[Row, Transition]]) -> list[Move]:
        finals = self.machine.automaton.finals
        targets: dict[int, set[Row]] = {}
        accepting: set[int] = set()
        for (_, known), t in taken:
            rows = targets.setdefault(t.label, set())
            if t.target in finals:
                accepting.add(t.label)
            else:
                rows.add((t.target, self._known_after(known, t)))
        moves = (Move(label, frozenset(rows) or None, label in accepting) for label, rows in targets.items())
        return [move for move in moves if move.target or move.accepts]

    def _known_after(self, known: bool, t: Transition) -> bool:
        action = self.machine.actions(t.writes, t.clears, t.target)[0]
        return action >= 0 or (known and action == KEEP)

    def explored(self, *, typed: bool) -> tuple[State, ...] | Rejected:
        """All states that a stream may lead to, and perhaps some that none can; `typed` if an event has one type."""
        seen: dict[State, None] = {}
        todo = [self._unstarted]
        while todo:
            following = self._combinations(todo.pop(), typed=typed)
            if isinstance(following, Rejected):
                return following
            for state in following:
                if state not in seen:
                    seen[state] = None
                    todo.append(state)
            if len(seen) > MOST_STATES:
                return Rejected(f"there are more than {MOST_STATES} deterministic states")
        return tuple(sorted(seen, key=sorted))

    def _combinations(self, state: State, *, typed: bool) -> set[State] | Rejected:
        """The targets of a state, whichever of its conditions hold together."""
        steps = [
            (row, t) for row in sorted(state) for t in self.leaving.get(row[0], ())
            if row[1] or not self.machine.split(t.condition).programs
        ]  # fmt: skip
        keys = sorted({(t.condition, row[1]) for row, t in steps if t.condition != TRUE})
        if len(keys) > MOST_CONDITIONS:
            return Rejected(f"a deterministic state has more than {MOST_CONDITIONS} conditions")
        targets: set[State] = set()
        for chosen in product((False, True), repeat=len(keys)):
            on = {key for key, holds in zip(keys, chosen, strict=True) if holds}
            if not _together([self.machine.split(condition).alone for condition, _ in on], typed=typed):
                continue
            taken = ((row, t) for row, t in steps if t.condition == TRUE or (t.condition, row[1]) in on)
            targets |= {move.target for move in self._by_label(taken) if move.target}
        return targets


def enabled(split: Split, known: bool, holds: Holds, true: list[bool]) -> bool:
    """Whether a step can be taken, given whether the start's value is known."""
    if not holds(split.alone) or not all(known and true[p] for p in split.programs):
        return False
    return not any(holds(when) and all(known and true[p] for p in what) for when, what in split.groups)


def is_true(formula: Formula, answers: tuple[int, ...]) -> bool:
    """Whether a condition across events is true, by three-valued logic.

    >>> is_true(((COMPARISON, 0), (COMPARISON, 1), (ANY_OF, 2)), (UNKNOWN, YES))
    True
    >>> is_true(((COMPARISON, 0), (NEGATE, 0)), (UNKNOWN,))
    False
    """
    stack: list[int] = []
    for name, argument in formula:
        if name == COMPARISON:
            stack.append(answers[argument])
        elif name in (ALL, ANY_OF):
            parts = [stack.pop() for _ in range(argument)]
            decided = NO if name == ALL else YES
            stack.append(decided if decided in parts else UNKNOWN if UNKNOWN in parts else YES - decided)
        else:
            last = stack.pop()
            changed = {NEGATE: (YES, NO, UNKNOWN), IS_TRUE: (NO, YES, NO), IS_NULL: (NO, NO, YES)}[name]
            stack.append(changed[last])
    return stack == [YES]


def grouped(plan: Plan, machine: Machine, *, typed: bool) -> Grouping | Rejected:
    """How the runs of a plan are counted in groups, or why they are not; `typed` if events have a type."""
    reason = _outside(plan) or _stored(machine)
    if reason:
        return Rejected(reason)
    comparisons: dict[Comparison, int] = {}
    formulas: list[Formula] = []
    floats: set[bool] = set()
    for program in machine.programs:
        formula = _formula(program, comparisons, floats)
        if formula is None:
            return Rejected(f"`{program.text}` does not consist of comparisons of the event with the stored value")
        formulas.append(formula)
    if len(comparisons) > MOST_COMPARISONS:
        return Rejected(f"there are more than {MOST_COMPARISONS} comparisons with the stored value")
    if len(machine.guards) > MOST_GUARDS:
        return Rejected(f"there are more than {MOST_GUARDS} tests on one event")
    grouping = Grouping(machine, tuple(comparisons), tuple(formulas), floats == {True})
    states = grouping.explored(typed=typed)
    return states if isinstance(states, Rejected) else replace(grouping, states=states)


def moved_one_by_one(plan: Plan, grouping: Grouping) -> str | None:
    """Why matches that are counted in groups are nevertheless found with `registers/`; None if they are not."""
    if plan.strategy != "all":
        return f"{plan.strategy.upper()} compares the matches of an event"
    window = plan.window
    if window is not None and window.unit == "events" and window.amount < FEWEST_EVENTS:
        return f"in fewer than {FEWEST_EVENTS} events there are so few starts that each is moved by itself"
    if not grouping.moves_many:
        return "an event moves only the starts whose values equal its own, found by hash"
    return None


def _outside(plan: Plan) -> str | None:
    """Why a plan's runs do not differ by one stored value alone; None if they do."""
    automaton: Automaton = plan.automaton
    if plan.window is None:
        return "without a window no start ever leaves"
    if automaton.tails or automaton.preceding:
        return "something is absent at an end of the pattern"
    if automaton.watchers:
        return "runs carry watched patterns along"
    if automaton.before:
        return "a match starts after its run does"
    if plan.consume == "any" and plan.partition:
        return "matches of one partition consume the runs of all others"
    return None


def _stored(machine: Machine) -> str | None:
    """Why what is stored is not a single value, known from the start of a match; None if it is."""
    if len(machine.slots) != 1:
        return f"{len(machine.slots)} values of earlier events are kept, and only one is in order"
    leaf = machine.slots[0][1]
    if isinstance(leaf, Running):
        return "an aggregate changes what is kept"
    for t in machine.automaton.transitions:
        if t.source != machine.automaton.initial and machine.actions(t.writes, t.clears, t.target)[0] >= 0:
            return "the value that is kept comes after the start of the match, or is replaced"
    return None


def _formula(program: Postfix, comparisons: dict[Comparison, int], floats: set[bool]) -> Formula | None:
    """A program over the truth of comparisons, which are numbered on the way; None if it does anything else."""
    formula: list[tuple[int, int]] = []
    at = 0
    while at < len(program.code):
        name, argument = program.code[at]
        simple = one_comparison(program.code[at : at + 3])
        if simple is not None:
            comparison = Comparison(simple.op, simple.leaf)
            formula.append((COMPARISON, comparisons.setdefault(comparison, len(comparisons))))
            floats.add(simple.is_float)
            at += 3
        elif name in (ALL, ANY_OF, NEGATE, IS_TRUE, IS_NULL):
            formula.append((name, argument))
            at += 1
        else:
            return None
    return tuple(formula) if len(floats) == 1 and program.needs == frozenset((0,)) else None


def _together(guards: list[Guard], *, typed: bool) -> bool:
    """Whether an event may satisfy all of these, as far as types, negations and what attributes must equal tell."""
    whole = Guard()
    for guard in guards:
        whole = whole & guard
    values: dict[str, int | str] = {}
    for name, value in _equal(whole):
        if values.setdefault(name, value) != value:
            return False
    return whole.possible if typed else not whole.tests & whole.negated


def _equal(guard: Guard) -> Iterator[tuple[str, int | str]]:
    """Attributes with the constants that they must equal, such that no value equals two different ones.

    Floats are left out, since they may be rounded, and so are texts that may be times, which have several spellings.
    """
    for test in guard.tests:
        condition = test.condition if isinstance(test, Test) else None
        for part in condition.operands if isinstance(condition, And) else (condition,):
            match part:
                case Written(op="=", left=Attribute(name=name), right=Literal(value=int() as number)):
                    if abs(number) < 2**53:
                        yield name, number
                case Written(op="=", left=Attribute(name=name), right=Literal(value=str() as text)):
                    if not text[:1].isdigit():
                        yield name, text
