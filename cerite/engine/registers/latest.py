"""`NOT ν ; φ` where ν is stateful: the latest start of an occurrence of ν, for every event (see `events.since`).

ν is followed like any pattern with registers, in sets of configurations (`sets`, `moves`), but it does not matter which
events it bound: of all runs in a set only the latest start counts, because a window that reaches an earlier start
reaches it, too. So a set holds one key, and neither a tECS nor a count is kept. Runs that began no later than a
completed occurrence cannot change the answer and are dropped, and so are those that have left the window.

Invariant: `best[d]` is the greatest window key of the start of a run in set d, if the set holds something; results do
not depend on where batches are cut or on the sizes of arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from cerite.automaton.automaton import Preceding
from cerite.automaton.guards import distinct_tests
from cerite.core.arrays import Arrays, Flags, Ints, Longs, distinct, picked
from cerite.core.errors import CeriteError
from cerite.core.jit import inlined, kernel
from cerite.engine.events.combined import combined
from cerite.engine.events.keys import LEAST
from cerite.engine.events.rows import Columns, Rows
from cerite.engine.events.since import Since
from cerite.engine.registers.base import RegisterEngine
from cerite.engine.registers.index import link, touched
from cerite.engine.registers.interpret import Code
from cerite.engine.registers.layout import (
    LIST,
    MOVE_ACCEPTS,
    MOVE_TARGET,
    SPAN_BEGIN,
    SPAN_END,
    Configurations,
    Events,
    Scratch,
    Watching,
)
from cerite.engine.registers.moves import plan, starts
from cerite.engine.registers.recogniser import remember
from cerite.engine.registers.tables import Machine
from cerite.engine.state.cursor import Stop, new_cursor
from cerite.engine.state.slots import grown, raise_lows
from cerite.engine.state.snapshot import fingerprint, pack, unpack
from cerite.predicate.columns.bits import ConditionBits

_KIND = "latest starts"


class SinceSets(Since):
    """Follows a stateful pattern: one key per set of configurations."""

    def __init__(self, preceding: Preceding, machine: Machine, conditions: ConditionBits, columns: Columns) -> None:
        super().__init__(columns, preceding.size)
        self._made_of = preceding, machine, conditions, columns
        self._machine, self._conditions = machine, conditions.fresh()
        self._tests = distinct_tests(machine.guards)
        self._leaves = machine.leaf_columns()
        self._engine = LatestStarts(machine, through=preceding.through)
        self._failed: CeriteError | None = None  # half a batch cannot be taken back

    @staticmethod
    def of(preceding: Preceding, schema: pa.Schema, columns: Columns) -> SinceSets:
        """A follower of a pattern over columns of known types."""
        machine = Machine(preceding.automaton, schema, columns.time, columns.unit)
        tests = [(each.type, each.condition) for each in distinct_tests(machine.guards)]
        return SinceSets(preceding, machine, ConditionBits(tests, schema, columns.type), columns)

    def fresh(self) -> SinceSets:
        """The same pattern, of which nothing has occurred yet."""
        return SinceSets(*self._made_of)

    @property
    def columns(self) -> tuple[str, ...]:
        """What its conditions look at."""
        return (*self._conditions.columns, *sorted(self._machine.read))

    @property
    def names(self) -> int:
        """How many strings it has numbered."""
        return self._leaves.strings.count or 0

    @property
    def state_size(self) -> int:
        """How much there is to look through when something is to be forgotten."""
        return self._engine.size

    def rehearse(self, batch: pa.RecordBatch, partition: Longs | None) -> None:
        """Refuse now what `column` would refuse later, while nothing has changed."""
        if self._failed is not None:
            raise self._failed
        self._conditions.bits(batch)
        self._leaves.of(batch, partition)

    def _latest(self, batch: pa.RecordBatch, key: Longs, low: Longs, missing: Flags, partition: Longs | None) -> Longs:
        bits = combined(self._machine.guards, self._tests, self._conditions.bits(batch))
        stored = self._leaves.of(batch, partition)
        reach = low if self.rises else np.full(low.size, LEAST, np.int64)
        try:
            return self._engine.read(Rows(key, (bits, reach), key, partition, batch, stored), missing)
        except CeriteError as error:
            self._failed = error
            raise

    @contextmanager
    def undone(self, partition: Longs | None) -> Iterator[None]:
        """Forgets, if the batch is refused, strings that only it has; all else is refused before it is read."""
        strings = self._leaves.strings.count
        try:
            yield
        except BaseException:
            self._leaves.forget(strings)
            raise

    def advance(self) -> None:
        """The batch that was last read is taken."""
        self._leaves.advance()

    def forget(self, lows: Longs, seen: Longs) -> None:
        """Forget what lies in the window of no event to come."""
        self._engine.forget(self.least(lows, seen))

    def partitions(self, lows: Longs, seen: Longs) -> Longs:
        """The partitions in which something lies in the window of an event that may still come."""
        done = self._engine.done[: lows.size]
        return distinct(
            self._engine.partitions, np.flatnonzero((done > LEAST) & (done >= self.least(lows, seen)[: done.size]))
        )

    def keep(self, partitions: Longs | None) -> None:
        """Number these partitions from 0 on, and the strings that are left."""
        strings = self._engine.strings
        self._leaves.keep(partitions, strings)
        self._engine.keep(partitions, strings)

    def state(self) -> Arrays:
        """What a snapshot keeps."""
        leaves = {f".leaves.{name}": each for name, each in self._leaves.state().items()}
        return {".sets": np.frombuffer(self._engine.snapshot(), np.uint8), **leaves}

    def restore(self, state: Arrays) -> None:
        """Continue where a snapshot was taken."""
        self._engine.restore(state[".sets"].tobytes())
        prefix = ".leaves."
        self._leaves.restore({name.removeprefix(prefix): x for name, x in state.items() if name.startswith(prefix)})


class LatestStarts(RegisterEngine):
    """Finds, for every event, the latest start of an occurrence that ended before it or, with `through`, at it."""

    def __init__(self, machine: Machine, *, through: bool = False) -> None:
        self.through = through
        self.cursor = new_cursor()
        self.cell_next: Ints = np.zeros(0, np.int32)  # there are no lists: a set holds one key
        super().__init__(machine, listed=False)
        self.best: Longs = np.full(self.sets.begin.size, LEAST, np.int64)
        self.done: Longs = np.full(1, LEAST, np.int64)  # by partition, of what is complete

    def read(self, rows: Rows, missing: Flags) -> Longs:
        """Read a batch; returns the key for every event. Events that are `missing` a window key start nothing."""
        events = self.events(rows)
        if self.done.size < self.lows.size:
            self.done = grown(self.done, self.lows.size, LEAST)
        keys = np.full(events.key.size, LEAST, np.int64)
        self.cursor.next = 0
        why = -1
        while why != Stop.DONE:
            known = Latest(self.best, np.empty_like(self.best), self.done, keys)
            why = latest(events, missing, self.through, self.configurations, self.code, self.watching, known)
            self.refuse_beyond()
            if why in (Stop.MORE_SETS, Stop.MORE_INDEX):
                self._trim()
            self.more(why)
        return keys

    def rebuild(self, partitions: Longs | None = None, strings: Longs | None = None) -> None:
        """`RegisterEngine.rebuild`; the keys move with their sets."""
        best = self.best[self._live()]
        super().rebuild(partitions, strings)
        self.best = grown(best, self.sets.begin.size, LEAST)

    def forget(self, lows: Longs) -> None:
        """Forget all that no window reaches any more; `lows` is by partition."""
        raise_lows(self.lows, lows)
        self._trim()

    def keep(self, partitions: Longs | None, strings: Longs) -> None:
        """Number these partitions and strings from 0 on; nothing that is kept belongs to the others."""
        super().keep(partitions, strings)
        if partitions is not None:
            self.done = picked(self.done, partitions, LEAST)

    def _trim(self) -> None:
        n = self.cursor.sets
        part = np.maximum(self.sets.part[:n], 0)  # a watched set is of no partition, and holds nothing
        best, done = self.best[:n], grown(self.done, max(self.lows.size, self.done.size), LEAST)
        self.head[:n, LIST][(best < self.lows[part]) | (best <= done[part])] = -1

    def snapshot(self) -> bytes:
        """The state between two batches."""
        self._trim()
        self.rebuild()
        arrays = {**self.state(), "best": self.best[: self.cursor.sets], "done": self.done}
        return pack(_KIND, {"fingerprint": fingerprint(self.machine.automaton)}, arrays)

    def restore(self, data: bytes) -> None:
        """Continue, in a fresh engine of the same pattern, where a snapshot was taken."""
        _, arrays = unpack(data, _KIND, fingerprint(self.machine.automaton))
        self.restore_state(arrays)
        self.best = grown(arrays["best"], self.sets.begin.size, LEAST)
        self.done = arrays["done"]


class Latest(NamedTuple):
    """The latest starts: of the runs in every set, before and after an event, and of complete occurrences."""

    best: Longs  # by set
    after: Longs  # room for the same
    done: Longs  # by partition
    keys: Longs  # by event of the batch: the answer


@inlined
def alive(n: int, low: int, done: int, head: Ints, best: Longs, scratch: Scratch) -> int:
    """Keep, of scratch.moving[:n], the sets with a start that can still change the answer; returns how many."""
    n_left = np.int64(0)  # of one type from the start: for a literal, a second version would be compiled
    for y in range(n):
        d = scratch.moving[y]
        if best[d] < low or best[d] <= done:
            head[d, LIST] = -1
        else:
            scratch.moving[n_left] = d
            n_left += 1
    return n_left


@inlined
def execute(n: int, start: int, moves: int, configs: Configurations, known: Latest) -> int:
    """Carry out the moves of all sets at once; returns the latest start of what they complete."""
    head, scratch, best, after = configs.head, configs.scratch, known.best, known.after
    for y in range(n):
        if scratch.span[y, SPAN_BEGIN] >= 0:
            head[scratch.moving[y], LIST] = -1
    for m in range(moves):
        target = scratch.move[m, MOVE_TARGET]
        if target >= 0:
            after[target] = best[target] if head[target, LIST] >= 0 else LEAST
    complete = np.int64(LEAST)
    for y in range(n + 1):
        key = best[scratch.moving[y]] if y < n else np.int64(start)
        if scratch.span[y, SPAN_BEGIN] < 0:
            continue
        for m in range(scratch.span[y, SPAN_BEGIN], scratch.span[y, SPAN_END]):
            target = scratch.move[m, MOVE_TARGET]
            if scratch.move[m, MOVE_ACCEPTS]:
                complete = max(complete, key)
            if target >= 0:
                after[target] = max(after[target], key)
    for m in range(moves):
        target = scratch.move[m, MOVE_TARGET]
        if target >= 0 and after[target] > LEAST:
            if head[target, LIST] < 0:
                link(target, configs.entries)
                head[target, LIST] = 0
            best[target] = after[target]
    return complete


@kernel
def latest(events: Events, missing: Flags, through: bool, configs: Configurations, code: Code | None,
           watching: Watching | None, known: Latest) -> int:  # fmt: skip
    """Read events.selection[cursor.next:]; returns why it stopped."""
    tables, scratch, head, cursor = configs.tables, configs.scratch, configs.head, configs.sets.cursor
    done, keys = known.done, known.keys
    for x in range(cursor.next, events.selection.size + 1):
        cursor.next = x
        last = x == events.selection.size
        i = events.key.size - 1 if last else events.selection[x]
        for j in range(events.selection[x - 1] + 1 if x else 0, i + 1):
            keys[j] = done[events.part[j] if events.part.size else 0]
        if last:
            break
        part = events.part[i] if events.part.size else 0
        low = events.low[i]
        configs.lows[part] = low
        cursor.mark += 1
        n = touched(i, part, cursor.mark, head, events, tables, configs.entries, scratch)
        n = alive(n, low, done[part], head, known.best, scratch)
        if watching is None and n == 0 and not starts(i, events, tables):
            continue
        why = plan(i, part, n, events, configs, code, watching)
        if why != Stop.DONE:
            return why
        remember(part, watching)
        start = LEAST if missing[i] else events.key[i]
        complete = execute(n, start, cursor.moves, configs, known)
        if through:
            keys[i] = complete
        else:
            done[part] = max(done[part], complete)
    return Stop.DONE
