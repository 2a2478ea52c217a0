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
from cerite.engine.finder import Finder
from cerite.engine.intake import Rows
from cerite.engine.matches import Matches
from cerite.engine.partitions import CONSUME, grown
from cerite.engine.registers import layout as lay
from cerite.engine.registers.base import RegisterEngine
from cerite.engine.registers.tables import Machine
from cerite.engine.registers.update_kernel import update
from cerite.engine.snapshot import fingerprint, pack, unpack
from cerite.errors import SnapshotError

Longs = npt.NDArray[np.int64]


class RegisterRecogniser(RegisterEngine, Finder):
    """Finds the matches of one automaton with registers in a stream given in batches."""

    def __init__(
        self, machine: Machine, *, consume: str = "none", limit: int | None = None, strategy: str = "all",
        shared_clock: bool = False,
    ) -> None:  # fmt: skip
        RegisterEngine.__init__(self, machine, maximal=strategy == "max", shared_clock=shared_clock)
        Finder.__init__(self, strategy, limit)
        self.consume = consume
        self.cell_node = np.zeros(0, np.int32)
        self._more_cells()

    def read(self, rows: Rows) -> Iterator[Matches]:
        """Read a batch lazily; yields the matches that end in it, by ascending end."""
        self._begin()
        return self._read(self.events(rows))

    def snapshot(self) -> bytes:
        """The run state between two batches."""
        self._check_idle()
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
        self._take_nodes(arrays["nodes"])
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
            yield from self._drain(events.low, events.position)
            if why in (lay.MORE_NODES, lay.MORE_SETS, lay.MORE_INDEX, lay.RESET):
                if self.shared_clock and self.regs[tecs.NEXT] < events.kept.size:
                    np.maximum(self.lows, events.low[events.kept[self.regs[tecs.NEXT]]], out=self.lows)
                self.reclaim()
            self.more(why)
        self._reading = False

    def reclaim(self) -> None:
        """Compact the tECS; sets that hold nothing any more are left to `rebuild`."""
        n, sets = self.nodes.shape[0], int(self.regs[lay.N_SETS])
        self.regs[tecs.N_FREE] = 0
        compact(
            self.nodes, np.arange(sets, dtype=np.int32), np.zeros(sets, np.int32), np.zeros(sets, np.int64),
            self.lows[self.sets.part[:sets]], self.head, self.cell_node, self.cell_next, np.empty(n, np.int64),
            np.empty(n, np.int32), self.regs,
        )  # fmt: skip
        self._fit_nodes()

    def _more_cells(self) -> None:
        super()._more_cells()
        self.cell_node = grown(self.cell_node, self.cell_next.size)
        self._fit_roots()
