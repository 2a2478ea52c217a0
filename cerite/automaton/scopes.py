"""Registers and scopes: what a condition inside a pattern may read, and what it may not.

A variable is a register (SRT report, definition 13): reading it gives the event bound to it most recently. A transition
writes all variables that its event gets, at once; the definitions let some of them be seen later or never:

- inside `φ AS x` the events of φ are not yet x: a condition in φ that reads x means an earlier x;
- outside `π{…}(φ)` what is projected away is not visible, and it is forgotten from one repetition to the next;
- one side of an AND does not see what the other side binds.

`check_scopes` refuses where writing at once would show; `projected` renames what a projection hides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count

from cerite.automaton.fragment import ENTRY, NO_LABELS, Fragment, Labels, Step, new_state
from cerite.automaton.guards import Guard, Reach, Test
from cerite.core.errors import PatternError
from cerite.pattern import nodes
from cerite.pattern.variables import counts, written
from cerite.predicate import expression as ex

_OWN = "\N{PRIME}"


@dataclass(frozen=True)
class Registers:
    """Names for the construction's own registers, which no projection hides; equal for equal patterns."""

    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def new(self, name: str) -> str:
        """A register that nothing else uses."""
        return f"{_OWN}{name}{next(self._numbers)}"


def reads(pattern: nodes.Pattern) -> frozenset[str]:
    """Every variable that some condition in the pattern reads."""
    return frozenset().union(*map(ex.variables, nodes.conditions_of(pattern)))


def remembers(pattern: nodes.Pattern) -> bool:
    """Whether some condition in the pattern reads what the pattern binds; a single event reads before it is bound."""
    return not isinstance(pattern, nodes.Event) and bool(reads(pattern) & written(pattern))


def check_scopes(pattern: nodes.Pattern) -> None:
    """Refuse conditions that would see what they must not see."""
    _check_names(pattern, frozenset())
    for node in nodes.walk(pattern):
        if isinstance(node, nodes.Intersection):
            _check_sides(node)


def _own_reads(node: nodes.Pattern) -> frozenset[str]:
    return frozenset().union(*map(ex.variables, nodes.own_conditions(node)))


def _check_names(node: nodes.Pattern, unfinished: frozenset[str]) -> None:
    seen = sorted(_own_reads(node) & unfinished)
    if seen:
        raise PatternError(
            f"a condition inside `(…) AS {seen[0]}` reads `{seen[0]}`, which is not complete there", span=node.span,
            hint=f"name the event it means by itself, or put the FILTER outside: `(…) AS {seen[0]} FILTER …`",
        )  # fmt: skip
    if isinstance(node, nodes.Named) and counts(node, node.variable)[1] > 1:
        unfinished |= {node.variable}
    for child in node.children:
        _check_names(child, unfinished)


def _check_sides(node: nodes.Intersection) -> None:
    for index, part in enumerate(node.parts):
        others = frozenset().union(*(written(each) for at, each in enumerate(node.parts) if at != index))
        seen = sorted(reads(part) & others)
        if seen:
            raise PatternError(
                f"`{seen[0]}` is read on one side of AND and bound on the other", span=node.span,
                hint="use different names on the two sides",
            )  # fmt: skip


def hidden_names(
    fragment: Fragment, project: nodes.Project, whole: nodes.Pattern, registers: Registers
) -> dict[str, str]:
    """New register names for what a projection hides but reads itself."""
    kept = frozenset(project.variables)
    stored = frozenset(name for step in (*fragment.entries, *fragment.steps) for name in step.writes - step.labels)
    own = (written(project.operand) - kept | stored) & reads(project.operand)
    clash = sorted(own & (_written_outside(whole, project) | (stored & kept)))
    if clash:
        raise PatternError(
            f"`{clash[0]}` is read inside a projection that hides it, and bound outside too", span=project.span,
            hint="use another name inside the projection",
        )  # fmt: skip
    return {name: registers.new(name) for name in sorted(own)}


