"""Valuation complex event automata (CORE, section 3 and appendix A.1), ε-free and with one initial state.

With registers they are symbolic register transducers (SRT report, definition 21): a transition may store its event in
registers, and conditions may read what registers hold. A CEA is an SRT whose transitions write nothing.

A run starts at any event by a transition from `initial`; a match spans from the first event its run reads to the event
on which the run reaches a final state, and binds every event read by a transition of label L > 0 to `labels[L]`.

Invariant: an automaton never changes after it is built, `labels[0]` is empty, no two labels are equal, and no
transition enters `initial` (so that a run's first event is its start).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from cerite.automaton.draw import Arrow, Diagram, Drawable
from cerite.pattern.nodes import Size

# Watchers: sets of configurations that a run carries along, to know about other runs through the same events.
#
# Negation, complement and the selection strategies ask what *no* run does. Where the watched pattern is not stateful
# the subset construction answers that beforehand (`determine`); else a run carries the set of the watched pattern's
# configurations, step by step (the SRT report's determinisation, algorithms 7 and 8, on the fly and not unrolled).
#
# A `PLAIN` watcher follows a pattern that must not complete. One of a strategy follows the other runs through the
# same part, each with how it compares so far with the run itself; it must not complete with a better one
# (docs/semantics.md, *Selection strategies*): for NEXT what differs first decides, for LAST what differs last, for
# MAX only supersets count.
#
# Those that begin before the run enters the part are the same for all runs of a partition, unless they read what the
# run has bound: then a watcher of kind `OTHERS` follows them, each from what the run had bound when it began.
#
# Watched patterns watch others in the same way: NOT inside NOT, a strategy inside a strategy.

PLAIN, NEXT, LAST, MAX, OTHERS = range(5)


@dataclass(frozen=True, slots=True)
class Op:
    """What one step does to a watched set."""

    watcher: int
    resets: bool = False  # nothing is watched yet
    starts: bool = False  # what was watched before is forgotten; a strategy begins with all earlier runs
    spawns: bool = False  # a run of the watched pattern may begin at this event
    forbids: bool = False  # the step is impossible where the watched pattern (or a better run) completes
    marks: bool = False  # the step marks the event


@dataclass(frozen=True, slots=True)
class Watcher:
    """A watched pattern: its kind and the state in which it begins; it completes where it enters the final state.

    `others` is the number of the watcher that has followed a strategy's earlier runs, where runs do not share them.
    """

    kind: int
    entry: int
    others: int | None = None

    @property
    def reads_around(self) -> bool:
        """Whether its runs begin with what the watching run has bound, instead of with nothing."""
        return self.kind in (PLAIN, OTHERS) or self.others is not None


TRUE = -1


@dataclass(frozen=True, slots=True)
class Transition:
    """source --condition/label--> target; condition `TRUE` holds for any event, label 0 leaves the event unmarked."""

    source: int
    condition: int
    label: int
    target: int
    writes: frozenset[str] = frozenset()  # the registers that hold the event afterwards
    clears: frozenset[str] = frozenset()  # the registers that hold nothing afterwards
    ops: tuple[Op, ...] = ()  # what is watched on the way
    shows: bool = False  # a watched step: it has no label, and marks the event all the same


@dataclass(frozen=True)
class Automaton(Drawable):
    """A = (Q, Δ, q0, F) with Q = range(n_states); conditions are opaque here, the caller evaluates them."""

    n_states: int
    initial: int
    finals: frozenset[int]
    transitions: tuple[Transition, ...]
    conditions: tuple[Any, ...]
    labels: tuple[frozenset[str], ...]
    watchers: tuple[Watcher, ...] = ()
    before: frozenset[int] = frozenset()  # states of runs that have marked nothing yet: no match has started
    tails: frozenset[int] = frozenset()  # states in which a run is a match once its window, or `waits`, are over
    ends: bool = False  # whether such a run must remember where it ended, because it does not show that event
    preceding: tuple[Preceding, ...] = ()  # what is absent before a match or a part, by number
    waits: tuple[tuple[str, Size], ...] = ()  # windows of parts that end in NOT, by the registers of their first events

    def __post_init__(self) -> None:
        if not self.labels or self.labels[0]:
            raise ValueError("labels[0] must be the empty label")
        if len(set(self.labels)) != len(self.labels):
            raise ValueError("labels must be distinct")
        states = range(self.n_states)
        if self.initial not in states or not all(q in states for q in self.finals):
            raise ValueError("initial and final states must be among the states")
        for t in self.transitions:
            if t.source not in states or t.target not in states:
                raise ValueError(f"{t} names a state that does not exist")
            if t.target == self.initial:
                raise ValueError(f"{t} enters the initial state")
            if not TRUE <= t.condition < len(self.conditions) or not 0 <= t.label < len(self.labels):
                raise ValueError(f"{t} names a condition or label that does not exist")

    def diagram(self) -> Diagram:
        """What pictures show."""
        conditions = {TRUE: "TRUE"} | {k: str(condition) for k, condition in enumerate(self.conditions)}
        marks = [",".join(sorted(label)) for label in self.labels]
        arrows = (Arrow(t.source, conditions[t.condition], marks[t.label], t.target) for t in self.transitions)
        return Diagram(self.n_states, self.initial, self.finals | self.tails, tuple(arrows))

    @cached_property
    def watched(self) -> frozenset[int]:
        """The states of watched patterns."""
        return self._following({watcher.entry for watcher in self.watchers})

    @cached_property
    def depth(self) -> int:
        """How deeply watched patterns are nested, including those that accompany runs before their start."""

        def inside(transitions: list[Transition]) -> int:
            return max((of(number) for number in {op.watcher for t in transitions for op in t.ops}), default=0)

        def of(number: int) -> int:
            states = self._following({self.watchers[number].entry})
            return 1 + inside([t for t in self.transitions if t.source in states])

        early = inside([t for t in self.transitions if t.target in self.before])
        return max(inside(list(self.transitions)), early + bool(early))

    @cached_property
    def outline(self) -> str:
        """All of it but its opaque conditions, as text: automata with equal outlines have the same states and steps."""
        steps = [
            (t.source, t.condition, t.label, t.target, sorted(t.writes), sorted(t.clears), t.ops, *(t.shows * [True]))
            for t in self.transitions
        ]
        labels = [sorted(label) for label in self.labels]
        parts = self.n_states, self.initial, sorted(self.finals), steps, self.watchers, labels, len(self.conditions)
        return repr(parts)[1:-1]

    def _following(self, states: set[int]) -> frozenset[int]:
        return frozenset(_reach(states, [(t.source, t.target) for t in self.transitions])) - self.finals

    def with_plain_marks(self) -> Automaton:
        """The CEA of appendix A.1: every label collapsed to one mark (complex-event semantics)."""
        marked = dict.fromkeys(t if t.label == 0 else replace(t, label=1) for t in self.transitions)
        every = frozenset(name for label in self.labels for name in label) or frozenset({"•"})
        ordered = tuple(sorted(marked, key=lambda t: (t.source, t.target, t.condition, t.label)))
        return replace(self, transitions=ordered, labels=(frozenset(), every))

    def trim(self) -> Automaton:
        """The same matches, without states that no run reaches or from which no final state is reached."""
        roots = {self.initial, *(watcher.entry for watcher in self.watchers)}
        forward = _reach(roots, [(t.source, t.target) for t in self.transitions])
        backward = _reach({*self.finals, *self.tails}, [(t.target, t.source) for t in self.transitions])
        useful = sorted((forward & backward) | roots)
        number = {q: k for k, q in enumerate(useful)}
        transitions = tuple(
            replace(t, source=number[t.source], target=number[t.target])
            for t in self.transitions
            if t.source in number and t.target in number
        )
        finals = frozenset(number[q] for q in self.finals if q in number)
        return replace(
            self, n_states=len(useful), initial=number[self.initial], finals=finals, transitions=transitions,
            watchers=tuple(replace(each, entry=number[each.entry]) for each in self.watchers),
            before=frozenset(number[q] for q in self.before if q in number),
            tails=frozenset(number[q] for q in self.tails if q in number),
        )  # fmt: skip


@dataclass(frozen=True)
class Preceding:
    """A pattern that is absent before a match or a part; those that it refers to have smaller numbers."""

    automaton: Automaton
    size: Size | None  # of the window in which it is absent; None: the query's
    through: bool = False  # whether it is followed through the match's first event, which it reads, or up to it

    @property
    def is_stateful(self) -> bool:
        """Whether its runs carry more than their states."""
        return bool(self.automaton.watchers) or any(guard.reads for guard in self.automaton.conditions)


def _reach(seeds: set[int], edges: list[tuple[int, int]]) -> set[int]:
    following: dict[int, list[int]] = {}
    for source, target in edges:
        following.setdefault(source, []).append(target)
    seen, todo = set(seeds), list(seeds)
    while todo:
        for q in following.get(todo.pop(), ()):
            if q not in seen:
                seen.add(q)
                todo.append(q)
    return seen
