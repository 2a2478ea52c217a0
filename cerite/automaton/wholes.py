"""Conditions on a whole pattern: `φ FILTER COUNT(y) >= 5`, asked at the event that completes φ.

Registers of the filter's own gather the events of φ: they are empty where φ begins and take every event that φ binds to
the variable (SRT report, section 8.1: registers that change). The event that completes φ may itself be one of them, or
the only one, so that each completing step asks its own form of the condition: an aggregate *through* the event, of what
was *before* it, of the *event* alone or of *nothing*; and `x.price` is an attribute of the event where that is x.

Invariant: the ways through the result are those of the fragment on which the conditions hold, each once.
"""

from __future__ import annotations

from dataclasses import replace

from cerite.automaton.fragment import ENTRY, NO_LABELS, Fragment, Labels, Step, new_state
from cerite.automaton.guards import Guard
from cerite.automaton.scopes import Registers
from cerite.core.errors import PatternError
from cerite.pattern.nodes import Having
from cerite.predicate.evaluate import holds
from cerite.predicate.expression import (
    Aggregate,
    Attribute,
    Expression,
    Reference,
    aggregates,
    conjunction,
    references,
    transform,
)


def completed(fragment: Fragment, having: Having, registers: Registers) -> Fragment:
    """The ways through a fragment that satisfy the conditions when they are complete."""
    condition = conjunction(*having.conditions)
    assert condition is not None
    variables = sorted({each.variable for each in aggregates(condition) if each.variable is not None})
    names = {variable: registers.new(variable) for variable in variables}
    fresh: Labels = frozenset(names.values())
    done = new_state()

    def gathering(step: Step) -> Step:
        own = frozenset(name for variable, name in names.items() if variable in step.writes)
        emptied = fresh if step.source == ENTRY else NO_LABELS
        return replace(step, writes=step.writes | own, clears=step.clears | emptied)

    def completing(step: Step) -> Step:
        asked = Guard.of(None, _asked(condition, step, names))
        return replace(gathering(step), target=done, guard=step.guard & asked)

    def both(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        ends = tuple(completing(step) for step in steps if step.target in fragment.exits)
        return (*map(gathering, steps), *ends)

    return Fragment(both(fragment.entries), both(fragment.steps), frozenset((done,)), _may_be_empty(fragment, having))


def _asked(condition: Expression, step: Step, names: dict[str, str]) -> Expression:
    """The condition as a step that completes the pattern asks it."""

    def change(node: Expression) -> Expression:
        if isinstance(node, Reference) and node.variable in step.writes:
            return Attribute(node.name, span=node.span)
        if not isinstance(node, Aggregate) or node.variable is None:
            return node
        now = node.variable in step.writes
        register = names[node.variable]
        if step.source == ENTRY:
            return replace(node, variable=register, over="event" if now else "nothing")
        return replace(node, variable=register, over="through" if now else "before")

    return transform(condition, change)


def _may_be_empty(fragment: Fragment, having: Having) -> bool:
    """Whether the pattern may consume nothing: it then has no event, and the conditions are decided beforehand."""
    if not fragment.nullable:
        return False
    for each in (reference for condition in having.conditions for reference in references(condition)):
        raise PatternError(
            f"a filter on a pattern that may be empty reads `{each}`, which may lie before it", span=each.span,
            hint="give the pattern at least one event (`+` instead of `*`), or put the FILTER around both",
        )  # fmt: skip
    return all(holds(condition, {}) for condition in having.conditions)
