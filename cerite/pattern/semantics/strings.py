"""SREMO on a whole string, before streaming: Match(e, S) of the SRT report's definition 18."""

from __future__ import annotations

from cerite.pattern.base import Pattern
from cerite.pattern.references import resolve
from cerite.pattern.semantics.patterns import Evaluator
from cerite.pattern.semantics.stream import Stream


def string_matches(pattern: Pattern, string: Stream) -> set[frozenset[int]]:
    """The sets of positions that some way of consuming the whole string, first event to last, marks.

    >>> from cerite.language.sremo import parse_sremo
    >>> string_matches(parse_sremo("A^o . (true^x)*"), Stream.of([{"type": "A"}, {"type": "B"}]))
    {frozenset({0})}
    """
    last = len(string.events) - 1
    found = Evaluator(string).all(resolve(pattern))
    whole = (each for each in found if (each.is_empty if last < 0 else (each.lo, each.hi) == (0, last)))
    return {frozenset(string.events[rank].position for rank in each.positions) for each in whole}
