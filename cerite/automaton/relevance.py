"""Which events can matter to an automaton, as far as its shape tells; the others are dropped before any loop.

An event may *move* a run: a transition may fire that marks it, changes the state or the registers, or opens what is
watched. It may *end* a run that waits: none of the loops of its state fires. Where a state has no loop at all
(contiguity), any event ends the runs that wait there; but then the next such event finds nothing left to end, so among
consecutive events that only end such runs, the first is enough.

The modules that drop events (`engine.subset.classes` by classes of events, `spark.driver.row_filter` by a filter on
rows) only have to say when a transition fires. The register engine looks deeper: what wakes each of its sets
(`engine.registers.compile.signatures`) also tells which events wake none.
"""

from __future__ import annotations

from dataclasses import dataclass

from cerite.automaton.automaton import TRUE, Automaton, Transition


@dataclass(frozen=True)
class Relevance:
    """The transitions that move a run, and the loops that leave a run as it is, by the state in which it waits."""

    moving: tuple[Transition, ...]
    loops: dict[int, tuple[Transition, ...]]

    @property
    def gaps(self) -> bool:
        """Whether runs wait somewhere without a loop."""
        return not all(self.loops.values())


def relevance(automaton: Automaton) -> Relevance:
    """What can happen to a run at an event.

    >>> enter, loop, step = Transition(0, 0, 1, 1), Transition(1, TRUE, 0, 1), Transition(1, 0, 1, 2)
    >>> labels = (frozenset(), frozenset("x"))
    >>> result = relevance(Automaton(3, 0, frozenset({2}), (enter, loop, step), ("A",), labels))
    >>> len(result.moving), result.loops == {1: (loop,)}, result.gaps
    (2, True, False)
    """
    moving = tuple(each for each in automaton.transitions if moves(each, automaton))
    waiting = sorted({each.source for each in automaton.transitions} - {automaton.initial})
    loops = {
        state: tuple(each for each in automaton.transitions if each.source == state and not moves(each, automaton))
        for state in waiting
    }
    return Relevance(moving, loops)


def unconditional(loops: tuple[Transition, ...]) -> bool:
    """Whether no event leaves a state with these loops."""
    return any(each.condition == TRUE for each in loops)


def moves(transition: Transition, automaton: Automaton) -> bool:
    """Whether the transition changes the run."""
    marks = transition.label or transition.shows
    changes = marks or transition.writes or transition.clears or transition.source != transition.target
    anew = any(op.resets or op.starts for op in transition.ops)  # other ops follow what the watched steps do
    return bool(changes) or anew or transition.source in automaton.finals
