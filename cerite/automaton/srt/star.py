"""e* (SRT report, appendix A.2, figure 11f; theorem 31).

A repetition reads what the ones before it wrote, as definition 17 (6) has it for expressions. Theorem 31 is about
repetitions that each start with empty registers (definition 30). The report uses figure 11f for both, but its loop
hands the registers on; for theorem 31 write `star(from_empty(t))`.
"""

from __future__ import annotations

from itertools import chain

from cerite.automaton.srt.transducer import Transducer, epsilon, side_by_side


def star(repeated: Transducer) -> Transducer:
    """Any number of repetitions, one right after the other."""
    start, final = 0, 1
    (part,) = side_by_side((repeated,), first=2)
    joints = [epsilon(start, part.start), epsilon(start, final)]
    for state in sorted(part.finals):
        joints += [epsilon(state, part.start), epsilon(state, final)]
    transitions = tuple(dict.fromkeys(chain(joints, part.transitions)))
    return Transducer(part.n_states, start, frozenset((final,)), part.registers, transitions)
