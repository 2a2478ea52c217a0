"""The engines, on cases that reach what makes them work, and a count that says that they do.

Patterns are drawn in which three and more runs from one start meet in one deterministic state (several labels for one
move, unmarked moves that join), streams in which many events have one time, so that starts lie exactly at the window's
edge, and arenas have room for next to nothing, so that everything is compacted, grown and rebuilt all the time. After
every batch the invariants of the tECS are checked, and in the end all matches, against an oracle. Counting, and what is
moved in groups, read such streams as well, and numbers soon outgrow their form. All cases follow from their seeds.

How it is counted what was reached, and at no cost to the product: see `tests.engine_core.reach`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cerite.automaton import TRUE, Automaton, Transition
from cerite.core.match import Match as Named
from cerite.engine.bind import bind
from cerite.engine.counting import counter as counting
from cerite.engine.counting.counter import Counter
from cerite.engine.events.rows import Columns
from cerite.engine.groups import counter as group_counting
from cerite.engine.groups.counter import GroupCounter
from cerite.engine.groups.finder import GroupFinder
from cerite.engine.plan import plan
from cerite.engine.registers.counter import RegisterCounter
from cerite.engine.registers.recogniser import RegisterRecogniser
from cerite.engine.results.output import MatchChunk
from cerite.engine.run import Run
from cerite.engine.state.cursor import Stop
from cerite.engine.subset.recogniser import Recogniser
from cerite.engine.tecs.finder import Finder
from cerite.language.ceql import parse_query
from cerite.reference.semantics import Stream
from cerite.reference.semantics import matches as judged
from tests.engine_core.cases import Case
from tests.engine_core.common import expected_counts, in_groups, kleene
from tests.engine_core.invariants import check_3_bounded, check_duplicate_free, check_lists, check_time_ordered
from tests.engine_core.oracle import Event, Match, matches
from tests.engine_core.reach import (
    COMPACTIONS,
    COUNTING,
    COUNTING_GROUPS,
    COUNTING_REGISTERS,
    FINDING,
    FINDING_GROUPS,
    GADGETS,
    KERNELS,
    LIMBS,
    REGISTERS,
    WALKING,
    WALKING_RUNS,
    Tally,
    interpreted,
    little_room,
    tallied,
)


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


# ---------------------------------------------------------------- counting

MANY = 70  # events in an iteration: more runs than 64 bits count


def run_counting(seed: int) -> None:
    """Numbers are wide as soon as they reach 1 or 4, or never; every twentieth case needs more than 64 bits."""
    rng = random.Random(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "CEILING_BITS", rng.choice((1, 3, 62)))
        patch.setattr(counting, "SMALL", 2)
        if seed % 20 == 0:
            bits = np.array([1] + [2] * MANY + [4], np.uint64).reshape(-1, 1)
            key = np.arange(len(bits), dtype=np.int64)
            assert Counter(kleene()).feed(bits, key, key - len(bits)).matches == 2**MANY - 1
            return
        case = tied_case(rng)
        counter = Counter(case.automaton, consume=case.consume, shared_clock=seed % 2 == 0)
        counts = [counter.feed(b.bits, b.key, b.low, b.partition) for b in case.batches()]
    assert ([c.matches for c in counts], [c.occurrences for c in counts]) == expected_counts(case), f"seed {seed}"


def in_pieces(rng: random.Random, rows: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return [*pairwise([0, *sorted(rng.randrange(len(rows)) for _ in range(rng.randint(0, 3))), len(rows)])]


def check_counts(run: Run, rows: list[dict[str, Any]], pieces: list[tuple[int, int]], text: str) -> None:
    ends = [match.end for match in judged(parse_query(text), Stream.of(rows, time="at"))]
    for begin, end in pieces:
        counted = run.count(pa.RecordBatch.from_pylist(rows[begin:end], SCHEMA))
        assert counted == sum(begin <= each < end for each in ends), text


def check_many(in_groups: bool) -> None:
    """Two of three A are below both C; at the second, numbers that have come up to the first are multiplied."""
    text = "SELECT * FROM S WHERE A AS x ; (B OR B AS y)+ ; C[id > x.id] WITHIN 100 EVENTS"
    half = "B" * (MANY // 2)
    rows = [{"type": kind, "id": min(at, 2), "at": at} for at, kind in enumerate(f"AAA{half}C{half}C")]
    run = Run(bind(plan(parse_query(text)), SCHEMA, Columns("type", "at")), in_groups=in_groups)
    counted = run.count(pa.RecordBatch.from_pylist(rows, SCHEMA))
    assert counted == 2 * (3 ** len(half) - 1) + 2 * (3**MANY - 1)


def run_counting_registers(seed: int) -> None:
    rng = random.Random(seed)
    text, rows = read_case(rng)
    text = text.replace("SELECT LAST", "SELECT")
    if seed % 20 == 0:
        check_many(in_groups=False)
        return
    run = Run(bind(plan(parse_query(text)), SCHEMA, Columns("type", "at")), in_groups=False)
    check_counts(run, rows, in_pieces(rng, rows), text)
    assert isinstance(run.counter, RegisterCounter)


# ---------------------------------------------------------------- groups


def grouped_case(rng: random.Random) -> tuple[str, list[dict[str, Any]]]:
    """A query whose registers are moved in groups, and a stream of few different values."""
    where = rng.choice((
        "A AS x ; B+ ; C[id > x.id]", "A AS x ; B[id < x.id]+ ; C[id != x.id]", "A AS x ; (B[id >= x.id] ; C)+ ; A",
        "A AS x : (B[id >= x.id] OR A AS y) ; C[id <= x.id]", "(A AS x OR C) ; B ; C[id = x.id]",
        "A AS x ; B AS y ; C[id > x.id] AS z ; A[id < x.id]",
    ))  # fmt: skip
    window = rng.choice(("4 EVENTS", "9 EVENTS", "2 milliseconds", "5 milliseconds"))
    consume = rng.choice(("NONE", "NONE", "NONE", "ANY"))
    rows = tied_rows(rng, "".join(rng.choices("AAABBC", k=rng.randint(9, 14))), (0, 0, 1, 1, 2))
    for row in rows:
        row["id"] = rng.choice((0, 1, 1, 2, 3, None))
    return f"SELECT * FROM S WHERE {where} WITHIN {window} CONSUME BY {consume}", rows


def run_counting_groups(seed: int) -> None:
    rng = random.Random(seed)
    text, rows = grouped_case(rng)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group_counting, "NARROW_BITS", rng.choice((4, 60)))
        if seed % 20 == 0:
            check_many(in_groups=True)
            return
        run = Run(bind(plan(parse_query(text)), SCHEMA, Columns("type", "at")), in_groups=True)
        check_counts(run, rows, in_pieces(rng, rows), text)
    assert isinstance(run.counter, GroupCounter)


def run_finding_groups(seed: int) -> None:
    rng = random.Random(seed)
    text, rows = grouped_case(rng)
    run = in_groups(bind(plan(parse_query(text)), SCHEMA, Columns("type", "at")))
    assert isinstance(run.recogniser, GroupFinder)
    labels, matches = run.program.plan.automaton.labels, list[Named]()
    for begin, end in in_pieces(rng, rows):
        for chunk in run.find(pa.RecordBatch.from_pylist(rows[begin:end], SCHEMA)):
            matches += [named(match, labels) for match in as_tuples(chunk)]
    assert len(matches) == len(set(matches)), "no match is reported twice"
    assert sorted(matches) == sorted(judged(parse_query(text), Stream.of(rows, time="at"))), f"seed {seed}: {text}"


# ---------------------------------------------------------------- what is reached

ROOM = (4, 4, 256)  # nodes before the first compaction


@dataclass(frozen=True)
class Engine:
    """How a case of a seed is run, which seeds, and what has to be reached, in any form or only in Python."""

    run: Callable[[int], None]
    compiled: range
    interpreted: range
    reaches: frozenset[str]
    in_python: frozenset[str] = frozenset()


FOUND = frozenset(COMPACTIONS) | WALKING.reached
RESET = frozenset({"RESET"})  # which takes thousands of sets in machine code
ENGINES = {
    "plain": Engine(run_plain, range(300), range(500), FINDING.reached | FOUND, frozenset(GADGETS)),
    "registers": Engine(
        run_registers, range(120), range(120), (REGISTERS.reached | FOUND) - RESET, RESET | frozenset(GADGETS)
    ),
    "counting": Engine(run_counting, range(300), range(120), COUNTING.reached | LIMBS.reached),
    "counting with registers": Engine(
        run_counting_registers, range(120), range(120), COUNTING_REGISTERS.reached - RESET, RESET
    ),
    "counting in groups": Engine(run_counting_groups, range(200), range(200), COUNTING_GROUPS.reached),
    "finding in groups": Engine(
        run_finding_groups, range(200), range(200), FINDING_GROUPS.reached | WALKING_RUNS.reached
    ),
}


def test_every_reason_to_stop_is_expected_of_some_kernel() -> None:
    """A new `Stop` that no test reaches would not be missed otherwise."""
    assert {name for kernel in KERNELS for name in kernel.stops} == set(Stop.__members__)
    assert {each for engine in ENGINES.values() for each in engine.reaches | engine.in_python} >= {
        each for kernel in KERNELS for each in kernel.reached
    }


def run(engine: Engine, seeds: range) -> None:
    for seed in seeds:
        with little_room(ROOM[seed % len(ROOM)]):
            engine.run(seed)


def reached(tally: Tally, every: frozenset[str]) -> None:
    missing = sorted(every - set(+tally))
    assert not missing, f"never reached: {', '.join(missing)}; reached were {dict(tally)}"


@pytest.mark.parametrize("name", ENGINES)
def test_every_gadget_stop_and_compaction_as_python(name: str) -> None:
    engine = ENGINES[name]
    with interpreted() as tally:
        run(engine, engine.interpreted)
    reached(tally, engine.reaches | engine.in_python)


@pytest.mark.parametrize("name", ENGINES)
def test_every_stop_and_compaction_as_machine_code(name: str) -> None:
    engine = ENGINES[name]
    with tallied() as tally:
        run(engine, engine.compiled)
    reached(tally, engine.reaches)
