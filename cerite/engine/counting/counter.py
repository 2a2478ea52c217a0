"""Exact counting of matches and occurrences over batches, without enumeration (docs/architecture.md, *Counting*).

`Counter` owns the run state that `two_stacks` works on, grows it when the kernel asks, and lets `limbs` take over
the partitions whose numbers no longer fit; totals are Python integers and exact at any size. Without a window, no
product of matrices is kept: the state grows with the number of deterministic states; with a window, with its square.

Invariant: results do not depend on where batches are cut. `low` must not decrease inside a partition, nor, with
`shared_clock`, over the whole stream.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cerite.automaton import Automaton
from cerite.core.arrays import Arrays, Longs, Words, bit_rows, long_column, partition_ids
from cerite.core.budget import check_counting, counting_bytes
from cerite.engine.counting.blocks import Block, bits_of, new_block, part_of
from cerite.engine.counting.learnt import Learnt, Tables
from cerite.engine.counting.limbs import LimbSlot, to_kernel, to_limbs
from cerite.engine.counting.steps import CountedStates
from cerite.engine.counting.two_stacks import (
    LOW,
    CountingOptions,
    Queue,
    Scratch,
    Starts,
    count_blocks,
    count_events,
    sweep,
)
from cerite.engine.events.keys import Reach, write_lows
from cerite.engine.events.rows import Deferred, Rows
from cerite.engine.state.chains import packed
from cerite.engine.state.cursor import Cursor, Stop, consumption, new_cursor, of_longs, to_longs
from cerite.engine.state.slots import grown
from cerite.engine.state.snapshot import fingerprint, pack, unpack
from cerite.engine.subset.base import Batch, SubsetEngine
from cerite.predicate.columns.kernels import Lookup

CEILING_BITS = 62  # numbers in the kernel stay below 2**CEILING_BITS
LONG = 256  # events of a single stream that are read in wide numbers before these are looked at again
SMALL = 1 << 40  # a wide partition returns to the kernel when all its numbers are below this


@dataclass(frozen=True)
class Count:
    """How many matches, and at how many events at least one of them ended."""

    matches: int
    occurrences: int

    def __add__(self, other: "Count") -> "Count":
        return Count(self.matches + other.matches, self.occurrences + other.occurrences)


_BY_SLOT = ("epochs", "wide", "front", "back", "starts", "oldest", "newest", "p", "v")
_BY_NODE = ("node_class", "node_key", "node_next", "node_v")


class Counter(SubsetEngine[CountedStates]):
    """Counts the matches of one automaton over a stream given in batches."""

    def __init__(
        self,
        automaton: Automaton,
        *,
        windowed: bool = True,
        consume: str = "none",
        shared_clock: bool = False,
        learnt: Learnt | None = None,
    ) -> None:
        """`learnt` is where tables come from, and where `end` leaves them."""
        self._learnt = Learnt() if learnt is None else learnt
        super().__init__(*self._learnt.take(automaton))
        self.windowed = windowed
        self.consume = consume
        self.shared_clock = shared_clock
        self.wide_slots: dict[int, LimbSlot] = {}
        self.cursor = new_cursor()
        size = self.det.capacity
        self.epochs: Longs = np.zeros(1, np.int64)
        self.wide = np.zeros(1, np.bool_)
        self.front = np.full(1, -1, np.int32)
        self.back = np.full(1, -1, np.int32)
        self.starts = np.zeros(1, np.int32)
        self.oldest: Longs = np.zeros(1, np.int64)
        self.newest: Longs = np.zeros(1, np.int64)
        self.p = np.zeros((1, size, size) if windowed else (1, 1, 1), np.uint64)
        self.v = np.zeros((1, size), np.uint64)
        self.node_class = np.zeros(0, np.int32)
        self.node_key: Longs = np.zeros(0, np.int64)
        self.node_next = np.zeros(0, np.int32)
        self.node_v = np.zeros((0, size), np.uint64)
        self._room: Block | None = None
        self._matches = 0
        self._total: Words = np.zeros(1, np.uint64)
        self._fit_scratch(size)
        self.more_nodes()

    @property
    def active(self) -> int:
        """Deterministic states, over all partitions, that hold partial matches now."""
        older = (self.front >= 0)[:, None] & self.p.any(axis=2)
        return int(((self.v > 0) | older).sum())

    def end(self) -> None:
        """Nothing more will be read: what is known is left for the next run."""
        self._learnt.keep(Tables(self.automaton, self.det, self.classes), self.node_next.size)

    def read(self, rows: Rows) -> Count:
        """`feed` for a batch of the intake."""
        if isinstance(rows.given, Deferred) and self.classes.tables is not None:
            return self._read_blocks(rows.key, rows.given)
        return self.feed(rows.bits, rows.key, rows.low, rows.partition)

    def feed(
        self,
        bits: npt.ArrayLike,
        key: npt.ArrayLike,
        low: npt.ArrayLike,
        partition: npt.ArrayLike | None = None,
    ) -> Count:
        """Read a batch; returns what ended in it."""
        rows = bit_rows(bits)
        n = rows.shape[0]
        if not n:
            return Count(0, 0)
        ids = partition_ids(partition, n)
        keys, lows = long_column(key, n, "key"), long_column(low, n, "low")
        self.slots.cover(ids)
        classes, relevant = self.classes.batch(rows, ids)
        self._begin()
        self._read(Batch(relevant, classes, keys, lows, ids))
        return self._counted()

    def _begin(self) -> None:
        """Begin to count anew."""
        self._matches = 0
        self._total[LOW] = 0
        self.cursor.next = self.cursor.high = self.cursor.occurrences = 0

    def _counted(self) -> Count:
        """What was counted since `_begin`."""
        matches = self._matches + int(self._total[LOW]) + (self.cursor.high << 64)
        return Count(matches, self.cursor.occurrences)

    def _read_blocks(self, key: Longs, deferred: Deferred) -> Count:
        """A batch of a single stream, block by block; a block that needs Python is finished by itself."""
        self._begin()
        at, none, (lookup, reach) = 0, key[:0], (deferred.lookup, deferred.reach)
        while at < key.size:
            relevant, why = -1, None
            block = self._block()
            if not self.wide_slots and block.table.size:
                at, relevant, why = self._run_blocks(at, key, lookup, reach, block)
                if why == Stop.DONE:
                    break
            end = min(at + block.low.size, key.size)
            classes, selection = block.classes[: end - at], block.relevant[: max(relevant, 0)]
            if relevant < 0:  # a class that is not known yet, or numbers that are too wide for the kernel
                write_lows(key[at:end], reach, block.low[: end - at])
                classes, selection = self.classes.batch(bits_of(part_of(lookup, at, end)), none)
                self.cursor.next, why = 0, None
            self._read(Batch(selection, classes, key[at:end], block.low[: end - at], none), why)
            at = end
        return self._counted()

    def _run_blocks(self, at: int, key: Longs, lookup: Lookup, reach: Reach, block: Block) -> tuple[int, int, int]:
        self.cursor.free_slots = self.slots.n_free
        steps, starts = self.det.counting_steps, self.starts_by_slot
        stop = count_blocks(at, key, lookup, reach, block, self._options, steps, starts, self.queue, self._scratch)
        self.slots.n_free = self.cursor.free_slots
        return stop

    def _block(self) -> Block:
        """Room for a block, with the tables of classes as they are now; without tables if these no longer suffice."""
        if self._room is None:
            self._room = new_block()
        table, effect = self.classes.tables or (self._room.classes[:0],) * 2
        return self._room._replace(table=table, effect=effect)

    def _read(self, batch: Batch, why: int | None = None) -> None:
        """Read a batch to its end; `why` says why the kernel has already stopped in it, if it has."""
        ids, relevant = batch.partition, batch.selection
        since = dict.fromkeys(self.wide_slots, 0)
        if since and not ids.size:
            self._read_wide(0, batch)
        why = self._run(batch) if why is None else why
        while why != Stop.DONE:
            x = self.cursor.next
            if why == Stop.MISS:
                self.det.fill(self.cursor.dstate, self.cursor.event_class)
                self._fit_dstates()
            elif why in (Stop.MORE_SLOTS, Stop.MORE_NODES):
                worth = self.shared_clock and ids.size and not self.slots.too_few
                if not (worth and self._swept(np.full(self.slots.slot_of.size, batch.low[relevant[x]]))):
                    (self._more_slots if why == Stop.MORE_SLOTS else self.more_nodes)()
            elif why == Stop.WIDE:
                self._run_wide(self._slot(x, batch), batch, relevant[x : x + 1])
                self.cursor.next = x + 1
            else:
                slot = self.cursor.slot
                self.wide_slots[slot] = to_limbs(self, slot)
                since[slot] = x
                if not ids.size:
                    self._read_wide(x, batch)
            why = self._run(batch)
        if ids.size and self.wide_slots:
            self._read_pending(since, batch)

    def snapshot(self) -> bytes:
        """The run state between two batches."""
        nodes = self._pack()
        meta, arrays = self.common_state()
        meta["fingerprint"] = self._fingerprint()
        meta["wide"] = list(self.wide_slots)
        used = self.slots.n_slots - self.slots.n_free
        arrays |= {name: getattr(self, name)[:used] for name in _BY_SLOT}
        arrays |= {name: getattr(self, name)[:nodes] for name in _BY_NODE} | {"cursor": to_longs(self.cursor)}
        backs = self.back[:used][self.back[:used] >= 0]
        arrays["node_v"] = self.node_v[: backs.min() if backs.size else nodes]  # only the front's are ever read
        arrays["p"] = self.p[:used][self.front[:used] >= 0]  # the same holds for products
        for slot, wide in self.wide_slots.items():
            arrays |= {f"wide {slot} {name}": array for name, array in wide.arrays().items()}
        return pack("counter", meta, arrays)

    def restore(self, data: bytes) -> None:
        """Continue, in a fresh counter of the same query, where a snapshot was taken."""
        meta, arrays = unpack(data, "counter", self._fingerprint())
        self.restore_common(meta, arrays)
        products, vectors = arrays["p"], arrays["node_v"]
        arrays["p"] = np.zeros((arrays["front"].size, *products.shape[1:]), np.uint64)
        arrays["p"][arrays["front"] >= 0] = products
        arrays["node_v"] = grown(vectors, arrays["node_next"].size)
        for name in _BY_SLOT:
            setattr(self, name, grown(arrays[name], self.slots.n_slots))
        self.cursor = of_longs(Cursor, arrays["cursor"])
        self._take_nodes({name: arrays[name] for name in _BY_NODE})
        for slot in meta["wide"]:
            mine = f"wide {slot} "
            saved = {name.removeprefix(mine): array for name, array in arrays.items() if name.startswith(mine)}
            self.wide_slots[slot] = LimbSlot.of_arrays(self.windowed, saved)
        self._fit_scratch(self.det.capacity)
        self._fit_dstates()

    def _fingerprint(self) -> str:
        return fingerprint(self.automaton, consume=self.consume, windowed=self.windowed)

    def _run_wide(self, slot: int, batch: Batch, events: Longs) -> None:
        """Read events of one wide partition."""
        wide = self.wide_slots[slot]
        matches, occurrences = wide.count(self.det, batch._replace(selection=events), self.consume != "none")
        self._fit_dstates()  # it may have met new ones
        self._matches += matches
        self.cursor.occurrences += occurrences
        if occurrences and self.consume == "any" and batch.partition.size:  # runs elsewhere end here, too
            self.cursor.epoch += 1
            self.epochs[slot] = self.cursor.epoch

    def _read_wide(self, x: int, batch: Batch) -> None:
        """A single stream in wide numbers, until they are small again or the batch ends."""
        wide = self.wide_slots[0]
        while x < batch.selection.size:
            self._run_wide(0, batch, batch.selection[x : x + LONG])
            x = min(x + LONG, batch.selection.size)
            if wide.below(SMALL):
                break
        self.cursor.next = x
        self._fit_dstates()
        if wide.below(SMALL):
            to_kernel(self, 0, self.wide_slots.pop(0))

    def _read_pending(self, since: dict[int, int], batch: Batch) -> None:
        """What the kernel left aside of a partitioned batch: the events of wide partitions."""
        slots = self.slots.slot_of[batch.partition[batch.selection]]
        if self.consume != "any":
            pending = np.flatnonzero((slots >= 0) & self.wide[slots])
            for slot in np.unique(slots[pending]).tolist():
                mine = pending[slots[pending] == slot]
                self._run_wide(slot, batch, batch.selection[mine[mine >= since[slot]]])
        self._fit_dstates()
        consumed = self.epochs != self.cursor.epoch
        for slot, wide in list(self.wide_slots.items()):
            if not self.wide[slot]:
                del self.wide_slots[slot]
            elif consumed[slot] or wide.below(SMALL):
                if consumed[slot]:
                    wide.clear()
                del self.wide_slots[slot]
                to_kernel(self, slot, wide)

    def _run(self, batch: Batch) -> int:
        self.cursor.free_slots = self.slots.n_free
        steps, starts = self.det.counting_steps, self.starts_by_slot
        why = count_events(batch, self._options, steps, starts, self.queue, self._scratch)
        self.slots.n_free = self.cursor.free_slots
        return why

    @property
    def _options(self) -> CountingOptions:
        limit = np.uint64((1 << CEILING_BITS) // self.det.fan_in)
        return CountingOptions(self.windowed, consumption(self.consume), limit, self.det.n_dstates)

    @property
    def starts_by_slot(self) -> Starts:
        """The live starts, as kernels read them."""
        return Starts(self.slots.slot_of, self.slots.free, *(getattr(self, name) for name in _BY_SLOT))

    @property
    def queue(self) -> Queue:
        """The nodes of the stacks, as kernels read them."""
        return Queue(self.node_class, self.node_key, self.node_next, self.node_v, self.cursor)

    def _slot(self, x: int, batch: Batch) -> int:
        """The slot of a relevant event's partition."""
        return int(self.slots.slot_of[batch.partition[batch.selection[x]] if batch.partition.size else 0])

    def _fit_dstates(self) -> None:
        old, size = self.v.shape[1], self.det.capacity
        if size > old:
            self._check(self.slots.n_slots, size)
            if self.windowed:
                self.p = np.pad(self.p, ((0, 0), (0, size - old), (0, size - old)))
            self.v = np.pad(self.v, ((0, 0), (0, size - old)))
            self.node_v = np.pad(self.node_v, ((0, 0), (0, size - old)))
            self._fit_scratch(size)

    def _check(self, slots: int, size: int) -> None:
        """Refuse what would take too much memory before it is allocated."""
        if self.windowed:
            check_counting(size, counting_bytes(slots, size))

    def _fit_scratch(self, size: int) -> None:
        spare, r = np.zeros((size + 1, size), np.uint64), np.zeros((size, size), np.uint64)
        self._scratch = Scratch(spare, r, self._total)

    def forget(self, lows: Longs) -> None:
        """Forget all that no event can bind any more; `lows` is by partition, for matches that end from now on."""
        by_slot = np.zeros(self.slots.n_slots, np.int64)
        by_slot[self.slots.slot_of[self.partitions]] = lows[self.partitions]
        for slot, wide in list(self.wide_slots.items()):
            if wide.newest < by_slot[slot]:
                wide.clear()
                to_kernel(self, slot, self.wide_slots.pop(slot))
        self._swept(lows)
        self._pack()

    @property
    def size(self) -> int:
        """How much there is to look through when something is to be forgotten."""
        return self.node_next.size + self.v.size + self.slots.slot_of.size

    def _pack(self) -> int:
        """Keep only the slots and queue nodes in use, and room for as many more; returns how many nodes are in use."""
        used = self.slots.pack()
        self.cursor.free_slots = self.slots.n_free
        for name in _BY_SLOT:
            setattr(self, name, grown(getattr(self, name)[used], self.slots.n_slots))
        self.wide_slots = {int(np.argmax(used == slot)): wide for slot, wide in self.wide_slots.items()}
        stacks = np.stack([self.front[: used.size], self.back[: used.size]])  # the fronts come first
        order, links = packed(stacks, self.node_next)
        self.front[: used.size], self.back[: used.size] = stacks
        self._take_nodes({name: getattr(self, name)[order] for name in _BY_NODE} | {"node_next": links})
        return order.size

    def _take_nodes(self, arrays: Arrays) -> None:
        """Take over queue nodes that are all in use, and make room for more."""
        for name, array in arrays.items():
            setattr(self, name, array)
        self.cursor.free_node = -1
        self.more_nodes()

    def _swept(self, lows: Longs) -> bool:
        """Whether so much was freed of partitions that can bind nothing any more that nothing needs to grow."""
        self.cursor.free_slots = self.slots.n_free
        moves = np.ones(self.det.capacity, np.bool_)
        moves[self.det.ended] = False
        freed = sweep(lows, moves, self.starts_by_slot, self.queue)
        self.slots.n_free = self.cursor.free_slots
        return 4 * freed > self.slots.n_slots

    def _more_slots(self) -> None:
        self._check(2 * self.slots.n_slots, self.det.capacity)
        n = self.slots.double()
        for name in _BY_SLOT:
            setattr(self, name, grown(getattr(self, name), n))

    def more_nodes(self) -> None:
        """Twice as many queue nodes, the new ones free."""
        old = self.node_next.size
        n = max(self._learnt.nodes, 2 * old)
        for name in _BY_NODE:
            setattr(self, name, grown(getattr(self, name), n))
        self.node_next[old:] = np.arange(old + 1, n + 1)
        self.node_next[-1] = self.cursor.free_node
        self.cursor.free_node = old
