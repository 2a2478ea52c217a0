"""Parts that are decided after their last event: `(φ ; NOT ν WITHIN ε) ; χ` (docs/semantics.md, *Absence*).

What completes φ *opens* a gap in which ν does not occur, and goes on to χ at once; the gap is followed in parallel to
what comes next, until an event lies past the window of ε, which closes it. A run that is complete while gaps are open
is not a match yet: it waits in a *tail*, one for each choice of open gaps, until their last window is over. Nothing
opens the same gap twice (the builder sees to that), so the open gaps are a few numbers, each with its state.

Invariant: a run reaches the final state, or stays in a tail until all windows are over, exactly where φ … χ matches and
no ν lies in a window; the register of a gap's window is empty once the gap is closed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from cerite.automaton.absences import END
from cerite.automaton.automaton import Op
from cerite.automaton.fragment import ENTRY, NO_LABELS, Gap, Labels, Step, check_size, new_state
from cerite.automaton.guards import ANY, Guard, Reach
from cerite.automaton.scopes import renamed
from cerite.pattern.nodes import Size

Open = tuple[tuple[int, int], ...]  # gaps by number, each with the state that it is in


@dataclass(frozen=True, slots=True)
class Pending:
    """A gap that is open from the end of a part to that of the part's window, whose first event `register` holds."""

    gap: Gap
    register: str
    size: Size

    def renamed(self, names: dict[str, str]) -> Pending:
        """The same, with other names for some registers."""
        return replace(self, gap=replace(self.gap, steps=tuple(renamed(step, names) for step in self.gap.steps)))


class _Move(NamedTuple):
    """What an event does to open gaps: which are open afterwards, under a guard."""

    guard: Guard
    ops: tuple[Op, ...]
    clears: Labels
    open: Open


def waited_for(
    steps: tuple[Step, ...], exits: frozenset[int], pending: list[Pending]
) -> tuple[tuple[Step, ...], frozenset[int]]:
    """The steps combined with the gaps that they open, and the tails."""
    following = _Following(steps, exits, pending)
    every = tuple(following.steps())
    return every, frozenset(following.tails.values())


class _Following:
    """States are pairs of a state and the gaps that are open there; with none open, the state itself."""

    def __init__(self, steps: tuple[Step, ...], exits: frozenset[int], pending: list[Pending]) -> None:
        self._by_source: dict[int, list[Step]] = {}
        for step in steps:
            self._by_source.setdefault(step.source, []).append(step)
        self._exits, self._pending = exits, pending
        self._states: dict[tuple[int, Open], int] = {}
        self.tails: dict[Open, int] = {}
        self._todo: list[tuple[int, Open]] = []

    def steps(self) -> Iterator[Step]:
        """All steps that lead anywhere from the beginning, those between tails last."""
        count = 0
        self._state(ENTRY, ())
        while self._todo:
            source, opened = self._todo.pop()
            for step in self._by_source.get(source, ()):
                for each in self._beside(step, opened):
                    count += 1
                    check_size(count)
                    yield each
        yield from self._waiting()

    def _beside(self, step: Step, opened: Open) -> Iterator[Step]:
        """A step for everything that the event may do to the open gaps, and another one into a tail if it completes."""
        fresh = tuple((number, self._pending[number].gap.start) for number in sorted(step.opens))
        opening = tuple(op for number, _ in fresh for op in self._pending[number].gap.opening)
        for move in self._moves(opened):
            guard = step.guard & move.guard
            if not guard.possible:
                continue
            after = move.open + fresh
            beside = replace(
                step, source=self._state(step.source, opened), target=self._state(step.target, after), guard=guard,
                ops=step.ops + move.ops + opening, clears=step.clears | move.clears, opens=frozenset(),
            )  # fmt: skip
            yield beside
            if after and step.target in self._exits and step.marks:
                yield replace(beside, target=self._tail(after), writes=beside.writes | {END})

    def _waiting(self) -> Iterator[Step]:
        """The steps between tails. A tail with one gap left ends with that gap's window, before any later event."""
        done: set[Open] = set()
        while todo := [opened for opened in self.tails if opened not in done]:
            for opened in todo:
                done.add(opened)
                moves = self._moves(opened) if len(opened) > 1 else self._inside(*opened[0])
                for move in moves:
                    if move.open:
                        yield Step(
                            self.tails[opened], move.guard, NO_LABELS, self._tail(move.open), False,
                            clears=move.clears, ops=move.ops,
                        )  # fmt: skip

    def _moves(self, opened: Open) -> list[_Move]:
        moves = [_Move(ANY, (), NO_LABELS, ())]
        for number, state in opened:
            each = self._pending[number]
            past = frozenset((Reach(each.register, each.size, past=True),))
            choices = [
                inside._replace(guard=inside.guard & Guard(negated=past)) for inside in self._inside(number, state)
            ]
            choices.append(_Move(Guard(past), (), frozenset((each.register,)), ()))
            moves = [_joined(one, two) for one in moves for two in choices]
            moves = [move for move in moves if move.guard.possible]
            check_size(len(moves))
        return moves

    def _inside(self, number: int, state: int) -> list[_Move]:
        steps = (step for step in self._pending[number].gap.steps if step.source == state)
        return [_Move(step.guard, step.ops, NO_LABELS, ((number, step.target),)) for step in steps]

    def _state(self, state: int, opened: Open) -> int:
        if (state, opened) not in self._states:
            self._states[state, opened] = new_state() if opened else state
            self._todo.append((state, opened))
        return self._states[state, opened]

    def _tail(self, opened: Open) -> int:
        return self.tails.setdefault(opened, new_state())


def _joined(one: _Move, two: _Move) -> _Move:
    return _Move(one.guard & two.guard, one.ops + two.ops, one.clears | two.clears, one.open + two.open)
