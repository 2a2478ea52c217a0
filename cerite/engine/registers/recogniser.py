"""Finding matches with registers: the register counterpart of `engine.recogniser`, on the same tECS.

Invariants: as there. Matches of an event are enumerated before the nodes under them can be reclaimed; results do not
depend on where batches are cut; memory follows the window.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from cerite.engine import tecs
from cerite.engine.compact import compact
from cerite.engine.enumerator import enumerate_matches
from cerite.engine.intake import Rows
from cerite.engine.matches import Matches
from cerite.engine.maximal import maximal
from cerite.engine.partitions import CONSUME, grown
from cerite.engine.recogniser import FEWEST
from cerite.engine.registers import layout as lay
from cerite.engine.registers.base import RegisterEngine
from cerite.engine.registers.tables import Machine
from cerite.engine.registers.update_kernel import update
from cerite.engine.selector import Selector
from cerite.engine.snapshot import fingerprint, pack, unpack
from cerite.errors import SnapshotError

Longs = npt.NDArray[np.int64]


class RegisterRecogniser(RegisterEngine):
    """Finds the matches of one automaton with registers in a stream given in batches."""

    def __init__(
        self, machine: Machine, *, consume: str = "none", limit: int | None = None, strategy: str = "all",
        shared_clock: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(machine, maximal=strategy == "max", shared_clock=shared_clock)
        self.consume, self.limit, self.strategy = consume, limit, strategy
        self._selector = Selector(strategy)
        self.nodes: Longs = np.zeros((FEWEST, 4), np.int64)
        self.cell_node = np.zeros(0, np.int32)
        self._reading = False
        self._silent = False
        self._more_cells()

    def read(self, rows: Rows) -> Iterator[Matches]:
        """Read a batch lazily; yields the matches that end in it, by ascending end."""
        if self._reading:
            raise RuntimeError("the chunks of the previous batch have not been read to the end")
        self._reading = True
        return self._read(self.events(rows))

    def discard(self, chunks: Iterator[Matches]) -> None:
        """Finish a batch without enumerating what is left of it."""
        self._silent = True
        for _ in chunks:
            pass
        self._silent = False

    def snapshot(self) -> bytes:
        """The run state between two batches."""
        if self._reading:
            raise RuntimeError("the chunks of the last batch have not been read to the end")
        self.reclaim()
        self.rebuild()
        arrays = {**self.state(), "cell_node": self.cell_node, "nodes": self.nodes[: self.regs[tecs.NODES]]}
        return pack("register recogniser", {"fingerprint": self._fingerprint()}, arrays)

    def restore(self, data: bytes) -> None:
        """Continue, in a fresh recogniser of the same query, where a snapshot was taken."""
        meta, arrays = unpack(data, "register recogniser")
        if meta["fingerprint"] != self._fingerprint():
            raise SnapshotError("the snapshot was taken with another query")
        self.restore_state(arrays)
        self.cell_node = arrays["cell_node"]
        self.nodes = grown(arrays["nodes"], max(FEWEST, 2 * arrays["nodes"].shape[0]))
        self._fit_roots()

    def _fingerprint(self) -> str:
        options = {"consume": self.consume, "limit": self.limit, "strategy": self.strategy}
        return fingerprint(self.machine.automaton, **options)

    def _read(self, events: lay.Events) -> Iterator[Matches]:
        self.regs[tecs.NEXT] = 0
        why = -1
        while why != lay.DONE:
            why = update(
                events, CONSUME[self.consume], self.tables, self.sets, self.index, self.scratch, self.head, self.nodes,
                self.cell_node, self.cell_next, self._root_event, self._root_node, self.lows, self.regs,
            )  # fmt: skip
            if why == lay.MORE_SCRATCH:
                self.more(why)
                continue
            yield from self._drain(events)
            if why in (lay.MORE_NODES, lay.MORE_SETS, lay.MORE_INDEX, lay.RESET):
                if self.shared_clock and self.regs[tecs.NEXT] < events.kept.size:
                    np.maximum(self.lows, events.low[events.kept[self.regs[tecs.NEXT]]], out=self.lows)
                self.reclaim()
            self.more(why)
        self._reading = False

    def _drain(self, events: lay.Events) -> Iterator[Matches]:
        n = int(self.regs[tecs.ROOTS])
        if n and not self._silent:
            limit = None if self.strategy == "max" else self.limit
            every = enumerate_matches(
                self._root_event[:n], self._root_node[:n], events.low, events.position, limit, self.nodes,
                self._selector,
            )  # fmt: skip
            yield from maximal(every, self.limit) if self.strategy == "max" else every
        self.regs[tecs.ROOTS] = 0

    def reclaim(self) -> None:
        """Compact the tECS; if more than half of the nodes are alive or needed at once, double the room."""
        n, sets = self.nodes.shape[0], int(self.regs[lay.N_SETS])
        self.regs[tecs.N_FREE] = 0
        compact(
            self.nodes, np.arange(sets, dtype=np.int32), np.zeros(sets, np.int32), np.zeros(sets, np.int64),
            self.lows[self.sets.part[:sets]], self.head, self.cell_node, self.cell_next, np.empty(n, np.int64),
            np.empty(n, np.int32), self.regs,
        )  # fmt: skip
        self._selector.forget()
        alive = int(self.regs[tecs.NODES] + self.regs[tecs.NEED])
        if 2 * alive > n:
            self.nodes = grown(self.nodes, max(2 * n, 2 * alive))
        elif 16 * alive < n and n > FEWEST:
            self.nodes = self.nodes[: n // 2].copy()

    def _more_cells(self) -> None:
        super()._more_cells()
        self.cell_node = grown(self.cell_node, self.cell_next.size)
        self._fit_roots()

    def _fit_roots(self) -> None:
        size = 2 * self.cell_next.size + (1 << 16)
        self._root_event: Longs = np.zeros(size, np.int64)
        self._root_node: Longs = np.zeros(size, np.int64)
