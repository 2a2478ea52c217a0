"""Which events of a batch matter, by the bits of their conditions: the others are dropped before any loop.

`automaton.relevance` says what can happen to a run at an event. Where runs wait in loops that every event fires, a look
at the event's bits tells whether it matters (`Masks`). With contiguity that depends on the event before it, too: then
all events are kept here, and the classes of events say more (`engine.subset.classes`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cerite.automaton.automaton import Automaton
from cerite.automaton.relevance import relevance, unconditional
from cerite.core.arrays import Buffers, Longs, Words
from cerite.core.jit import kernel


class Masks(NamedTuple):
    """An event matters if a bit of `when` is set, or one of `unless` is not; a word for each 64 conditions."""

    when: Words
    unless: Words


def masks_of(automaton: Automaton) -> Masks | None:
    """The bits of an automaton's conditions by which events matter to it; None if all may, as far as bits tell.

    >>> from cerite.engine.plan import plan
    >>> from cerite.language.ceql import parse_query
    >>> of = lambda text: masks_of(plan(parse_query(f"SELECT * FROM S WHERE {text}")).automaton)
    >>> of("A ; B").when, of("A : B")
    (array([3], dtype=uint64), None)
    """
    shape = relevance(automaton.trim())
    if unconditional(shape.moving) or not all(map(unconditional, shape.loops.values())):
        return None
    words = max(1, -(-len(automaton.conditions) // 64))
    moving = sum(1 << condition for condition in {each.condition for each in shape.moving})
    when = np.array([moving >> 64 * word & (1 << 64) - 1 for word in range(words)], np.uint64)
    return Masks(when, np.zeros(words, np.uint64))


def relevant_events(bits: Words, masks: Masks | None, buffers: Buffers) -> Longs:
    """The events that matter, rising; what is returned is overwritten by the next batch."""
    if masks is None:
        return buffers.steps("relevant", bits.shape[0])
    room = buffers.take("relevant", bits.shape[0] + 1, np.int64)
    return room[: relevant(bits, *masks, room)]


@kernel
def relevant(bits: Words, when: Words, unless: Words, selection: Longs) -> int:
    """Write the events that matter to `selection`; returns how many these are."""
    n = 0
    for i in range(bits.shape[0]):
        some = np.uint64(0)
        for w in range(bits.shape[1]):
            some |= (bits[i, w] & when[w]) | (~bits[i, w] & unless[w])
        selection[n] = i  # there is room for one more: no branch to predict
        n += int(some != 0)
    return n
