"""How parts follow one another: contiguous, after a gap, or after a gap in which something does not occur."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from cerite.automaton.determine import avoiding
from cerite.automaton.fragment import Fragment, Gap, Step, check_size, pass_anything, union
from cerite.errors import PatternError


@dataclass(frozen=True, slots=True)
class Link:
    """How one part follows another: at the very next event, or after a gap in which none of `absent` occurs.

    `gap` makes that gap where subsets of states do not: what is absent has a memory of its own.
    """

    contiguous: bool
    absent: tuple[Fragment, ...] = ()
    gap: Callable[[], Gap] | None = None


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

    What is left out is left out at the end: a copy has one successor, and the automaton grows with the iteration and
    not with its square. A part that may be empty may be left out always.
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
    """The first parts, up to the first that cannot be left out."""
    for part in parts:
        yield part
        if not part.nullable:
            return


def _both(first: Link, second: Link) -> Link:
    """The gap over a part that is left out: nothing that is absent on either side occurs in it."""
    if first.gap is not None and second.gap is not None:
        raise PatternError("two negated patterns with a memory meet where the part between them can be empty",
                           hint="give the part between them at least one event")  # fmt: skip
    if (first.gap or second.gap) and (first.absent or second.absent):
        raise PatternError("two negated patterns meet where the part between them can be empty",
                           hint="give the part between them at least one event")  # fmt: skip
    return Link(second.contiguous, first.absent + second.absent, first.gap or second.gap)


class _Joining:
    """Parts while they are connected. Steps are found by their target, so that a connection costs what it adds."""

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
        gap = link.gap() if link.gap is not None else avoiding(union(link.absent)) if link.absent else pass_anything()
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
