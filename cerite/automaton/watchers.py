"""Parts that carry a watcher along: gaps, complements and selections over stateful patterns (see `automaton`).

What is watched may itself watch something. Where a strategy's other runs read what the run has bound, `carried` makes
all steps on the way to the strategy carry them along.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from cerite.automaton.automaton import LAST, OTHERS, PLAIN, Op
from cerite.automaton.fragment import ENTRY, NO_LABELS, Fragment, Gap, Labels, Step, new_state
from cerite.automaton.guards import ANY
from cerite.automaton.scopes import read_unwritten, remembers, renamed
from cerite.pattern import nodes


def is_stateful(pattern: nodes.Pattern) -> bool:
    """Whether what a pattern, or a part that it negates, does next depends on more than its state."""
    return remembers(pattern) or any(
        isinstance(node, nodes.Window)
        or (isinstance(node, nodes.Select) and node.strategy is not nodes.Strategy.STRICT)
        or any(remembers(part) for part in _negated(node))  # whose variables the pattern itself does not bind
        for node in nodes.walk(pattern)
    )


def _negated(node: nodes.Pattern) -> tuple[nodes.Pattern, ...]:
    if isinstance(node, nodes.Sequence):
        return node.negated
    return (node.operand,) if isinstance(node, nodes.Complement) else ()


@dataclass(frozen=True, slots=True)
class Watched:
    """A watched pattern under construction: it begins in `entry`, binds nothing and may read `reads` from around it."""

    kind: int
    entry: int
    steps: tuple[Step, ...] = ()
    exits: frozenset[int] = frozenset()
    reads: Labels = NO_LABELS
    gathers: Labels = NO_LABELS  # the registers of which it, or what it watches, reads all events
    others: int | None = None

    @staticmethod
    def of(kind: int, fragment: Fragment, watched: Callable[[int], tuple[Labels, Labels]]) -> Watched:
        """Watch the runs through a fragment; for a strategy, only which events they mark matters."""
        entry = new_state()

        def change(step: Step) -> Step:
            source = entry if step.source == ENTRY else step.source
            return replace(step, source=source, labels=NO_LABELS, shows=kind != PLAIN and bool(step.labels))

        changed = fragment.changed(change)
        steps = changed.entries + changed.steps
        gathers = frozenset().union(
            *(step.guard.gathers for step in steps), *(watched(op.watcher)[1] for step in steps for op in step.ops)
        )
        return Watched(kind, entry, steps, fragment.exits, read_unwritten(fragment, watched), gathers)

    def renamed(self, names: dict[str, str]) -> Watched:
        """The same, with other names for some registers."""
        reads, gathers = (frozenset(names.get(name, name) for name in some) for some in (self.reads, self.gathers))
        return replace(self, steps=tuple(renamed(step, names) for step in self.steps), reads=reads, gathers=gathers)

    def completing(self, final: int) -> Iterator[Step]:
        """All steps, and copies into the final state of those that complete the pattern."""
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
    """The runs through a fragment for which no other run, from any start to the same end, is better."""
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


def carried(steps: tuple[Step, ...], watched: list[Watched]) -> tuple[tuple[Step, ...], list[Watched]]:
    """Steps and watched patterns that carry every watcher of kind `OTHERS` to where a strategy begins with it."""
    for number, each in enumerate(watched):
        if each.kind == OTHERS:
            needing = _needing(number, (*steps, *(step for one in watched for step in one.steps)), watched)
            op = Op(number, spawns=True)

            def carrying(some: tuple[Step, ...], needing: set[int] = needing, op: Op = op) -> tuple[Step, ...]:
                return tuple(replace(step, ops=(*step.ops, op)) if step.target in needing else step for step in some)

            steps, watched = carrying(steps), [replace(one, steps=carrying(one.steps)) for one in watched]
    return steps, watched


def _needing(number: int, steps: tuple[Step, ...], watched: list[Watched]) -> set[int]:
    """The states from which a step leads on to a strategy that begins with these runs."""
    needing: set[int] = set()

    def needs(op: Op) -> bool:
        each = watched[op.watcher]
        begins_here = each.kind in (PLAIN, OTHERS) or each.others is not None
        return (op.starts and each.others == number) or (op.spawns and begins_here and each.entry in needing)

    before = -1
    while len(needing) > before:
        before = len(needing)
        needing |= {step.source for step in steps if step.target in needing or any(map(needs, step.ops))}
    return needing


def marked_late(fragment: Fragment) -> tuple[Fragment, frozenset[int]]:
    """A fragment whose runs may pass over events before the first they mark, and the states they are in until then."""
    before: dict[int, int] = {}

    def split(step: Step) -> Iterator[Step]:
        source = step.source if step.source == ENTRY else before.setdefault(step.source, new_state())
        target = step.target if step.marks else before.setdefault(step.target, new_state())
        yield replace(step, source=source, target=target)

    entries = tuple(half for step in fragment.entries for half in split(step))
    early = tuple(half for step in fragment.steps for half in split(step))
    return replace(fragment, entries=entries, steps=fragment.steps + early), frozenset(before.values())
