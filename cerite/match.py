"""A match: an interval of the stream, and the positions bound to each variable (CORE, section 2.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, order=True)
class Match:
    """`([start, end], bindings)`; `bindings` is empty under the complex-events semantics.

    >>> Match.of(1, 8, [("x", 1), ("y", 8)])
    Match(start=1, end=8, positions=(1, 8), bindings=(('x', (1,)), ('y', (8,))))
    """

    start: int
    end: int
    positions: tuple[int, ...]
    bindings: tuple[tuple[str, tuple[int, ...]], ...] = ()
    fetch: Callable[[Match], list[dict[str, Any]]] | None = field(default=None, compare=False, repr=False, kw_only=True)

    @staticmethod
    def of(start: int, end: int, bound: Iterable[tuple[str, int]]) -> Match:
        """The match that binds these (variable, position) pairs."""
        found: dict[str, set[int]] = {}
        for variable, position in bound:
            found.setdefault(variable, set()).add(position)
        positions = tuple(sorted(set().union(*found.values())))
        return Match(start, end, positions, tuple((name, tuple(sorted(found[name]))) for name in sorted(found)))

    @property
    def variables(self) -> Mapping[str, tuple[int, ...]]:
        """The bindings as a mapping."""
        return dict(self.bindings)

    @property
    def events(self) -> list[dict[str, Any]]:
        """The rows at `positions`, read from the data the match was found in, with the attributes that SELECT shows."""
        if self.fetch is None:
            raise ValueError("this match does not know the data it was found in")
        return self.fetch(self)

    def without_bindings(self) -> Match:
        """The complex event of this valuation: variables forgotten."""
        return Match(self.start, self.end, self.positions)

    def __str__(self) -> str:
        shown = ", ".join(f"{name}={','.join(map(str, positions))}" for name, positions in self.bindings)
        return f"[{self.start},{self.end}] " + (shown or "{" + ",".join(map(str, self.positions)) + "}")
