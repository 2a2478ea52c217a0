"""Conditions on a whole pattern: `φ FILTER COUNT(y) >= 5`, tested at the event that completes φ.

Registers of the filter's own gather the events of φ: they are empty where φ begins and take every event that φ binds to
the variable (SRT report, section 8.1: registers that change). The event that completes φ may itself be one of them, or
the only one, so each completing step checks its own form of the condition: an aggregate *through* the event, of what
was *before* it, of the *event* alone or of *nothing*; and `x.price` is an attribute of the event where that is x.

`COUNT(DISTINCT y.name)` is compared with whole numbers, so that it need not be known beyond the largest of them:
registers hold that many different values, one after the other, and states say how many there were (`_split_by_values`).
A condition on a single event uses the state before it (`counted_before`), one on a whole the state in which it ends.

Invariant: the runs through the result are those of the fragment on which the conditions hold, each once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from cerite.automaton.fragment import ENTRY, NO_LABELS, Fragment, Labels, Step, check_size, new_state
from cerite.automaton.guards import Guard, Reach, Test
from cerite.automaton.scopes import Registers
from cerite.core.errors import PatternError
from cerite.pattern.nodes import Having
from cerite.predicate import expression as ex
from cerite.predicate.evaluate import holds, value_of
from cerite.predicate.formula import FLIPPED


def completed(fragment: Fragment, having: Having, registers: Registers) -> Fragment:
    """The runs through a fragment that satisfy the conditions when they are complete."""
    condition = ex.conjunction(*having.conditions)
    assert condition is not None
    fragment, phases_of = _all_split(fragment, condition, registers)
    gathered = [each for each in ex.aggregates(condition) if not each.distinct]
    variables = sorted({each.variable for each in gathered}, key=lambda name: name or "")
    names = {variable: registers.new(variable or "*") for variable in variables}
    fresh: Labels = frozenset(names.values())
    done = new_state()

    def gathering(step: Step) -> Step:
        own = frozenset(name for variable, name in names.items() if _binds(step, variable))
        emptied = fresh if step.source == ENTRY else NO_LABELS
        return replace(step, writes=step.writes | own, clears=step.clears | emptied)

    def completing(step: Step) -> Iterator[Step]:
        decided = _decided(condition, phases_of, step.target)
        if step.target in fragment.exits and decided is not NEVER:
            satisfied = Guard.of(None, None if decided is ALWAYS else _at_the_end(decided, step, names))
            yield replace(gathering(step), target=done, guard=step.guard & satisfied)

    def both(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        return (*map(gathering, steps), *(end for step in steps for end in completing(step)))

    return Fragment(both(fragment.entries), both(fragment.steps), frozenset((done,)), _may_be_empty(fragment, having))


def counted_before(fragment: Fragment, registers: Registers) -> Fragment:
    """The same runs, with conditions on single events that count different values decided by the states."""
    steps = (*fragment.entries, *fragment.steps)
    asking = dict.fromkeys(each for step in steps for each in _asking(step.guard))
    condition = ex.conjunction(*asking)
    if condition is None:
        return fragment
    forgotten = frozenset().union(*(step.clears for step in steps))
    for each in ex.aggregates(condition):
        if each.distinct and each.variable in forgotten:
            raise asked_too_early(each)
    fragment, phases_of = _all_split(fragment, condition, registers)
    phases_of = {each: {**phases, ENTRY: 0} for each, phases in phases_of.items()}

    def decided(some: tuple[Step, ...]) -> tuple[Step, ...]:
        every = (replace(step, guard=_known(step.guard, phases_of, step.source)) for step in some)
        return tuple(step for step in every if NEVER_HOLDS not in step.guard.tests)

    return replace(fragment, entries=decided(fragment.entries), steps=decided(fragment.steps))


def asked_too_early(node: ex.Aggregate) -> PatternError:
    """The error for a number of different values where no state knows it."""
    return PatternError(
        f"`{node}` is not supported inside NOT or a strategy, or on a variable that a projection hides",
        span=node.span,
        hint=f"write it outside of the brackets, around all it is about: `FILTER {node} >= 3`",
    )  # fmt: skip


def refuse_distinct(guards: Iterable[Guard]) -> None:
    """Refuse conditions of watched patterns that ask for a number of different values."""
    for each in (each for guard in guards for condition in _asking(guard) for each in ex.aggregates(condition)):
        if each.distinct:
            raise asked_too_early(each)


def _asking(guard: Guard) -> Iterator[ex.Expression]:
    """The conditions of a guard that ask for a number of different values."""
    for test in sorted(guard.tests | guard.negated, key=str):
        condition = test.condition if isinstance(test, Test) else None
        if condition is not None and any(each.distinct for each in ex.aggregates(condition)):
            yield condition


def _known(guard: Guard, phases_of: Phases, state: int) -> Guard:
    """A guard with the numbers of different values that are known in a state."""

    def tests(group: frozenset[Test | Reach]) -> frozenset[Test | Reach]:
        return frozenset(
            replace(test, condition=None if known is ALWAYS else known)
            if isinstance(test, Test) and test.condition is not None
            and (known := _decided(test.condition, phases_of, state)) is not test.condition
            else test
            for test in group
        )  # fmt: skip

    never = frozenset(test for test in tests(guard.negated) if isinstance(test, Test) and test.condition is NEVER)
    every = tests(guard.tests)
    if any(isinstance(test, Test) and test.condition is NEVER for test in every):
        return Guard(frozenset((NEVER_HOLDS,)))
    return Guard(every, tests(guard.negated) - never)


def _binds(step: Step, variable: str | None) -> bool:
    """Whether a step binds its event to a variable; None: to any."""
    return bool(step.labels) if variable is None else variable in step.writes


def _at_the_end(condition: ex.Expression, step: Step, names: dict[str | None, str]) -> ex.Expression:
    """The condition as it is checked by a step that completes the pattern."""

    def change(node: ex.Expression) -> ex.Expression:
        if isinstance(node, ex.Reference) and node.variable in step.writes:
            return ex.Attribute(node.name, span=node.span)
        if not isinstance(node, ex.Aggregate):
            return node
        now = _binds(step, node.variable)
        register = names[node.variable]
        if step.source == ENTRY:
            return replace(node, variable=register, over="event" if now else "nothing")
        return replace(node, variable=register, over="through" if now else "before")

    return ex.transform(condition, change)


def _may_be_empty(fragment: Fragment, having: Having) -> bool:
    """Whether the pattern may consume nothing: it then has no event, and the conditions are decided beforehand."""
    if not fragment.nullable:
        return False
    for each in (reference for condition in having.conditions for reference in ex.references(condition)):
        raise PatternError(
            f"a filter on a pattern that may be empty reads `{each}`, which may lie before it", span=each.span,
            hint="give the pattern at least one event (`+` instead of `*`), or put the FILTER around both",
        )  # fmt: skip
    return all(holds(condition, {}) for condition in having.conditions)


# Different values: how many of them there are is part of the state.

MOST_APART = 12
Phases = dict[ex.Aggregate, dict[int, int]]  # by state, how many different values there were, as far as that matters


def _all_split(fragment: Fragment, condition: ex.Expression, registers: Registers) -> tuple[Fragment, Phases]:
    phases_of: Phases = {}
    for each in dict.fromkeys(each for each in ex.aggregates(condition) if each.distinct):
        fragment, phases, origin = _split_by_values(fragment, each, _values_needed(condition, each), registers)
        phases_of = {other: {state: known[origin[state]] for state in phases} for other, known in phases_of.items()}
        phases_of[each] = phases
    return fragment, phases_of


def _split_by_values(
    fragment: Fragment, node: ex.Aggregate, most: int, registers: Registers
) -> tuple[Fragment, dict[int, int], dict[int, int]]:
    """The fragment, its states split by how many different values there were; by state: that number, and its origin."""
    assert node.variable is not None
    assert node.name is not None
    own = ex.Attribute(node.name)
    names = [registers.new(node.variable) for _ in range(most)]
    split: dict[tuple[int, int], int] = {}

    def move(
        step: Step, phase: int, following: int, condition: ex.Expression | None, writes: Labels = NO_LABELS
    ) -> Step:
        source = ENTRY if step.source == ENTRY else split.setdefault((step.source, phase), new_state())
        target = split.setdefault((step.target, following), new_state())
        guard = step.guard if condition is None else step.guard & Guard.of(None, condition)
        return replace(step, source=source, target=target, guard=guard, writes=step.writes | writes)

    def phased(step: Step, phase: int) -> tuple[Step, ...]:
        if node.variable not in step.writes or phase == most:
            return (move(step, phase, phase, None),)
        seen = tuple(ex.Comparison("=", own, ex.Reference(name, node.name or "")) for name in names[:phase])
        known: ex.Expression = ex.Or((ex.IsNull(own), *seen)) if seen else ex.IsNull(own)
        new = ex.conjunction(ex.Not(ex.IsNull(own)), *(replace(each, op="!=") for each in seen))
        return move(step, phase, phase, known), move(step, phase, phase + 1, new, frozenset((names[phase],)))

    check_size((most + 1) * (len(fragment.entries) + 2 * len(fragment.steps)))
    entries = tuple(copy for step in fragment.entries for copy in phased(step, 0))
    steps = tuple(copy for step in fragment.steps for phase in range(most + 1) for copy in phased(step, phase))
    exits = frozenset(number for (state, _), number in split.items() if state in fragment.exits)
    phases = {number: phase for (_, phase), number in split.items()}
    origin = {number: state for (state, _), number in split.items()}
    return Fragment(entries, steps, exits, fragment.nullable), phases, origin


def _values_needed(condition: ex.Expression, node: ex.Aggregate) -> int:
    """How many different values must be distinguished; refused where the count is used in another way."""
    needed: list[int] = []
    for each in ex.walk(condition):
        if isinstance(each, ex.Comparison) and node in (each.left, each.right):
            op, other = (each.op, each.right) if each.left == node else (FLIPPED[each.op], each.left)
            if isinstance(other, ex.Literal) and type(other.value) is int:
                needed.append(max(0, other.value if op in (">=", "<") else other.value + 1))
    if len(needed) < sum(each == node for each in ex.walk(condition)):
        raise PatternError(
            f"the engine only compares `{node}` with a whole number, and cannot compute with it", span=node.span,
            hint=f"write `{node} >= 3`",
        )  # fmt: skip
    if max(needed) > MOST_APART:
        raise PatternError(
            f"the engine can distinguish at most {MOST_APART} values; this compares with {max(needed)}",
            span=node.span,
            hint="compare with a smaller number, or count the different values of the matches as a measure",
        )  # fmt: skip
    return max(needed)


ALWAYS, NEVER = ex.Literal(True), ex.Literal(False)
NEVER_HOLDS = Test(None, NEVER)


def _decided(condition: ex.Expression, phases_of: Phases, state: int) -> ex.Expression:
    """The condition with its comparisons of numbers of different values decided, in the state that a step enters.

    What it reads of other events must be there, even where that decides nothing any more: a condition that reads a
    variable without an event is false as a whole.
    """

    def change(node: ex.Expression) -> ex.Expression:
        match node:
            case ex.And(operands=operands) | ex.Or(operands=operands):
                neutral, final = (ALWAYS, NEVER) if isinstance(node, ex.And) else (NEVER, ALWAYS)
                rest = tuple(each for each in operands if each is not neutral)
                if any(each is final for each in rest) or not rest:
                    return final if rest else neutral
                return rest[0] if len(rest) == 1 else replace(node, operands=rest)
            case ex.Not(operand=operand) if operand is ALWAYS or operand is NEVER:
                return NEVER if operand is ALWAYS else ALWAYS
            case ex.Comparison(op=op, left=left, right=right):
                for each, phases in phases_of.items():
                    if each in (left, right):
                        sides = (ex.Literal(phases[state]) if side == each else side for side in (left, right))
                        return ALWAYS if value_of(ex.Comparison(op, *sides), {}) is True else NEVER
        return node

    decided = ex.transform(condition, change) if phases_of else condition
    lost = tuple(each for each in ex.references(condition) if each not in ex.references(decided))
    if not lost or decided is NEVER:
        return decided
    there = (ex.Or((ex.IsNull(each), ex.Not(ex.IsNull(each)))) for each in dict.fromkeys(lost))
    whole = ex.conjunction(*(() if decided is ALWAYS else (decided,)), *there)
    return ALWAYS if whole is None else whole
