"""Event classes: events whose conditions have the same truth values are the same to the automaton (CORE section 4.4).

An event is dropped before the loop when, in its class, no state can do more than its unmarked self-loop. With
contiguity, such an event still kills the states that have no self-loop; so the first one after a relevant event is kept
and those that follow it directly, per partition, are dropped: they find nothing left to kill.

Invariant: an event that could start a run, move or mark a state, or complete a match is never dropped. A state
without outgoing transitions counts as moved by nothing: only the event that reaches it reports it.
"""

import numpy as np

from cerite.automaton import TRUE, Automaton, Transition
from cerite.automaton.relevance import relevance
from cerite.core.arrays import Buffers, Flags, Ints, Longs, Words, picked
from cerite.core.hashing import fold
from cerite.core.jit import inlined, kernel
from cerite.engine.subset.determinise import Determinised
from cerite.predicate.columns.kernels import Lookup

NARROW = 16  # the most conditions for which a direct table of 2**conditions classes is used


class EventClasses:
    """The classes seen so far in one run, and what they do to the automaton."""

    def __init__(self, automaton: Automaton, determinised: Determinised) -> None:
        self._relevance = relevance(automaton)
        self._determinised = determinised
        self._conditions = len(automaton.conditions)
        self._words = max(1, -(-self._conditions // 64))
        self._narrow = self._conditions <= NARROW
        self._table: Ints = np.full(1 << (self._conditions if self._narrow else 8), -1, np.int32)
        self._known: Words = np.zeros((64, self._words), np.uint64)
        self._effect: Ints = np.zeros(0, np.int32)
        self._kills: list[frozenset[int]] = [frozenset()]
        self._within: Flags = np.ones((1, 1), np.bool_)
        self.last: Ints = np.zeros(1, np.int32)
        self.holds: list[int] = []
        self._buffers = Buffers()

    def batch(self, bits: Words, ids: Longs) -> tuple[Ints, Longs]:
        """The class of every event, and the indices of the events to keep; `ids` is empty for a single stream.

        Both are overwritten by the next batch.
        """
        if bits.shape[1] < self._words:
            raise ValueError(f"bits must have the shape (events, {self._words}), not {bits.shape}")
        bits = np.ascontiguousarray(bits[:, : self._words])
        classes = self._buffers.take("classes", bits.shape[0], np.int32)
        relevant = self._buffers.take("relevant", bits.shape[0] + 1, np.int64)
        if self.tables is not None:
            n = keep_known(bits[:, 0], *self.tables, classes, relevant)
            if n >= 0:
                return classes, relevant[:n]
        self._classify(bits, classes)
        if len(self._kills) == 1:
            n = keep_moving(classes, self._effect, relevant)
        else:
            top = int(ids.max()) + 1 if ids.size else 1
            if top > self.last.size:
                self.last = np.concatenate([self.last, np.zeros(max(top, self.last.size), np.int32)])
            n = keep_first_kill(classes, self._effect, self._within, ids, self.last, relevant)
        return classes, relevant[:n]

    def coded(self, lookup: Lookup) -> tuple[Ints, Longs] | None:
        """`batch` for a single stream whose bits follow from codes; None if the bits themselves are needed."""
        classes = self._buffers.take("classes", lookup.codes.size, np.int32)
        relevant = self._buffers.take("relevant", lookup.codes.size + 1, np.int64)
        n = -1 if self.tables is None else keep_coded(lookup, *self.tables, classes, relevant)
        return None if n < 0 else (classes, relevant[:n])

    @property
    def tables(self) -> tuple[Ints, Ints] | None:
        """The class of every word of bits, and what classes do, if that is enough to pick events (`keep_known`)."""
        return (self._table, self._effect) if self._narrow and len(self._kills) == 1 else None

    def restore(self, holds: list[int], last: Ints) -> None:
        """Recreate the classes of a snapshot, in their old numbering."""
        rows = np.zeros((len(holds), self._words), np.uint64)
        for row, value in zip(rows, holds, strict=True):
            row[:] = [value >> 64 * w & (1 << 64) - 1 for w in range(self._words)]
        self._classify(rows, np.empty(len(holds), np.int32))
        self.last = last

    def keep(self, partitions: Longs) -> None:
        """Number these partitions from 0 on and forget the others; a kill that is forgotten is simply repeated."""
        self.last = picked(self.last, partitions)

    def forget(self) -> None:
        """Forget all partitions, and free the memory for batches; the classes stay."""
        self.last = np.zeros(1, np.int32)
        self._buffers = Buffers()

    def _classify(self, bits: Words, classes: Ints) -> None:
        known = len(self.holds)
        if self._narrow:
            rows = classify_narrow(bits[:, 0], self._table, classes, known)
            if rows > known:
                for value in np.argsort(self._table, kind="stable")[-rows:]:
                    if self._table[value] >= known:
                        self._introduce(int(value))
            return
        done, rows = classify_wide(bits, 0, self._table, self._known, classes, known)
        while done < bits.shape[0]:
            self._rehash()
            done, rows = classify_wide(bits, done, self._table, self._known, classes, rows)
        for row in self._known[known:rows]:
            self._introduce(sum(int(word) << 64 * w for w, word in enumerate(row)))

    def _rehash(self) -> None:
        rows = self._known
        self._known = np.zeros((2 * rows.shape[0], self._words), np.uint64)
        self._table = np.full(8 * rows.shape[0], -1, np.int32)
        classify_wide(rows, 0, self._table, self._known, np.empty(rows.shape[0], np.int32), 0)

    def _introduce(self, holds: int) -> None:
        self.holds.append(holds)
        self._determinised.add_class(holds)
        killed = self._killed(holds)
        if killed is None:
            effect = MOVES
        elif not killed:
            effect = PURE
        elif killed in self._kills:
            effect = self._kills.index(killed)
        else:
            effect = len(self._kills)
            self._kills.append(killed)
            self._within = np.array([[a <= b for b in self._kills] for a in self._kills], np.bool_)
        self._effect = np.append(self._effect, np.int32(effect))

    def _killed(self, holds: int) -> frozenset[int] | None:
        """The states that such an event kills, or None if it can do more than kill."""

        def fires(t: Transition) -> bool:
            return t.condition == TRUE or bool(holds >> t.condition & 1)

        if any(map(fires, self._relevance.moving)):
            return None
        return frozenset(state for state, loops in self._relevance.loops.items() if not any(map(fires, loops)))


# Kernels that map rows of condition bits to event classes and pick the events worth looking at.
#
# Invariant: equal rows get equal classes, classes are dense and in order of first appearance.

PURE = -1  # no state moves: the event can go
MOVES = 0  # some state moves, or a match may end here: the event stays; greater numbers are kill sets


@kernel
def classify_narrow(bits: Words, table: Ints, classes: Ints, rows: int) -> int:
    """Classes by direct lookup, for few conditions; returns the number of classes known afterwards."""
    mask = np.uint64(table.size - 1)
    for i in range(bits.size):
        value = np.int64(bits[i] & mask)
        number = table[value]
        if number < 0:
            number = np.int32(rows)
            table[value] = number
            rows += 1
        classes[i] = number
    return rows


@kernel
def classify_wide(
    bits: Words,
    begin: int,
    table: Ints,
    known: Words,
    classes: Ints,
    rows: int,
) -> tuple[int, int]:
    """Classes by an open-addressing hash of whole rows; stops when `known` is full. Returns (next event, classes)."""
    n, words = bits.shape
    mask = np.uint64(table.size - 1)
    for i in range(begin, n):
        mixed = np.uint64(0)
        for w in range(words):
            mixed = fold(mixed, bits[i, w])
        place = mixed & mask
        while True:
            number = table[place]
            if number < 0:
                if rows == known.shape[0]:
                    return i, rows
                for w in range(words):
                    known[rows, w] = bits[i, w]
                table[place] = rows
                number = np.int32(rows)
                rows += 1
                break
            same = True
            for w in range(words):
                if known[number, w] != bits[i, w]:
                    same = False
                    break
            if same:
                break
            place = (place + np.uint64(1)) & mask
        classes[i] = number
    return n, rows


@inlined
def keep(
    i: int,
    bits: np.uint64,
    n: int,
    table: Ints,
    effect: Ints,
    classes: Ints,
    relevant: Longs,
) -> int:
    """Note the class of event i and, after n others, that it matters if it does; how many do, or -1 if unknown."""
    number = table[np.int64(bits & np.uint64(table.size - 1))]
    if number < 0:
        return -1
    classes[i] = number
    relevant[n] = i
    return n + int(effect[number] >= 0)


@kernel
def keep_known(
    bits: Words,
    table: Ints,
    effect: Ints,
    classes: Ints,
    relevant: Longs,
) -> int:
    """`classify_narrow` and `keep_moving` at once, if all events are of known classes; else -1."""
    n = 0
    for i in range(bits.size):
        n = keep(i, bits[i], n, table, effect, classes, relevant)
        if n < 0:
            break
    return n


@kernel
def keep_coded(
    lookup: Lookup,
    table: Ints,
    effect: Ints,
    classes: Ints,
    relevant: Longs,
) -> int:
    """`gather_both` and `keep_known` at once."""
    n = 0
    for i in range(lookup.codes.size):
        bits = lookup.masks[lookup.codes[i]] & lookup.other_masks[lookup.others[i]]
        n = keep(i, bits, n, table, effect, classes, relevant)
        if n < 0:
            break
    return n


@kernel
def keep_moving(classes: Ints, effect: Ints, relevant: Longs) -> int:
    """Indices of the events that are not `PURE`; enough when no class kills anything."""
    n = 0
    for i in range(classes.size):
        relevant[n] = i
        n += effect[classes[i]] >= 0
    return n


@kernel
def keep_first_kill(
    classes: Ints,
    effect: Ints,
    within: Flags,
    partition: Longs,
    last: Ints,
    relevant: Longs,
) -> int:
    """As `keep_moving`, but drops a killing event if the previous one of its partition killed at least as much.

    `last` carries each partition's latest effect from batch to batch; `partition` is empty for a single stream.
    """
    n = 0
    for i in range(classes.size):
        now = effect[classes[i]]
        if now == PURE:
            continue
        p = partition[i] if partition.size else 0
        before = last[p]
        if now > MOVES and before > MOVES and within[now, before]:
            continue
        last[p] = now
        relevant[n] = i
        n += 1
    return n
