"""Determinisation for MAX: only the markings that no other marking with the same start strictly contains accept.

Beside the states S of this marking, a dstate holds the states E of the markings of the same positions (under any
labels) and the states B of the markings of strictly more positions. B gains from E whenever this marking skips an event
that another marks. A match of this marking is maximal among those of its start iff some state of S and none of B is
final (docs/architecture.md, *Selection strategies*, after ICDT 2019, theorem 5). Starts are compared with each other at
the occurrence: see `maximal`.

Invariant: a dstate is the set S ∪ (E + n) ∪ (B + 2n), n the number of CEA states.
"""

from cerite.engine.determinise import Determinised


class MaxDeterminised(Determinised):
    """As `Determinised`, over triples."""

    def _first(self) -> frozenset[int]:
        return frozenset({self.automaton.initial, self.automaton.n_states + self.automaton.initial})

    def _reached(self, subset: frozenset[int], holds: int) -> dict[int, set[int]]:
        this, equal, more = (self._moves(part, holds) for part in self._parts(subset))
        n = self.automaton.n_states
        marked_equal, marked_more = _marked(equal), _marked(more)
        reached = {}
        for label, states in this.items():
            same = marked_equal if label else equal.get(0, set())
            larger = marked_more if label else marked_more | more.get(0, set()) | marked_equal
            reached[label] = states | {n + q for q in same} | {2 * n + q for q in larger}
        return reached

    def _accepts(self, subset: frozenset[int]) -> bool:
        this, _, more = self._parts(subset)
        return bool(this & self.automaton.finals) and not more & self.automaton.finals

    def _parts(self, subset: frozenset[int]) -> tuple[frozenset[int], frozenset[int], frozenset[int]]:
        n = self.automaton.n_states
        this, equal, more = (frozenset(q - k * n for q in subset if q // n == k) for k in range(3))
        return this, equal, more


def _marked(moves: dict[int, set[int]]) -> set[int]:
    return {q for label, states in moves.items() if label for q in states}
