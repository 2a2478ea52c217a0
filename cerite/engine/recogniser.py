"""Recognition over batches: Algorithm 1 updates the tECS, Algorithm 2 enumerates, the window bounds the memory.

`Recogniser` owns the run state: the tECS, T of every partition, the determinised automaton and the event classes.

Invariants: results do not depend on where batches are cut; matches of an event are enumerated before the nodes under
them can be reclaimed. `low` must not decrease inside a partition, nor, with `shared_clock`,
over the whole stream. A batch's chunks are read to the end before the next
batch.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cerite.automaton import Automaton
from cerite.engine import tecs
from cerite.engine import update_kernel as uk
from cerite.engine.classes import EventClasses
from cerite.engine.columns import bit_rows, long_column, partition_ids
from cerite.engine.compact import compact
from cerite.engine.determinise import Determinised
from cerite.engine.determinise_max import MaxDeterminised
from cerite.engine.finder import Finder
from cerite.engine.intake import Rows
from cerite.engine.matches import Matches
from cerite.engine.partitions import CONSUME, Slots, grown
from cerite.engine.snapshot import common_state, fingerprint, pack, restore_common, unpack
from cerite.errors import SnapshotError

Longs = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """The kept events of a batch, as the kernels read them."""

    kept: Longs
    classes: npt.NDArray[np.int32]
    key: Longs
    low: Longs
    position: Longs
    ids: Longs


STRATEGIES = ("all", "next", "last", "max")
_STATE = ("regs", "epochs", "lows", "head", "cell_node", "cell_next")


class Recogniser(Finder):
    """Finds the matches of one automaton in a stream given in batches."""

    def __init__(
        self,
        automaton: Automaton,
        *,
        consume: str = "none",
        limit: int | None = None,
        strategy: str = "all",
        shared_clock: bool = False,
    ) -> None:
        if strategy not in STRATEGIES:
            raise ValueError(f"strategy must be one of {', '.join(STRATEGIES)}, not {strategy!r}")
        super().__init__(strategy, limit)
        self.automaton = automaton.trim()
        self.consume = consume
        self.shared_clock = shared_clock
        self.det = (MaxDeterminised if strategy == "max" else Determinised)(self.automaton)
        self.classes = EventClasses(self.automaton, self.det)
        self.slots = Slots()
        self.regs: Longs = np.zeros(11, np.int64)
        self.regs[tecs.FREE_CELL] = -1
        self.epochs: Longs = np.zeros(1, np.int64)
        self.lows: Longs = np.zeros(1, np.int64)
        self.head = np.full((1, self.det.capacity), -1, np.int32)
        self.cell_node = np.zeros(0, np.int32)
        self.cell_next = np.zeros(0, np.int32)
        self._more_cells()

    @property
    def occurrences(self) -> int:
        """Events so far at which a match ended."""
        return int(self.regs[tecs.OCCURRENCES])

    @property
    def active(self) -> int:
        """Deterministic states, over all partitions, that hold partial matches now."""
        return int((self.head >= 0).sum())

    def feed(
        self,
        bits: npt.ArrayLike,
        key: npt.ArrayLike,
        low: npt.ArrayLike,
        position: npt.ArrayLike,
        partition: npt.ArrayLike | None = None,
    ) -> Iterator[Matches]:
        """Read a batch lazily; yields the matches that end in it, by ascending end."""
        self._begin()
        rows = bit_rows(bits)
        n = rows.shape[0]
        ids = partition_ids(partition, n)
        keys, lows = long_column(key, n, "key"), long_column(low, n, "low")
        positions = long_column(position, n, "position")
        self.slots.cover(ids)
        classes, kept = self.classes.batch(rows, ids)
        return self._read(Batch(kept, classes, keys, lows, positions, ids))

    def read(self, rows: Rows) -> Iterator[Matches]:
        """`feed` for a batch of the intake."""
        return self.feed(rows.bits, rows.key, rows.low, rows.position, rows.partition)

    def snapshot(self) -> bytes:
        """The run state between two batches."""
        self._check_idle()
        self.reclaim()
        meta, arrays = common_state(self.det, self.classes, self.slots)
        meta["fingerprint"] = self._fingerprint()
        arrays |= {name: getattr(self, name) for name in _STATE}
        arrays["nodes"] = self.nodes[: self.regs[tecs.NODES]]
        return pack("recogniser", meta, arrays)

    def restore(self, data: bytes) -> None:
        """Continue, in a fresh recogniser of the same query, where a snapshot was taken."""
        meta, arrays = unpack(data, "recogniser")
        if meta["fingerprint"] != self._fingerprint():
            raise SnapshotError("the snapshot was taken with another query")
        restore_common(self.det, self.classes, self.slots, meta, arrays)
        for name in _STATE:
            setattr(self, name, arrays[name])
        self._take_nodes(arrays["nodes"])
        self._fit_scratch()

    def _fingerprint(self) -> str:
        return fingerprint(self.automaton, consume=self.consume, limit=self.limit, strategy=self.strategy)

    def _read(self, batch: Batch) -> Iterator[Matches]:
        self.regs[tecs.NEXT] = 0
        why = uk.MISS
        while why != uk.DONE:
            why = self._update(batch)
            if why == uk.MISS:
                self.det.fill(int(self.regs[tecs.DSTATE]), int(self.regs[tecs.CLASS]))
                self._fit_dstates()
                continue
            yield from self._drain(batch.low, batch.position)
            if why in (uk.MORE_SLOTS, uk.MORE_NODES) and self.shared_clock:
                np.maximum(self.lows, batch.low[batch.kept[self.regs[tecs.NEXT]]], out=self.lows)
            if why == uk.MORE_CELLS:
                self._more_cells()
            elif why == uk.MORE_NODES:
                self.reclaim()
            elif why == uk.MORE_SLOTS:
                if self.shared_clock and not self.slots.too_few:
                    self.reclaim()
                if 4 * self.slots.n_free <= self.slots.n_slots:
                    self._more_slots()
        self._reading = False

    def _update(self, batch: Batch) -> int:
        det, slots = self.det, self.slots
        self.regs[tecs.N_FREE] = slots.n_free
        why = uk.update(
            batch.kept, batch.classes, batch.key, batch.low, batch.position, batch.ids, CONSUME[self.consume],
            det.entry, det.touched, det.n_touched, det.succ, det.accepting,
            slots.slot_of, slots.free, self.epochs, self.lows, self.head,
            self.nodes, self.cell_node, self.cell_next, self._root_event, self._root_node, self._moving, self.regs,
        )  # fmt: skip
        slots.n_free = int(self.regs[tecs.N_FREE])
        return why

    def reclaim(self) -> None:
        """Compact the tECS, and the slots with it."""
        n = self.nodes.shape[0]
        self.regs[tecs.N_FREE] = self.slots.n_free
        compact(
            self.nodes, self.slots.slot_of, self.slots.free, self.epochs, self.lows, self.head,
            self.cell_node, self.cell_next, np.empty(n, np.int64), np.empty(n, np.int32), self.regs,
        )  # fmt: skip
        self.slots.n_free = int(self.regs[tecs.N_FREE])
        self._fit_nodes()

    def _fit_dstates(self) -> None:
        more = self.det.capacity - self.head.shape[1]
        if more > 0:
            self.head = np.pad(self.head, ((0, 0), (0, more)), constant_values=-1)
            self._moving = np.zeros(2 * self.det.capacity, np.int32)

    def _more_slots(self) -> None:
        n = self.slots.double()
        self.epochs, self.lows = grown(self.epochs, n), grown(self.lows, n)
        self.head = grown(self.head, n, -1)

    def _more_cells(self) -> None:
        old = self.cell_next.size
        n = max(1 << 10, 2 * old)
        self.cell_node, self.cell_next = grown(self.cell_node, n), grown(self.cell_next, n)
        self.cell_next[old:] = np.arange(old + 1, n + 1)
        self.cell_next[-1] = self.regs[tecs.FREE_CELL]
        self.regs[tecs.FREE_CELL] = old
        self._fit_scratch()

    def _fit_scratch(self) -> None:
        self._fit_roots()
        self._moving = np.zeros(2 * self.det.capacity, np.int32)
