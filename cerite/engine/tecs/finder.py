"""What the engines that find matches share: roots noted by a kernel are enumerated before their nodes are reclaimed.

Invariant: a batch's chunks are read to the end, or discarded, before the next batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from cerite.core.arrays import Flags, Ints, Longs, Pool
from cerite.engine.results.output import MatchChunk
from cerite.engine.state.chains import packed
from cerite.engine.state.cursor import new_cursor
from cerite.engine.state.slots import grown
from cerite.engine.suppress import Suppressor
from cerite.engine.tecs.enumerate import LAST_MARK, enumerate_matches
from cerite.engine.tecs.nodes import KIND, OTHER, UNION, Roots, Tecs, more_cells
from cerite.engine.tecs.select import Selector, maximal

FEWEST = 1 << 15  # nodes in the smallest arena; tests begin with less


class Finder:
    """The tECS of one run and the roots that wait to be enumerated."""

    head: Ints  # the first cells of the union-lists
    suppressor: Suppressor | None = None  # decides which events report, if not all do

    def __init__(self, strategy: str, limit: int | None) -> None:
        self.strategy, self.limit = strategy, limit
        self.cursor = new_cursor()
        self.nodes: Longs = np.zeros((FEWEST, 4), np.int64)
        self.cell_node: Ints = np.zeros(0, np.int32)
        self.cell_next: Ints = np.zeros(0, np.int32)
        self._selector = Selector(strategy)
        self._pool = Pool()  # of the memory of chunks
        self._reading = False
        self._silent = False
        self._fewest_roots = 0  # there is room for these, whatever the number of cells
        self.relevant: Longs = np.zeros(0, np.int64)  # the events of the last batch that could be part of a match

    def still_needed(self) -> Longs:
        """The positions that matches to come may contain, as of the last compaction."""
        nodes = self.nodes[: self.cursor.nodes]
        return np.unique(nodes[nodes[:, KIND] != UNION, OTHER])

    @property
    def tecs(self) -> Tecs:
        """The tECS, as kernels read it."""
        return Tecs(self.nodes, self.cell_node, self.cell_next, self.cursor)

    @property
    def occurrences(self) -> int:
        """Events so far at which a match ended."""
        return self.cursor.occurrences

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
        n, most = self.cursor.roots, self.limit
        roots = Roots(self.roots.event[:n], self.roots.node[:n])
        if n and self.suppressor is not None:  # decided also for what nobody reads
            chosen = self._chosen(roots.event)
            roots, most = Roots(roots.event[chosen], roots.node[chosen]), 1
        if roots.event.size and not self._silent:
            every = self._enumerated(roots, low, position, None if self.strategy == "max" else most)
            for chunk in maximal(every, most) if self.strategy == "max" else every:
                yield chunk
                if self._silent:  # discarded meanwhile: what is left may be more than can ever be enumerated
                    break
        self.cursor.roots = 0

    def _chosen(self, events: Longs) -> Flags:
        """Which roots SUPPRESS reports, given the event of each."""
        assert self.suppressor is not None
        return self.suppressor.reported(events)

    def _enumerated(self, roots: Roots, low: Longs, position: Longs, limit: int | None) -> Iterator[MatchChunk]:
        return enumerate_matches(roots, low, position, limit, self.nodes, self._selector, self._pool)

    def _fit_nodes(self) -> None:
        """After compaction: double the room if more than half of the nodes are alive or needed at once."""
        self._selector.forget()
        n = self.nodes.shape[0]
        alive = self.cursor.nodes + self.cursor.need
        if 2 * alive > n:
            self.nodes = grown(self.nodes, max(2 * n, 2 * alive))
        elif 16 * alive < n and n > FEWEST:
            self.nodes = self.nodes[: n // 2].copy()

    def _take_nodes(self, nodes: Longs) -> None:
        """The nodes of a snapshot."""
        self.nodes = grown(nodes, max(FEWEST, 2 * nodes.shape[0]))

    def _pack_cells(self) -> None:
        """Keep only the cells in use, and room for as many more."""
        order, links = packed(self.head, self.cell_next)
        self._take_cells(self.cell_node[order], links)

    def _take_cells(self, cell_node: Ints, cell_next: Ints) -> None:
        """Take over cells that are all in use, and make room for more."""
        self.cell_node, self.cell_next = cell_node, cell_next
        self.cursor.free_cell = -1
        self._more_cells()

    def _more_cells(self) -> None:
        self.cell_next = more_cells(self.cell_next, self.cursor)
        self.cell_node = grown(self.cell_node, self.cell_next.size)

    def _fit_roots(self) -> None:
        size = max(2 * self.cell_next.size + (1 << 16), self._fewest_roots)
        self.roots = Roots(np.zeros(size, np.int64), np.zeros(size, np.int64))


class Limited:
    """Keeps at most `limit` matches of every occurrence, over all chunks; those of one occurrence are consecutive."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._occurrence, self._taken = 0, 0

    def of(self, chunk: MatchChunk, ends: Longs, occurrences: Longs) -> MatchChunk:
        """What is left of the next matches; the ends in their chunk are the numbers of their roots."""
        if not len(chunk):
            return chunk
        own, roots = ends[chunk.ends], chunk.ends
        shown = own == LAST_MARK
        own[shown] = chunk.positions[chunk.offsets[1:][shown] - 1]
        chunk, of = replace(chunk, ends=own), occurrences[roots]
        first = np.flatnonzero(np.r_[True, of[1:] != of[:-1]])
        sizes = np.diff(np.r_[first, of.size])
        rank = np.arange(of.size) - np.repeat(first, sizes)
        if self._taken and int(of[0]) == self._occurrence:
            rank[: sizes[0]] += self._taken
        self._occurrence, self._taken = int(of[-1]), int(rank[-1]) + 1
        within = rank < self._limit
        return chunk if within.all() else chunk.select(np.flatnonzero(within))
