"""Registers in `cerite explain`: what the engine stores, what wakes it, and how many entries there are."""

from __future__ import annotations

from rich.text import Text
from rich.tree import Tree

from cerite.automaton.guards import Reach
from cerite.core.rejected import Rejected
from cerite.engine.bind import Program
from cerite.engine.groups.grouping import Grouping, moved_one_by_one
from cerite.engine.registers.description import described, slot_text, states_text
from cerite.engine.registers.tables import Machine


def explain_registers(tree: Tree, program: Program, machine: Machine) -> None:
    """Add to the tree what a run carries along and how it is looked up."""
    plan, grouping, in_groups, words = program.plan, program.grouping, program.grouping_for_matches, described(machine)
    _branch(tree, "tests on one event, each evaluated once per batch", words.tests)
    if words.conditions:
        _branch(tree, "conditions across events, as small programs in the kernel", words.conditions)
    stored = tree.add("registers, stored by value")
    for each in words.stored:
        steps = (f"from {each.stored_by}", f"to {each.last_read_by}")
        _branch(stored, f"{each.value}: alive in {each.alive}", steps)
    if not words.stored:
        stored.add("none")
    _branch(tree, "what wakes an entry, by state", words.wakes)
    for part in words.watched:
        carried = f"its set of configurations is part of every entry in {part.carried}"
        moved = f"moved by {'; '.join(part.moved_by)}"
        _branch(tree, f"watched pattern from q{part.entry}: {part.why}", (carried, moved))
    sizes = sorted({str(test.size) for guard in plan.guards for test in guard.tests | guard.negated
                    if isinstance(test, Reach)})  # fmt: skip
    if sizes:
        tree.add(Text(f"windows on parts, as registers that hold the part's first event: WITHIN {', '.join(sizes)}"))
    if plan.automaton.before:
        tree.add(f"late starts: in {states_text(plan.automaton.before)} nothing is marked yet, so no match has started")
    tree.add(Text(words.dropped))
    windowed = "in the window" if plan.window is not None else "since the stream began (no window)"
    entries = _branch(tree, f"entries, at most: per state, the distinct live values {windowed}", words.entries)
    if in_groups is not None:
        _in_groups(entries, machine, in_groups)
    elif isinstance(grouping, Grouping):
        entries.add(Text(f"moved one by one: {moved_one_by_one(plan, grouping)}"))


def counted(program: Program, machine: Machine) -> str:
    """What counting costs per event: the logarithm of the starts if these are moved in groups, else all it moves."""
    grouping = program.grouping
    assert grouping is not None
    if isinstance(grouping, Rejected):
        return f"a moved entry costs its distinct starts in the window (not moved in groups: {grouping.reason})"
    states = len(grouping.states)
    return (
        f"and moves registers in groups: the n starts of the window are in one tree by {slot_text(machine.slots[0])}, "
        f"and an event costs O(log n) small matrices of {states} × {states} numbers, however many it moves"
    )


def _in_groups(tree: Tree, machine: Machine, grouping: Grouping) -> None:
    value, states = slot_text(machine.slots[0]), len(grouping.states)
    starts = f"the n starts of the window are in one tree by {value}"
    _branch(
        tree,
        "moved in groups, unless the first events say that a window has only a few of them",
        (
            f"{starts}; what many of them have yet to do waits above them",
            f"an event costs O(log n) small matrices of {states} × {states} sets of runs, however many it moves",
        ),
    )


def _branch(tree: Tree, title: str, lines: tuple[str, ...]) -> Tree:
    """A branch with a leaf for every line."""
    branch = tree.add(Text(title))
    for line in lines:
        branch.add(Text(line))
    return branch
