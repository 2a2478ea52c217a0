"""Unrolling: no loops, and registers that are written at most once (SRT report, algorithms 3-6, lemma 46).

`unroll(t, k)` has the runs of t of length up to k. Algorithm 6 makes a tree, with a new state and a new register for
every transition of every walk. All walks read the same event at the same depth, so here there is one register per
depth (`t1`, `t2`, … as the report calls the events), and nodes of the same depth that copy the same state and read the
same registers are one state. A new register is the copy of all registers that the old transition writes: no conversion
to single-register transducers is needed. A register that no transition on the walk wrote keeps its name
(FindLastAppearance finds nothing): alone it is empty, and inside an expression it holds what was written before.

Lemma 46 reads a window w as "runs of length up to w". Definition 39 decides otherwise: only marked events are counted,
so (true^x)* . A^o is in the window 1 with strings of any length, and the lemma fails for it. `unrolled_window` is exact
for definition 39: it unrolls what the window leaves if that is bounded, and refuses it if it is not.

Invariant: every state has one depth, every new register is written at one depth, and is read only where it was written.
"""

from __future__ import annotations

from collections.abc import Iterator

from cerite.core.errors import PatternError
from cerite.reference.srt.constructions import fresh, windowed
from cerite.reference.srt.epsilon import eliminate_epsilon
from cerite.reference.srt.explore import MOST, Step, explore
from cerite.reference.srt.flow import live, surely_written
from cerite.reference.srt.transducer import Registers, Transducer

Node = tuple[int, int, frozenset[tuple[str, str]]]  # depth, state it is a copy of, last copy of each register


def unroll(transducer: Transducer, length: int, *, limit: int = MOST) -> Transducer:
    """The runs of up to `length` events."""
    plain = eliminate_epsilon(transducer).trim()
    read_later = live(plain)
    copies = [fresh(f"t{depth + 1}", plain.registers) for depth in range(length)]

    def steps(node: Node) -> Iterator[Step[Node]]:
        depth, here, last = node
        for step in plain.leaving[here] if depth < length else ():
            assert step.condition is not None
            needed = read_later[step.target]
            copied = step.writes & needed
            after = {pair for pair in last if pair[0] in needed - copied} | {(name, copies[depth]) for name in copied}
            writes: Registers = frozenset((copies[depth],)) if copied else frozenset()
            target: Node = (depth + 1, step.target, frozenset(after))
            yield Step(step.condition.renamed(dict(last)), step.output, writes, target)

    def is_final(node: Node) -> bool:
        return node[1] in plain.finals

    start: Node = (0, plain.start, frozenset())
    return explore(start, steps, is_final, plain.registers, what="unrolling", limit=limit).trim()


def unrolled_window(transducer: Transducer, width: int, *, limit: int = MOST) -> Transducer:
    """Algorithm 3 for e[1..w]: the matches inside the window, without loops."""
    inside = windowed(eliminate_epsilon(transducer), width, limit=limit)
    length = longest_run(inside)
    if length is None:
        raise PatternError(
            "the window does not bound this expression: it passes over events before its first or after its last mark",
            hint="mark the first and the last event (^o), or unroll to a length of your choice",
        )
    return unroll(inside, length, limit=limit)


def longest_run(transducer: Transducer) -> int | None:
    """The length of the longest accepting walk of an ε-free, trimmed transducer; None if there is no longest."""
    depth = dict.fromkeys(range(transducer.n_states), 0)
    for _ in range(transducer.n_states):
        changed = False
        for step in transducer.transitions:
            if depth[step.target] < depth[step.source] + 1:
                depth[step.target] = depth[step.source] + 1
                changed = True
        if not changed:
            return max(depth.values())
    return None


def is_unrolled(transducer: Transducer) -> bool:
    """Whether the invariant holds: one depth per state and register, and nothing is read that may not be written."""
    if transducer.has_epsilon:
        return False
    depth = {transducer.start: 0}
    written_at: dict[str, int] = {}
    todo = [transducer.start]
    while todo:
        state = todo.pop()
        for step in transducer.leaving[state]:
            if step.target not in depth:
                depth[step.target] = depth[state] + 1
                todo.append(step.target)
            one_depth = all(written_at.setdefault(name, depth[state]) == depth[state] for name in step.writes)
            if depth[step.target] != depth[state] + 1 or not one_depth:
                return False
    known = surely_written(transducer)
    return all(step.reads & transducer.written <= known[step.source] for step in transducer.transitions)
