"""How parts follow one another: contiguous, after a gap, or after a gap in which something does not occur."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from cerite.automaton.determine import avoiding
from cerite.automaton.fragment import Fragment, Gap, Step, pass_anything, union
from cerite.errors import PatternError


@dataclass(frozen=True, slots=True)
class Link:
    """How one part follows another: at the very next event, or after a gap in which none of `absent` occurs.

    `gap` makes that gap where subsets of states do not: what is absent has a memory of its own.
    """

    contiguous: bool
    absent: tuple[Fragment, ...] = ()
    gap: Callable[[], Gap] | None = None


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
            link = step if link is None else _both(link, step)
            result = connect(result, part.exits, parts[later].entries, link)
            if not parts[later].nullable:
                break
    return result


def _both(first: Link, second: Link) -> Link:
    """The gap over a part that is left out: nothing that is absent on either side occurs in it."""
    if first.gap is not None and second.gap is not None:
        raise PatternError("two negated patterns with a memory meet where the part between them can be empty",
                           hint="give the part between them at least one event")  # fmt: skip
    if (first.gap or second.gap) and (first.absent or second.absent):
        raise PatternError("two negated patterns meet where the part between them can be empty",
                           hint="give the part between them at least one event")  # fmt: skip
    return Link(second.contiguous, first.absent + second.absent, first.gap or second.gap)


def repeat(part: Fragment, link: Link) -> Fragment:
    """The part once or more."""
    return connect(part, part.exits, part.entries, link)


def connect(whole: Fragment, exits: frozenset[int], entries: tuple[Step, ...], link: Link) -> Fragment:
    """`whole`, where after `exits` the `entries` can be taken."""
    if link.contiguous:
        more = tuple(replace(entry, source=state) for state in sorted(exits) for entry in entries)
        return replace(whole, steps=whole.steps + more)
    gap = link.gap() if link.gap is not None else avoiding(union(link.absent)) if link.absent else pass_anything()
    onward = tuple(replace(entry, source=state) for state in gap.states for entry in entries)

    def entered(steps: Iterable[Step]) -> tuple[Step, ...]:
        return tuple(
            replace(step, target=gap.start, ops=step.ops + gap.opening) for step in steps if step.target in exits
        )

    into, entering = entered((*whole.steps, *onward)), entered(whole.entries)
    return replace(whole, entries=whole.entries + entering, steps=(*whole.steps, *gap.steps, *onward, *into))
