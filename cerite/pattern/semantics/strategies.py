"""Selection strategies by comparison of position sets (ICDT 2019, section 4).

The formula printed there for MAX is garbled; the prose and the examples mean: no strictly larger match has the same
end. All matches with a winning set are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

from cerite.pattern.selection import Strategy

T = TypeVar("T")
Positions = frozenset[int]


def selected(
    strategy: Strategy, matches: Iterable[T], end: Callable[[T], Hashable], positions: Callable[[T], Positions]
) -> list[T]:
    """The matches that win among those with the same end.

    >>> sets = [frozenset({1, 8}), frozenset({5, 8})]
    >>> [sorted(s) for s in selected(Strategy.LAST, sets, max, lambda s: s)]
    [[5, 8]]
    """
    groups: dict[Hashable, list[T]] = {}
    for match in matches:
        groups.setdefault(end(match), []).append(match)
    kept: list[T] = []
    for group in groups.values():
        sets = {positions(match) for match in group}
        winners = _WINNERS[strategy](sets)
        kept += [match for match in group if positions(match) in winners]
    return kept


def next_before(one: Positions, two: Positions) -> bool:
    """one ≤next two: equal, or the smallest position they differ in is in two."""
    return one == two or min(one ^ two) in two


def last_before(one: Positions, two: Positions) -> bool:
    """one ≤last two: equal, or the largest position they differ in is in two."""
    return one == two or max(one ^ two) in two


def is_interval(one: Positions) -> bool:
    """Whether the positions are consecutive."""
    return not one or max(one) - min(one) + 1 == len(one)


_WINNERS: dict[Strategy, Callable[[set[Positions]], set[Positions]]] = {
    Strategy.STRICT: lambda sets: {one for one in sets if is_interval(one)},
    Strategy.NEXT: lambda sets: {one for one in sets if all(next_before(two, one) for two in sets)},
    Strategy.LAST: lambda sets: {one for one in sets if all(last_before(two, one) for two in sets)},
    Strategy.MAX: lambda sets: {one for one in sets if not any(one < two for two in sets)},
}
