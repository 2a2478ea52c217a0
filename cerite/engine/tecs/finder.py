"""What the engines that find matches share: roots noted by a kernel are enumerated before their nodes are reclaimed.

Invariant: a batch's chunks are read to the end, or discarded, before the next batch.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cerite.core.arrays import Ints, Longs
from cerite.engine.output import MatchChunk
from cerite.engine.slots import grown
from cerite.engine.tecs import nodes as tecs
from cerite.engine.tecs.enumerate import enumerate_matches
from cerite.engine.tecs.select import Selector, maximal

FEWEST = 1 << 15  # nodes in the smallest arena; tests begin with less


class Finder:
    """The tECS of one run and the roots that wait to be enumerated."""

    regs: Longs
    head: Ints  # the first cells of the union-lists
    cell_node: Ints
    cell_next: Ints

    def __init__(self, strategy: str, limit: int | None) -> None:
        self.strategy, self.limit = strategy, limit
        self.nodes: Longs = np.zeros((FEWEST, 4), np.int64)
        self._selector = Selector(strategy)
        self._reading = False
        self._silent = False

    def discard(self, chunks: Iterator[MatchChunk]) -> None:
        """Finish a batch without enumerating what is left of it."""
        self._silent = True
        for _ in chunks:
            pass
        self._silent = False

    def _begin(self) -> None:
        if self._reading:
            raise RuntimeError("the chunks of the previous batch have not been read to the end")
        self._reading = True

    def _check_idle(self) -> None:
        if self._reading:
            raise RuntimeError("the chunks of the last batch have not been read to the end")

    def _drain(self, low: Longs, position: Longs) -> Iterator[MatchChunk]:
        """The matches under the roots noted so far; `low` and `position` are those of the batch's events."""
        n = int(self.regs[tecs.ROOTS])
        if n and not self._silent:
            limit = None if self.strategy == "max" else self.limit
            every = enumerate_matches(
                self._root_event[:n], self._root_node[:n], low, position, limit, self.nodes, self._selector
            )
            for chunk in maximal(every, self.limit) if self.strategy == "max" else every:
                yield chunk
                if self._silent:  # discarded meanwhile: what is left may be more than can ever be enumerated
                    break
        self.regs[tecs.ROOTS] = 0

    def _fit_nodes(self) -> None:
        """After compaction: if more than half of the nodes are alive or needed at once, double the room."""
        self._selector.forget()
        n = self.nodes.shape[0]
        alive = int(self.regs[tecs.NODES] + self.regs[tecs.NEED])
        if 2 * alive > n:
            self.nodes = grown(self.nodes, max(2 * n, 2 * alive))
        elif 16 * alive < n and n > FEWEST:
            self.nodes = self.nodes[: n // 2].copy()

    def _take_nodes(self, nodes: Longs) -> None:
        """The nodes of a snapshot."""
        self.nodes = grown(nodes, max(FEWEST, 2 * nodes.shape[0]))

    def _fit_roots(self) -> None:
        size = 2 * self.cell_next.size + (1 << 16)
        self._root_event: Longs = np.zeros(size, np.int64)
        self._root_node: Longs = np.zeros(size, np.int64)
