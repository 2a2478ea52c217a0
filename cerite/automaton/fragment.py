"""Pieces of an automaton under construction, and how they are joined (CORE, appendix A.1).

A fragment is entered by reading an event (`entries`), goes on by reading events (`steps`), and is complete in its
`exits`. Gaps are states of their own: whatever reaches an exit also reaches the gap after it, which passes over events
until the next part is entered. So exits never loop, an automaton without contiguity has only looping states, and no
ε-transition is ever needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import count

from cerite.automaton.automaton import Op
from cerite.automaton.guards import ANY, Guard
from cerite.core.errors import PatternError, Span

Labels = frozenset[str]
NO_LABELS: Labels = frozenset()
MOST_STEPS = 200_000
_fresh = count()


def new_state() -> int:
    """A state that no other fragment has."""
    return next(_fresh)


def check_size(steps: int, span: Span | None = None) -> None:
    """Refuse what makes an automaton too large, before it is built."""
    if steps > MOST_STEPS:
        raise PatternError(
            f"this pattern makes an automaton of at least {steps:,} transitions; the engine takes {MOST_STEPS:,}",
            span=span, hint="repeat less often, or without an upper bound: `φ+` needs no more states than `φ`",
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Step:
    """`source --guard/labels--> target`; `marks` tells an event of the match from one that is passed over."""

    source: int
    guard: Guard
    labels: Labels
    target: int
    marks: bool
    writes: Labels = NO_LABELS  # registers that hold the event afterwards
    clears: Labels = NO_LABELS  # registers that hold nothing afterwards
    ops: tuple[Op, ...] = ()  # what is watched on the way
    shows: bool = False  # a watched step: its labels are forgotten, but not that it had some
    opens: frozenset[int] = frozenset()  # what must not occur from here on, by number (see `pending`)


ENTRY = -1  # the source of entries


@dataclass(frozen=True, slots=True)
class Fragment:
    """A piece of an automaton; `nullable` if it also matches without reading anything."""

    entries: tuple[Step, ...] = ()
    steps: tuple[Step, ...] = ()
    exits: frozenset[int] = field(default_factory=frozenset)
    nullable: bool = False

    def changed(self, change: Callable[[Step], Step]) -> Fragment:
        """The same fragment with every step changed."""
        return replace(self, entries=tuple(map(change, self.entries)), steps=tuple(map(change, self.steps)))


def single(guard: Guard, labels: Labels, *, marks: bool, writes: Labels = NO_LABELS) -> Fragment:
    """One event."""
    state = new_state()
    return Fragment((Step(ENTRY, guard, labels, state, marks, writes),), (), frozenset((state,)))


def union(parts: Iterable[Fragment]) -> Fragment:
    """Any of the parts."""
    fragments = tuple(parts)
    return Fragment(
        tuple(step for part in fragments for step in part.entries),
        tuple(step for part in fragments for step in part.steps),
        frozenset().union(*(part.exits for part in fragments)),
        any(part.nullable for part in fragments),
    )


@dataclass(frozen=True, slots=True)
class Gap:
    """States that pass over events without marking them, entered in `start`; the next part may follow any of them."""

    start: int
    steps: tuple[Step, ...]
    opening: tuple[Op, ...] = ()  # what is to be watched from there on

    @property
    def states(self) -> list[int]:
        """Every state of the gap."""
        return sorted({self.start, *(step.target for step in self.steps)})


def pass_anything() -> Gap:
    """The gap in which anything may lie."""
    state = new_state()
    return Gap(state, (Step(state, ANY, NO_LABELS, state, False),))


def product(one: Fragment, two: Fragment) -> Fragment:
    """Both at once, on the same events with the same marks (SRT report, theorem 34)."""
    states: dict[tuple[int, int], int] = {}

    def pair(a: int, b: int) -> int:
        return states.setdefault((a, b), new_state())

    def both(a: Step, b: Step, source: int) -> Step | None:
        guard = a.guard & b.guard
        if a.marks != b.marks or bool(a.labels) != bool(b.labels) or not guard.possible:
            return None
        labels, target = a.labels | b.labels, pair(a.target, b.target)
        return Step(
            source, guard, labels, target, a.marks, a.writes | b.writes, a.clears | b.clears, a.ops + b.ops,
            opens=a.opens | b.opens,
        )  # fmt: skip

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
        check_size(len(steps))
    exits = frozenset(state for (a, b), state in states.items() if a in one.exits and b in two.exits)
    return Fragment(tuple(entries), tuple(steps), exits, one.nullable and two.nullable)


def strict_fragment(fragment: Fragment) -> Fragment:
    """The runs through a fragment whose labelled events lie side by side (STRICT, ICDT 2019, section 4).

    Every state is split by phase: nothing labelled yet (0), labelling (1), done (2).
    """
    split: dict[tuple[int, int], int] = {}

    def phased(step: Step, phase: int) -> Step | None:
        if step.labels and phase == 2:
            return None
        following = 1 if step.labels else 0 if phase == 0 else 2
        target = split.setdefault((step.target, following), new_state())
        source = step.source if step.source == ENTRY else split.setdefault((step.source, phase), new_state())
        return replace(step, source=source, target=target)

    entries = tuple(copy for step in fragment.entries if (copy := phased(step, 0)))
    steps = tuple(copy for step in fragment.steps for phase in range(3) if (copy := phased(step, phase)))
    exits = frozenset(number for (state, _), number in split.items() if state in fragment.exits)
    return Fragment(entries, steps, exits, fragment.nullable)
