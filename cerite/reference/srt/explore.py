"""Building a transducer forwards: only states that some walk from the start reaches are created.

Every construction that makes states out of other things (sets of states, pairs, states with a counter) is a function
from such a thing to the steps that leave it; numbering, merging and the limit are here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from cerite.core.errors import PatternError
from cerite.reference.srt.transducer import Registers, Transducer, Transition
from cerite.reference.srt.transition_conditions import Condition

MOST = 20_000  # transitions of one transducer
S = TypeVar("S", bound=Hashable)


@dataclass(frozen=True)
class Step(Generic[S]):
    """A transition before its states have numbers."""

    condition: Condition | None
    output: bool
    writes: Registers
    target: S


def explore(
    start: S,
    steps: Callable[[S], Iterable[Step[S]]],
    is_final: Callable[[S], bool],
    registers: Registers,
    *,
    what: str,
    limit: int = MOST,
) -> Transducer:
    """The transducer of everything reached from `start`; `what` names the construction if it grows over `limit`."""
    number: dict[S, int] = {start: 0}
    todo = [start]
    transitions: dict[Transition, None] = {}
    finals: set[int] = set()
    for state in todo:  # grows while it is read
        source = number[state]
        if is_final(state):
            finals.add(source)
        for step in steps(state):
            if step.target not in number:
                number[step.target] = len(number)
                todo.append(step.target)
            transitions[Transition(source, step.condition, step.output, step.writes, number[step.target])] = None
            if len(transitions) > limit:
                raise too_large(what, limit)
    used = frozenset().union(*(each.reads | each.writes for each in transitions))
    return Transducer(len(number), 0, frozenset(finals), registers | used, tuple(transitions))


def too_large(what: str, limit: int) -> PatternError:
    """The error of a construction that explodes."""
    return PatternError(
        f"{what} makes a transducer of more than {limit:,} transitions",
        hint="use a smaller window, fewer alternatives or smaller bounds of iterations",
    )
