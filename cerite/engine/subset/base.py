"""What finding and counting by subsets share: deterministic states, event classes, and a slot for every partition.

Invariant: a partition has a slot exactly while it may hold a partial match; what `keep` leaves is numbered from 0 on.
"""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from cerite.automaton import Automaton
from cerite.core.arrays import Arrays, Ints, Longs, picked
from cerite.engine.state.slots import Slots
from cerite.engine.subset.classes import EventClasses
from cerite.engine.subset.determinise import Determinised


class Batch(NamedTuple):
    """A batch and its relevant events, as the kernels read them; `partition` is empty for a single stream."""

    selection: Longs  # the events to read, rising
    classes: Ints
    key: Longs
    low: Longs
    partition: Longs


D = TypeVar("D", bound=Determinised)


class SubsetEngine(Generic[D]):
    """One automaton without registers, determinised while it runs."""

    def __init__(self, automaton: Automaton, determinised: D, classes: EventClasses) -> None:
        """`automaton` is trimmed; it is `determinised` over these `classes`, which are empty or from another run."""
        self.automaton = automaton
        self.det = determinised
        self.classes = classes
        self.slots = Slots()

    @property
    def partitions(self) -> Longs:
        """The partitions that hold partial matches, as of the last `forget`."""
        return np.flatnonzero(self.slots.slot_of >= 0)

    def keep(self, partitions: Longs) -> None:
        """Number these partitions from 0 on; the others hold nothing."""
        self.slots.slot_of = picked(self.slots.slot_of, partitions, -1)
        self.classes.keep(partitions)

    def common_state(self) -> tuple[dict[str, Any], Arrays]:
        """The part of a snapshot that does not depend on what runs; the slots are packed."""
        meta = {
            "subsets": [sorted(subset) for subset in self.det.subsets],
            "filled": self.det.filled,
            "holds": [hex(holds) for holds in self.classes.holds],
        }
        return meta, {"last": self.classes.last, "slot_of": self.slots.owned}

    def restore_common(self, meta: dict[str, Any], arrays: Arrays) -> None:
        """Put `common_state` back into a fresh engine."""
        self.det.restore(meta["subsets"])
        self.classes.restore([int(holds, 16) for holds in meta["holds"]], arrays["last"])
        for d, c in meta["filled"]:
            self.det.fill(d, c)
        self.slots.restore(arrays["slot_of"])
