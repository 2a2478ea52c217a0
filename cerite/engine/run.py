"""A run of a program: everything that changes while events are read, and nothing else.

Invariant: results do not depend on where batches are cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from cerite.core.arrays import Arrays, under
from cerite.engine.bind import Program
from cerite.engine.counting.learnt import Learnt
from cerite.engine.engines import ENGINES, Engines
from cerite.engine.events.rows import Rows
from cerite.engine.groups.counter import GroupCounter
from cerite.engine.groups.finder import GroupFinder
from cerite.engine.intake import Intake
from cerite.engine.recycle import Recycler
from cerite.engine.results.output import MatchChunk
from cerite.engine.state.snapshot import kind_of


class Run(Engines):
    """One reading of a stream."""

    def __init__(self, program: Program, *, in_groups: bool | None = None, learnt: Learnt | None = None) -> None:
        """`in_groups` and `learnt` are those of `Engines`."""
        super().__init__(program, in_groups=in_groups, learnt=learnt)
        self.intake = Intake(program)
        self._recycler = Recycler(self.intake)

    def find(self, batch: pa.RecordBatch) -> Iterator[MatchChunk]:
        """The matches that end in the next batch, some at a time; to be read to the end before the batch after it."""
        return self.read(self._take(batch))

    def count(self, batch: pa.RecordBatch) -> int:
        """How many matches end in the next batch."""
        return self.counted(self._take(batch))

    def _take(self, batch: pa.RecordBatch) -> Rows:
        """The next batch, as engines read it."""
        self.recycle()
        return self.intake.take(batch)

    def recycle(self, *, now: bool = False) -> None:
        """Between batches: forget what no event can bind any more, if it is time to, or in any case `now`."""
        if now or self._recycler.due:
            self._recycler.recycle(self.used)

    def state(self, *, finding: bool = True, counting: bool = False) -> Arrays:
        """What a snapshot keeps of a run that finds, counts, or both; the numbers are recycled."""
        self.recycle(now=True)
        state = {f"intake.{name}": each for name, each in self.intake.state().items()}
        if finding:
            state["recogniser"] = np.frombuffer(self.recogniser.snapshot(), np.uint8)
        if self.suppressor is not None:
            state |= {f"suppressor.{name}": each for name, each in self.suppressor.state().items()}
        if counting:
            state["counter"] = np.frombuffer(self.counter.snapshot(), np.uint8)
        return state

    def restore(self, state: Arrays) -> None:
        """Continue, in a fresh run of the same program, where a snapshot was taken."""
        if "recogniser" in state:  # whichever engine was the right one for the first events
            self._finds_in_groups = kind_of(state["recogniser"].tobytes()) == GroupFinder.kind
        if "counter" in state:
            self._counts_in_groups = kind_of(state["counter"].tobytes()) == GroupCounter.kind
        for name in ENGINES:
            if name in state:
                getattr(self, name).restore(state[name].tobytes())
        self.intake.restore(under("intake.", state))
        if self.suppressor is not None:
            self.suppressor.restore(under("suppressor.", state))


def find(program: Program, batches: Iterable[pa.RecordBatch]) -> Iterator[MatchChunk]:
    """The matches of a program in a stream, some at a time."""
    run = Run(program)
    for batch in batches:
        yield from run.find(batch)
    yield from run.rest()


def count(program: Program, batches: Iterable[pa.RecordBatch]) -> int:
    """How many matches a program has in a stream."""
    run = Run(program)
    return sum(map(run.count, batches)) + run.count_rest()
