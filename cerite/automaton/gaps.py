"""How parts follow one another: contiguous, after a gap, or after a gap in which something does not occur."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

from cerite.automaton.fragment import ENTRY, NO_LABELS, Fragment, Gap, Step, check_size, new_state, pass_anything
from cerite.automaton.guards import ANY, Guard, Reach, Test
from cerite.core.errors import PatternError
from cerite.pattern.nodes import Pattern


@dataclass(frozen=True, slots=True)
class Link:
    """How one part follows another: at the very next event, or after a gap in which none of `absent` occurs.

    `gap` makes that gap; it knows whether what is absent is stateful.
    """

    contiguous: bool
    absent: tuple[Pattern, ...] = ()
    gap: Callable[[tuple[Pattern, ...]], Gap] | None = None


PLAIN = Link(False)  # a gap in which anything may lie


def chain(parts: tuple[Fragment, ...], links: tuple[Link, ...]) -> Fragment:
    """One part after another; a part that is left out (nullable) joins the gaps around it."""
    entries = tuple(step for part in _up_to_needed(parts) for step in part.entries)
    exits = frozenset().union(*(part.exits for part in _up_to_needed(reversed(parts))))
    joining = _Joining(entries, (step for part in parts for step in part.steps))
    for index, part in enumerate(parts):
        link: Link | None = None
        after_gap: tuple[Step, ...] = ()  # what may follow one gap in which anything lies
        for later in range(index + 1, len(parts)):
            step = links[later - 1]
            link = step if link is None else _both(link, step)
            if link == PLAIN:
                after_gap += parts[later].entries
            else:
                joining.connect(part.exits, parts[later].entries, link)
            if not parts[later].nullable:
                break
        if after_gap:
            joining.connect(part.exits, after_gap, PLAIN)
    return joining.fragment(exits, all(part.nullable for part in parts))


def iterate(copies: tuple[Fragment, ...], least: int, link: Link) -> Fragment:
    """At least `least` of the copies, each after the one before it.

    Copies are left out only at the end, so each has one successor, and the automaton grows with the iteration and not
    with its square. A part that may be empty may always be left out.
    """
    least = 0 if any(copy.nullable for copy in copies) else least
    joining = _Joining(copies[0].entries, (step for copy in copies for step in copy.steps))
    for one, following in pairwise(copies):
        joining.connect(one.exits, following.entries, link)
    exits = frozenset().union(*(copy.exits for copy in copies[max(least - 1, 0) :]))
    return joining.fragment(exits, least == 0)


def repeat(part: Fragment, link: Link) -> Fragment:
    """The part once or more."""
    joining = _Joining(part.entries, part.steps)
    joining.connect(part.exits, part.entries, link)
    return joining.fragment(part.exits, part.nullable)


def _up_to_needed(parts: Iterable[Fragment]) -> Iterator[Fragment]:
    """The parts up to and with the first that cannot be left out."""
    for part in parts:
        yield part
        if not part.nullable:
            return


def _both(first: Link, second: Link) -> Link:
    """The gap over a part that is left out: nothing that is absent on either side occurs in it."""
    return Link(second.contiguous, first.absent + second.absent, first.gap or second.gap)


class _Joining:
    """Parts being connected. Steps are looked up by their targets, so that a connection costs only what it adds."""

    def __init__(self, entries: Iterable[Step], steps: Iterable[Step]) -> None:
        self._entries: list[Step] = []
        self._steps: list[Step] = []
        self._entries_into: dict[int, list[Step]] = {}
        self._steps_into: dict[int, list[Step]] = {}
        self._enter(entries)
        self._add(steps)

    def connect(self, exits: frozenset[int], entries: tuple[Step, ...], link: Link) -> None:
        """Let `entries` be taken after `exits`."""
        if link.contiguous:
            check_size(len(self._steps) + len(exits) * len(entries))
            self._add([replace(entry, source=state) for state in sorted(exits) for entry in entries])
            return
        gap = link.gap(link.absent) if link.gap is not None else pass_anything()
        check_size(len(self._steps) + len(gap.states) * len(entries))
        self._add([replace(entry, source=state) for state in gap.states for entry in entries])

        def entered(into: dict[int, list[Step]]) -> list[Step]:
            reaching = [step for state in sorted(exits) for step in into.get(state, ())]
            return [replace(step, target=gap.start, ops=step.ops + gap.opening) for step in reaching]

        self._add([*gap.steps, *entered(self._steps_into)])
        self._enter(entered(self._entries_into))

    def fragment(self, exits: frozenset[int], nullable: bool) -> Fragment:
        """What the parts have become."""
        return Fragment(tuple(self._entries), tuple(self._steps), exits, nullable)

    def _enter(self, entries: Iterable[Step]) -> None:
        for step in entries:
            self._entries.append(step)
            self._entries_into.setdefault(step.target, []).append(step)

    def _add(self, steps: Iterable[Step]) -> None:
        for step in steps:
            self._steps.append(step)
            self._steps_into.setdefault(step.target, []).append(step)


# Deterministic pieces: gaps in which a pattern does not occur, and stretches that a pattern does not match.
#
# Both read the subsets of a fragment's states (SRT report, algorithms 7 and 8, without registers). From each subset
# one step leads on per *minterm*, a choice of which of the tests that occur there hold; minterms exclude each other,
# so the result is deterministic and can be complemented. Nothing is marked (corollary 43).

Subset = frozenset[int]
_BEGIN: Subset = frozenset((ENTRY,))
MOST_TESTS = 10
MOST_SUBSETS = 2_000


def avoiding(fragment: Fragment) -> Gap:
    """A gap in which the fragment does not occur."""
    states, steps = _subsets(fragment, restart=True)
    return Gap(states[_BEGIN], tuple(steps))


def complement(fragment: Fragment) -> Fragment:
    """Any stretch that the fragment does not match from its first to its last event."""
    states, steps = _subsets(fragment, restart=False)
    first = states.pop(_BEGIN)
    entries = tuple(replace(step, source=ENTRY) for step in steps if step.source == first)
    missed = frozenset(number for subset, number in states.items() if not subset & fragment.exits)
    rest = tuple(step for step in steps if step.source != first)
    return Fragment(entries, rest, missed, nullable=not fragment.nullable)


def _subsets(fragment: Fragment, *, restart: bool) -> tuple[dict[Subset, int], list[Step]]:
    """The subset construction; with `restart` the fragment may begin at every event and must never be complete."""
    by_source: dict[int, list[Step]] = {}
    for step in (*fragment.entries, *fragment.steps):
        by_source.setdefault(step.source, []).append(step)
    states: dict[Subset, int] = {_BEGIN: new_state()}
    todo = [_BEGIN]
    steps: list[Step] = []
    while todo:
        subset = todo.pop()
        for guard, reached in _minterms([step for state in subset for step in by_source.get(state, ())]):
            if restart and reached & fragment.exits:
                continue  # the pattern would have occurred
            following = reached | _BEGIN if restart else reached
            if following not in states:
                states[following] = new_state()
                todo.append(following)
                if len(states) > MOST_SUBSETS:
                    raise PatternError("this negated pattern is too large", hint="negate something simpler")
            steps.append(Step(states[subset], guard, NO_LABELS, states[following], False))
    return states, steps


def _minterms(leaving: list[Step]) -> Iterator[tuple[Guard, Subset]]:
    """Which states are reached, for every choice of which tests of the steps hold."""
    tests = sorted({test for step in leaving for test in step.guard.tests | step.guard.negated}, key=str)
    if len(tests) > MOST_TESTS:
        raise PatternError(
            f"a negated pattern has more than {MOST_TESTS} distinct tests for one event",
            hint="negate something simpler",
        )
    for count in range(len(tests) + 1):
        for chosen in combinations(tests, count):
            guard = Guard(frozenset(chosen), frozenset(tests) - frozenset(chosen)) if tests else ANY
            if guard.possible:
                yield guard, frozenset(step.target for step in leaving if _implied(step.guard, guard.tests))


def _implied(guard: Guard, holding: frozenset[Test | Reach]) -> bool:
    return guard.tests <= holding and not guard.negated & holding
