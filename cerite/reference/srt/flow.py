"""What is known about registers at a state, whatever the run, and transducers that ignore what registers held before.

`surely_written` and `live` are the two data flows that the constructions need; both take ε-free or other transducers.
`from_empty` makes the assumption of theorems 31 and 34, that a transducer starts with empty registers, true wherever
the transducer is put.
"""

from __future__ import annotations

from collections.abc import Iterator

from cerite.reference.srt.explore import Step, explore
from cerite.reference.srt.transducer import NO_REGISTERS, Registers, Transducer


def surely_written(transducer: Transducer) -> dict[int, Registers]:
    """For each state, the registers that every run from the start has written by then."""
    known = dict.fromkeys(range(transducer.n_states), transducer.registers)
    known[transducer.start] = NO_REGISTERS
    changed = True
    while changed:
        changed = False
        for step in transducer.transitions:
            less = known[step.target] & (known[step.source] | step.writes)
            changed |= less != known[step.target]
            known[step.target] = less
    return known


def live(transducer: Transducer) -> dict[int, Registers]:
    """For each state, the registers that some run from there reads before writing them."""
    known = dict.fromkeys(range(transducer.n_states), NO_REGISTERS)
    changed = True
    while changed:
        changed = False
        for step in reversed(transducer.transitions):
            more = known[step.source] | step.reads | (known[step.target] - step.writes)
            changed |= more != known[step.source]
            known[step.source] = more
    return known


def from_empty(transducer: Transducer) -> Transducer:
    """The transducer as it runs from empty registers, whatever they hold: those it did not write, it reads as empty.

    A state of the result also knows what has been written since the start.
    """

    def steps(state: tuple[int, Registers]) -> Iterator[Step[tuple[int, Registers]]]:
        here, written = state
        for step in transducer.leaving[here]:
            condition = step.condition
            if condition is not None:
                condition = condition.where_empty(transducer.registers - written)
            if condition is not None or step.condition is None:
                yield Step(condition, step.output, step.writes, (step.target, written | step.writes))

    def is_final(state: tuple[int, Registers]) -> bool:
        return state[0] in transducer.finals

    start = (transducer.start, NO_REGISTERS)
    return explore(start, steps, is_final, transducer.registers, what="starting from empty registers")
