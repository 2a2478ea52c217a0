"""Determinisation by minterms (SRT report, algorithm 7, theorem 41; definitions 36 and 37).

A state of the result is a set of states of the unrolled transducer; from each, the minterms of all conditions tested
lead on, and a transition writes what all transitions it stands for write. Outputs are lost: the languages are the
same, not the matches.

Sets of runs share registers. That is right only if all runs agree about what a register holds, that is if it
is written at one depth (theorem 38). So a transducer that reads what it wrote is unrolled first, which needs an end to
its runs; one that does not needs no unrolling, and its writes are dropped.

Invariant: for every event and valuation exactly one transition leaves each state. The result is therefore already
complete: the empty set of states is the dead state of algorithm 8.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

from cerite.core.errors import PatternError, listed
from cerite.reference.srt.epsilon import eliminate_epsilon
from cerite.reference.srt.explore import MOST, Step, explore
from cerite.reference.srt.transducer import NO_REGISTERS, Transducer
from cerite.reference.srt.transition_conditions import entails, minterms, possible
from cerite.reference.srt.unroll import is_unrolled, longest_run, unroll


def determinise(transducer: Transducer, *, limit: int = MOST) -> Transducer:
    """A deterministic and complete transducer of the same language that marks nothing."""
    plain = _determinisable(eliminate_epsilon(transducer).trim(), limit)

    def steps(states: frozenset[int]) -> Iterator[Step[frozenset[int]]]:
        leaving = [step for state in sorted(states) for step in plain.leaving[state]]
        tests = {test for step in leaving if step.condition for test in step.condition.tests | step.condition.negated}
        for minterm in minterms(tests):
            taken = [step for step in leaving if step.condition and entails(minterm, step.condition)]
            writes = NO_REGISTERS.union(*(step.writes for step in taken))
            yield Step(minterm, False, writes, frozenset(step.target for step in taken))

    def is_final(states: frozenset[int]) -> bool:
        return bool(states & plain.finals)

    start = frozenset((plain.start,))
    return explore(start, steps, is_final, plain.registers, what="determinisation", limit=limit)


def is_deterministic(transducer: Transducer) -> bool:
    """Definition 36, as far as it shows in the conditions: no two transitions of a state can both be followed."""
    return not transducer.has_epsilon and not any(
        possible(one.condition & two.condition)
        for leaving in transducer.leaving.values()
        for one, two in combinations(leaving, 2)
        if one.condition is not None and two.condition is not None
    )


def _determinisable(plain: Transducer, limit: int) -> Transducer:
    remembered = plain.read & plain.written
    if not remembered:
        return replace(
            plain, transitions=tuple(dict.fromkeys(replace(s, writes=NO_REGISTERS) for s in plain.transitions))
        )
    if is_unrolled(plain):
        return plain
    length = longest_run(plain)
    if length is None:
        raise PatternError(
            f"a transducer that reads what it stores ({listed(remembered)}) and has loops has no deterministic form",
            hint="give the expression a window that bounds it: (…)[1..w], its first and last event marked (^o)",
        )
    return unroll(plain, length, limit=limit)


# !e: the complement of a language (SRT report, algorithm 8, corollary 43; theorem 35 says why it needs a window).
#
# Determinise, complete, and let the final states be the others. Minterms cover every event, so the determinised
# transducer is complete as it is and the dead state of lines 2-17 is its empty set. Line 20 prints Q \ Qf without the
# dead state, but the text ("all of its non-final states final") and the corollary want it final, and so it is here.
#
# The result marks nothing. Inside an expression it must also leave the registers alone: `build` unrolls what reads
# what it stores, so that it writes copies; what does not read what it stores writes nothing any more.


def complement(transducer: Transducer, *, limit: int = MOST) -> Transducer:
    """The strings that the transducer does not accept."""
    whole = determinise(transducer, limit=limit)
    return replace(whole, finals=frozenset(range(whole.n_states)) - whole.finals)
