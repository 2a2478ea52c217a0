"""What a run of an engine reached, counted from outside: the product's kernels are not changed and pay nothing.

- `little_room` lets every arena begin with next to nothing, so that all of them grow, are compacted and rebuilt all the
  time; the constants it sets are read by Python when an engine is created.
- `tallied` puts wrappers around the kernels that Python calls (`KERNELS`, `compact`): how often each stopped and why,
  how often the tECS was compacted, and how often something alive then started exactly at its window's edge.
- `interpreted` replaces every kernel in `cerite.engine` by the Python function that it is compiled from. A helper of
  kernels, as `union`, is then looked up when it is called and can be wrapped, too: so gadgets are counted, and no event
  may take more nodes than it reserved. It also makes `MANY_SETS`, a constant in machine code, one that can be set.

Invariant: every `Stop` is among the reasons of some kernel, and a kernel that stops for any other fails its test.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

from cerite.engine.counting import counter as counting
from cerite.engine.counting import learnt, limbs
from cerite.engine.groups import base as groups
from cerite.engine.groups import counter as group_counting
from cerite.engine.groups import enumerate as run_enumerator
from cerite.engine.groups import finder as group_finding
from cerite.engine.registers import base
from cerite.engine.registers import counter as register_counting
from cerite.engine.registers import recogniser as registers
from cerite.engine.state import cursor, slots
from cerite.engine.subset import recogniser as subset
from cerite.engine.tecs import enumerate as enumerator
from cerite.engine.tecs import finder, nodes, select

Tally = Counter[str]

GADGETS = {f"gadget ({letter})" for letter in "abcd"}
COMPACTIONS = {"compacted", "compacted with a start at the edge", "compacted with a start beyond it"}


@dataclass(frozen=True)
class Kernel:
    """A kernel that Python calls by this name in this module, and why it stops; told apart by `prefix` in a tally."""

    module: ModuleType
    name: str
    stops: tuple[str, ...]
    prefix: str = ""

    @property
    def reached(self) -> frozenset[str]:
        """What a tally holds once it has stopped for every reason."""
        return frozenset(self.prefix + name for name in self.stops)


FINDING = Kernel(subset, "update", ("DONE", "MISS", "MORE_SLOTS", "MORE_NODES", "MORE_CELLS", "ROOTS_FULL"))
REGISTERS = Kernel(
    registers, "update",
    ("DONE", "MORE_SETS", "MORE_SCRATCH", "MORE_INDEX", "MORE_NODES", "MORE_CELLS", "ROOTS_FULL", "RESET"),
)  # fmt: skip
WALKING = Kernel(enumerator, "enumerate_roots", ("DONE", "CHUNK_FULL", "DEEPER", "CHOOSER_FULL"), "walk ")
COUNTING = Kernel(counting, "count_events", ("DONE", "MISS", "MORE_SLOTS", "MORE_NODES", "HOT", "WIDE"))
LIMBS = Kernel(limbs, "count_limbs", ("DONE", "MISS", "MORE_LIMBS"), "limbs ")
COUNTING_REGISTERS = Kernel(
    register_counting, "count",
    ("DONE", "MORE_SETS", "MORE_SCRATCH", "MORE_INDEX", "MORE_CELLS", "MORE_LIMBS", "RESET"),
)  # fmt: skip
COUNTING_GROUPS = Kernel(group_counting, "read_groups", ("DONE", "MISS", "MORE_STARTS", "MORE_LIMBS"))
FINDING_GROUPS = Kernel(group_finding, "read_groups", ("DONE", "MISS", "MORE_STARTS", "MORE_NODES", "ROOTS_FULL"))
WALKING_RUNS = Kernel(run_enumerator, "enumerate_runs", ("DONE", "CHUNK_FULL", "DEEPER"), "walk ")
KERNELS = (
    FINDING, REGISTERS, WALKING, COUNTING, LIMBS, COUNTING_REGISTERS, COUNTING_GROUPS, FINDING_GROUPS, WALKING_RUNS,
)  # fmt: skip


@contextmanager
def little_room(nodes_before_compaction: int) -> Iterator[None]:
    """Room for next to nothing, everywhere; with more nodes, roots wait for longer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slots, "FEWEST", 1)
        patch.setattr(finder, "FEWEST", nodes_before_compaction)
        patch.setattr(finder.Finder, "_fit_roots", _fit_roots)
        patch.setattr(nodes, "FEWEST_CELLS", 1)
        patch.setattr(enumerator, "CHUNK", 3)
        patch.setattr(enumerator, "FEWEST_MARKS", 1)
        patch.setattr(select, "FEWEST_SETS", 2)
        patch.setattr(base, "FEWEST_SETS", 2)
        patch.setattr(base, "FEWEST_ROWS", 1)
        patch.setattr(learnt, "FEWEST_NODES", 1)
        patch.setattr(groups, "FEWEST_STARTS", 1)
        patch.setattr(group_finding, "MOST_ROOTS", 1)
        patch.setattr(run_enumerator, "FEWEST_MARKS", 1)
        yield


