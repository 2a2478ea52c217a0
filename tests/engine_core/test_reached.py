"""Both engines that find matches, on cases that reach what makes them work, and a count that says that they do.

Patterns are drawn in which three and more runs from one start meet in one deterministic state (several labels for one
move, unmarked moves that join), streams in which many events have one time, so that starts lie exactly at the window's
edge, and arenas have room for next to nothing, so that everything is compacted, grown and rebuilt all the time. After
every batch the invariants of the tECS are checked, and in the end all matches, against an oracle. All cases follow from
their seeds.

How it is counted what was reached, and at no cost to the product: see `tests.engine_core.reach`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from cerite.automaton import TRUE, Automaton, Transition
from cerite.core.match import Match as Named
from cerite.engine.bind import bind
from cerite.engine.events.rows import Columns
from cerite.engine.plan import plan
from cerite.engine.registers.recogniser import RegisterRecogniser
from cerite.engine.results.output import MatchChunk
from cerite.engine.run import Run
from cerite.engine.subset.recogniser import Recogniser
from cerite.engine.tecs.finder import Finder
from cerite.language.ceql import parse_query
from cerite.reference.semantics import Stream
from cerite.reference.semantics import matches as judged
from tests.engine_core.cases import Case
from tests.engine_core.invariants import check_3_bounded, check_duplicate_free, check_lists, check_time_ordered
from tests.engine_core.oracle import Event, Match, matches
from tests.engine_core.reach import (
    COMPACTIONS,
    GADGETS,
    REGISTER_STOPS,
    STOPS,
    WALK_STOPS,
    Tally,
    interpreted,
    little_room,
    tallied,
)

WALKED = {f"walk {name}" for name in WALK_STOPS}


def check(finder: Finder) -> None:
    check_time_ordered(finder)
    check_3_bounded(finder)
    check_lists(finder)
    check_duplicate_free(finder)


def as_tuples(chunk: MatchChunk) -> list[Match]:
    rows = chunk.to_arrow().to_pydict()
    columns = zip(rows["start"], rows["end"], rows["positions"], rows["labels"], strict=True)
    return [(start, end, tuple(zip(ps, ls, strict=True))) for start, end, ps, ls in columns]


def by_end(matches: list[Match]) -> list[set[Match]]:
    ends = list(dict.fromkeys(match[1] for match in matches))
    assert ends == sorted(ends)
    assert len(matches) == len(set(matches)), "no match is reported twice"
    return [{match for match in matches if match[1] == end} for end in ends]


# ---------------------------------------------------------------- the plain engine


def meeting(rng: random.Random) -> Automaton:
    """An automaton with many ways between few states: under several labels, and unmarked ones that join."""
    states, labels, conditions = rng.randint(3, 5), rng.randint(1, 3), rng.randint(1, 2)
    moves = [Transition(q, rng.randrange(conditions), rng.randint(0, labels), q + 1) for q in range(states - 1)]
    moves += [Transition(q, TRUE, 0, q) for q in range(1, states - 1) if rng.random() < 0.6]
    for _ in range(rng.randint(3, 7)):
        source = rng.randrange(states - 1)
        target = rng.randint(max(1, source), min(states - 1, source + 2))
        moves.append(Transition(source, rng.randint(TRUE, conditions - 1), rng.randint(0, labels), target))
    names = (frozenset(), *(frozenset({f"v{k}"}) for k in range(1, labels + 1)))
    return Automaton(states, 0, frozenset({states - 1}), tuple(dict.fromkeys(moves)), tuple(range(conditions)), names)


STAY, JOIN = 3, 4  # conditions


def joined() -> Automaton:
    """Three states that runs stay in, that differ in how they started, until all go on, unmarked, into one."""
    moves = [Transition(0, k, k + 1, k + 1) for k in range(3)]
    moves += [Transition(k, condition, 0, target) for k in (1, 2, 3) for condition, target in ((STAY, k), (JOIN, 4))]
    moves += [Transition(4, TRUE, 0, 4), Transition(4, TRUE, 1, 5)]
    names = (frozenset(), *(frozenset({f"v{k}"}) for k in (1, 2, 3)))
    return Automaton(6, 0, frozenset({5}), tuple(moves), tuple(range(5)), names)


def tied_case(rng: random.Random) -> Case:
    """A stream in which most events have the time of the one before, and a window of few instants."""
    if rng.random() < 0.7:
        automaton, width, partitioned = meeting(rng), rng.randint(0, 3), rng.random() < 0.5
        every = (1 << len(automaton.conditions)) - 1
        bits = [rng.randint(0, every) | rng.randint(0, every) for _ in range(rng.randint(8, 14))]
    else:
        automaton, width, partitioned = joined(), rng.randint(1, 5), False
        bits = [rng.randint(1, 7) | 1 << STAY for _ in range(rng.randint(6, 9))] + [1 << JOIN, rng.randint(0, 31)]
    events, key = [], 0
    for position, holds in enumerate(bits):
        key += rng.choice((0, 0, 0, 1, 1, 2))
        partition = rng.choice((0, 0, 0, 1, 2, 40)) if partitioned else 0
        events.append(Event(holds, key, key - width, position, partition))
    cuts = sorted(rng.randrange(len(events)) for _ in range(rng.randint(0, 3)))
    return Case(automaton, events, rng.choice(("none", "none", "partition", "any")), True, partitioned, cuts)


def latest(matches: set[Match]) -> set[Match]:
    """LAST: of two sets of positions, the one with the last position in which they differ."""
    sets = {match: tuple(position for position, _ in reversed(match[2])) for match in matches}
    return {match for match in matches if sets[match] == max(sets.values())}


def run_plain(seed: int) -> None:
    rng = random.Random(seed)
    case, strategy = tied_case(rng), rng.choice(("all", "all", "last"))
    recogniser = Recogniser(case.automaton, consume=case.consume, strategy=strategy, shared_clock=seed % 2 == 0)
    reported: list[Match] = []
    for batch in case.batches():
        for chunk in recogniser.feed(batch.bits, batch.key, batch.low, batch.position, batch.partition):
            reported += as_tuples(chunk)
        check(recogniser)
    want = [at for at in matches(case.automaton, case.events, case.consume) if at]
    assert by_end(reported) == (list(map(latest, want)) if strategy == "last" else want), f"seed {seed}"


# ---------------------------------------------------------------- the engine with registers

SCHEMA = pa.schema({"type": pa.string(), "id": pa.int64(), "at": pa.int64()})


def stage(rng: random.Random) -> str:
    """Alternatives of one event, under several names and under none."""
    ways = [f"{rng.choice('AB')}{rng.choice((' AS y', ' AS y', ' AS z', ''))}" for _ in range(rng.randint(1, 4))]
    return f"({' OR '.join(dict.fromkeys(ways))}){rng.choice(('', '', '?', '+'))}"


def clauses(rng: random.Random, names: str, pattern: str) -> str:
    strategy, window = rng.choice(("", "", "", "LAST ")), f"{rng.randint(1, 5)} {rng.choice(('milliseconds', '[at]'))}"
    partition = rng.choice(("", "", "", "", "PARTITION BY [id]"))
    consume = rng.choice(("NONE", "NONE", "NONE", "ANY", "PARTITION"))
    return f"SELECT {strategy}{names} FROM S WHERE {pattern} {partition} WITHIN {window} CONSUME BY {consume}"


def reading(rng: random.Random) -> str:
    """A query whose conditions read an earlier event, in which runs meet."""
    steps = " ".join(f"{rng.choice(':;')} {stage(rng)}" for _ in range(rng.randint(1, 3)))
    tests = rng.choice(("y[id = x.id]", "y[id >= x.id]", "z[id <= x.id]", "y[id = x.id] AND z[id >= x.id]"))
    return clauses(rng, rng.choice(("*", "x, y", "y, z")), f"(A OR B) AS x {steps} ; (A AS y OR B AS z) FILTER {tests}")


def joining(rng: random.Random) -> str:
    """A query that tells runs apart by what they store of x until an unmarked B: there, all their lists join."""
    pattern = f"A AS x : (A AS w){rng.choice((':+', ':*'))} : B ; (A AS y OR B AS z) FILTER w[id < x.id + 3]"
    return clauses(rng, rng.choice(("x, y", "y, z")), pattern)


def tied_rows(rng: random.Random, types: str, later: tuple[int, ...]) -> list[dict[str, Any]]:
    rows, at = [], 0
    for kind in types:
        at += rng.choice(later)
        rows.append({"type": kind, "id": rng.choice((0, 0, 1, 1, 2)), "at": at})
    return rows


def read_case(rng: random.Random) -> tuple[str, list[dict[str, Any]]]:
    if rng.random() < 0.4:
        return reading(rng), tied_rows(rng, "".join(rng.choices("AB", k=rng.randint(6, 9))), (0, 0, 0, 1, 1, 2))
    return joining(rng), tied_rows(rng, "A" * rng.randint(6, 10) + rng.choice(("BA", "BBAB", "BABAA")), (0, 0, 1))


def run_registers(seed: int) -> None:
    rng = random.Random(seed)
    text, rows = read_case(rng)
    query = parse_query(text)
    run = Run(bind(plan(query), SCHEMA, Columns("type", "at")), in_groups=False)
    assert isinstance(run.recogniser, RegisterRecogniser)
    labels = run.program.plan.automaton.labels
    matches: list[Named] = []
    bounds = [0, *sorted(rng.randrange(len(rows)) for _ in range(rng.randint(0, 3))), len(rows)]
    for begin, end in pairwise(bounds):
        for chunk in run.find(pa.RecordBatch.from_pylist(rows[begin:end], SCHEMA)):
            matches += [named(match, labels) for match in as_tuples(chunk)]
        check(run.recogniser)
    assert len(matches) == len(set(matches)), "no match is reported twice"
    assert sorted(matches) == sorted(judged(query, Stream.of(rows, time="at"))), f"seed {seed}: {query}"


def named(match: Match, labels: tuple[frozenset[str], ...]) -> Named:
    start, end, marks = match
    return Named.of(start, end, [(name, position) for position, label in marks for name in labels[label]])


# ---------------------------------------------------------------- what is reached

ROOM = (4, 4, 256)  # nodes before the first compaction


@dataclass(frozen=True)
class Engine:
    """How a case of a seed is run, which seeds, and what stops the kernel that reads events."""

    run: Callable[[int], None]
    compiled: range
    interpreted: range
    stops: frozenset[str]


ENGINES = {
    "plain": Engine(run_plain, range(300), range(500), frozenset(STOPS)),
    "registers": Engine(run_registers, range(120), range(120), frozenset(REGISTER_STOPS)),
}


def run(engine: Engine, seeds: range) -> None:
    for seed in seeds:
        with little_room(ROOM[seed % len(ROOM)]):
            engine.run(seed)


def reached(tally: Tally, every: set[str]) -> None:
    missing = sorted(every - set(+tally))
    assert not missing, f"never reached: {', '.join(missing)}; reached were {dict(tally)}"


@pytest.mark.parametrize("name", ENGINES)
def test_every_gadget_stop_and_compaction_as_python(name: str) -> None:
    engine = ENGINES[name]
    with interpreted() as tally:
        run(engine, engine.interpreted)
    reached(tally, {*engine.stops, *COMPACTIONS, *WALKED, *GADGETS})


@pytest.mark.parametrize("name", ENGINES)
def test_every_stop_and_compaction_as_machine_code(name: str) -> None:
    engine = ENGINES[name]
    with tallied() as tally:
        run(engine, engine.compiled)
    reached(tally, {*engine.stops, *COMPACTIONS, *WALKED} - {"RESET"})  # which takes thousands of sets there
