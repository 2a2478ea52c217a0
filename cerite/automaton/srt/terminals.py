"""The base cases of SREMO → SRT: ∅, ε and ϕ ↑ o ↓ W (SRT report, appendix A.2, figures 11a-c)."""

from __future__ import annotations

from cerite.automaton.srt.conditions import TOP, Condition
from cerite.automaton.srt.transducer import NO_REGISTERS, Registers, Transducer, Transition, epsilon


def nothing() -> Transducer:
    """∅: the final state is never reached."""
    return Transducer(2, 0, frozenset((1,)), NO_REGISTERS, ())


def empty() -> Transducer:
    """ε: one transition that reads nothing."""
    return Transducer(2, 0, frozenset((1,)), NO_REGISTERS, (epsilon(0, 1),))


def terminal(condition: Condition = TOP, *, output: bool = False, writes: Registers = NO_REGISTERS) -> Transducer:
    """ϕ ↑ o ↓ W: one event."""
    step = Transition(0, condition, output, writes, 1)
    return Transducer(2, 0, frozenset((1,)), writes | condition.reads, (step,))
