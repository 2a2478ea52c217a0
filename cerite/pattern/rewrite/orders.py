"""`PERMUTE(φ, ψ)` is `φ ; ψ OR ψ ; φ` (SRT report, section 5: conjunction in any order)."""

from __future__ import annotations

from itertools import permutations

from cerite.core.errors import PatternError
from cerite.pattern.nodes import Pattern, Permute, Sequence, Union, transform

MOST_PARTS = 7


def expand_permute(pattern: Pattern) -> Pattern:
    """Every PERMUTE as the disjunction of its sequences.

    >>> from cerite.language.ceql import parse_pattern
    >>> print(expand_permute(parse_pattern("PERMUTE(A, B)")))
    A ; B OR B ; A
    """
    return transform(pattern, lambda node: _orders(node) if isinstance(node, Permute) else node)


def _orders(node: Permute) -> Pattern:
    if len(node.parts) > MOST_PARTS:
        raise PatternError(
            f"PERMUTE of {len(node.parts)} patterns has too many orders; at most {MOST_PARTS} are allowed",
            span=node.span,
        )
    if len(node.parts) == 1:
        return node.parts[0]
    return Union(tuple(Sequence(order, span=node.span) for order in permutations(node.parts)), span=node.span)
