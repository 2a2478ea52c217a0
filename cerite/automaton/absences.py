"""NOT at the ends of a windowed pattern, as states and guards (docs/semantics.md, *Absence*).

`φ ; NOT ν`: what completes φ enters a gap in which ν does not occur, and every state of that gap is a *tail*: a run
that is there when its window is over is a match. Runs remember the position of their first event (register `START`), so
that those whose windows end at different events are distinguished, and of their last one (`END`), if it is not shown.

`NOT ν ; φ`: every event has the key of the latest start of an occurrence of ν that ended before it (in a column that
the intake makes, see `since`). A run stores the key of its first event, and completes only where the window does not
reach back to it. A part with a window of its own does the same, with columns measured by that window.

Names that begin with a prime are columns and registers of our own; no user can write them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from cerite.automaton.fragment import ENTRY, Fragment, Gap, Step, new_state
from cerite.automaton.guards import Guard, Test
from cerite.core.errors import PatternError
from cerite.pattern.nodes import Pattern
from cerite.predicate.expression import Attribute, Comparison, IsNull, Not, Reference

START, END = "\N{PRIME}start", "\N{PRIME}end"  # registers: a match's first and last event
POSITION, LOW = "\N{PRIME}position", "\N{PRIME}low"  # columns: an event's position, and where its window begins


def since(number: int) -> str:
    """The name of the column that says when a pattern that must be absent before a match last began."""
    return f"\N{PRIME}since{number}"


def low(number: int) -> str:
    """The name of the column that says where the window begins in which this pattern must be absent before a part."""
    return f"{LOW}{number}"


def is_own(name: str) -> bool:
    """Whether a column is one that the intake makes."""
    return name.startswith("\N{PRIME}")


def ending(fragment: Fragment, change: Callable[[Step], Step]) -> Fragment:
    """The same fragment, completed by changed copies of the steps that completed it; it goes on as before."""
    ends = {state: new_state() for state in sorted(fragment.exits)}

    def copies(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        return tuple(replace(change(step), target=ends[step.target]) for step in steps if step.target in ends)

    return Fragment(
        fragment.entries + copies(fragment.entries),
        fragment.steps + copies(fragment.steps),
        frozenset(ends.values()),
        fragment.nullable,
    )


def known_end(fragment: Fragment, attribute: str) -> Fragment:
    """The runs through a fragment whose last event has the attribute."""
    known = Guard(frozenset((Test(None, Not(IsNull(Attribute(attribute)))),)))
    return ending(fragment, lambda step: replace(step, guard=step.guard & known))


def followed(fragment: Fragment, gap: Gap) -> Fragment:
    """The fragment, then the gap until the window is over: every state of the gap is an exit."""

    def entered(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        completing = (step for step in steps if step.target in fragment.exits and step.marks)
        return tuple(
            replace(step, target=gap.start, ops=step.ops + gap.opening, writes=step.writes | {END})
            for step in completing
        )

    return Fragment(
        fragment.entries + entered(fragment.entries),
        fragment.steps + entered(fragment.steps) + gap.steps,
        frozenset(gap.states),
    )


def preceded(fragment: Fragment, numbers: tuple[int, ...], node: Pattern, register: str | None = None) -> Fragment:
    """The runs through a fragment whose window reaches back to none of the patterns that must be absent before them.

    A part with a window of its own has a `register` of its own for its first event.
    """
    if not all(entry.marks for entry in fragment.entries):
        raise PatternError(
            "NOT before an event that the pattern does not mark is not supported", span=node.span,
            hint="mark the first event: leave SKIP out",
        )  # fmt: skip

    def completing(step: Step) -> Step:
        begins = step.source == ENTRY
        reached = (
            Comparison(
                ">=", Attribute(since(k)) if begins else Reference(register or START, since(k)),
                Attribute(LOW if register is None else low(k)),
            )
            for k in numbers
        )  # fmt: skip
        return replace(step, guard=step.guard & Guard(negated=frozenset(Test(None, each) for each in reached)))

    return ending(_started(fragment, register or START), completing)


def _started(fragment: Fragment, register: str) -> Fragment:
    """The fragment, with the first event that a run marks stored in the register; here, every entry marks its event."""
    return replace(fragment, entries=tuple(replace(each, writes=each.writes | {register}) for each in fragment.entries))
