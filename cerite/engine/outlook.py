"""What a query may cost, before anything runs: its deterministic states are explored, and a cost above budget is named.

Which states occur depends on the events; those that some stream of the query's event types leads to are explored, for a
bounded time. Where conditions decide as well as types, they may exclude each other, so that the number is only an upper
bound: then, and where only some streams are slow, there is a warning. A query that has more states than `core.budget`
allows, whatever its conditions, is refused.

Invariant: `explored` is at most the number of deterministic states that the engine can meet, if it says `certain`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from time import thread_time

import numpy as np
import numpy.typing as npt

from cerite.automaton import TRUE, Automaton
from cerite.automaton.guards import Guard, Test
from cerite.core.arrays import Words
from cerite.core.budget import counting_note, most_states, refuse_states
from cerite.core.errors import CeriteError
from cerite.engine.bind import bind
from cerite.engine.events.rows import Columns
from cerite.engine.guessed_kinds import TIME, columns_of
from cerite.engine.plan import Plan
from cerite.engine.registers.description import ADVICE, sums_of_choices
from cerite.pattern.check import Note

SECONDS = 0.5  # of processor time that exploring may take
CONDITIONS = 6  # conditions on events of one type whose combinations are all tried
MOVES = 200_000  # transitions that are looked at, over all kinds of events
SLOW_STATES = 150  # counting in a window takes the square of so many states for every event
SLOW_NODES = 10_000  # what NEXT looks at again for every event that leaves a window
_PER_SECOND = 2 * 10**7  # steps of either, roughly


@dataclass(frozen=True)
class Outlook:
    """How many deterministic states there are so far, whether these are all, and whether some stream leads to each."""

    states: int
    whole: bool
    certain: bool


def notes(plan: Plan) -> list[Note]:
    """Warnings about what a query may cost; more deterministic states than the budget allows are refused."""
    if plan.has_registers:
        return _sums(plan)
    most = most_states()
    outlook = explored(plan, most)
    if outlook is None:
        return []
    if outlook.states > most and outlook.certain:
        refuse_states(most)
    return [Note(message, hint=hint) for message, hint in _warnings(plan, outlook, most)]


def _sums(plan: Plan) -> list[Note]:
    """Warnings about sums over events that may be taken or left."""
    columns, _ = columns_of(plan, None)
    try:
        machine = bind(plan, columns, Columns(time=TIME)).machine
    except CeriteError:  # raised where the kinds of columns are known
        return []
    sums = [] if machine is None else sums_of_choices(machine)
    text = "{}: each of n events may be taken or left, which can give 2^n different sums, each kept apart"
    return [Note(text.format(each), hint=ADVICE) for each in sums]


def _warnings(plan: Plan, outlook: Outlook, most: int) -> Iterator[tuple[str, str]]:
    about = "" if outlook.whole else "at least "
    states, window = outlook.states, plan.window
    if states > most:
        yield (
            f"this query may have more than {most:,} deterministic states, and is refused by a stream that shows them",
            "repeat less often before or after what may be any event, or give a shorter window",
        )
    elif plan.counts_without_enumerating and window is not None:
        refused = counting_note(states)
        if refused is not None:
            yield (
                f"counting is refused by a stream that shows all of {about}{states:,} deterministic states: {refused}",
                "count without a window or with fewer repetitions, or run the query with LIMIT instead",
            )
        elif states > SLOW_STATES:
            events = max(1, round(_PER_SECOND / states**2))
            yield (
                f"counting in a window with {about}{states:,} deterministic states takes about a second for every "
                f"{events:,} events",
                "repeat less often, or count without the window",
            )
    elif plan.strategy == "next" and window is not None and window.unit == "events":
        nodes = int(window.width) * states
        if nodes > SLOW_NODES:
            yield (
                f"NEXT in a window of {int(window.width):,} events with {about}{states:,} "
                f"deterministic states takes about a second for every {max(1, _PER_SECOND // nodes):,} events",
                "give a shorter window, or repeat less often",
            )


def explored(plan: Plan, most: int) -> Outlook | None:
    """The deterministic states that lie in the window's reach; None if there are too many kinds of events to try.

    >>> from cerite.engine.plan import plan
    >>> from cerite.language.ceql import parse_query
    >>> explored(plan(parse_query("SELECT * FROM S WHERE A ; B+ ; C WITHIN 9 EVENTS")), 100)
    Outlook(states=4, whole=True, certain=True)
    """
    automaton = plan.automaton.trim()
    classes = list(_classes(automaton.conditions))
    if not classes or len(classes) * len(automaton.transitions) > MOVES:
        return None
    window = plan.window
    depth = int(window.width) if window is not None and window.unit == "events" else None
    certain = all(test.condition is None for guard in automaton.conditions for test in _tests(guard))
    states, whole = _reached(automaton, classes, most, depth)
    return Outlook(states, whole, certain)


def _tests(guard: Guard) -> Iterator[Test]:
    return (test for test in guard.tests | guard.negated if isinstance(test, Test))


def _classes(guards: tuple[Guard, ...]) -> Iterator[int]:
    """Which guards hold, as bits, for every kind of event: its type, and which conditions on that type hold."""
    tests = {test for guard in guards for test in _tests(guard)}
    classes: set[int] = set()
    for kind in (*sorted({test.type for test in tests if test.type is not None}), None):
        conditions = sorted(
            {str(test.condition) for test in tests if test.type in (kind, None) and test.condition is not None}
        )
        if len(conditions) > CONDITIONS:
            return
        for truth in product((False, True), repeat=len(conditions)):
            true = {text for text, holds in zip(conditions, truth, strict=True) if holds}

            def holds(test: object, kind: str | None = kind, true: set[str] = true) -> bool:
                assert isinstance(test, Test)
                return test.type in (kind, None) and (test.condition is None or str(test.condition) in true)

            classes.add(
                sum(
                    1 << number
                    for number, guard in enumerate(guards)
                    if all(map(holds, guard.tests)) and not any(map(holds, guard.negated))
                )
            )
    yield from sorted(classes)


def _reached(automaton: Automaton, classes: list[int], most: int, depth: int | None) -> tuple[int, bool]:
    """How many sets of states are reached in `depth` events, level by level, and whether none was left out."""
    begun = thread_time()
    words = -(-automaton.n_states // 64)
    moves = [_moves(automaton, holds, words) for holds in classes]
    level = np.zeros((1, words), np.uint64)
    level[0, automaton.initial // 64] = np.uint64(1 << automaton.initial % 64)
    known = level
    events = 0
    while len(level) and (depth is None or events < depth):
        events += 1
        new = known[:0]
        present = int.from_bytes(np.bitwise_or.reduce(level).tobytes(), "little")
        for by_state in (each for move in moves for each in move.values()):
            if thread_time() - begun > SECONDS:
                return len(known) + len(new), False
            targets = _unique(_targets(level, {q: to for q, to in by_state.items() if present >> q & 1}))
            new = _unique(np.concatenate([new, targets]))
        new = new[new.any(axis=1)]
        level = _without(new, known)
        known = _unique(np.concatenate([known, level]))
        if len(known) > most:
            return len(known), False
    return len(known), True


def _unique(rows: Words) -> Words:
    """The distinct rows, in the order of their bytes."""
    if rows.shape[1] == 1:
        return np.unique(rows[:, 0])[:, None]
    unique = np.unique(_as_one(rows))
    return unique.view(np.uint64).reshape(-1, rows.shape[1])


def _without(rows: Words, others: Words) -> Words:
    rest: Words = rows[~np.isin(_as_one(rows), _as_one(others), assume_unique=True)]
    return rest


def _as_one(rows: Words) -> npt.NDArray[np.void] | Words:
    """Every row as one value."""
    if rows.shape[1] == 1:
        return rows[:, 0]
    return np.ascontiguousarray(rows).view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1])))[:, 0]


def _moves(automaton: Automaton, holds: int, words: int) -> dict[int, dict[int, Words]]:
    """For each label, the states that it leads to from each state in an event where these guards hold."""
    moves: dict[int, dict[int, Words]] = {}
    for each in automaton.transitions:
        if each.condition == TRUE or holds >> each.condition & 1:
            to = moves.setdefault(each.label, {}).setdefault(each.source, np.zeros(words, np.uint64))
            to[each.target // 64] |= np.uint64(1 << each.target % 64)
    return moves


def _targets(level: Words, by_state: dict[int, Words]) -> Words:
    """The sets that all sets of a level go to under one label."""
    targets = np.zeros_like(level)
    for state, to in by_state.items():
        inside = (level[:, state // 64] >> np.uint64(state % 64)) & np.uint64(1)
        targets |= (np.uint64(0) - inside)[:, None] & to
    return targets
