"""e[1..w]: windows that count events (SRT report, definition 39), exactly and without unrolling.

A state of the result also counts the events since the first marked one: 0 as long as none is, w + 1 once the window is
over, after which nothing may be marked. So max(M) − min(M) + 1 ≤ w for every match M, and a match that marks nothing
is always inside. Registers and conditions stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator

from cerite.automaton.srt.explore import MOST, Step, explore
from cerite.automaton.srt.transducer import Transducer


def windowed(transducer: Transducer, width: int, *, limit: int = MOST) -> Transducer:
    """The matches whose marked events lie within `width` events."""

    def steps(state: tuple[int, int]) -> Iterator[Step[tuple[int, int]]]:
        here, count = state
        for step in transducer.leaving[here]:
            if step.condition is None:
                yield Step(None, False, step.writes, (step.target, count))
                continue
            after = min(count + 1, width + 1) if count or step.output else 0
            if not step.output or after <= width:
                yield Step(step.condition, step.output, step.writes, (step.target, after))

    def is_final(state: tuple[int, int]) -> bool:
        return state[0] in transducer.finals

    start = (transducer.start, 0)
    return explore(start, steps, is_final, transducer.registers, what="the window", limit=limit).trim()
