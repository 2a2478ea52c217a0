"""Given only some events of a match that should have been: which other events of the stream would complete it.

Where the pattern needs an event that is not given, events of the stream that have its type and lie in that place are
tried, the nearest first, and fewer additions before more. Only types and order are looked at here; whether the added
events satisfy their conditions is then reported by `why_not`, for the best completion.

Invariant: a completion contains all events that are given, in one partition, and can be read as the pattern.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from cerite.api.why.scene import Ranks, Scene
from cerite.core.errors import BudgetError, StreamError
from cerite.pattern.nodes import Sequence, walk
from cerite.reference.semantics.derivations import Derivations
from cerite.reference.semantics.short_stream import Stream

MOST_TRIED = 150  # words that are read
MOST_NEAR = 30  # events that are tried in one place
MOST_LOOKED_AT = 20_000  # events that are looked at to find them


@dataclass(frozen=True, slots=True)
class Missing:
    """The pattern needs one of these types between two events, or before the first, or after the last."""

    word: Ranks
    at: int
    types: frozenset[str | None]
    needed: bool = True  # it is where reading ended; elsewhere one more may help

    @property
    def after(self) -> int | None:
        """The rank that it must come after."""
        return self.word[self.at - 1] if self.at else None

    @property
    def before(self) -> int | None:
        """The rank that it must come before."""
        return self.word[self.at] if self.at < len(self.word) else None


def read(scene: Scene, ranks: Ranks, first: int, last: int, restart: int) -> tuple[Derivations, Ranks]:
    """The part of the stream that decides about these events, ready to be read, and the ranks of its events."""
    begin = scene.begins(first, restart)
    stream = scene.stream(begin, scene.ends(last), first)
    numbers = tuple(scene.rank(event.position) for event in stream.events)
    places = {rank: place for place, rank in enumerate(numbers)}
    outside = next((rank for rank in ranks if rank not in places), None)
    if outside is not None:
        raise StreamError(f"row {scene.positions[outside]} is in another partition than row {scene.positions[first]}")
    looks_before = any(isinstance(node, Sequence) and node.before for node in walk(scene.pattern))
    past = scene.stream(0, begin, first) if looks_before and begin else Stream()
    return Derivations(stream, tuple(places[rank] for rank in ranks), past), numbers


def completions(scene: Scene, ranks: Ranks) -> tuple[list[Ranks], Missing | None]:
    """Words with these events that can be read, with fewest additions; or else the first place that lacks an event."""
    waiting, known, tried = deque([ranks]), {ranks}, 0
    complete, furthest = list[Ranks](), None
    while waiting and tried < MOST_TRIED:
        word = waiting.popleft()
        if complete and len(word) > len(complete[0]):
            break
        tried += 1
        derivations, _ = read(scene, word, word[0], word[-1], 0)
        try:
            if next(iter(derivations.of(scene.pattern, scene.query.within)), None) is not None:
                complete.append(word)
                continue
        except BudgetError:
            continue
        for missing in _missing(derivations, word):
            near = list(_near(scene, missing))
            if not near and missing.needed and furthest is None:
                furthest = missing
            longer = [tuple(sorted((*word, rank))) for rank in near]
            waiting.extend(each for each in longer if each not in known)
            known.update(longer)
    return complete, None if complete else furthest


def _missing(derivations: Derivations, word: Ranks) -> Iterator[Missing]:
    """What the pattern needs where reading ended, and then elsewhere; nothing if it has read all that it needs."""
    reached = derivations.reached
    if None not in reached.expected:
        for at in sorted(reached.types, reverse=True):
            yield Missing(word, at, frozenset(reached.types[at]), needed=at == reached.at)


def _near(scene: Scene, missing: Missing) -> Iterator[int]:
    """Events that could be the missing one: of its type, in its place, of the partition."""
    low = 0 if missing.after is None else missing.after + 1
    high = scene.rows if missing.before is None else missing.before
    backwards = missing.after is None
    looked = range(high - 1, low - 1, -1) if backwards else range(low, high)
    key = scene.key(missing.word[0]) if scene.query.partition else None
    given = 0
    for rank in looked[:MOST_LOOKED_AT]:
        kind = scene.kind(rank)
        if (None in missing.types or kind in missing.types) and (key is None or scene.key(rank) == key):
            yield rank
            given += 1
            if given == MOST_NEAR:
                return
