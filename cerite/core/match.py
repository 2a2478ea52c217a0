"""A match: an interval of the stream, and the positions bound to each variable (CORE, section 2.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cerite.core.errors import StreamError

Fetch = Callable[["Match", "str | None"], list[dict[str, Any]]]  # the events of a match, or of one of its variables


@dataclass(frozen=True, slots=True, order=True)
class Match:
    """`([start, end], bindings)`; `bindings` is empty under the complex-events semantics.

    `match["x"]` are the events of the variable x, and so is `match.x` unless a match has an attribute of that name;
    `match["low"]` and `match.low` are the measure of that name, if SELECT has one.

    >>> Match.of(1, 8, [("x", 1), ("y", 8)])
    Match(start=1, end=8, positions=(1, 8), bindings=(('x', (1,)), ('y', (8,))))
    """

    start: int
    end: int
    positions: tuple[int, ...]
    bindings: tuple[tuple[str, tuple[int, ...]], ...] = ()
    measures: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False, kw_only=True)
    """What SELECT measures, by name."""
    fetch: Fetch | None = field(default=None, compare=False, repr=False, kw_only=True)

    @staticmethod
    def of(start: int, end: int, bound: Iterable[tuple[str, int]]) -> Match:
        """The match that binds these (variable, position) pairs."""
        bindings: dict[str, set[int]] = {}
        for variable, position in bound:
            bindings.setdefault(variable, set()).add(position)
        positions = tuple(sorted(set().union(*bindings.values())))
        return Match(start, end, positions, tuple((name, tuple(sorted(bindings[name]))) for name in sorted(bindings)))

    @property
    def variables(self) -> Mapping[str, tuple[int, ...]]:
        """The bindings as a mapping."""
        return dict(self.bindings)

    @property
    def events(self) -> list[dict[str, Any]]:
        """The rows at `positions`, read from the match's data, with the attributes that SELECT shows."""
        return self._fetched(None)

    def __getitem__(self, name: str) -> Any:
        """A measure, or the events bound to a variable in the order of the stream; none if this match binds none."""
        return self.measures[name] if name in self.measures else self._fetched(name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in type(self).__slots__:  # what copying and pickling look up, never a variable
            raise AttributeError(name)
        try:
            return self[name]
        except (KeyError, StreamError) as error:
            raise AttributeError(str(error)) from None

    def _fetched(self, variable: str | None) -> list[dict[str, Any]]:
        if self.fetch is None:
            raise StreamError("this match does not know its data", hint="run the query on a table")
        return self.fetch(self, variable)

    def without_bindings(self) -> Match:
        """The complex event of this valuation: variables forgotten."""
        return Match(self.start, self.end, self.positions)

    def __str__(self) -> str:
        shown = ", ".join(f"{name}={','.join(map(str, positions))}" for name, positions in self.bindings)
        if self.measures:
            shown = ", ".join(f"{name}={value}" for name, value in self.measures.items())
        return f"[{self.start},{self.end}] " + (shown or "{" + ",".join(map(str, self.positions)) + "}")
