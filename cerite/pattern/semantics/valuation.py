"""Valuations: what one way of matching a pattern did (CORE, section 2.2; SRT report, definition 17).

A valuation has consumed the events of ranks `lo`..`hi`, marked those from `start` to `end` (the first and last
marked, before any projection), bound variables to positions and perhaps stored events that it did not mark. For CEL
all consumed ends are marked, so the two intervals agree; SREMO may pass over events at either end.
`EMPTY` has consumed nothing and is neutral in every sequence.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

Pairs = frozenset[tuple[str, int]]  # (variable, rank)
_NO_PAIRS: Pairs = frozenset()


@dataclass(frozen=True, slots=True)
class Valuation:
    """Ranks are positions in the (sub)stream the pattern is evaluated on."""

    lo: int
    hi: int
    start: int | None = None
    end: int | None = None
    bindings: Pairs = _NO_PAIRS
    stores: Pairs = _NO_PAIRS

    @property
    def is_empty(self) -> bool:
        """Whether nothing was consumed."""
        return self.hi < self.lo

    @property
    def positions(self) -> frozenset[int]:
        """The ranks that some variable holds."""
        return frozenset(rank for _, rank in self.bindings)

    @property
    def registers(self) -> Pairs:
        """What a later condition can read: bound or stored."""
        return self.bindings | self.stores

    def then(self, other: Valuation) -> Valuation:
        """This one followed by another."""
        if self.is_empty or other.is_empty:
            return other if self.is_empty else self
        return self._merged(other, self.lo, other.hi)

    def beside(self, other: Valuation) -> Valuation:
        """Both on the same events (intersection)."""
        return self._merged(other, self.lo, self.hi)

    def _merged(self, other: Valuation, lo: int, hi: int) -> Valuation:
        starts = [each for each in (self.start, other.start) if each is not None]
        ends = [each for each in (self.end, other.end) if each is not None]
        return Valuation(
            lo, hi, min(starts, default=None), max(ends, default=None),
            self.bindings | other.bindings, self.stores | other.stores,
        )  # fmt: skip

    def named(self, variable: str) -> Valuation:
        """Every position also bound to the variable."""
        return replace(self, bindings=self.bindings | {(variable, rank) for rank in self.positions})

    def projected(self, variables: frozenset[str]) -> Valuation:
        """Other variables emptied and forgotten; the intervals stay."""
        kept = frozenset(pair for pair in self.bindings if pair[0] in variables)
        return replace(self, bindings=kept, stores=_NO_PAIRS)


EMPTY = Valuation(0, -1)
