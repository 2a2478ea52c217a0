"""From a machine to the kernels' tables, and what wakes each state."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from cerite.automaton import Transition
from cerite.automaton.automaton import PLAIN
from cerite.core.arrays import Longs
from cerite.engine.events.masks import Masks
from cerite.engine.registers import interpret as op
from cerite.engine.registers import layout as lay
from cerite.engine.registers.interpret import Code
from cerite.engine.registers.leaves import Mark
from cerite.engine.registers.programs import Postfix
from cerite.engine.registers.tables import BIT, DROP, KEEP, Machine, Split


@dataclass(frozen=True, slots=True)
class Signature:
    """An event on which a state may move; see `index`."""

    kind: int
    bit: int = -1
    leaf: int = 0
    slot: int = 0
    op: int = 0
    is_float: bool = False

    @property
    def row(self) -> list[int]:
        """The signature as the kernels read it."""
        return [self.kind, self.bit, self.leaf, self.slot, self.op, int(self.is_float)]


LISTED = Signature(lay.LISTED)
# built once a machine, for all its runs
_TABLES: WeakKeyDictionary[Machine, dict[tuple[bool, bool], tuple[lay.Tables, Masks | None]]] = WeakKeyDictionary()


def signatures(machine: Machine, state: int) -> tuple[Signature, ...]:
    """What may move a state: any step but its unmarked loop, and any event on which that loop fails."""
    wakes: dict[Signature, None] = {}
    loops: list[Split] = []
    for t in machine.automaton.transitions:
        if t.source != state:
            continue
        split = machine.split(t.condition)
        if t.target == state and t.label == 0 and _leaves_alone(machine, t):
            loops.append(split)
            wakes |= dict.fromkeys(each for op in t.ops for each in watched(machine, op.watcher))
        else:
            wakes.setdefault(_when(machine, machine.bit(split.alone), split.programs))
    for each in _broken(machine, loops):
        wakes.setdefault(each)
    return (Signature(lay.ALWAYS),) if Signature(lay.ALWAYS) in wakes else tuple(wakes)


def watched(machine: Machine, watcher: int) -> list[Signature]:
    """What may move the runs of a watched pattern: the bits of its steps, or anything."""
    return _moving(machine, machine.automaton.watchers[watcher].entry)


def _moving(machine: Machine, first: int) -> list[Signature]:
    """The events that may move some configuration on the paths from a state on."""
    wakes: dict[Signature, None] = {}
    seen, todo = {first}, [first]
    while todo:
        state = todo.pop()
        loops = False
        for t in machine.automaton.transitions:
            if t.source != state:
                continue
            split = machine.split(t.condition)
            bit = machine.bit(split.alone)
            if t.target == state and bit < 0 and not split.programs and not split.groups and _leaves_alone(machine, t):
                loops = True
                wakes |= dict.fromkeys(each for op in t.ops for each in watched(machine, op.watcher))
                continue
            wakes.setdefault(Signature(lay.ALWAYS) if bit < 0 else Signature(lay.WHEN, bit))
            if t.target not in seen and t.target not in machine.automaton.finals:
                seen.add(t.target)
                todo.append(t.target)
        if state != first and not loops:
            wakes.setdefault(Signature(lay.ALWAYS))
    return list(wakes)


def _leaves_alone(machine: Machine, t: Transition) -> bool:
    actions = machine.actions(t.writes, t.clears, t.target)
    return all(actions[slot] == KEEP for slot in machine.live[t.target])


def _broken(machine: Machine, loops: list[Split]) -> list[Signature]:
    """The events on which a state does not stay."""
    if any(machine.bit(loop.alone) < 0 and not loop.programs and not loop.groups for loop in loops):
        return []
    if len(loops) != 1 or loops[0].programs:
        return [Signature(lay.ALWAYS)]
    bit = machine.bit(loops[0].alone)
    wakes = [] if bit < 0 else [Signature(lay.UNLESS, bit)]
    return wakes + [_when(machine, machine.bit(when), what) for when, what in loops[0].groups]


def _when(machine: Machine, bit: int, programs: tuple[int, ...]) -> Signature:
    simple = [each for p in programs if (each := machine.programs[p].simple)]
    for each in simple:
        if each.op == op.EQUAL:
            return Signature(lay.SAME, bit, each.leaf, each.slot, op.EQUAL, each.is_float)
    for each in simple:
        if each.op != op.DIFFERENT:
            leaf = machine.leaves[each.leaf]
            over = isinstance(leaf, Mark) and leaf.low and each.op == op.MORE  # a window that is over stays so
            return Signature(lay.PAST if over else lay.ORDER, bit, each.leaf, each.slot, each.op, each.is_float)
    return Signature(lay.ALWAYS) if bit < 0 else Signature(lay.WHEN, bit)


def tables(machine: Machine, *, maximal: bool, listed: bool = True) -> tuple[lay.Tables, Masks | None]:
    """The automaton as arrays for one run, and which events matter.

    With `listed`, the index can list all sets of a partition.
    """
    built = _TABLES.setdefault(machine, {})
    if (maximal, listed) not in built:
        fresh = _tables(machine, maximal=maximal, listed=listed)
        built[maximal, listed] = fresh, _masks(machine, fresh)
    shared, relevant = built[maximal, listed]
    return shared._replace(beyond=np.zeros(1, np.int64)), relevant


def _tables(machine: Machine, *, maximal: bool, listed: bool) -> lay.Tables:
    automaton = machine.automaton
    by_state = sorted(automaton.transitions, key=lambda t: t.source)
    lists: list[int] = []
    groups: list[list[int]] = []
    actions: dict[tuple[int, ...], int] = {}

    def put(programs: tuple[int, ...]) -> tuple[int, int]:
        begin = len(lists)
        lists.extend(programs)
        return begin, len(lists)

    final = min(automaton.finals, default=-1)  # none where nothing can match
    rows: list[list[int]] = []
    ops: list[list[int]] = []
    for t in by_state:
        split = machine.split(t.condition)
        first = len(groups)
        groups += [[machine.bit(when), *put(what)] for when, what in split.groups]
        action = tuple(machine.actions(t.writes, t.clears, t.target))
        number = actions.setdefault(action, len(actions))
        target = final if t.target in automaton.finals else t.target
        begin = len(ops)
        ops += [
            [op.watcher, int(op.resets), int(op.starts), int(op.spawns), int(op.forbids), int(op.marks)] for op in t.ops
        ]
        early, marks = int(t.target in automaton.before), int(t.label > 0 or t.shows)
        apart = int(bool(automaton.waits) and t.target in automaton.tails)
        fixed = not (split.programs or split.groups or t.ops) and all(each in (KEEP, DROP) for each in action)
        rows.append([machine.bit(split.alone), *put(split.programs), first, len(groups), t.label, target, number,
                     begin, len(ops), early, marks, apart, int(fixed)])  # fmt: skip
    watchers = [
        [
            each.kind, each.entry, actions.setdefault(tuple(machine.opening(each)), len(actions)),
            -1 if each.others is None else each.others, int(each.reads_around),
        ]
        for each in automaton.watchers
    ]  # fmt: skip
    elsewhere = {automaton.initial, *automaton.finals, *machine.inner}
    stored = [q for q in range(automaton.n_states) if q not in elsewhere]
    wakes = [signatures(machine, q) if q in stored else () for q in range(automaton.n_states)]
    wakes = [(*each, LISTED) if listed else tuple(each) for each in wakes]
    every = [*dict.fromkeys(one for each in wakes for one in each if one != LISTED), LISTED]
    counts = [sum(t.source == q for t in by_state) for q in range(automaton.n_states)]
    return lay.Tables(
        first=_starts(counts), t=_table(rows, 14), programs=np.array(lists, np.int64), groups=_table(groups, 3),
        actions=_table([list(each) for each in actions], len(machine.slots) + len(watchers)),
        program_table=_table([_program_row(each) for each in _placed(machine.programs)], 8),
        wakes_first=_starts([len(each) for each in wakes]),
        wakes=np.array([every.index(one) for each in wakes for one in each], np.int64),
        signatures=_table([each.row for each in every], 6), ops=_table(ops, 6), watchers=_table(watchers, 5),
        shape=np.array([automaton.initial, final, automaton.n_states, len(machine.slots), maximal, len(watchers),
                        bool(automaton.before)], np.int64),
        beyond=np.zeros(1, np.int64),
        string_order=np.zeros(0, np.int64),
    )  # fmt: skip


def code_of(machine: Machine, *, maximal: bool = False) -> Code | None:
    """The instructions of the programs, without an order of strings; None if each is one comparison.

    Queries that need more of the kernels anyway (`Watching`, `Deadlines`) always get the instructions: whether programs
    are run at all hardly matters there, and every combination would be compiled separately.
    """
    apart = watches(machine, maximal=maximal) or bool(machine.automaton.tails)
    if not apart and all(each.simple is not None for each in machine.programs):
        return None
    instructions = _table([list(pair) for each in machine.programs for pair in each.code], 2)
    stack, unknown = (np.zeros(8 + instructions.shape[0], np.int64) for _ in range(2))
    constants, order, beyond = np.array(machine.constants, np.int64), np.zeros(0, np.int64), np.zeros(1, np.int64)
    return Code(instructions, constants, order, stack, unknown, beyond)


def watches(machine: Machine, *, maximal: bool) -> bool:
    """Whether runs are compared with others: such an engine needs `Watching`."""
    return maximal or bool(machine.automaton.watchers) or bool(machine.automaton.before)


def _masks(machine: Machine, tables: lay.Tables) -> Masks | None:
    """Which bits make an event worth reading, when set and when not; None if every event is."""
    words = max(1, -(-len(machine.guards) // 64))
    when, unless = np.zeros(words, np.uint64), np.zeros(words, np.uint64)
    wanted = [(kind, bit) for kind, bit in tables.signatures[:-1, :2].tolist()]
    initial = machine.automaton.initial
    wanted += [(lay.WHEN, bit) for bit in tables.t[tables.first[initial] : tables.first[initial + 1], BIT].tolist()]
    common = [k for k, each in enumerate(machine.automaton.watchers) if each.kind != PLAIN]
    wanted += [(each.kind, each.bit) for k in common for each in watched(machine, k)]
    if machine.automaton.before:
        wanted += [(each.kind, each.bit) for each in _moving(machine, initial)]
    for kind, bit in wanted:
        if kind == lay.PAST and bit < 0:
            continue  # the next event that matters notices that a window is over
        if kind == lay.ALWAYS or bit < 0:
            return None
        (unless if kind == lay.UNLESS else when)[bit // 64] |= np.uint64(1 << bit % 64)
    return Masks(when, unless)


def _placed(programs: list[Postfix]) -> list[tuple[int, Postfix]]:
    ends = np.cumsum([len(each.code) for each in programs])
    return [(int(end) - len(each.code), each) for end, each in zip(ends, programs, strict=True)]


def _program_row(placed: tuple[int, Postfix]) -> list[int]:
    begin, program = placed
    needs = sum(1 << 2 * slot for slot in program.needs)
    row = [begin, begin + len(program.code), needs, 0, 0, 0, 0, 0]
    if program.simple is not None:
        each = program.simple
        row[3:] = [1, each.op, each.leaf, each.slot, int(each.is_float)]
    return row


def _starts(counts: list[int]) -> Longs:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _table(rows: list[list[int]], width: int) -> Longs:
    return np.array(rows, np.int64).reshape(len(rows), width)
