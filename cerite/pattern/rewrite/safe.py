"""Safe formulas: theorem 2 of ICDT 2019, as a check and as a rewriting.

In that paper a variable holds one event, so `T AS x ; T AS x` has no match; a formula is *safe* if no sequence binds
a variable on both sides outside iterations. Cerite's variables hold sets of events and such a pattern has its
natural meaning, so `unsafe_variables` only warns; `make_safe` rewrites a core formula under the paper's reading: the
alternatives that bind a variable twice are dropped, because there they match nothing.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from cerite.core.errors import PatternError
from cerite.pattern import nodes
from cerite.pattern.nodes import ANY_TYPE

Alternative = tuple[nodes.Pattern, frozenset[str]]  # a formula without OR at its top, and its vdef+
MOST_ALTERNATIVES = 4096


def unsafe_variables(pattern: nodes.Pattern) -> frozenset[str]:
    """Variables that a sequence names on both sides, outside iterations.

    >>> from cerite.language.ceql import parse_pattern
    >>> sorted(unsafe_variables(parse_pattern("T AS x ; (T AS x OR H AS y) ; (T AS y)+")))
    ['x']
    """
    unsafe = frozenset().union(*map(unsafe_variables, pattern.children))
    if isinstance(pattern, (nodes.Sequence, nodes.Concat)):
        seen: frozenset[str] = frozenset()
        for part in pattern.parts:
            unsafe |= seen & named_outside_iterations(part)
            seen |= named_outside_iterations(part)
    return unsafe


def named_outside_iterations(pattern: nodes.Pattern) -> frozenset[str]:
    """vdef+: the variables given by AS outside every iteration."""
    if isinstance(pattern, nodes.Iteration):
        return frozenset()
    parts = pattern.parts if isinstance(pattern, nodes.Sequence) else pattern.children
    names = frozenset().union(*map(named_outside_iterations, parts))
    return names | {pattern.variable} if isinstance(pattern, nodes.Named) else names


def is_safe(pattern: nodes.Pattern) -> bool:
    """Whether the formula is safe in the sense of ICDT 2019, section 5."""
    return not unsafe_variables(pattern)


def make_safe(pattern: nodes.Pattern) -> nodes.Pattern:
    """An equivalent safe formula, for core formulas (`R AS x`, FILTER, OR, `;`, `+`) under the single-event reading.

    >>> from cerite.language.ceql import parse_pattern
    >>> print(make_safe(parse_pattern("T AS x ; (T AS x OR H AS y)")))
    T AS x ; H AS y
    >>> print(make_safe(parse_pattern("T AS x ; T AS x")))
    NOTHING
    """
    alternatives = [alternative for alternative, _ in _alternatives(pattern)]
    if not alternatives:
        return nodes.Nothing()
    return alternatives[0] if len(alternatives) == 1 else nodes.Union(tuple(alternatives))


def _alternatives(node: nodes.Pattern) -> list[Alternative]:
    match node:
        case nodes.Named(operand=nodes.Event() as event) if event.output and event.type is not None:
            return [(node, frozenset((node.variable,)))]
        case nodes.Filter(operand=operand):
            return [(replace(node, operand=each), defined) for each, defined in _alternatives(operand)]
        case nodes.Union(parts=parts):
            return [each for part in parts for each in _alternatives(part)]
        case nodes.Sequence(parts=parts) if not node.negated:
            return _sequences([_alternatives(part) for part in parts])
        case nodes.Iteration(operand=operand, least=1, most=None, contiguous=False):
            body = make_safe(operand)
            return [] if isinstance(body, nodes.Nothing) else [(replace(node, operand=body), frozenset())]
    raise PatternError(
        f"`{node}` is not core CEL, so theorem 2 does not apply to it", span=node.span,
        hint=f"core formulas are built from `R AS x` (not `{ANY_TYPE}`), FILTER, OR, `;` and `+`",
    )  # fmt: skip


def _sequences(choices: list[list[Alternative]]) -> list[Alternative]:
    sequences: list[Alternative] = []
    for chosen in product(*choices):
        defined = [variables for _, variables in chosen]
        together = frozenset().union(*defined)
        if len(together) == sum(map(len, defined)):
            sequences.append((nodes.Sequence(tuple(each for each, _ in chosen)), together))
        if len(sequences) > MOST_ALTERNATIVES:
            raise PatternError(f"the safe formula has more than {MOST_ALTERNATIVES} alternatives")
    return sequences
