"""State that stays small for ever: what no event can bind any more is forgotten, and its numbers are used again.

Values of partitions and strings in registers are numbered as they come, and all state by partition, as well as every
stored string, is known by these numbers. A stream of ever-new keys and strings would never stop numbering. So from time
to time the engines say what they still hold, the numbers in use are closed up in their order, and the rest is
forgotten: value, rank, last key, the place in every map. What stays is what can still be bound:

- a partial match whose start is in the window of an event that may still come. Windows of time are driven by one clock,
  so those of silent partitions close as well. A window of events or of an attribute moves only with its own partition:
  a partial match of a partition that fell silent may go on at any time, and lives;
- without a window every partial match that some event could take further;
- the time of a report that still silences its partition (SUPPRESS … PER PARTITION);
- the strings that stored values name, and the partitions of all these. Where runs are compared with all that began
  before them (`Plan.needs_history`), every partition that has begun one.

Invariant: recycling changes no match and no refusal that concerns what stays. It happens between batches, and before
every snapshot; a second time without events in between changes nothing. The amortised cost per event is O(1): recycling
waits until as many numbers have been given as there are things to look at.
"""

from __future__ import annotations

from collections.abc import Sequence

from cerite.core.arrays import Longs, distinct
from cerite.engine.counting.counter import Counter
from cerite.engine.groups.counter import GroupCounter
from cerite.engine.groups.finder import GroupFinder
from cerite.engine.intake import Intake
from cerite.engine.registers.counter import RegisterCounter
from cerite.engine.registers.recogniser import RegisterRecogniser
from cerite.engine.subset.recogniser import Recogniser
from cerite.engine.suppress import Suppressor

# engines that keep values of events, strings among them
Storing = RegisterRecogniser | RegisterCounter | GroupCounter | GroupFinder
Engine = Recogniser | Counter | Storing | Suppressor

FEWEST = 1 << 14  # up to so many numbers are not worth recycling; tests recycle after fewer


class Recycler:
    """Decides when the numbers of one run are worth recycling, and does it."""

    def __init__(self, intake: Intake) -> None:
        self._intake = intake
        self._enough = FEWEST
        self._done = -1, 0, 0  # events, low and engines when it was last done

    @property
    def due(self) -> bool:
        """Whether enough numbers have been given that recycling costs no more than they did."""
        return self._intake.names >= self._enough

    def recycle(self, engines: Sequence[Engine]) -> Longs | None:
        """Forget what none of the engines, which read the same intake and are idle, can bind any more.

        Returns the partitions that are numbered from 0 on now, None if none got another number.
        """
        intake = self._intake
        if self._done == (intake.rows, intake.low, len(engines)):
            return None
        self._done = intake.rows, intake.low, len(engines)
        lows = intake.lows()
        for engine in engines:
            engine.forget(lows)
        preceded = intake.preceded(lows)
        partitions = None if intake.groups is None else distinct(*(engine.partitions for engine in engines), preceded)
        storing = [each for each in engines if isinstance(each, Storing)]
        strings = distinct(*(engine.strings for engine in storing))
        intake.keep(partitions, strings)
        for engine in engines:
            if isinstance(engine, Storing):
                engine.keep(partitions, strings)
            elif partitions is not None:
                engine.keep(partitions)
        self._enough = intake.names + max(FEWEST, intake.state_size + sum(engine.size for engine in engines))
        return partitions
