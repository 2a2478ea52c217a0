"""SREMO's ⟲ and @ by rewriting (SRT report, definitions 44 and 45).

⟲(e1, e2) is e1 · (⊤↑⊗)* · e2. @(e1, e2) is e1 · g · e2 with a gap g in which no e2 occurs. The report prints g as
(!e2)*, but !e2 also holds of any longer stretch that merely contains an e2; its prose ("between instances of e1 and
e2, no other instance of e2 may occur") is what is meant: g = !(⊤* · e2 · ⊤*), and for a single event the logical
negation (¬e2 ↑ ⊗)*, which needs no window. Applied to one iteration, both put the gap between its repetitions.
"""

from __future__ import annotations

from collections.abc import Callable

from cerite.pattern import nodes

PASS = nodes.Event(None, output=False)
PASS_ANY = nodes.Iteration(PASS, 0, None, contiguous=True)


def expand_skips(pattern: nodes.Pattern) -> nodes.Pattern:
    """Every ⟲ and @ as contiguous concatenation.

    >>> from cerite.language.ceql import parse_pattern
    >>> print(expand_skips(parse_pattern("SKIP_ANY(A, B)")))
    A : (SKIP _):* : B
    >>> print(expand_skips(parse_pattern("SKIP_NEXT(A, B)")))
    A : (SKIP _ AND COMPLEMENT(B)):* : B
    """

    def change(node: nodes.Pattern) -> nodes.Pattern:
        if isinstance(node, nodes.SkipAny):
            return _joined(node.parts, lambda _: PASS_ANY)
        return _joined(node.parts, gap_without) if isinstance(node, nodes.SkipNext) else node

    return nodes.transform(pattern, change)


def gap_without(pattern: nodes.Pattern) -> nodes.Pattern:
    """Any stretch, marked nowhere, in which the pattern does not occur."""
    if isinstance(pattern, nodes.Event):
        return nodes.Iteration(nodes.Intersection((PASS, nodes.Complement(pattern))), 0, None, contiguous=True)
    return nodes.Complement(nodes.Concat((PASS_ANY, pattern, PASS_ANY)))


def _joined(parts: tuple[nodes.Pattern, ...], gap: Callable[[nodes.Pattern], nodes.Pattern]) -> nodes.Pattern:
    if len(parts) == 1:
        return _iterated(parts[0], gap)
    pieces = [parts[0]]
    for part in parts[1:]:
        pieces += [gap(part), part]
    return nodes.Concat(tuple(pieces))


def _iterated(part: nodes.Pattern, gap: Callable[[nodes.Pattern], nodes.Pattern]) -> nodes.Pattern:
    """⟲(e{n,m}): e, then n-1 to m-1 times the gap and e."""
    if not isinstance(part, nodes.Iteration) or not part.contiguous or part.most == 1:
        return part
    most = None if part.most is None else part.most - 1
    again = nodes.Iteration(
        nodes.Concat((gap(part.operand), part.operand)), max(part.least - 1, 0), most, contiguous=True
    )
    once = nodes.Concat((part.operand, again))
    return once if part.least else nodes.Iteration(once, 0, 1, contiguous=True)
