"""From record batches to what the kernels read: bits, window keys, positions and partitions.

Invariant: events arrive in stream order. A time column that decreases, a NULL time, or a window attribute that
decreases inside a partition is refused with the first row it happens at; nothing is reordered or dropped silently
(events without a partition value belong to no partition, as PARTITION BY says).

What is known of a partition (its number, rank and last key) is kept as long as some partial match of it lives (`keep`).
A partition that comes again begins anew, which no match can tell: ranks and keys are only ever compared with those of a
start in the same partition, and an event without the window's attribute neither starts nor ends a match. So an
attribute that decreases is refused where it would be compared: in a partition with a start that is not over, and in any
that has not been forgotten yet.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property

import numpy as np
import pyarrow as pa

from cerite.automaton.absences import LOW, POSITION, since
from cerite.automaton.absences import low as low_of
from cerite.core.arrays import Arrays, Buffers, Flags, Longs, Words, borrowed, distinct, picked, under
from cerite.core.errors import Hint, OrderError, Setting
from cerite.engine.bind import Program
from cerite.engine.events.combined import combined
from cerite.engine.events.keys import (
    LEAST,
    Ranks,
    carry,
    count_keys,
    first_fall,
    numbers,
    reach_of,
    signed,
)
from cerite.engine.events.order import StreamOrder, whole_positions
from cerite.engine.events.partitions import Groups
from cerite.engine.events.rows import Deferred, Rows, positions
from cerite.engine.events.since import SinceStates


class Intake:
    """Reads the batches of one run of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._conditions = program.conditions.fresh()
        self._leaves = None if program.machine is None else program.machine.leaf_columns()
        self.groups = Groups(program.plan.partition) if program.plan.partition else None
        self.ranks = Ranks()
        self.rows = 0
        self._order = StreamOrder(program.columns)
        self._buffers = Buffers()
        self._last_keys: Longs = np.full((2, 1), LEAST, np.int64)  # key and low, by partition
        self.low = LEAST  # of all events to come, where one clock drives all partitions
        self.ticked = LEAST  # the same by the window that decides parts of the pattern, if there is one
        self._preceding = [each.fresh() for each in program.preceding]

    @property
    def strings(self) -> pa.Array | None:
        """The strings that registers know by number."""
        return None if self._leaves is None else self._leaves.strings.known

    def take(self, batch: pa.RecordBatch) -> Rows:
        """The next batch of the stream; one that is refused leaves everything as it was."""
        partitions = None if self.groups is None else self.groups.counts
        strings = None if self._leaves is None else self._leaves.strings.count
        try:
            with self._order.undone():
                rows = self._taken(batch)
        except BaseException:
            self.ranks.undo()
            if self.groups is not None and partitions is not None:
                self.groups.forget(partitions)
            if self._leaves is not None:
                self._leaves.forget(strings)
            raise
        self.rows += batch.num_rows
        if self.program.shared_clock and rows.key.size:
            self.low = max(self.low, rows.last_low)
            self._tick(rows.batch)
        self.ranks.advance()
        if self._leaves is not None:
            self._leaves.advance()
        for each in self._preceding:
            each.advance()
        return rows

    @property
    def decided(self) -> int:
        """The low of all events to come in the window that decides what waits: what began before it is over."""
        return self.low if self.program.plan.tick is None else self.ticked

    def _tick(self, batch: pa.RecordBatch) -> None:
        """Let time pass to the batch's last event."""
        ticking = self.program.ticking
        if ticking is not None:
            self.ticked = max(self.ticked, int(ticking.keys(batch.slice(batch.num_rows - 1))[1][0]))

    def check(self, batch: pa.RecordBatch) -> None:
        """Refuse now what `take` would refuse later because of one event alone, whatever lies before it."""
        name, measured = self.program.columns.position, self.program.measured
        if name is not None:
            whole_positions(batch.column(name), name)
        if measured is not None and pa.types.is_decimal(batch.schema.field(measured.name).type):
            measured.keys(batch)
        if self._choosy and self.program.machine is not None:
            self.program.machine.leaf_columns().of(self._beside(batch, {}), None)

    @cached_property
    def _choosy(self) -> bool:
        """Whether a stored value may be refused: one of another form, or of a type that 64 signed bits do not hold."""
        if self._leaves is None:
            return False
        kinds = self.program.schema.types
        units = {kind.unit for kind in kinds if pa.types.is_timestamp(kind)}
        formed = any(getattr(leaf, "form", "") for leaf in self._leaves.leaves)
        return formed or len(units) > 1 or any(pa.types.is_uint64(kind) for kind in kinds)

    def _taken(self, batch: pa.RecordBatch) -> Rows:
        places = self._order.positions(batch, self.rows)
        deferred = self._deferred(batch, places) if self.program.by_codes else None
        if deferred is not None:
            return deferred
        partition = None if self.groups is None else self.groups.of(batch)
        bits = None if self.program.own else self._bits(batch)
        kept = None
        if partition is not None and (partition < 0).any():
            kept = np.flatnonzero(partition >= 0)
            places = positions(places, batch.num_rows)[kept]
            batch, partition = batch.take(pa.array(kept)), partition[kept]
            bits = None if bits is None else bits[kept]
        with ExitStack() as undone:
            undone.enter_context(self._carrying(partition))
            for each in self._preceding:
                undone.enter_context(each.undone(partition))
            try:
                key, low, missing = self._keys(batch, places, partition)
            except OrderError as error:
                error.row = error.row if kept is None else int(kept[error.row])
                raise
            whole = self._with_own(batch, key, low, missing, places, partition) if self.program.own else batch
            bits = self._bits(whole) if bits is None else bits
            stored = None if self._leaves is None else self._leaves.of(whole, partition)
        return Rows(key, (bits, low), places, partition, batch, stored)

    def _deferred(self, batch: pa.RecordBatch, places: Longs | int) -> Rows | None:
        """The batch with its keys alone, checked; None where the rest cannot be worked out from codes and keys."""
        lookup, window = self._conditions.lookup(batch), self.program.plan.window
        measured = self.program.measured
        if lookup is None:
            return None
        if measured is not None:
            values, missing = numbers(batch.column(measured.name), measured.name)
            if missing is not None or values.dtype == np.float64:
                return None
            key, reach = borrowed(signed(values)), reach_of(math.floor(measured.width(batch.schema)))
        elif window is not None:
            key, reach = self.ranks.of(None, batch.num_rows), reach_of(int(window.amount) - 1)
        else:
            key, reach = positions(places, batch.num_rows), reach_of(None)
        rows = Rows(key, Deferred(lookup, reach, self._buffers), places, None, batch)
        if measured is not None and not self.program.shared_clock:
            self._rise(key, rows.last_low if key.size else LEAST, measured.name, places)
        return rows

    def _with_own(
        self, batch: pa.RecordBatch, key: Longs, low: Longs, missing: Flags | None, places: Longs | int,
        partition: Longs | None,
    ) -> pa.RecordBatch:  # fmt: skip
        """The batch with the columns that conditions about absences read."""
        computed = {POSITION: pa.array(positions(places, batch.num_rows)), LOW: pa.array(low)}
        counted = any(each.counts for each in self._preceding)
        ranks = self.ranks.of(partition, batch.num_rows) if counted else None
        keys = [(key, low, missing) if each.size is None else each.keys(batch, ranks) for each in self._preceding]
        computed |= {low_of(k): pa.array(lows) for k, (_, lows, _) in enumerate(keys)}
        if self._preceding:
            self._rehearse(self._beside(batch, computed), partition)
        for k, each in enumerate(self._preceding):
            computed[since(k)] = each.column(self._beside(batch, computed), *keys[k], partition)
        return self._beside(batch, computed)

    def _beside(self, batch: pa.RecordBatch, computed: dict[str, pa.Array]) -> pa.RecordBatch:
        """The batch with Cerite's own columns, NULL where they are not known yet; those are never refused."""
        unknown = pa.nulls(batch.num_rows, pa.int64())
        columns = [*batch.columns, *(computed.get(name, unknown) for name in self.program.own)]
        return pa.RecordBatch.from_arrays(columns, names=[*batch.schema.names, *self.program.own])

    def _rehearse(self, batch: pa.RecordBatch, partition: Longs | None) -> None:
        """Refuse a batch that would be refused, before absences are followed in it: that could not be undone."""
        if all(isinstance(each, SinceStates) for each in self._preceding):
            return
        for each in self._preceding:
            each.rehearse(batch, partition)
        self._bits(batch)
        if self._leaves is not None:
            self._leaves.of(batch, partition)

    @contextmanager
    def _carrying(self, partition: Longs | None) -> Iterator[None]:
        """Restores the last keys of the batch's partitions, which are replaced by its own, if the batch is refused."""
        keys = self._last_keys
        touched: Longs | slice = slice(None)
        if partition is not None and partition.size < keys.shape[1]:
            touched = np.unique(partition[partition < keys.shape[1]])
        values = keys[:, touched].copy()
        try:
            yield
        except BaseException:
            keys[:, touched] = values
            self._last_keys = keys
            raise

    @property
    def names(self) -> int:
        """How many partitions, or strings, have numbers, whichever are more."""
        partitions = 0 if self.groups is None else self.groups.known
        strings = 0 if self._leaves is None else self._leaves.strings.count or 0
        return max(partitions, strings, *(each.names for each in self._preceding))

    @property
    def state_size(self) -> int:
        """How much of what must be absent there is to look at when something is to be forgotten."""
        return sum(each.state_size for each in self._preceding)

    def lows(self) -> Longs:
        """By partition, the least key at which a match that ends from now on may start."""
        lows = np.full(1 if self.groups is None else self.groups.count, LEAST, np.int64)
        window = self.program.plan.window
        if self.program.shared_clock or window is None:
            lows[:] = self.low
        elif window.unit == "events":
            lows[:] = (0 if self.program.plan.late else 1) - int(window.amount)  # `late`: the next event may decide one
            seen = self.ranks.seen[: lows.size]
            lows[: seen.size] += seen
        else:
            last = self._last_keys[1, : lows.size]
            lows[: last.size] = last
        return lows

    def preceded(self, lows: Longs) -> Longs:
        """The partitions where something may be absent, or not, before a match to come; the rest is forgotten."""
        for each in self._preceding:
            each.forget(lows, self.ranks.seen)
        return distinct(*(each.partitions(lows, self.ranks.seen) for each in self._preceding))

    def keep(self, partitions: Longs | None, strings: Longs) -> None:
        """Number these partitions and strings from 0 on and forget the others, which nothing uses any more."""
        for each in self._preceding:
            each.keep(partitions)
        if self.groups is not None and partitions is not None:
            self.groups.keep(partitions)
            self.ranks.keep(partitions)
            self._last_keys = np.ascontiguousarray(picked(self._last_keys.T, partitions, LEAST).T)
        if self._leaves is not None:
            self._leaves.keep(partitions, strings)

    @property
    def first_time(self) -> int | None:
        """When the first event happened, in ticks of the time column."""
        return self._order.first_time

    def types(self) -> tuple[frozenset[str], frozenset[str]]:
        """The event types that the query names but no batch so far had, and the types that there were.

        They are known from the codes of the type column, not from the events; if there are too many, both are empty.
        """
        seen = frozenset(self._conditions.types or ())
        named = frozenset(test.type for test in self.program.tests if test.type is not None)
        return (named - seen if seen else frozenset()), seen

    def state(self) -> Arrays:
        """What a snapshot keeps."""
        kept: Arrays = {
            "rows": np.array([self.rows]),
            "seen": self.ranks.seen,
            "last_keys": self._last_keys,
            "low": np.array([self.low, self.ticked]),
            "last": np.frombuffer(json.dumps(self._order.last).encode(), np.uint8),
        }
        for k, each in enumerate(self._preceding):
            kept |= {f"since{k}{name}": value for name, value in each.state().items()}
        if self.groups is not None:
            kept |= {f"groups.{name}": value for name, value in self.groups.state().items()}
        if self._leaves is not None:
            kept |= {f"leaves.{name}": value for name, value in self._leaves.state().items()}
        return kept

    def restore(self, kept: Arrays) -> None:
        """Continue where a snapshot was taken."""
        self.rows = int(kept["rows"][0])
        self.ranks.seen = kept["seen"].astype(np.int64)
        self._last_keys = kept["last_keys"].astype(np.int64)
        self.low, self.ticked = int(kept["low"][0]), int(kept["low"][-1])
        self._order.last = json.loads(kept["last"].tobytes())
        for k, each in enumerate(self._preceding):
            each.restore({name: value for name, value in under(f"since{k}", kept).items() if not name[:1].isdigit()})
        if self.groups is not None:
            self.groups.restore(under("groups.", kept))
        if self._leaves is not None:
            self._leaves.restore(under("leaves.", kept))

    def _bits(self, batch: pa.RecordBatch) -> Words:
        raw = self._conditions.bits(batch, self._buffers)
        if self.program.plain:
            return raw
        return combined(self.program.guards, self.program.tests, raw)

    def _keys(
        self, batch: pa.RecordBatch, places: Longs | int, partition: Longs | None
    ) -> tuple[Longs, Longs, Flags | None]:
        """The key and low of every event, and which events have none of their own."""
        window, measured = self.program.plan.window, self.program.measured
        if window is None:
            return positions(places, batch.num_rows), np.full(batch.num_rows, LEAST, np.int64), None
        if measured is None:
            return (*count_keys(window, self.ranks.of(partition, batch.num_rows)), None)
        key, low, missing = measured.keys(batch, self._buffers)
        if not self.program.shared_clock:
            self._carry(key, low, missing, partition, measured.name, places)
        return key, low, missing

    def _carry(
        self,
        key: Longs,
        low: Longs,
        missing: Flags | None,
        partition: Longs | None,
        name: str,
        places: Longs | int,
    ) -> None:
        """Check that an attribute's keys rise inside every partition; a missing one becomes the partition's last."""
        if missing is None and partition is None:
            self._rise(key, int(low[-1]) if low.size else LEAST, name, places)
            return
        place = self._carry_all(key, low, missing, partition)
        if place >= 0:
            raise _decreasing(name, place, positions(places, key.size))

    def _rise(self, key: Longs, low: int, name: str, places: Longs | int) -> None:
        """The same if all events have a key and are in one partition; `low` is that of the last one."""
        place = first_fall(signed(key), int(self._last_keys[0, 0]), False)
        if place >= 0:
            raise _decreasing(name, place, positions(places, key.size))
        if key.size:
            self._last_keys[:, 0] = key[-1], low

    def _carry_all(self, key: Longs, low: Longs, missing: Flags | None, partition: Longs | None) -> int:
        none = np.zeros(key.size, np.bool_) if missing is None else missing
        ids = np.zeros(key.size, np.int64) if partition is None else partition
        size = self._last_keys.shape[1]
        top = int(ids.max()) + 1 if ids.size else 0
        if top > size:
            self._last_keys = np.pad(self._last_keys, ((0, 0), (0, max(top, size))), constant_values=LEAST)
        place: int = carry(key, low, none, ids, self._last_keys[0], self._last_keys[1])
        return place


def _decreasing(name: str, place: int, position: Longs) -> OrderError:
    hint = Hint("a window over an attribute needs the events in its order; sort by it: ", Setting("order_by"))
    message = f"the window's attribute `{name}` decreases at position {position[place]}"
    return OrderError(message, name=name, row=place, hint=hint)
