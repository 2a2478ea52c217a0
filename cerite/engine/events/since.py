"""When a pattern last began that has occurred by now: what `NOT ν ; φ` needs to know about the events before φ.

That is, for every event, the greatest key of the first event of an occurrence of ν that ended before it, in its
partition. Where ν compares nothing with its own events, only the latest run into each state of its automaton matters,
so a partition has one key per state, and one for the latest run that was complete (`SinceStates`). A ν that is stateful
is followed by `engine.registers.latest`.

Invariant: results do not depend on where batches are cut; a batch that is refused later leaves everything as it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa

from cerite.automaton.automaton import TRUE, Preceding
from cerite.automaton.guards import Guard, Test, distinct_tests
from cerite.core.arrays import Arrays, Bytes, Flags, Longs, Words, picked
from cerite.core.jit import kernel
from cerite.engine.events.keys import LEAST, count_keys, time_of, value_keys
from cerite.engine.events.rows import Columns
from cerite.pattern.nodes import Size
from cerite.predicate.columns.bits import ConditionBits


class Since:
    """Follows one pattern through the batches of a run, in the window in which it must be absent."""

    def __init__(self, columns: Columns, size: Size | None) -> None:
        self.size = size  # of the window in which it must be absent, if that is not the query's
        self._time, self._unit = columns.time, columns.unit
        self._low = LEAST  # of all events to come, if time tells

    @property
    def columns(self) -> tuple[str, ...]:
        """What its conditions look at."""
        raise NotImplementedError

    @property
    def names(self) -> int:
        """How many values it has numbered."""
        return 0

    @property
    def state_size(self) -> int:
        """How much there is to look through when something is to be forgotten."""
        return 0

    @property
    def counts(self) -> bool:
        """Whether its own window is one of events."""
        return self.size is not None and self.size.unit == "events"

    @property
    def rises(self) -> bool:
        """Whether what has left the window of an event is in no later window; attributes of parts may decrease."""
        return self.size is None or self.size.attribute is None or self.size.attribute == self._time

    def fresh(self) -> Since:
        """The same pattern, of which nothing has occurred yet."""
        raise NotImplementedError

    def keys(self, batch: pa.RecordBatch, ranks: Longs | None) -> tuple[Longs, Longs, Flags | None]:
        """Key and low of every event by its own window; `ranks` are those of the events, if the window counts them."""
        assert self.size is not None
        if ranks is not None and self.counts:
            return (*count_keys(self.size, ranks), None)
        name = time_of(self.size, self._time)
        return value_keys(batch.column(name), name, self.size, self._unit)

    def rehearse(self, batch: pa.RecordBatch, partition: Longs | None) -> None:
        """Refuse now what `column` would refuse later, while nothing has changed."""

    def column(
        self, batch: pa.RecordBatch, key: Longs, low: Longs, missing: Flags | None, partition: Longs | None
    ) -> pa.Array:
        """The key for every event of the next batch, NULL where the pattern has not occurred."""
        if self.size is not None and self.size.is_time and low.size:
            self._low = int(low[-1])
        unknown = np.zeros(key.size, np.bool_) if missing is None else missing
        latest = self._latest(batch, key, low, unknown, partition)
        return pa.array(latest, mask=latest == LEAST)

    def _latest(self, batch: pa.RecordBatch, key: Longs, low: Longs, missing: Flags, partition: Longs | None) -> Longs:
        raise NotImplementedError

    @contextmanager
    def undone(self, partition: Longs | None) -> Iterator[None]:
        """Restores, if the batch is refused, what it has changed."""
        raise NotImplementedError

    def advance(self) -> None:
        """The batch that was last read is taken."""

    def forget(self, lows: Longs, seen: Longs) -> None:
        """Forget what lies in the window of no event to come.

        `lows` has the least key of every partition by the query's window, `seen` how many events it has had.
        """

    def partitions(self, lows: Longs, seen: Longs) -> Longs:
        """The partitions in which something lies in the window of an event that may still come; as `forget`."""
        raise NotImplementedError

    def least(self, lows: Longs, seen: Longs) -> Longs:
        """By partition, the least key in the window of an event that may still come; arguments as for `forget`."""
        if self.size is None:
            return lows
        least: Longs = np.full(lows.size, self._low if self.rises else LEAST, np.int64)
        if self.counts:
            least[: seen.size] = count_keys(self.size, seen[: lows.size])[1]
        return least

    def keep(self, partitions: Longs | None) -> None:
        """Number these partitions from 0 on; the others have nothing in any window."""
        raise NotImplementedError

    def state(self) -> Arrays:
        """What a snapshot keeps."""
        raise NotImplementedError

    def restore(self, state: Arrays) -> None:
        """Continue where a snapshot was taken."""
        raise NotImplementedError


class SinceStates(Since):
    """Follows a pattern that is not stateful: one key per state of its automaton."""

    def __init__(self, preceding: Preceding, schema: pa.Schema, columns: Columns) -> None:
        super().__init__(columns, preceding.size)
        self._made_of = preceding, schema, columns
        self._automaton = automaton = preceding.automaton
        self._tests = distinct_tests(automaton.conditions)
        self._conditions = ConditionBits([(each.type, each.condition) for each in self._tests], schema, columns.type)
        self._table = np.array([[t.source, t.condition, t.target] for t in automaton.transitions], np.int64)
        self._table = self._table.reshape(len(automaton.transitions), 3)
        self._final = min(automaton.finals, default=automaton.n_states)
        # by partition: the latest start of a run into each state, then of one that was complete
        self._state: Longs = np.full((1, automaton.n_states + 1), LEAST, np.int64)

    @property
    def columns(self) -> tuple[str, ...]:
        """What its conditions look at."""
        return self._conditions.columns

    def fresh(self) -> SinceStates:
        """The same pattern, of which nothing has occurred yet."""
        return SinceStates(*self._made_of)

    def _latest(self, batch: pa.RecordBatch, key: Longs, low: Longs, missing: Flags, partition: Longs | None) -> Longs:
        ids = np.zeros(key.size, np.int64) if partition is None else partition
        top = int(ids.max()) + 1 if ids.size else 0
        if top > self._state.shape[0]:
            more = max(top - self._state.shape[0], self._state.shape[0])
            self._state = np.pad(self._state, ((0, more), (0, 0)), constant_values=LEAST)
        holds = guard_flags(self._automaton.conditions, self._tests, self._conditions.bits(batch))
        latest, after = np.empty(key.size, np.int64), np.empty(self._state.shape[1], np.int64)
        follow(holds, self._table, self._automaton.initial, self._final, key, missing, ids, self._state, after, latest)
        return latest

    @contextmanager
    def undone(self, partition: Longs | None) -> Iterator[None]:
        """Restores, if the batch is refused, what it has changed."""
        touched: Longs | slice = slice(None)
        if partition is not None and partition.size < self._state.shape[0]:
            touched = np.unique(partition[partition < self._state.shape[0]])
        state, rows = self._state, self._state[touched].copy()
        try:
            yield
        except BaseException:
            self._state = state
            self._state[touched] = rows
            raise

    def partitions(self, lows: Longs, seen: Longs) -> Longs:
        """The partitions in which something lies in the window of an event that may still come; as `forget`."""
        known = self._state[: lows.size].max(axis=1)
        return np.flatnonzero((known > LEAST) & (known >= self.least(lows, seen)[: known.size]))

    def keep(self, partitions: Longs | None) -> None:
        """Number these partitions from 0 on; the others have nothing in any window."""
        if partitions is not None:
            self._state = picked(self._state, partitions, LEAST)

    def state(self) -> Arrays:
        """What a snapshot keeps."""
        return {"": self._state}

    def restore(self, state: Arrays) -> None:
        """Continue where a snapshot was taken."""
        self._state = state[""].astype(np.int64)


def guard_flags(guards: tuple[Guard, ...], tests: tuple[Test, ...], raw: Words) -> Bytes:
    """For every guard and event whether it holds, from a bit per test and event."""
    holds: dict[object, Bytes] = {}
    for k, test in enumerate(tests):
        holds[test] = ((raw[:, k // 64] >> np.uint64(k % 64)) & np.uint64(1)).astype(np.uint8)
    flags = np.ones((len(guards) + 1, raw.shape[0]), np.uint8)  # the last is the guard that always holds
    for k, guard in enumerate(guards):
        for each in guard.tests:
            flags[k] &= holds[each]
        for each in guard.negated:
            flags[k] &= holds[each] ^ np.uint8(1)
    return flags


SOURCE, CONDITION, TARGET = range(3)  # columns of the table of transitions
assert TRUE == -1  # the last row of `guard_flags`


@kernel
def follow(holds: Bytes, table: Longs, initial: int, final: int, key: Longs, missing: Flags, ids: Longs,
           state: Longs, after: Longs, latest: Longs) -> None:  # fmt: skip
    """Write, for each event, the latest start of an occurrence that ended before it; then let the event move states."""
    n = state.shape[1] - 1
    for i in range(key.size):
        row = state[ids[i]]
        latest[i] = row[n]
        for q in range(n):
            after[q] = LEAST
        after[n] = row[n]
        for x in range(table.shape[0]):
            if holds[table[x, CONDITION], i]:
                start = row[table[x, SOURCE]]
                if table[x, SOURCE] == initial:
                    start = LEAST if missing[i] else key[i]
                target = n if table[x, TARGET] == final else table[x, TARGET]
                after[target] = max(after[target], start)
        for q in range(n + 1):
            row[q] = after[q]
