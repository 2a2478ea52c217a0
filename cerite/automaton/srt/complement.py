"""!e: the complement of a language (SRT report, algorithm 8, corollary 43; theorem 35 says why it needs a window).

Determinise, complete, and let the final states be the others. Minterms cover every event, so the determinised
transducer is complete as it is and the dead state of lines 2-17 is its empty set. Line 20 prints Q \\ Qf without the
dead state, but the text ("all of its non-final states final") and the corollary want it final, and so it is here.

The result marks nothing. Inside an expression it must also leave the registers alone: `build` unrolls what reads what
it stores, so that it writes copies; what does not read what it stores writes nothing any more.
"""

from __future__ import annotations

from dataclasses import replace

from cerite.automaton.srt.determinise import determinise
from cerite.automaton.srt.explore import MOST
from cerite.automaton.srt.transducer import Transducer


def complement(transducer: Transducer, *, limit: int = MOST) -> Transducer:
    """The strings that the transducer does not accept."""
    whole = determinise(transducer, limit=limit)
    return replace(whole, finals=frozenset(range(whole.n_states)) - whole.finals)