def projected(fragment: Fragment, kept: Labels, names: dict[str, str]) -> Fragment:
    """The projection of a fragment; the registers that only it sees are empty at its start."""
    fresh = frozenset(names.values())

    def change(step: Step) -> Step:
        moved = renamed(step, names)
        own = {name for name in moved.writes if name.startswith(_OWN)}
        return replace(moved, labels=step.labels & kept, writes=step.labels & kept | own)

    def first(step: Step) -> Step:
        return replace(step, clears=step.clears | fresh)

    changed = fragment.changed(change)
    return replace(changed, entries=tuple(map(first, changed.entries)))


def renamed(step: Step, names: dict[str, str]) -> Step:
    """The same step with other names for some registers."""
    if not names:
        return step
    writes = frozenset(names.get(name, name) for name in step.writes)
    return replace(step, writes=writes, guard=_renamed(step.guard, names))


def narrowed(fragment: Fragment, variable: str, condition: ex.Expression) -> Fragment:
    """Every event of the variable satisfies the condition."""
    guard = Guard.of(None, condition)

    def change(step: Step) -> Step:
        return replace(step, guard=step.guard & guard) if variable in step.labels else step

    return fragment.changed(change)


def also_bound(fragment: Fragment, variable: str) -> Fragment:
    """`φ AS x`."""

    def change(step: Step) -> Step:
        return replace(step, labels=step.labels | {variable}, writes=step.writes | {variable}) if step.labels else step

    return fragment.changed(change)


def read_unwritten(fragment: Fragment, watched: Callable[[int], tuple[Labels, Labels]]) -> Labels:
    """The registers that a run through a fragment, or what it watches, may read before it has written them.

    `watched` gives the registers that a watcher reads in this way, and those of which it reads all events.
    """
    steps: dict[int, list[Step]] = {}
    for step in (*fragment.entries, *fragment.steps):
        steps.setdefault(step.source, []).append(step)

    def read(step: Step) -> Labels:
        return step.guard.reads.union(*(watched(op.watcher)[0] for op in step.ops if op.spawns))

    def gathers(step: Step) -> Labels:
        return step.guard.gathers.union(*(watched(op.watcher)[1] for op in step.ops if op.spawns))

    unwritten = {ENTRY: frozenset().union(*(read(step) for each in steps.values() for step in each))}
    gathered = frozenset().union(*(gathers(step) for each in steps.values() for step in each))
    names, todo = NO_LABELS, [ENTRY]
    while todo:
        state = todo.pop()
        for step in steps.get(state, ()):
            names |= read(step) & unwritten[state]
            left = unwritten.get(step.target, NO_LABELS) | (unwritten[state] - (step.writes - gathered) - step.clears)
            if left != unwritten.get(step.target):
                unwritten[step.target] = left
                todo.append(step.target)
    return names


def written_before(whole: nodes.Pattern, part: nodes.Pattern) -> Labels:
    """The registers that may hold an event when a part of a pattern begins, wherever it stands."""
    names: set[str] = set()

    def visit(node: nodes.Pattern, before: Labels) -> None:
        if node is part:
            names.update(before)
        if isinstance(node, nodes.Iteration) and node.most != 1:
            before |= written(node.operand)
        if not isinstance(node, (nodes.Sequence, nodes.Concat)):
            for child in node.children:
                visit(child, before)
            return
        for negated in node.before if isinstance(node, nodes.Sequence) else ():
            visit(negated, before)
        gaps = (*node.absent, node.after) if isinstance(node, nodes.Sequence) else ((),) * len(node.parts)
        for child, gap in zip(node.parts, gaps, strict=True):
            visit(child, before)
            before |= written(child)
            for negated in gap:
                visit(negated, before)

    visit(whole, NO_LABELS)
    return frozenset(names)


def written_after(whole: nodes.Pattern, part: nodes.Pattern) -> Labels:
    """The registers that may be written in a match after a part of a pattern has ended."""
    names: set[str] = set()

    def visit(node: nodes.Pattern, after: Labels) -> None:
        if node is part:
            names.update(after)
        if isinstance(node, nodes.Iteration) and node.most != 1:
            after |= written(node.operand)
        ordered = node.parts if isinstance(node, (nodes.Sequence, nodes.Concat)) else ()
        for child in reversed(ordered):
            visit(child, after)
            after |= written(child)
        for child in node.children if not ordered else ():
            visit(child, after)

    visit(whole, NO_LABELS)
    return frozenset(names)


