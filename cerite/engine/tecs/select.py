"""NEXT and LAST (ICDT 2019, section 4) on the tECS, without enumerating the candidates.

Both orders compare sets of positions and do not change when the same later position joins both sets; so the best set
below a node follows from its children's: best(union) is the better of two, best(output) adds a position. It is
remembered per node, with the latest start that reaches it, and is valid as long as that start is in the window: a
window that moves on only takes other candidates away.

Sets are interned: number 0 is the empty set, set k is `before[k]` plus the later position `position[k]`; equal sets
have equal numbers; `sets[COUNT]` is how many there are. So the sets form a tree, and two of them first differ where
their paths part. A set may be as long as the stream; `size` and `jump` find that place without walking it (Myers'
skew-binary pointers: one ancestor besides `before`, chosen so that any is reached in logarithmic time).

Invariant: `best_set[n]` is the winner among the open matches of n with start >= low whenever `known`.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from cerite.core.arrays import Flags, Ints, Longs
from cerite.core.hashing import fold
from cerite.core.jit import inner, kernel
from cerite.engine.results.output import MatchChunk, concatenate
from cerite.engine.state.slots import doubled
from cerite.engine.tecs.nodes import BOTTOM, KIND, LEFT, MAX, OTHER, UNION, Roots

UNKNOWN = -1
COUNT = 0  # the only place of `sets`


class Chooser(NamedTuple):
    """What NEXT and LAST remember: the best sets of nodes, and the sets themselves."""

    last: bool
    best_set: Ints
    best_start: Longs
    stack: Ints
    table: Ints
    position: Longs
    before: Ints
    size: Ints
    jump: Ints
    sets: Longs


@inner
def known(n: int, low: int, chooser: Chooser) -> bool:
    """Whether what is remembered about a node is valid for this window."""
    return bool(chooser.best_set[n] != UNKNOWN and chooser.best_start[n] >= low)


@inner
def earlier(a: int, b: int, chooser: Chooser) -> bool:
    """Whether set a is above another set b for NEXT: it has the first position in which they differ."""
    size, jump, before = chooser.size, chooser.jump, chooser.before
    longer = size[a] > size[b]
    least = min(size[a], size[b])
    while size[a] > least:
        a = jump[a] if size[jump[a]] >= least else before[a]
    while size[b] > least:
        b = jump[b] if size[jump[b]] >= least else before[b]
    if a == b:
        return bool(longer)
    while before[a] != before[b]:
        if jump[a] != jump[b]:
            a, b = jump[a], jump[b]
        else:
            a, b = before[a], before[b]
    return bool(chooser.position[a] < chooser.position[b])


@inner
def later(a: int, b: int, chooser: Chooser) -> bool:
    """Whether set a is above another set b for LAST: it has the last position in which they differ."""
    position, before = chooser.position, chooser.before
    while a and b and position[a] == position[b]:
        a, b = before[a], before[b]
    return bool(a and (b == 0 or position[a] > position[b]))


@inner
def better(a: int, b: int, chooser: Chooser) -> bool:
    """Whether set a is strictly above another set b."""
    return later(a, b, chooser) if chooser.last else earlier(a, b, chooser)


@kernel
def intern(before: int, position: int, chooser: Chooser) -> int:
    """The number of the set `before` plus `position`; callers have ensured room."""
    mask = chooser.table.size - 1
    place = np.int64(fold(fold(np.uint64(0), np.uint64(before)), np.uint64(position))) & mask
    while chooser.table[place] > 0:
        k: int = chooser.table[place]
        if chooser.before[k] == before and chooser.position[k] == position:
            return k
        place = (place + 1) & mask
    k = int(chooser.sets[COUNT])
    chooser.table[place] = k
    chooser.before[k], chooser.position[k] = before, position
    size, jump = chooser.size, chooser.jump
    over = jump[before]
    size[k] = size[before] + 1
    jump[k] = jump[over] if size[before] - size[over] == size[over] - size[jump[over]] else before
    chooser.sets[COUNT] = k + 1
    return k


@kernel
def rehash(chooser: Chooser) -> None:
    """Enter every set into a fresh, larger table."""
    n = chooser.sets[COUNT]
    chooser.sets[COUNT] = 1
    for k in range(1, n):
        intern(chooser.before[k], chooser.position[k], chooser)


@inner
def evaluate(root: int, low: int, nodes: Longs, chooser: Chooser) -> bool:
    """Determine the best set of a node; False if there is no room for more sets, and then nothing is lost."""
    best_set, best_start, stack = chooser.best_set, chooser.best_start, chooser.stack
    stack[0] = root
    top = 0
    while top >= 0:
        n = stack[top]
        if known(n, low, chooser):
            top -= 1
            continue
        kind, left, other = nodes[n, KIND], nodes[n, LEFT], nodes[n, OTHER]
        if kind == BOTTOM:
            best_set[n], best_start[n] = 0, nodes[n, MAX]
        elif not known(left, low, chooser):
            top += 1
            stack[top] = left
            continue
        elif kind != UNION:
            if chooser.sets[COUNT] == chooser.before.size:
                return False
            best_set[n] = intern(best_set[left], other, chooser)
            best_start[n] = best_start[left]
        elif nodes[other, MAX] < low:
            best_set[n], best_start[n] = best_set[left], best_start[left]
        elif not known(other, low, chooser):
            top += 1
            stack[top] = other
            continue
        elif best_set[left] == best_set[other]:
            best_set[n], best_start[n] = best_set[left], max(best_start[left], best_start[other])
        else:
            chosen = left if better(best_set[left], best_set[other], chooser) else other
            best_set[n], best_start[n] = best_set[chosen], best_start[chosen]
        top -= 1
    return True


@inner
def choose(roots: Roots, begin: int, low: int, nodes: Longs, chooser: Chooser) -> int:
    """The best set among the roots of the event of root `begin`, or `UNKNOWN` when there is no room for more sets."""
    best = UNKNOWN
    for r in range(begin, roots.event.size):
        if roots.event[r] != roots.event[begin]:
            break
        if not evaluate(roots.node[r], low, nodes, chooser):
            return UNKNOWN
        candidate = chooser.best_set[roots.node[r]]
        if best == UNKNOWN or (candidate != best and better(candidate, best, chooser)):
            best = candidate
    return best


# The Python side of `choose`: what is remembered about the tECS's nodes, and its growth.
#
# Invariant: what is remembered belongs to node numbers, so compaction forgets all of it (`forget`).


FEWEST_SETS = 1 << 10  # room to begin with


class Selector:
    """What enumeration needs in order to walk only to the NEXT- or LAST-greatest sets; idle for other strategies."""

    def __init__(self, strategy: str) -> None:
        self.active = strategy in ("next", "last")
        self._last = strategy == "last"
        self.forget()

    def forget(self) -> None:
        """Forget everything, because node numbers change."""
        self._chooser = self._empty(0) if self.active else None

    def fit(self, nodes: int) -> None:
        """Make room for a tECS with room for `nodes` nodes."""
        if self._chooser is not None and self._chooser.best_set.size != nodes:
            self._chooser = self._empty(nodes)

    @property
    def chooser(self) -> Chooser | None:
        """What the kernel reads: None makes it one without selection."""
        return self._chooser

    def more_sets(self) -> None:
        """Make room for twice as many sets."""
        if self._chooser is not None:
            chooser = self._chooser
            self._chooser = chooser._replace(
                table=np.zeros(2 * chooser.table.size, np.int32), position=doubled(chooser.position),
                before=doubled(chooser.before), size=doubled(chooser.size), jump=doubled(chooser.jump),
            )  # fmt: skip
            rehash(self._chooser)

    def _empty(self, nodes: int) -> Chooser:
        room = FEWEST_SETS
        return Chooser(
            last=self._last, best_set=np.full(nodes, UNKNOWN, np.int32), best_start=np.zeros(nodes, np.int64),
            stack=np.zeros(nodes + 1, np.int32), table=np.zeros(4 * room, np.int32),
            position=np.zeros(room, np.int64), before=np.zeros(room, np.int32), size=np.zeros(room, np.int32),
            jump=np.zeros(room, np.int32), sets=np.ones(1, np.int64),
        )  # fmt: skip


# MAX (ICDT 2019, section 4): of the matches with one end, those whose set of positions no other one strictly contains.
#
# The candidates of one event, already maximal among the matches of their start (see `MaxDeterminised`), are
# enumerated and compared with larger ones.
#
# Invariant: chunks go in and come out by ascending end; an event's matches are judged together wherever chunks were
# cut.


@inner
def _within(positions: Longs, a: int, a_end: int, b: int, b_end: int) -> bool:
    while a < a_end:
        while b < b_end and positions[b] < positions[a]:
            b += 1
        if b == b_end or positions[b] != positions[a]:
            return False
        a += 1
        b += 1
    return True


@kernel
def _keep(ends: Longs, offsets: Longs, positions: Longs, by_length: Longs, maximal: Flags) -> None:
    """Mark the maximal sets; `by_length` orders matches by end, then longest first; a set excludes all it contains."""
    begin = 0
    for x in range(by_length.size):
        m = by_length[x]
        if ends[m] != ends[by_length[begin]]:
            begin = x
        size = offsets[m + 1] - offsets[m]
        maximal[m] = True
        for y in range(begin, x):
            o = by_length[y]
            if offsets[o + 1] - offsets[o] == size:
                break
            if maximal[o] and _within(positions, offsets[m], offsets[m + 1], offsets[o], offsets[o + 1]):
                maximal[m] = False
                break


def maximal(chunks: Iterator[MatchChunk], limit: int | None) -> Iterator[MatchChunk]:
    """The MAX-selected matches of a batch, at most `limit` for one event."""
    waiting: list[MatchChunk] = []
    for chunk in chunks:
        closed = int(np.searchsorted(chunk.ends, chunk.ends[-1]))
        if closed or (waiting and waiting[-1].ends[-1] != chunk.ends[-1]):
            yield _select(concatenate([*waiting, chunk.select(np.arange(closed))]), limit)
            waiting = []
        waiting.append(chunk.select(np.arange(closed, len(chunk))))
    if waiting:
        yield _select(concatenate(waiting), limit)


def _select(matches: MatchChunk, limit: int | None) -> MatchChunk:
    chosen = np.zeros(len(matches), np.bool_)
    order = np.lexsort((-np.diff(matches.offsets), matches.ends)).astype(np.int64)
    _keep(matches.ends, matches.offsets, matches.positions, order, chosen)
    which = np.flatnonzero(chosen)
    if limit is not None:
        ends = matches.ends[which]
        which = which[np.arange(which.size) - np.searchsorted(ends, ends) < limit]
    return matches.select(which)
