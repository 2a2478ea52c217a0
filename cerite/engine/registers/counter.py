"""Counting matches with registers, exactly and without enumerating them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cerite.engine import tecs
from cerite.engine.count import Count
from cerite.engine.intake import Rows
from cerite.engine.partitions import CONSUME, grown
from cerite.engine.registers import layout as lay
from cerite.engine.registers.base import RegisterEngine
from cerite.engine.registers.count_kernel import WIDE, count, trim
from cerite.engine.registers.tables import Machine
from cerite.engine.snapshot import fingerprint, pack, unpack
from cerite.errors import SnapshotError

Limbs = npt.NDArray[np.uint64]


class RegisterCounter(RegisterEngine):
    """Counts the matches of one automaton with registers in a stream given in batches."""

    def __init__(self, machine: Machine, *, windowed: bool, consume: str = "none", shared_clock: bool = False) -> None:
        super().__init__(machine, shared_clock=shared_clock)
        self.windowed, self.consume = windowed, consume
        self.cell_key: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        self.numbers: Limbs = np.zeros((0, 2), np.uint64)
        self._more_cells()

    def read(self, rows: Rows) -> Count:
        """Read a batch; how many matches end in it."""
        events = self.events(rows)
        total: Limbs = np.zeros(self.numbers.shape[1] + 2, np.uint64)
        before = self.occurrences
        self.regs[tecs.NEXT] = 0
        why = -1
        while why != lay.DONE:
            why = count(
                events, CONSUME[self.consume], self.windowed, self.tables, self.sets, self.index, self.scratch,
                self.head, self.cell_key, self.cell_next, self.numbers, total, self.lows, self.regs,
            )  # fmt: skip
            if why == lay.MORE_LIMBS:
                self._widen()
                total = np.append(total, np.uint64(0))
            elif why in (lay.MORE_SETS, lay.MORE_INDEX, lay.MORE_CELLS, lay.RESET):
                used = self.regs[tecs.N_CELLS]
                self._trim(events)
                if why != lay.MORE_CELLS or 2 * (used - self.regs[tecs.N_CELLS]) < self.cell_key.size:
                    self.more(why)
            else:
                self.more(why)
        matches = sum(int(limb) << 32 * place for place, limb in enumerate(total))
        return Count(matches, self.occurrences - before)

    def snapshot(self) -> bytes:
        """The run state between two batches."""
        trim(self.lows, self.sets.part, self.head, int(self.regs[lay.N_SETS]), self.cell_key, self.cell_next, self.regs)
        self.rebuild()
        arrays = {**self.state(), "cell_key": self.cell_key, "numbers": self.numbers}
        return pack("register counter", {"fingerprint": self._fingerprint()}, arrays)

    def restore(self, data: bytes) -> None:
        """Continue, in a fresh counter of the same query, where a snapshot was taken."""
        meta, arrays = unpack(data, "register counter")
        if meta["fingerprint"] != self._fingerprint():
            raise SnapshotError("the snapshot was taken with another query")
        self.restore_state(arrays)
        self.cell_key, self.numbers = arrays["cell_key"], arrays["numbers"]

    def _fingerprint(self) -> str:
        return fingerprint(self.machine.automaton, consume=self.consume, windowed=self.windowed)

    def _trim(self, events: lay.Events) -> None:
        if self.shared_clock and self.regs[tecs.NEXT] < events.kept.size:
            np.maximum(self.lows, events.low[events.kept[self.regs[tecs.NEXT]]], out=self.lows)
        trim(self.lows, self.sets.part, self.head, int(self.regs[lay.N_SETS]), self.cell_key, self.cell_next, self.regs)

    def _widen(self) -> None:
        """One more limb for every number."""
        top = self.numbers[:, -1:]
        self.numbers = np.ascontiguousarray(
            np.hstack([self.numbers[:, :-1], top & np.uint64(0xFFFFFFFF), top >> np.uint64(32)])
        )
        self.regs[WIDE] = 0

    def _more_cells(self) -> None:
        super()._more_cells()
        self.cell_key = grown(self.cell_key, self.cell_next.size)
        self.numbers = grown(self.numbers, self.cell_next.size)
