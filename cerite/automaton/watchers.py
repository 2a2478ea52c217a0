"""Parts that carry a watcher along: gaps, complements and selections over stateful patterns (see `watching`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from cerite.automaton.automaton import LAST, PLAIN, Op
from cerite.automaton.fragment import ENTRY, NO_LABELS, Fragment, Gap, Step, new_state
from cerite.automaton.guards import ANY
from cerite.automaton.scopes import remembers, renamed
from cerite.pattern.nodes import Complement, Pattern, Select, Sequence, Strategy, Window, walk


def has_memory(pattern: Pattern) -> bool:
    """Whether what a pattern does next depends on more than its state: its own, or that of a part it negates."""
    return remembers(pattern) or any(
        isinstance(node, Window)
        or (isinstance(node, Select) and node.strategy is not Strategy.STRICT)
        or any(remembers(part) for part in _negated(node))  # whose variables the pattern itself does not bind
        for node in walk(pattern)
    )


def _negated(node: Pattern) -> tuple[Pattern, ...]:
    if isinstance(node, Sequence):
        return node.negated
    return (node.operand,) if isinstance(node, Complement) else ()


@dataclass(frozen=True, slots=True)
class Watched:
    """A watched pattern under construction: it begins in `entry` and binds nothing."""

    kind: int
    entry: int
    steps: tuple[Step, ...]
    exits: frozenset[int]

    @staticmethod
    def of(number: int, kind: int, fragment: Fragment) -> Watched:
        """Watch the ways through a fragment; of a strategy's, only which events they mark is kept."""
        entry = new_state()

        def change(step: Step) -> Step:
            ops = (Op(number, marks=True),) if kind != PLAIN and step.labels else ()
            source = entry if step.source == ENTRY else step.source
            return replace(step, source=source, labels=NO_LABELS, ops=ops)

        changed = fragment.changed(change)
        return Watched(kind, entry, changed.entries + changed.steps, fragment.exits)

    def renamed(self, names: dict[str, str]) -> Watched:
        """With other names for some registers."""
        return replace(self, steps=tuple(renamed(step, names) for step in self.steps))

    def completing(self, final: int) -> Iterator[Step]:
        """All steps, and once more into the final state those that complete the pattern."""
        for step in self.steps:
            yield step
            if step.target in self.exits:
                yield replace(step, target=final, writes=NO_LABELS)


def watched_gap(watcher: int) -> Gap:
    """A gap in which the watched pattern does not occur."""
    state = new_state()
    op = Op(watcher, spawns=True, forbids=True)
    return Gap(state, (Step(state, ANY, NO_LABELS, state, False, ops=(op,)),), (Op(watcher, resets=True),))


def missed(watcher: int, nullable: bool) -> Fragment:
    """Any stretch that the watched pattern does not match from its first to its last event (SRT report, theorem 41)."""
    going, done = new_state(), new_state()
    first = Op(watcher, starts=True, spawns=True)
    later = Op(watcher)

    def step(source: int, op: Op, target: int) -> Step:
        return Step(source, ANY, NO_LABELS, target, False, ops=(replace(op, forbids=target == done),))

    return Fragment(
        tuple(step(ENTRY, first, target) for target in (going, done)),
        tuple(step(going, later, target) for target in (going, done)),
        frozenset((done,)),
        nullable=not nullable,
    )


def selected(fragment: Fragment, watcher: int, kind: int) -> Fragment:
    """The ways through a fragment that no other way, from any start to the same end, is better than."""
    last = {state: new_state() for state in sorted(fragment.exits)}

    def watching(step: Step) -> Iterator[Step]:
        starts = step.source == ENTRY
        op = Op(watcher, starts=starts, spawns=starts or kind == LAST, marks=bool(step.labels))
        yield replace(step, ops=(*step.ops, op))
        if step.target in last:
            yield replace(step, target=last[step.target], ops=(*step.ops, replace(op, forbids=True)))

    return Fragment(
        tuple(watched for step in fragment.entries for watched in watching(step)),
        tuple(watched for step in fragment.steps for watched in watching(step)),
        frozenset(last.values()),
        fragment.nullable,
    )


def marked_late(fragment: Fragment) -> tuple[Fragment, frozenset[int]]:
    """A fragment whose ways may pass over events before the first they mark, and the states they are in until then."""
    before: dict[int, int] = {}

    def split(step: Step) -> Iterator[Step]:
        source = step.source if step.source == ENTRY else before.setdefault(step.source, new_state())
        target = step.target if step.marks else before.setdefault(step.target, new_state())
        yield replace(step, source=source, target=target)

    entries = tuple(half for step in fragment.entries for half in split(step))
    early = tuple(half for step in fragment.steps for half in split(step))
    return replace(fragment, entries=entries, steps=fragment.steps + early), frozenset(before.values())
