"""e1 + e2 (SRT report, appendix A.2, figure 11e; theorem 31).

A new start leads to the parts by ε, the parts lead to a new final state. Runs of different parts never meet, so it does
not matter whether the parts share registers.
"""

from __future__ import annotations

from itertools import chain

from cerite.automaton.srt.transducer import Transducer, epsilon, side_by_side


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
