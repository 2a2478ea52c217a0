"""A test of the tests: `./dev mutants` puts deliberate faults into the engine and reports those that no test notices.

Each fault is one replacement in one file. It is applied in a copy of the tree, with a cache of kernels of its own, and
`TESTS` are run there until the first one fails. A fault that survives is reported, and the command fails: either a test
is missing, or the code that was changed is not needed.

    ./dev mutants            all of them: some minutes, most of them for the run without a fault that comes first
    ./dev mutants edge       those with this word in what they break
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = (  # the first one finds most faults, without compiling
    "tests/engine_core/test_reached.py",
    "tests/engine_core",
    "tests/examples/test_suppress.py",
    "tests/faults/test_recycling.py",
    "tests/properties/test_recycling.py",
)
MINUTES = 15  # that a run may take: a fault may cause an endless loop


@dataclass(frozen=True)
class Fault:
    """`old`, which occurs once in the file, becomes `new`; `breaks` says what it does."""

    file: str
    old: str
    new: str
    breaks: str

    def apply(self, tree: Path) -> None:
        """Put the fault into a tree."""
        path = tree / "cerite" / "engine" / self.file
        path.write_text(path.read_text("utf-8").replace(self.old, self.new), "utf-8")


COMPACT, NODES, SUBSET, REGISTERS, TREE, GROUPS = (
    "tecs/compact.py",
    "tecs/nodes.py",
    "subset/recogniser.py",
    "registers/recogniser.py",
    "groups/tree.py",
    "groups/kernel.py",
)

FAULTS = (
    Fault(
        COMPACT, "nodes[cell_node[first], MAX] < lows[s]:", "nodes[cell_node[first], MAX] <= lows[s]:",
        "compaction forgets lists that start exactly at the window's edge",
    ),
    Fault(
        COMPACT, "nodes[cell_node[following], MAX] < lows[s]:", "nodes[cell_node[following], MAX] <= lows[s]:",
        "compaction forgets the rest of a list that starts exactly at the window's edge",
    ),
    Fault(
        COMPACT, "nodes[nodes[n, OTHER], MAX] >= low:", "nodes[nodes[n, OTHER], MAX] > low:",
        "compaction cuts right children that start exactly at the window's edge",
    ),
    Fault(
        NODES, "nodes[cell_node[after], MAX] == start:", "nodes[cell_node[after], MAX] == start + 1:",
        "insertion never unites nodes of equal maximum",
    ),
    Fault(
        NODES, "nodes[cell_node[after], MAX] < low:", "nodes[cell_node[after], MAX] <= low:",
        "insertion forgets what starts exactly at the window's edge",
    ),
    Fault(
        NODES, "and nodes[cell_node[cell], MAX] >= low:", "and nodes[cell_node[cell], MAX] > low:",
        "merging forgets what starts exactly at the window's edge",
    ),
    Fault(
        NODES, "return link(tecs, b, a)", "return link(tecs, a, b)",
        "gadget (b) puts the union node on the left",
    ),
    Fault(
        NODES, "if nodes[right_a, MAX] < nodes[right_b, MAX]:", "if nodes[right_a, MAX] < 0:",
        "gadget (d) is built as (c), not ordered by time",
    ),
    Fault(
        NODES, "link(tecs, nodes[b, LEFT], u2))", "link(tecs, nodes[b, LEFT], right_a))",
        "gadgets (c) and (d) lose a part",
    ),
    Fault(
        SUBSET, "        if start < low:\n", "        if start <= low:\n",
        "reading an event drops lists that start exactly at the window's edge",
    ),
    Fault(
        SUBSET, "if nodes[cell_node[present], MAX] < nodes[cell_node[given], MAX]:",
        "if nodes[cell_node[present], MAX] > nodes[cell_node[given], MAX]:",
        "the list that is joined into the other is the later one",
    ),
    Fault(
        SUBSET, "tecs.nodes[tecs.cell_node[cell], MAX] >= low:", "tecs.nodes[tecs.cell_node[cell], MAX] > low:",
        "matches that start exactly at the window's edge are not noted",
    ),
    Fault(
        SUBSET, "need += 4 + length(", "need += length(",
        "an event asks for fewer nodes than it may need",
    ),
    Fault(
        REGISTERS, "        if start < low:\n", "        if start <= low:\n",
        "with registers, reading an event drops lists that start exactly at the window's edge",
    ),
    Fault(
        REGISTERS, "MAX] >= low:\n", "MAX] > low:\n",
        "with registers, matches that start exactly at the window's edge are not noted",
    ),
    Fault(
        REGISTERS, "need += 5 + (length(", "need += (length(",
        "with registers, an event asks for fewer nodes than it may need",
    ),
    Fault(
        "registers/base.py", "head[y, lay.LIST] = head[d, lay.LIST]", "head[y, lay.LIST] = head[y, lay.LIST]",
        "rebuilding gives sets the lists of others",
    ),
    Fault(
        "tecs/finder.py", "        self._selector.forget()\n", "",
        "what NEXT and LAST remember of nodes outlives compaction",
    ),
    Fault(
        "tecs/enumerate.py", "walked = nodes[right, MAX] >= oldest", "walked = nodes[right, MAX] > oldest",
        "enumeration leaves out what starts exactly at the window's edge",
    ),
    Fault(
        "tecs/enumerate.py", "if node < 0 or nodes[np.uint64(node), MAX] < oldest:",
        "if node < 0 or nodes[np.uint64(node), MAX] <= oldest:",
        "of matches that differ in their first mark, one that starts exactly at the window's edge is left out",
    ),
    Fault(
        "intake.py", "(0 if self.program.plan.late else 1) - int(window.amount)",
        "(0 if self.program.plan.late else 2) - int(window.amount)",
        "recycling forgets what the next event of a partition could still end in a window of events",
    ),
    Fault(
        "subset/recogniser.py", "np.maximum(self.lows[slots[owners]], lows[owners])", "lows[owners] + 1",
        "recycling forgets what starts exactly at the edge of the next window",
    ),
    Fault(
        "counting/two_stacks.py", "if windowed and (fresh or steps.n_touched[c]):", "if windowed and fresh:",
        "counting forgets, when it flips, the events that start nothing",
    ),
    Fault(
        "counting/blocks.py", "write_lows(key[begin:end], reach", "write_lows(key[: end - begin], reach",
        "counting by blocks takes the windows of the first block for all of them",
    ),
    Fault(
        "counting/counter.py", "classes, selection = block.classes[: end - at]", "self.cursor.next = 0\n            "
        "classes, selection = block.classes[: end - at]",
        "counting by blocks begins a block again that the kernel stopped in",
    ),
    Fault(
        "counting/two_stacks.py", "newest[s] < lows[part]", "newest[s] <= lows[part]",
        "recycling frees the slot of a counted partition whose last start is at the window's edge",
    ),
    Fault(
        "subset/recogniser.py", "drop_columns(self.head, self.det.ended, self.tecs)",
        "drop_columns(self.head, self.det.accepting, self.tecs)",
        "recycling forgets runs that have accepted and could go on",
    ),
    Fault(
        "recycle.py", "strings = distinct(*(engine.strings for engine in storing))",
        "strings = distinct(*(engine.strings for engine in storing[:0]))",
        "recycling forgets strings that registers hold",
    ),
    Fault(
        "registers/base.py", "column[known] = np.searchsorted(strings, column[known])",
        "column[known] = column[known]",
        "recycling leaves stored strings with the numbers that they had",
    ),
    Fault(
        "registers/leaves.py", "            self._ranks.keep(partitions)\n", "            pass\n",
        "recycling leaves the ranks of inner windows with the partitions that had the numbers before",
    ),
    Fault(
        "counting/limbs.py", "return int(keys[-1])", "return int(keys[0])",
        "recycling takes the oldest start of a partition with wide numbers for its newest",
    ),
    Fault(
        "events/keys.py", "last = block[-1]", "last = block[0]",
        "events that decrease from one block to the next are taken",
    ),
    Fault(
        "suppress.py", "last[part] < low:", "last[part] <= low:",
        "SUPPRESS reports an event exactly at the end of its time",
    ),
    Fault(
        "suppress.py", "self._last >= self._over", "self._last > self._over",
        "recycling forgets a report that an event of the same time could still meet",
    ),
    Fault(
        "suppress.py", "picked(self._last, partitions), picked(self._known, partitions)", "self._last, self._known",
        "recycling leaves reports with the partitions that had the numbers before",
    ),
    Fault(
        GROUPS, "and forest.key[x] < low:", "and forest.key[x] <= low:",
        "in groups, a start exactly at the window's edge is taken out",
    ),
    Fault(
        GROUPS, " or np.int64(events.nulls[i]) >> leaf & 1 == 1\n", "\n",
        "in groups, NULL is stored as a value",
    ),
    Fault(
        GROUPS, "if place.stage == Stage.UNREAD:", "if place.stage < Stage.COMPLETED:",
        "in groups, an event that goes on with more room moves all starts once more",
    ),
    Fault(
        GROUPS, "            keep_entries(forest.pending, x, target)\n", "            pass\n",
        "in groups, compaction forgets what only pending steps refer to",
    ),
    Fault(
        TREE, "(side == ABOVE and forest.value[x] == value)", "(side == BELOW and forest.value[x] == value)",
        "in groups, values equal to an event's lie on the wrong side of its cuts",
    ),
    Fault(
        TREE, "united(own[x, j], below, runs)", "united(sums[x, j], below, runs)",
        "in groups, the two sides of a union have words in common",
    ),
    Fault(
        TREE, "hand_down(at, forest, room, numbers, runs):\n            return -1", "(at >= 0):\n            return -1",
        "in groups, starts are stepped below a node that has not handed down its pending step",
    ),
    Fault(
        "groups/numbers.py", "                carry = value >> SHIFT\n", "                carry = np.uint64(0)\n",
        "in groups, a product of numbers with several limbs loses its carries",
    ),
)  # fmt: skip


def run_tests(tree: Path, cache: Path) -> str | None:
    """The test that failed first, or None."""
    environment = os.environ | {
        "PYTHONPATH": str(tree), "NUMBA_CACHE_DIR": str(cache), "CERITE_QUIET": "1", "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--tb=no", *TESTS]
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, text=True, timeout=60 * MINUTES, check=False
        )
    except subprocess.TimeoutExpired:
        return f"still running after {MINUTES} minutes"
    if done.returncode == 0:
        return None
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return failed[1] if failed else f"pytest ended with status {done.returncode}"


def main(words: list[str]) -> int:
    """Try the faults; the exit status says whether any survived."""
    chosen = [fault for fault in FAULTS if all(word in fault.breaks for word in words)]
    survived = 0
    with tempfile.TemporaryDirectory() as folder:
        whole, tree, kernels, cache = (Path(folder) / name for name in ("whole", "tree", "kernels", "cache"))
        for part in ("cerite", "tests"):
            shutil.copytree(ROOT / part, whole / part, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", whole)
        shutil.copytree(whole, tree)
        failed = run_tests(tree, kernels)
        if failed is not None:
            print(f"without any fault, {failed} fails")
            return 2
        for fault in chosen:
            for original, copy in ((whole, tree), (kernels, cache)):
                shutil.rmtree(copy, ignore_errors=True)
                shutil.copytree(original, copy)
            fault.apply(tree)
            begin = time.monotonic()
            failed = run_tests(tree, cache)
            survived += failed is None
            verdict = "SURVIVED" if failed is None else f"caught by {failed}"
            print(f"{fault.breaks}\n    {verdict}, {time.monotonic() - begin:.0f} s", flush=True)
    print(f"{survived} of {len(chosen)} faults survived")
    return int(survived > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
