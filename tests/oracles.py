"""Independent definitions that tests compare against.

`icdt_matches` is core-CEL exactly as ICDT 2019, section 3, writes it: a valuation gives every variable ONE position,
and C ∈ ⟦φ⟧(S, ν). It shares nothing with `cerite.reference.semantics`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise, product
from typing import Any

from cerite.pattern import Event, Filter, Iteration, Named, Nothing, Pattern, Sequence, Union
from cerite.pattern.rewrite.safe import named_outside_iterations
from cerite.predicate.evaluate import holds
from cerite.predicate.expression import Reference

Rows = list[dict[str, Any]]
Valuation = Mapping[str, int]


def icdt_matches(pattern: Pattern, rows: Rows) -> set[frozenset[int]]:
    """⟦φ⟧(S): the complex events that some single-valued valuation gives."""
    outside = sorted(named_outside_iterations(pattern))
    sets: set[frozenset[int]] = set()
    for positions in product(range(len(rows)), repeat=len(outside)):
        sets |= _evaluate(pattern, rows, dict(zip(outside, positions, strict=True)))
    return sets


def _evaluate(node: Pattern, rows: Rows, nu: Valuation) -> set[frozenset[int]]:
    match node:
        case Named(operand=Event(type=kind), variable=variable):
            position = nu[variable]
            return {frozenset((position,))} if rows[position]["type"] == kind else set()
        case Filter(operand=operand, conditions=conditions):

            def lookup(reference: Reference) -> Mapping[str, Any] | None:
                return rows[nu[reference.variable]] if reference.variable in nu else None

            allowed = all(on.variable in nu and holds(on.condition, rows[nu[on.variable]], lookup) for on in conditions)
            return _evaluate(operand, rows, nu) if allowed else set()
        case Union(parts=parts):
            return set().union(*(_evaluate(part, rows, nu) for part in parts))
        case Sequence(parts=parts):
            return set(_joined([_evaluate(part, rows, nu) for part in parts]))
        case Iteration(operand=operand):
            return _iterated(operand, rows, nu)
        case Nothing():
            return set()
    raise TypeError(f"not core CEL: {node}")


def _joined(choices: list[set[frozenset[int]]]) -> Iterator[frozenset[int]]:
    for chosen in product(*choices):
        if all(max(one) < min(two) for one, two in pairwise(chosen)):
            yield frozenset().union(*chosen)


def _iterated(operand: Pattern, rows: Rows, nu: Valuation) -> set[frozenset[int]]:
    own = sorted(named_outside_iterations(operand))
    once: set[frozenset[int]] = set()
    for positions in product(range(len(rows)), repeat=len(own)):
        once |= _evaluate(operand, rows, {**nu, **dict(zip(own, positions, strict=True))})
    sets, current = set(once), set(once)
    while current:
        current = set(_joined([current, once])) - sets
        sets |= current
    return sets
