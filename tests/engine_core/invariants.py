"""The invariants of the tECS and of union-lists (CORE sections 4.1, 4.2 and appendix B.3) as checks.

They hold in both engines that find matches on the tECS. Each check raises AssertionError with the node at fault.
`check_duplicate_free` walks every path, so it is for small structures.
"""

from cerite.engine.subset.recogniser import Recogniser
from cerite.engine.tecs import nodes as tecs
from cerite.engine.tecs.finder import Finder


def check_time_ordered(finder: Finder) -> None:
    """MAX is the latest start below a node, and left children are at least as late as right ones."""
    nodes = finder.nodes
    for n in range(finder.cursor.nodes):
        kind, left, other, latest = (int(x) for x in nodes[n])
        if kind == tecs.UNION:
            assert max(left, other) < n, f"node {n} is older than a child"
            assert nodes[left, tecs.MAX] >= nodes[other, tecs.MAX], f"union node {n} is not time-ordered"
        if kind != tecs.BOTTOM:
            assert latest == nodes[left, tecs.MAX], f"node {n} does not carry its maximum-start"


def check_3_bounded(finder: Finder) -> None:
    """No leftmost path crosses more than three union nodes before it outputs."""
    depth: list[int] = []
    for n in range(finder.cursor.nodes):
        union = finder.nodes[n, tecs.KIND] == tecs.UNION
        depth.append(depth[int(finder.nodes[n, tecs.LEFT])] + 1 if union else 0)
        assert depth[n] <= 3, f"node {n} has output-depth {depth[n]}"


def check_lists(finder: Finder) -> None:
    """Heads are not union nodes, maximum-starts decrease, and no list is longer than the number of dstates."""
    for row in finder.head:
        for first in row[row >= 0]:
            starts, cell = [], int(first)
            assert finder.nodes[finder.cell_node[cell], tecs.KIND] != tecs.UNION, "a list begins with a union"
            while cell >= 0:
                starts.append(int(finder.nodes[finder.cell_node[cell], tecs.MAX]))
                cell = int(finder.cell_next[cell])
            assert starts[1:] == sorted(set(starts[1:]), reverse=True), f"a list is not sorted: {starts}"
            assert starts[0] == max(starts), f"a list's head is not its latest: {starts}"
            if isinstance(finder, Recogniser):  # the register engine forgets dstates that hold nothing
                assert len(starts) <= finder.det.n_dstates + 1, f"a list is too long: {starts}"


def check_duplicate_free(finder: Finder) -> None:
    """No two full paths from a node represent the same open match."""
    meaning: list[list[tuple[int, tuple[tuple[int, int], ...]]]] = []
    for n in range(finder.cursor.nodes):
        kind, left, other, _ = (int(x) for x in finder.nodes[n])
        if kind == tecs.BOTTOM:
            meaning.append([(other, ())])
        elif kind == tecs.UNION:
            meaning.append(meaning[left] + meaning[other])
        else:
            meaning.append([(start, (*marks, (other, kind))) for start, marks in meaning[left]])
        assert len(set(meaning[n])) == len(meaning[n]), f"node {n} means some match twice"