def is_repeated(whole: nodes.Pattern, part: nodes.Pattern) -> bool:
    """Whether a part of a pattern lies in an iteration, so that it may come more than once."""
    if whole is part:
        return False
    again = isinstance(whole, nodes.Iteration) and whole.most != 1
    return any(
        is_repeated(child, part) or (again and any(node is part for node in nodes.walk(child)))
        for child in whole.children
    )


def _written_outside(whole: nodes.Pattern, inside: nodes.Pattern) -> Labels:
    if whole is inside:
        return frozenset()
    own: Labels = frozenset((whole.variable,)) if isinstance(whole, nodes.Named) else frozenset()
    if isinstance(whole, nodes.Event):
        own = whole.writes
    return own.union(*(_written_outside(child, inside) for child in whole.children))


def _renamed(guard: Guard, names: dict[str, str]) -> Guard:
    def change(node: ex.Expression) -> ex.Expression:
        if isinstance(node, (ex.Reference, ex.Aggregate)) and node.variable in names:
            return replace(node, variable=names[node.variable])
        return node

    def tests(group: frozenset[Test | Reach]) -> frozenset[Test | Reach]:
        return frozenset(
            replace(test, condition=ex.transform(test.condition, change))
            if isinstance(test, Test) and test.condition is not None
            else test
            for test in group
        )

    return Guard(tests(guard.tests), tests(guard.negated))


# Windows around a part of a pattern: `(φ WITHIN ε)` inside a sequence (SRT report, definition 39).
#
# The first event that the part marks is stored in a register of the window's own, and every later marked event must
# be in its reach. Time and ranks only rise, so a part that has left its window never returns; an attribute may be
# missing at an inner event, which is allowed, so there the runs that have left wait (phase `LEFT`) for an event that
# is in reach.
#
# Invariant: the matches are those of the fragment whose first and last marked events lie inside the window.

BEFORE, INSIDE, LEFT = range(3)


def windowed(fragment: Fragment, size: nodes.Size, register: str, *, ending: bool = False) -> Fragment:
    """The runs through a fragment that fit into a window; with `ending`, runs that can no longer fit end at once."""
    reach = Guard(frozenset((Reach(register, size),)))
    missed = Guard(negated=frozenset((Reach(register, size),)))
    known = Guard()
    if size.attribute is not None:
        known = Guard(frozenset((Test(None, ex.Not(ex.IsNull(ex.Attribute(size.attribute)))),)))
    split: dict[tuple[int, int], int] = {}

    def phased(step: Step, phase: int) -> Iterator[Step]:
        if not step.marks:
            yield move(step, phase, phase, reach if ending and phase == INSIDE and size.attribute is None else Guard())
        elif phase == BEFORE:
            first = move(step, phase, INSIDE, known)
            yield replace(first, writes=first.writes | {register})
        else:
            yield move(step, phase, INSIDE, reach)
            if size.attribute is not None:
                yield move(step, phase, LEFT, missed)

    def move(step: Step, phase: int, following: int, guard: Guard) -> Step:
        target = split.setdefault((step.target, following), new_state())
        source = ENTRY if step.source == ENTRY else split.setdefault((step.source, phase), new_state())
        return replace(step, source=source, target=target, guard=step.guard & guard)

    entries = tuple(copy for step in fragment.entries for copy in phased(step, BEFORE))
    phases = (BEFORE, INSIDE) if size.attribute is None else (BEFORE, INSIDE, LEFT)
    steps = tuple(copy for step in fragment.steps for phase in phases for copy in phased(step, phase))
    exits = frozenset(number for (state, phase), number in split.items() if state in fragment.exits and phase != LEFT)
    return Fragment(entries, steps, exits, fragment.nullable)
