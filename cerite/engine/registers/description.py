"""A machine of registers in words: what it stores and for how long, what wakes an entry, and how many there are.

Everything is read off the tables that the engine runs (`Machine`, `signatures`), so it always agrees with the engine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from cerite.automaton import Transition
from cerite.automaton.automaton import LAST, MAX, NEXT, OTHERS, PLAIN, TRUE
from cerite.core.arrays import Words
from cerite.engine.registers import layout as lay
from cerite.engine.registers.compile import Signature, signatures, tables, watched
from cerite.engine.registers.interpret import AT_LEAST, AT_MOST, LESS, MORE, SUM_FLOAT, SUM_WHOLE, TALLY
from cerite.engine.registers.leaves import Leaf, Mark, Running
from cerite.engine.registers.programs import Slot
from cerite.engine.registers.tables import Machine
from cerite.predicate.expression import Attribute, Literal

_ORDERS = {LESS: "<", AT_MOST: "<=", MORE: ">", AT_LEAST: ">="}
_OWN = re.compile("`?\N{PRIME}(.*?)[0-9]+`?(?![0-9`])")
ADVICE = (
    "write `:+` instead of `+`, so that the events lie side by side, or SKIP_NEXT((… AS y):+), which leaves none out"
)
_WATCHED = {
    PLAIN: "must not complete meanwhile",
    NEXT: "NEXT: every other run through the part is compared with this one",
    LAST: "LAST: every other run through the part is compared with this one",
    MAX: "MAX: every other run through the part is compared with this one",
    OTHERS: "the runs that begin before the part does, with what the run has bound",
}


@dataclass(frozen=True)
class Stored:
    """A stored value: the states in which it is alive, the steps that store it, and the last ones that read it."""

    value: str
    alive: str
    stored_by: str
    last_read_by: str


@dataclass(frozen=True)
class Watched:
    """A pattern that is compared with the runs: what for, the states whose entries carry its set, what moves it."""

    entry: int
    why: str
    carried: str
    moved_by: tuple[str, ...]


@dataclass(frozen=True)
class Description:
    """A machine in words, one line for each condition, state and kind of entry."""

    tests: tuple[str, ...]
    conditions: tuple[str, ...]
    stored: tuple[Stored, ...]
    wakes: tuple[str, ...]
    watched: tuple[Watched, ...]
    dropped: str
    entries: tuple[str, ...]


def described(machine: Machine) -> Description:
    """The machine in words.

    >>> from cerite.engine.bind import bind
    >>> from cerite.engine.events.rows import Columns
    >>> from cerite.engine.plan import plan
    >>> from cerite.language.ceql import parse_query
    >>> query = parse_query("SELECT * FROM S WHERE A AS x ; B AS y FILTER y[v > x.v] WITHIN 5 EVENTS")
    >>> import pyarrow as pa
    >>> program = bind(plan(query), pa.schema({"type": pa.string(), "v": pa.int64()}), Columns("type"))
    >>> words = described(program.machine)
    >>> words.conditions, words.stored[0].value, words.wakes
    (('v > x.v: indexed by order',), 'x.v', ('q1: B with v > x.v, found by order',))
    """
    return Description(
        tests=tuple(readable(str(guard)) for guard in machine.guards),
        conditions=tuple(_conditions(machine)),
        stored=tuple(_stored(machine)),
        wakes=tuple(_waking(machine)),
        watched=tuple(_watching(machine)),
        dropped=_dropped(machine),
        entries=tuple(_entries(machine)),
    )


def _conditions(machine: Machine) -> Iterator[str]:
    wakes = [each for state in _waiting(machine) for each in signatures(machine, state)]
    by_hash = {(each.leaf, each.slot) for each in wakes if each.kind == lay.SAME}
    by_order = {(each.leaf, each.slot, each.op) for each in wakes if each.kind == lay.ORDER}
    for program in machine.programs:
        how = "checked on every entry that something else wakes"
        simple = program.simple
        if simple is not None and (simple.leaf, simple.slot) in by_hash:
            how = "indexed by hash"
        elif simple is not None and (simple.leaf, simple.slot, simple.op) in by_order:
            how = "indexed by order"
        yield f"{readable(program.text)}: {how}"


def _stored(machine: Machine) -> Iterator[Stored]:
    for slot, (register, _) in enumerate(machine.slots):
        alive = [q for q in _waiting(machine) if slot in machine.live[q]]
        ends, stores = [], []
        for t in machine.automaton.transitions:
            if register in t.writes and slot in machine.live[t.target]:
                stores.append(t)
            elif slot in machine.live[t.source] and slot not in machine.live[t.target]:
                ends.append(t)
        name = slot_text(machine.slots[slot])
        yield Stored(name, states_text(alive), _steps(machine, stores), _steps(machine, ends))


def _waking(machine: Machine) -> Iterator[str]:
    """By state, what wakes its entries."""
    for state in _waiting(machine):
        if state not in _inner(machine):
            wakes = [_wake(machine, each) for each in signatures(machine, state)]
            yield f"q{state}: {'; '.join(wakes) or 'nothing'}"


def _watching(machine: Machine) -> Iterator[Watched]:
    for number, watcher in enumerate(machine.automaton.watchers):
        carried = [q for q, each in enumerate(machine.watching) if number in each]
        moved = sorted({_wake(machine, each) for each in watched(machine, number)})
        yield Watched(watcher.entry, _WATCHED[watcher.kind], states_text(carried), tuple(moved))


def _dropped(machine: Machine) -> str:
    _, relevant = tables(machine, maximal=False)
    if relevant is None:
        return "dropped before the loop: nothing, any event may move something"
    when, unless = (_named(machine, words) for words in relevant)
    parts = ([f"satisfies none of {when}"] if when else []) + ([f"satisfies all of {unless}"] if unless else [])
    return f"dropped before the loop: every event that {' and '.join(parts)}"


def _named(machine: Machine, words: Words) -> str:
    bits = [bit for bit in range(len(machine.guards)) if int(words[bit // 64]) >> bit % 64 & 1]
    return ", ".join(readable(str(machine.guards[bit])) for bit in bits)


def _entries(machine: Machine) -> Iterator[str]:
    """How many entries there are at most, by the values that are alive in a state."""
    unclear = _unlabelled(machine)
    by_live: dict[frozenset[int], list[int]] = {}
    for state in _waiting(machine):
        if state not in _inner(machine):
            by_live.setdefault(machine.live[state], []).append(state)
    for live, states in by_live.items():
        values = ", ".join(sorted(slot_text(machine.slots[slot]) for slot in live))
        values = values if len(live) == 1 else f"({values})"
        sets = "set of " if any(machine.slots[slot][0] in unclear for slot in live) else ""
        yield f"{states_text(states)}: " + (f"one per distinct {sets}{values}" if live else "one each")
    if unclear:
        names = ", ".join(sorted({readable(name) for name in unclear}))
        yield f"the same marks may leave different events in {names}, so an entry holds a set of values"
    if machine.automaton.watchers:
        yield "times the different watched sets: what has been seen since the part began"
    yield from _changing(machine)


def _changing(machine: Machine) -> Iterator[str]:
    """How many different values an aggregate can have at a time, which depends on what its events may be."""
    for slot, (register, leaf) in enumerate(machine.slots):
        if not isinstance(leaf, Running):
            continue
        text, name = leaf.text(readable(register)), readable(register)
        if leaf.how == TALLY:
            yield f"{text}: at most one value per number of {'' if name == '*' else f'`{name}` '}events"
        elif leaf.how not in (SUM_WHOLE, SUM_FLOAT):
            yield f"{text}: at most one value per `{name}` event"
        elif not _chosen_freely(machine, slot):
            yield f"{text}: at most one value per event at which `{name}` may begin, as its events lie side by side"
        else:
            choices = f"{text}: `{name}` may take or leave each of n events, which can give 2^n sums, one entry each"
            yield f"{choices}; {ADVICE}"


def sums_of_choices(machine: Machine) -> list[str]:
    """The sums of which there may be one for every choice of events, exponentially many."""
    return [
        leaf.text(readable(register))
        for slot, (register, leaf) in enumerate(machine.slots)
        if isinstance(leaf, Running) and leaf.how in (SUM_WHOLE, SUM_FLOAT) and _chosen_freely(machine, slot)
    ]


def _chosen_freely(machine: Machine, slot: int) -> bool:
    """Whether a run may go round a loop that adds some events to a sum and leaves out others."""
    register = machine.slots[slot][0]
    steps = [t for t in machine.automaton.transitions if slot in machine.live[t.source] & machine.live[t.target]]
    ahead = {t.source: {each.target for each in steps if each.source == t.source} for t in steps}
    reach = {state: _closure(ahead, state) for state in ahead}
    around = [t for t in steps if t.source in reach.get(t.target, ()) or t.source == t.target]
    adding = {t.source for t in around if register in t.writes}
    leaving = {t.source for t in around if register not in t.writes}
    return any(one == other or {one, other} <= reach[one] & reach[other] for one in adding for other in leaving)


def _closure(ahead: dict[int, set[int]], state: int) -> set[int]:
    reached, todo = set(ahead.get(state, ())), list(ahead.get(state, ()))
    while todo:
        more = ahead.get(todo.pop(), set()) - reached
        reached |= more
        todo.extend(more)
    return reached


def _unlabelled(machine: Machine) -> set[str]:
    """The registers that one step writes and another with the same label keeps: the label does not tell which."""
    inner = _inner(machine)
    ambiguous = set()
    for slot, (register, _) in enumerate(machine.slots):
        steps = [t for t in machine.automaton.transitions if slot in machine.live[t.target] and t.source not in inner]
        writing = {t.label for t in steps if register in t.writes}
        if writing & {t.label for t in steps if register not in t.writes}:
            ambiguous.add(register)
    return ambiguous


def _waiting(machine: Machine) -> list[int]:
    automaton = machine.automaton
    return [q for q in range(automaton.n_states) if q != automaton.initial and q not in automaton.finals]


def _inner(machine: Machine) -> frozenset[int]:
    """The states of watched patterns, which occur only in the rows of watched sets."""
    automaton = machine.automaton
    inner = {watcher.entry for watcher in automaton.watchers}
    while more := {t.target for t in automaton.transitions if t.source in inner} - automaton.finals - inner:
        inner |= more
    return frozenset(inner)


def _wake(machine: Machine, signature: Signature) -> str:
    guard = "any event" if signature.bit < 0 else readable(str(machine.guards[signature.bit]))
    if signature.kind == lay.UNLESS:
        return f"any event that is not {guard}"
    if signature.kind not in (lay.SAME, lay.ORDER, lay.PAST):
        return guard
    slot, leaf = machine.slots[signature.slot], machine.leaves[signature.leaf]
    if signature.kind == lay.SAME:
        return f"{guard} with {_leaf(leaf)} = {slot_text(slot)}, found by hash"
    if signature.kind == lay.PAST and isinstance(leaf, Mark):
        what = "time" if signature.bit < 0 else guard
        return f"{what} past the end of WITHIN {leaf.size}, found by order"
    if isinstance(leaf, Mark):
        return f"{guard} inside WITHIN {leaf.size}, found by order"
    return f"{guard} with {_leaf(leaf)} {_ORDERS[signature.op]} {slot_text(slot)}, found by order"


def _leaf(leaf: Leaf) -> str:
    return f"the key of WITHIN {leaf.size}" if isinstance(leaf, Mark) else str(leaf.expression)


def slot_text(slot: Slot) -> str:
    register, leaf = slot
    if isinstance(leaf, Mark):
        return f"start of WITHIN {leaf.size}"
    if isinstance(leaf, Running):
        return leaf.text(readable(register))
    if isinstance(leaf.expression, Literal):
        return f"whether {readable(register)} has an event"
    if isinstance(leaf.expression, Attribute):
        return f"{readable(register)}.{leaf.expression}"
    return f"`{leaf.expression}` of {readable(register)}"


def readable(text: str) -> str:
    """The text without the sign before and the number behind the names of the construction's own registers.

    >>> readable("C[v > `\N{PRIME}y12`.v] AND WITHIN 3 EVENTS of \N{PRIME}window4")
    'C[v > y.v] AND WITHIN 3 EVENTS of window'
    """
    return _OWN.sub(r"\1", text)


def _steps(machine: Machine, steps: list[Transition]) -> str:
    texts: dict[str, None] = {}
    for t in steps:
        guard = "any event" if t.condition == TRUE else readable(str(machine.automaton.conditions[t.condition]))
        texts.setdefault(f"{guard} (q{t.source} → q{t.target})")
    return "; ".join(texts) or "the end of the match"


def states_text(states: frozenset[int] | list[int]) -> str:
    return ", ".join(f"q{q}" for q in sorted(states)) or "no state"
