"""The constructions of the SRT report's appendix: transducers from transducers, one for every operator of SREMO."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, pairwise

from cerite.core.errors import PatternError, listed
from cerite.reference.semantics.short_stream import Stream
from cerite.reference.srt.epsilon import eliminate_epsilon
from cerite.reference.srt.explore import MOST, Step, explore
from cerite.reference.srt.flow import surely_written
from cerite.reference.srt.runs import Positions, reached
from cerite.reference.srt.transducer import NO_REGISTERS, Registers, Transducer, Transition, epsilon, side_by_side
from cerite.reference.srt.transition_conditions import TOP, Condition, possible

# The base cases of SREMO → SRT: ∅, ε and ϕ ↑ o ↓ W (SRT report, appendix A.2, figures 11a-c).


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


# e1 + e2 (SRT report, appendix A.2, figure 11e; theorem 31).
#
# A new start leads to the parts by ε, the parts lead to a new final state. Runs of different parts never meet, so it
# does not matter whether the parts share registers.


def union(*parts: Transducer) -> Transducer:
    """Match(T, S) = Match(T1, S) ∪ Match(T2, S) ∪ …"""
    start, final = 0, 1
    moved = side_by_side(parts, first=2)
    joints = chain(
        (epsilon(start, part.start) for part in moved),
        (epsilon(state, final) for part in moved for state in sorted(part.finals)),
    )
    transitions = chain(joints, *(part.transitions for part in moved))
    registers = frozenset().union(*(part.registers for part in moved))
    return Transducer(moved[-1].n_states if moved else 2, start, frozenset((final,)), registers, tuple(transitions))


# e1 · e2 (SRT report, appendix A.2, figure 11d; theorem 31).
#
# ε leads from the final states of each part to the start of the next. Parts share registers by name: a later part
# reads what an earlier one wrote, as definition 17 (4) has it for expressions. Theorem 31 is about transducers that
# each start with empty registers (definition 30): for those write `concat(one, from_empty(two))`.


def concat(first: Transducer, *others: Transducer) -> Transducer:
    """One part after the other."""
    moved = side_by_side((first, *others))
    joints = (epsilon(state, two.start) for one, two in pairwise(moved) for state in sorted(one.finals))
    transitions = chain(joints, *(part.transitions for part in moved))
    registers = frozenset().union(*(part.registers for part in moved))
    return Transducer(moved[-1].n_states, moved[0].start, moved[-1].finals, registers, tuple(transitions))


# e* (SRT report, appendix A.2, figure 11f; theorem 31).
#
# A repetition reads what the ones before it wrote, as definition 17 (6) has it for expressions. Theorem 31 is about
# repetitions that each start with empty registers (definition 30). The report uses figure 11f for both, but its loop
# hands the registers on; for theorem 31 write `star(from_empty(t))`.


def star(repeated: Transducer) -> Transducer:
    """Any number of repetitions, one right after the other."""
    start, final = 0, 1
    (part,) = side_by_side((repeated,), first=2)
    joints = [epsilon(start, part.start), epsilon(start, final)]
    for state in sorted(part.finals):
        joints += [epsilon(state, part.start), epsilon(state, final)]
    transitions = tuple(dict.fromkeys(chain(joints, part.transitions)))
    return Transducer(part.n_states, start, frozenset((final,)), part.registers, transitions)


# e1 & e2: the product (SRT report, theorem 34, appendix A.4).
#
# Both sides read the same events and must mark the same ones. The report prints the output of a pair of transitions
# as "• if both are •, otherwise ⊗", which reports a match of neither side where one marks and the other does not;
# definition 33 wants Match(T1, S) ∩ Match(T2, S), so only transitions of equal output are paired.
#
# The report takes the sides' registers to be different ones. Inside an expression they need not be: each side reads
# what was written before the & and by itself, never what the other side writes, and what follows reads the latest of
# either (the judge's reading). So a register that one side reads and the other writes gets a second name on the
# reading side, which writes both names. A side that may read such a register before writing it would need its
# contents from before copied, which no transition can do: that is refused. Theorem 34 is `product(from_empty(one),
# from_empty(two))`, which never is.


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


# e[1..w]: windows that count events (SRT report, definition 39), exactly and without unrolling.
#
# A state of the result also counts the events since the first marked one: 0 as long as none is, w + 1 once the window
# is over, after which nothing may be marked. So max(M) − min(M) + 1 ≤ w for every match M, and a match that marks
# nothing is always inside. Registers and conditions stay as they are.


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


# Streaming transducers and what they detect (SRT report, definition 32).
#
# ⊤* · e passes over any number of events, so that a stretch S_m..k is in the language of e exactly if the prefix
# S_1..k is in that of ⊤* · e, with the same marks.


def streaming(transducer: Transducer) -> Transducer:
    """The sSRT: recognition may begin at every event."""
    return eliminate_epsilon(concat(star(terminal()), transducer))


def detected(transducer: Transducer, stream: Stream) -> set[Positions]:
    """Every match in the stream that is complete at the event it marks last (definition 24).

    >>> from cerite.reference.srt.build import build
    >>> from cerite.language.sremo import parse_sremo
    >>> stream = Stream.of({"type": each} for each in "abcabc")
    >>> sorted(map(sorted, detected(build(parse_sremo("a^o . b^o")), stream)))
    [[0, 1], [3, 4]]
    """
    anywhere = streaming(transducer)
    return {
        each.marked
        for each in reached(anywhere, stream)
        if each.just_marked and each.configuration.state in anywhere.finals
    }
