"""e1 & e2: the product (SRT report, theorem 34, appendix A.4).

Both sides read the same events and must mark the same ones. The report prints the output of a pair of transitions as
"• if both are •, otherwise ⊗", which reports a match of neither side where one marks and the other does not;
definition 33 wants Match(T1, S) ∩ Match(T2, S), so only transitions of equal output are paired.

The report takes the sides' registers to be different ones. Inside an expression they need not be: each side reads what
was written before the & and by itself, never what the other side writes, and what follows reads the latest of either
(the judge's reading). So a register that one side reads and the other writes gets a second name on the reading side,
which writes both names. A side that may read such a register before writing it would need its contents from before
copied, which no transition can do: that is refused. Theorem 34 is `product(from_empty(one), from_empty(two))`, which
never is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from cerite.automaton.srt.epsilon import eliminate_epsilon
from cerite.automaton.srt.explore import MOST, Step, explore
from cerite.automaton.srt.flow import surely_written
from cerite.automaton.srt.minterms import possible
from cerite.automaton.srt.transducer import Registers, Transducer
from cerite.errors import PatternError, listed


def product(first: Transducer, second: Transducer, *, limit: int = MOST) -> Transducer:
    """Both at once."""
    plain = eliminate_epsilon(first).trim(), eliminate_epsilon(second).trim()
    one = _own_names(plain[0], plain[1], first.registers | second.registers)
    two = _own_names(plain[1], plain[0], one.registers | second.registers)

    def steps(state: tuple[int, int]) -> Iterator[Step[tuple[int, int]]]:
        for left in one.leaving[state[0]]:
            for right in two.leaving[state[1]]:
                assert left.condition is not None
                assert right.condition is not None
                condition = left.condition & right.condition
                if left.output == right.output and possible(condition):
                    yield Step(condition, left.output, left.writes | right.writes, (left.target, right.target))

    def is_final(state: tuple[int, int]) -> bool:
        return state[0] in one.finals and state[1] in two.finals

    registers = one.registers | two.registers
    return explore((one.start, two.start), steps, is_final, registers, what="the intersection", limit=limit).trim()


def fresh(name: str, taken: Registers) -> str:
    """The name, with primes until it is free.

    >>> fresh("r", frozenset({"r", "r'"}))
    "r''"
    """
    while name in taken:
        name += "'"
    return name


def _own_names(side: Transducer, other: Transducer, taken: Registers) -> Transducer:
    """The side with second names for the registers it reads and the other side writes."""
    shared = side.read & other.written
    known = surely_written(side)
    unsure = frozenset(name for step in side.transitions for name in step.reads & shared - known[step.source])
    if unsure:
        raise PatternError(
            f"one side of & may read {listed(unsure)} before writing it, while the other side writes it",
            hint="store under different names in the two sides",
        )
    names = {name: fresh(name, taken) for name in sorted(shared)}
    transitions = tuple(
        replace(
            step,
            condition=step.condition.renamed(names) if step.condition else None,
            writes=step.writes | {names[name] for name in step.writes & shared},
        )
        for step in side.transitions
    )
    return replace(side, registers=taken | side.registers | frozenset(names.values()), transitions=transitions)
