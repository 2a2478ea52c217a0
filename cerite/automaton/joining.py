"""How parts follow one another: contiguous, after a gap, or after a gap in which something does not occur."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cerite.automaton.determine import avoiding
from cerite.automaton.fragment import Fragment, Step, pass_anything, union


@dataclass(frozen=True, slots=True)
class Link:
    """How one part follows another: at the very next event, or after a gap in which none of `absent` occurs."""

    contiguous: bool
    absent: tuple[Fragment, ...] = ()


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
            link = step if link is None else Link(step.contiguous, link.absent + step.absent)
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
    gap = avoiding(union(link.absent)) if link.absent else pass_anything()
    onward = tuple(replace(entry, source=state) for state in gap.states for entry in entries)
    into = tuple(replace(step, target=gap.start) for step in (*whole.steps, *onward) if step.target in exits)
    entering = tuple(replace(step, target=gap.start) for step in whole.entries if step.target in exits)
    return replace(whole, entries=whole.entries + entering, steps=(*whole.steps, *gap.steps, *onward, *into))
