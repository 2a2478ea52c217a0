"""The Python side of `select_kernel`: what is remembered about the tECS's nodes, and its growth.

Invariant: memories belong to node numbers, so compaction forgets them all (`forget`).
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from cerite.engine import select_kernel as sk


class Selector:
    """What enumeration needs to walk to the NEXT- or LAST-greatest sets only; idle for any other strategy."""

    def __init__(self, strategy: str) -> None:
        self.active = strategy in ("next", "last")
        self._last = strategy == "last"
        self.forget()

    def forget(self) -> None:
        """Start anew, with other nodes."""
        self._chooser = self._empty(0) if self.active else None

    def fit(self, nodes: int) -> None:
        """Make room for a tECS with room for `nodes` nodes."""
        if self._chooser is not None and self._chooser.best_set.size != nodes:
            self._chooser = self._empty(nodes)

    @property
    def chooser(self) -> sk.Chooser | None:
        """What the kernel reads: None makes it one without selection."""
        return self._chooser

    def more_sets(self) -> None:
        """Make room for twice as many sets."""
        if self._chooser is not None:
            held = self._chooser
            self._chooser = held._replace(
                table=np.zeros(2 * held.table.size, np.int32), position=_doubled(held.position),
                before=_doubled(held.before), size=_doubled(held.size), jump=_doubled(held.jump),
            )  # fmt: skip
            sk.rehash(self._chooser)

    def _empty(self, nodes: int) -> sk.Chooser:
        room = 1 << 10
        return sk.Chooser(
            last=self._last, best_set=np.full(nodes, sk.UNKNOWN, np.int32), best_start=np.zeros(nodes, np.int64),
            stack=np.zeros(nodes + 1, np.int32), table=np.zeros(4 * room, np.int32),
            position=np.zeros(room, np.int64), before=np.zeros(room, np.int32), size=np.zeros(room, np.int32),
            jump=np.zeros(room, np.int32), sets=np.ones(1, np.int64),
        )  # fmt: skip


def _doubled(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.concatenate([values, np.zeros_like(values)])
