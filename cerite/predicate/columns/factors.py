"""How a list of conditions is evaluated on batches: which parts of which condition are looked up, which are computed.

Each condition's formula is a conjunction of factors. A factor that reads one column with codes (strings, dictionaries)
goes into that column's table of masks; the others are computed on the events. Inside those, the largest parts that
read one column with codes are `leaves`: looked up as well, one flag per code.

Invariant: condition c holds where bit c of `start` is set, all of c's factors in `masks` hold, and so do all
factors in `computed` whose users include c.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from cerite.predicate.formula import All, Formula, Formulas, attributes, parts


@dataclass(frozen=True)
class Factors:
    """What is evaluated, and for which conditions: these by number, sets of them as the bits of an integer."""

    start: int
    masks: dict[str, list[tuple[int, Formula]]] = field(default_factory=dict)
    leaves: dict[str, list[Formula]] = field(default_factory=dict)
    computed: list[tuple[int, list[Formula]]] = field(default_factory=list)  # users, and the factors they share

    @property
    def coded(self) -> tuple[str, ...]:
        """The columns whose codes are needed."""
        return tuple(dict.fromkeys((*self.masks, *self.leaves)))


def factored(conditions: Sequence[Formula], formulas: Formulas, with_codes: frozenset[str]) -> Factors:
    """The factors of these conditions, given the columns that have codes."""
    factors = Factors(sum((condition is not False) << number for number, condition in enumerate(conditions)))
    users: dict[Formula, int] = {}
    for number, condition in enumerate(conditions):
        for factor in condition.parts if isinstance(condition, All) else (condition,):
            home = _home(factor, with_codes)
            if home is not None:
                factors.masks.setdefault(home, []).append((number, factor))
            elif not isinstance(factor, bool):
                users[factor] = users.get(factor, 0) | 1 << number
    shared: dict[int, list[Formula]] = {}
    for factor, needed in users.items():
        grouped = formulas.grouped(factor, lambda part: _home(part, with_codes))
        shared.setdefault(needed, []).append(grouped)
        _collect_leaves(grouped, with_codes, factors.leaves)
    factors.computed.extend(shared.items())
    return factors


def _home(formula: Formula, with_codes: frozenset[str]) -> str | None:
    """The one column with codes that the formula reads, if it reads nothing else."""
    read = attributes(formula)
    return next(iter(read)) if len(read) == 1 and read <= with_codes else None


def _collect_leaves(formula: Formula, with_codes: frozenset[str], leaves: dict[str, list[Formula]]) -> None:
    home = _home(formula, with_codes)
    if home is None:
        for part in parts(formula):
            _collect_leaves(part, with_codes, leaves)
    elif formula not in leaves.setdefault(home, []):
        leaves[home].append(formula)