@contextmanager
def tallied() -> Iterator[Tally]:
    """Count why kernels stop, and compactions."""
    tally: Tally = Counter()
    with pytest.MonkeyPatch.context() as patch:
        for each in KERNELS:
            codes: dict[int, str] = {cursor.Stop[name]: each.prefix + name for name in each.stops}
            patch.setattr(each.module, each.name, _counting(getattr(each.module, each.name), codes, tally))
        for module in (subset, registers):
            patch.setattr(module, "compact", _compacting(module.compact, tally))
        yield tally


@contextmanager
def interpreted() -> Iterator[Tally]:
    """Run kernels as Python, and count also the gadgets (a) to (d) of Figure 5 by which nodes are united."""
    with pytest.MonkeyPatch.context() as patch, np.errstate(over="ignore"):
        for name, module in list(sys.modules.items()):
            if name.startswith(("cerite.engine.", "cerite.core.")):
                for attribute, value in list(vars(module).items()):
                    if isinstance(value, Dispatcher):
                        patch.setattr(module, attribute, value.py_func)
        for module in (registers, register_counting):
            patch.setattr(module, "MANY_SETS", 1)
        with tallied() as tally:
            patch.setattr(nodes, "union", _uniting(nodes.union, tally))
            promised = Promise()
            patch.setattr(subset, "gather", _promising(subset.gather, promised))
            patch.setattr(registers, "needed", _promising(registers.needed, promised))
            yield tally
            promised.check()


class Promise:
    """How many nodes and cells there may be after an event: room for more is not ensured."""

    def __init__(self) -> None:
        self.cursor = cursor.new_cursor()
        self.nodes = self.cells = 0

    def note(self, at: cursor.Cursor, need: int) -> None:
        self.cursor = at
        self.nodes, self.cells = at.nodes + need, at.cells + need

    def check(self) -> None:
        assert self.cursor.nodes <= self.nodes, "an event took more nodes than it reserved"
        assert self.cursor.cells <= self.cells, "an event took more cells than it reserved"


def _promising(estimate: Any, promised: Promise) -> Any:
    """The estimate of what an event needs at most, compared with what it took when the next event is read."""

    def noted(*arguments: Any) -> Any:
        promised.check()
        result = estimate(*arguments)
        moving, need = result if isinstance(result, tuple) else (0, result)
        if moving >= 0:
            tecs = next(each for each in arguments if isinstance(each, nodes.Tecs))
            promised.note(tecs.cursor, int(need))
        return result

    return noted


def _fit_roots(engine: Any) -> None:
    """Room for the roots of one event: as many as it may leave cells."""
    engine.roots = nodes.Roots(*(np.zeros(engine.cell_next.size, np.int64) for _ in range(2)))


def _counting(kernel: Any, names: dict[int, str], tally: Tally) -> Any:
    def counted(*arguments: Any) -> int:
        why = int(kernel(*arguments))
        tally[names[why]] += 1
        return why

    return counted


def _compacting(compact: Any, tally: Tally) -> Any:
    def counted(tecs: nodes.Tecs, lists: nodes.Lists, *rest: Any) -> None:
        tally["compacted"] += 1
        for s in lists.slot_of[lists.slot_of >= 0]:
            for first in lists.head[s][lists.head[s] >= 0]:
                cell = int(first)
                while cell >= 0:
                    start = tecs.nodes[tecs.cell_node[cell], nodes.MAX]
                    tally["compacted with a start at the edge"] += int(start == lists.lows[s])
                    tally["compacted with a start beyond it"] += int(start < lists.lows[s])
                    cell = int(tecs.cell_next[cell])
        compact(tecs, lists, *rest)

    return counted


def _uniting(union: Any, tally: Tally) -> Any:
    def counted(tecs: nodes.Tecs, a: int, b: int) -> int:
        rows = tecs.nodes
        if rows[a, nodes.KIND] != nodes.UNION:
            gadget = "a"
        elif rows[b, nodes.KIND] != nodes.UNION:
            gadget = "b"
        else:
            right_a, right_b = rows[a, nodes.OTHER], rows[b, nodes.OTHER]
            gadget = "c" if rows[right_a, nodes.MAX] >= rows[right_b, nodes.MAX] else "d"
        tally[f"gadget ({gadget})"] += 1
        return int(union(tecs, a, b))

    return counted
