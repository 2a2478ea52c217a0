"""ε-elimination (SRT report, algorithm 2 and lemma 29).

A state of the result is the set of states that a run may be in, closed under ε. The algorithm as printed joins all
transitions of the same condition and output and gathers their write registers. Runs of ϕ ↑ • ↓ r and ϕ ↑ • ↓ s would
then both write r and s, and one that still reads the older s would be wrong. By definition 23 a transition writes
its own W and nothing else, so here only transitions of the same condition, output and write registers are joined.

Invariant: all states in a set are reached with the same registers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cerite.reference.srt.explore import MOST, Step, explore
from cerite.reference.srt.transducer import Registers, Transducer
from cerite.reference.srt.transition_conditions import Condition

States = frozenset[int]


def eliminate_epsilon(transducer: Transducer, *, limit: int = MOST) -> Transducer:
    """The same matches without ε-transitions.

    >>> from cerite.reference.srt.build import build
    >>> from cerite.language.sremo import parse_sremo
    >>> print(eliminate_epsilon(build(parse_sremo("(A^o + B^o) . C^o"))))
    state         reads  marks  goes to
    ------------  -----  -----  -------
    q0     start  A      •      q1
                  B      •      q1
    q1            C      •      q2
    q2     final  -      -      -
    """
    if not transducer.has_epsilon:
        return transducer
    leaving = transducer.leaving

    def enclose(states: Iterable[int]) -> States:
        closed = set(states)
        todo = list(closed)
        while todo:
            for step in leaving[todo.pop()]:
                if step.condition is None and step.target not in closed:
                    closed.add(step.target)
                    todo.append(step.target)
        return frozenset(state for state in closed if state in transducer.finals or _reads_on(state))

    def _reads_on(state: int) -> bool:
        return any(step.condition is not None for step in leaving[state])

    def steps(states: States) -> Iterator[Step[States]]:
        targets: dict[tuple[Condition, bool, Registers], set[int]] = {}
        for state in sorted(states):
            for step in leaving[state]:
                if step.condition is not None:
                    targets.setdefault((step.condition, step.output, step.writes), set()).add(step.target)
        for (condition, output, writes), reached in targets.items():
            yield Step(condition, output, writes, enclose(reached))

    def is_final(states: States) -> bool:
        return bool(states & transducer.finals)

    start = enclose((transducer.start,))
    return explore(start, steps, is_final, transducer.registers, what="ε-elimination", limit=limit)
