"""e1 · e2 (SRT report, appendix A.2, figure 11d; theorem 31).

ε leads from the final states of each part to the start of the next. Parts share registers by name: a later part reads
what an earlier one wrote, as definition 17 (4) has it for expressions. Theorem 31 is about transducers that each start
with empty registers (definition 30): for those write `concat(one, from_empty(two))`.
"""

from __future__ import annotations

from itertools import chain, pairwise

from cerite.automaton.srt.transducer import Transducer, epsilon, side_by_side


def concat(first: Transducer, *others: Transducer) -> Transducer:
    """One part after the other."""
    moved = side_by_side((first, *others))
    joints = (epsilon(state, two.start) for one, two in pairwise(moved) for state in sorted(one.finals))
    transitions = chain(joints, *(part.transitions for part in moved))
    registers = frozenset().union(*(part.registers for part in moved))
    return Transducer(moved[-1].n_states, moved[0].start, moved[-1].finals, registers, tuple(transitions))
