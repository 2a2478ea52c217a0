"""Windows around a part of a pattern: `(φ WITHIN ε)` inside a sequence (SRT report, definition 39).

The first event that the part marks is stored in a register of the window's own, and every later marked event must be in
its reach. Time and ranks only rise, so a part that has left its window never returns; an attribute may be missing at
an inner event, which is no fault, so there the ways that have left wait (phase `LEFT`) for an event that is in reach.

Invariant: the matches are those of the fragment whose first and last marked events lie inside the window.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cerite.automaton.fragment import ENTRY, Fragment, Step, new_state
from cerite.automaton.guards import Guard, Reach, Test
from cerite.pattern.window import Size
from cerite.predicate.expression import Attribute, IsNull, Not

BEFORE, INSIDE, LEFT = range(3)


def windowed(fragment: Fragment, size: Size, register: str, *, ending: bool = False) -> Fragment:
    """The ways through a fragment that fit into a window; with `ending`, ways that no longer can end at once."""
    reach = Guard(frozenset((Reach(register, size),)))
    missed = Guard(negated=frozenset((Reach(register, size),)))
    known = Guard()
    if size.attribute is not None:
        known = Guard(frozenset((Test(None, Not(IsNull(Attribute(size.attribute)))),)))
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

    entries = tuple(made for step in fragment.entries for made in phased(step, BEFORE))
    phases = (BEFORE, INSIDE) if size.attribute is None else (BEFORE, INSIDE, LEFT)
    steps = tuple(made for step in fragment.steps for phase in phases for made in phased(step, phase))
    exits = frozenset(number for (state, phase), number in split.items() if state in fragment.exits and phase != LEFT)
    return Fragment(entries, steps, exits, fragment.nullable)
