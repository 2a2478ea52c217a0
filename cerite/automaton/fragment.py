"""Pieces of an automaton under construction, and how they are joined (CORE, appendix A.1).

A fragment is entered by reading an event (`entries`), goes on by reading events (`steps`), and is complete in its
`exits`. Gaps are states of their own: whatever reaches an exit also reaches the gap behind it, which passes over events
until the next part is entered. So exits never loop, an automaton without contiguity has only looping states, and no
ε-transition is ever made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import count

from cerite.automaton.guards import ANY, Guard, Test

Labels = frozenset[str]
NO_LABELS: Labels = frozenset()
_fresh = count()


def new_state() -> int:
    """A state that no other fragment has."""
    return next(_fresh)


@dataclass(frozen=True, slots=True)
class Step:
    """`source --guard/labels--> target`; `marks` tells an event of the match from one that is passed over."""

    source: int
    guard: Guard
    labels: Labels
    target: int
    marks: bool


ENTRY = -1  # the source of entries


@dataclass(frozen=True, slots=True)
class Fragment:
    """A piece of an automaton; `nullable` if it also matches without reading anything."""

    entries: tuple[Step, ...] = ()
    steps: tuple[Step, ...] = ()
    exits: frozenset[int] = field(default_factory=frozenset)
    nullable: bool = False

    def relabelled(self, change: Callable[[Labels], Labels]) -> Fragment:
        """The same fragment with changed labels."""
        return replace(
            self,
            entries=tuple(replace(step, labels=change(step.labels)) for step in self.entries),
            steps=tuple(replace(step, labels=change(step.labels)) for step in self.steps),
        )


def single(guard: Guard, labels: Labels, *, marks: bool) -> Fragment:
    """One event."""
    state = new_state()
    return Fragment((Step(ENTRY, guard, labels, state, marks),), (), frozenset((state,)))


def union(parts: Iterable[Fragment]) -> Fragment:
    """Any of the parts."""
    found = tuple(parts)
    return Fragment(
        tuple(step for part in found for step in part.entries),
        tuple(step for part in found for step in part.steps),
        frozenset().union(*(part.exits for part in found)),
        any(part.nullable for part in found),
    )


@dataclass(frozen=True, slots=True)
class Link:
    """How one part follows another: at the very next event, or after a gap in which none of `absent` occurs."""

    contiguous: bool
    absent: frozenset[Test] = frozenset()


def chain(parts: tuple[Fragment, ...], links: tuple[Link, ...]) -> Fragment:
    """One part after another; a part that is left out (nullable) joins the gaps around it."""
    joined = union(replace(part, entries=(), exits=frozenset()) for part in parts)
    entries: tuple[Step, ...] = ()
    for part in parts:
        entries += part.entries
        if not part.nullable:
            break
    exits: frozenset[int] = frozenset()
    for part in reversed(parts):
        exits |= part.exits
        if not part.nullable:
            break
    result = Fragment(entries, joined.steps, exits, all(part.nullable for part in parts))
    for index, part in enumerate(parts):
        link: Link | None = None
        for later in range(index + 1, len(parts)):
            step = links[later - 1]
            link = step if link is None else Link(step.contiguous, link.absent | step.absent)
            result = connect(result, part.exits, parts[later].entries, link)
            if not parts[later].nullable:
                break
    return result


def repeat(part: Fragment, link: Link) -> Fragment:
    """The part once or more."""
    return connect(part, part.exits, part.entries, link)


def connect(whole: Fragment, exits: frozenset[int], entries: tuple[Step, ...], link: Link) -> Fragment:
    """`whole`, where after `exits` the `entries` can be taken."""
    if link.contiguous:
        more = tuple(replace(entry, source=state) for state in sorted(exits) for entry in entries)
        return replace(whole, steps=whole.steps + more)
    gap = new_state()
    loop = Step(gap, Guard(negated=link.absent) if link.absent else ANY, NO_LABELS, gap, False)
    into = tuple(replace(step, target=gap) for step in whole.steps if step.target in exits)
    onward = tuple(replace(entry, source=gap) for entry in entries)
    # what enters the gap from outside, and what the onward steps reach when they complete a part themselves
    whole_entries = whole.entries + tuple(replace(step, target=gap) for step in whole.entries if step.target in exits)
    again = tuple(replace(step, target=gap) for step in onward if step.target in exits)
    return replace(whole, entries=whole_entries, steps=(*whole.steps, *into, loop, *onward, *again))


def product(one: Fragment, two: Fragment) -> Fragment:
    """Both at once, on the same events with the same marks (SRT report, theorem 34)."""
    states: dict[tuple[int, int], int] = {}

    def pair(a: int, b: int) -> int:
        return states.setdefault((a, b), new_state())

    def both(a: Step, b: Step, source: int) -> Step | None:
        guard = a.guard & b.guard
        if a.marks != b.marks or bool(a.labels) != bool(b.labels) or not guard.possible:
            return None
        return Step(source, guard, a.labels | b.labels, pair(a.target, b.target), a.marks)

    entries = [step for a in one.entries for b in two.entries if (step := both(a, b, ENTRY))]
    by_source: tuple[dict[int, list[Step]], dict[int, list[Step]]] = ({}, {})
    for index, fragment in enumerate((one, two)):
        for step in fragment.steps:
            by_source[index].setdefault(step.source, []).append(step)
    steps: list[Step] = []
    done: set[tuple[int, int]] = set()
    while todo := [each for each in states if each not in done]:
        for a, b in todo:
            done.add((a, b))
            for left in by_source[0].get(a, ()):
                for right in by_source[1].get(b, ()):
                    step = both(left, right, states[a, b])
                    if step:
                        steps.append(step)
    exits = frozenset(state for (a, b), state in states.items() if a in one.exits and b in two.exits)
    return Fragment(tuple(entries), tuple(steps), exits, one.nullable and two.nullable)
