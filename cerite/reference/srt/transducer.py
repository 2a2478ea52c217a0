"""Symbolic register transducers, T = (Q, qs, Qf, R, Δ) (SRT report, definition 21).

A condition of None is ε: such a transition reads no event, marks nothing and writes nothing.

Invariant: a transducer never changes after it is built; its states are range(n_states); the registers that conditions
read and transitions write are among its registers; no transition is listed twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from cerite.automaton.draw import Arrow, Diagram, Drawable
from cerite.reference.srt.transition_conditions import TOP, Condition

Registers = frozenset[str]
NO_REGISTERS: Registers = frozenset()


@dataclass(frozen=True, slots=True)
class Transition:
    """δ = q, ϕ ↑ o ↓ W → q′; `condition` None is ε, `output` True is •."""

    source: int  # q
    condition: Condition | None  # ϕ
    output: bool  # o
    writes: Registers  # W
    target: int  # q′

    @property
    def reads(self) -> Registers:
        """The registers the condition looks at."""
        return NO_REGISTERS if self.condition is None else self.condition.reads


def epsilon(source: int, target: int) -> Transition:
    """An ε-transition."""
    return Transition(source, None, False, NO_REGISTERS, target)


@dataclass(frozen=True)
class Transducer(Drawable):
    """An SRT; without registers it is a CEA."""

    n_states: int  # |Q|
    start: int  # qs
    finals: frozenset[int]  # Qf
    registers: Registers  # R
    transitions: tuple[Transition, ...]  # Δ

    def __post_init__(self) -> None:
        states = range(self.n_states)
        if self.start not in states or not all(q in states for q in self.finals):
            raise ValueError("the start and the final states must be among the states")
        if len(set(self.transitions)) != len(self.transitions):
            raise ValueError("transitions must be distinct")
        for each in self.transitions:
            if each.source not in states or each.target not in states:
                raise ValueError(f"{each} names a state that does not exist")
            if not (each.reads | each.writes) <= self.registers:
                raise ValueError(f"{each} names a register that does not exist")
            if each.condition is None and (each.output or each.writes):
                raise ValueError(f"{each} reads no event, so there is nothing to mark or store")

    @property
    def has_epsilon(self) -> bool:
        """Whether some transition reads nothing."""
        return any(each.condition is None for each in self.transitions)

    @property
    def read(self) -> Registers:
        """The registers that some condition looks at."""
        return frozenset().union(*(each.reads for each in self.transitions))

    @property
    def written(self) -> Registers:
        """The registers that some transition writes."""
        return frozenset().union(*(each.writes for each in self.transitions))

    @cached_property
    def leaving(self) -> dict[int, list[Transition]]:
        """The transitions by source; every state has an entry."""
        by_state: dict[int, list[Transition]] = {state: [] for state in range(self.n_states)}
        for each in self.transitions:
            by_state[each.source].append(each)
        return by_state

    def trim(self) -> Transducer:
        """The same matches, without states that no run reaches or from which no final state is reached."""
        forward = _reach({self.start}, ((each.source, each.target) for each in self.transitions))
        backward = _reach(set(self.finals), ((each.target, each.source) for each in self.transitions))
        useful = sorted((forward & backward) | {self.start})
        number = {state: rank for rank, state in enumerate(useful)}
        transitions = tuple(
            replace(each, source=number[each.source], target=number[each.target])
            for each in self.transitions
            if each.source in number and each.target in number
        )
        finals = frozenset(number[state] for state in self.finals if state in number)
        return Transducer(len(useful), number[self.start], finals, self.registers, transitions)

    def diagram(self) -> Diagram:
        """What pictures show: ϕ ↑ o ↓ W reads ϕ and marks `• ↓W`; `⊗ ↓W` stores without marking.

        >>> from cerite.reference.srt.build import build
        >>> from cerite.language.sremo import parse_sremo
        >>> build(parse_sremo("BUY^o>r")).diagram().arrows
        (Arrow(source=0, reads='BUY', marks='• ↓r', target=1),)
        """
        arrows = (Arrow(each.source, _read(each), _marked(each), each.target) for each in self.transitions)
        return Diagram(self.n_states, self.start, self.finals, tuple(arrows))


def _read(transition: Transition) -> str:
    if transition.condition is None:
        return "ε"
    return "TRUE" if transition.condition == TOP else str(transition.condition)


def _marked(transition: Transition) -> str:
    if not transition.writes:
        return "•" if transition.output else ""
    return f"{'•' if transition.output else '⊗'} ↓{','.join(sorted(transition.writes))}"


def side_by_side(parts: Iterable[Transducer], first: int = 0) -> list[Transducer]:
    """The same transducers with states numbered from `first` on, so that no two share one.

    `n_states` of each is then one more than its greatest state, so the last one's counts all.
    """
    moved: list[Transducer] = []
    for part in parts:
        transitions = tuple(
            replace(each, source=each.source + first, target=each.target + first) for each in part.transitions
        )
        finals = frozenset(state + first for state in part.finals)
        first += part.n_states
        moved.append(Transducer(first, part.start + first - part.n_states, finals, part.registers, transitions))
    return moved


def _reach(seeds: set[int], edges: Iterable[tuple[int, int]]) -> set[int]:
    following: dict[int, list[int]] = {}
    for source, target in edges:
        following.setdefault(source, []).append(target)
    seen, todo = set(seeds), list(seeds)
    while todo:
        for state in following.get(todo.pop(), ()):
            if state not in seen:
                seen.add(state)
                todo.append(state)
    return seen
