"""Registers moved in groups: random patterns on random streams, against the judge and against the register engine.

The two engines share the machine and nothing else: one keeps an entry for every live value, the other all starts in one
tree. Streams are cut anywhere, with a snapshot at every cut, and everything begins with too little room; both counting
and finding are tested so, and what finding holds against the invariants that take the place of the tECS's.
"""

from __future__ import annotations

import random as chance
from collections import Counter
from contextlib import ExitStack
from decimal import Decimal
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import cerite
from cerite.core.match import Match
from cerite.data.columns import canonical_schema
from cerite.engine.bind import Program, bind
from cerite.engine.events.rows import Columns
from cerite.engine.groups import base, counter, finder, numbers
from cerite.engine.groups import enumerate as walking
from cerite.engine.groups.finder import GroupFinder
from cerite.engine.groups.grouping import Grouping
from cerite.engine.groups.runs import JOIN, NOTHING, RANK
from cerite.engine.plan import plan
from cerite.engine.recycle import Recycler
from cerite.engine.results.output import MatchChunk
from cerite.engine.run import Run
from cerite.engine.tecs import finder as tecs_finder
from cerite.engine.tecs.nodes import UNION
from cerite.reference.semantics import Stream, matches
from tests.engine_core.common import in_groups
from tests.properties.agreement import cases
from tests.telling import Share, often

OPS = st.sampled_from(["<", "<=", ">", ">=", "=", "!="])
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "whole": (pa.int64(), [0, 1, 2, 3, -(2**63), 2**63 - 1, None]),
    "float": (pa.float64(), [0.0, -0.0, 0.5, 1.0, float("inf"), float("-inf"), float("nan"), None]),
    "decimal": (pa.decimal128(8, 2), [Decimal("0.50"), Decimal("1.00"), Decimal("-3.25"), Decimal(2), None]),
    "text": (pa.string(), ["a", "b", "c", "d", None]),
}


@st.composite
def conditions(draw: st.DrawFn, kind: str) -> str:
    """A condition that compares with x.v."""
    if kind == "text":
        return f"v {draw(st.sampled_from(['=', '!=']))} x.v"
    forms = ["v {} x.v", "v {} x.v AND w > 0", "v {} x.v OR v = x.v", "NOT (v {} x.v)", "v {} x.v AND u != x.v"]
    if kind != "decimal":
        forms.append("x.v IN RANGE(u, v) OR v {} x.v")
    return draw(st.sampled_from(forms)).format(draw(OPS))


@st.composite
def parts(draw: st.DrawFn, kind: str) -> str:
    """A part after the first event."""
    reading = draw(conditions(kind))
    return draw(
        st.sampled_from(
            [
                "B", "B+", "C", "(B ; C+)+", "B:+", "_", f"C[{reading}]", f"C[{reading}]+", f"(B OR C[{reading}])",
                f"(C[{reading}] ; B)+", f"B[{reading}] ; C[{reading}]", f"B{{1,2}} ; C[{reading}]",
            ]
        )
    )  # fmt: skip


@st.composite
def queries(draw: st.DrawFn, kind: str) -> str:
    """A query whose registers are moved in groups."""
    first = draw(st.sampled_from(["A AS x", "A AS x", "(A AS x OR D)", "_ AS x", "A[w > 0] AS x"]))
    where = first
    for _ in range(draw(st.integers(1, 2))):
        gap = draw(st.sampled_from([" ; ", " ; ", " : ", f" ; NOT D[{draw(conditions(kind))}] ; "]))
        where += gap + draw(parts(kind))
    where += f" ; C[{draw(conditions(kind))}]" if "x.v" not in where or draw(st.booleans()) else ""
    window = draw(st.sampled_from(["3 EVENTS", "7 EVENTS", "4 milliseconds", "9 milliseconds", "5 [n]"]))
    partition = draw(st.sampled_from(["", "", " PARTITION BY [k]"]))
    consume = draw(st.sampled_from(["", "", "", " CONSUME BY PARTITION" if partition else " CONSUME BY ANY"]))
    return f"SELECT * FROM S WHERE {where}{partition} WITHIN {window}{consume}"


def table_of(rng: chance.Random, count: int, kind: str) -> pa.Table:
    """Events with ties in time, equal values, NULLs and NaNs."""
    drawn, values = VALUES[kind]
    at = n = 0
    rows = []
    for _ in range(count):
        at, n = at + rng.choice((0, 0, 1, 2)), n + rng.choice((0, 1, 3))
        rows.append({
            "type": rng.choice("AABBCCD"), "v": rng.choice(values), "u": rng.choice(values),
            "w": rng.choice((0, 1, None)), "k": rng.choice((1, 1, 2, None)), "at": at, "n": rng.choice((n, n, n, None)),
        })  # fmt: skip
    whole = {name: pa.int64() for name in ("w", "k", "at", "n")}
    schema = pa.schema({"type": pa.string(), "v": drawn, "u": drawn, **whole})
    return pa.Table.from_pylist(rows, schema)


def bound(text: str, table: pa.Table, semantics: Any) -> Program:
    return bind(plan(cerite.query(text).query, semantics), canonical_schema(table.schema), Columns("type", "at"))


def by_registers(program: Program) -> Run:
    """A run that moves every start by itself."""
    return Run(program, in_groups=False)


def in_pieces(run: Run, table: pa.Table, cuts: list[int], *, restored: bool) -> list[int]:
    counts = []
    for begin, end in zip([0, *cuts], [*cuts, table.num_rows], strict=True):
        piece = table.slice(begin, end - begin).combine_chunks()
        counts.append(sum(run.count(batch) for batch in piece.to_batches()))
        if restored:
            again = Run(run.program)
            again.restore(run.state(finding=False, counting=True))
            run = again
    return counts


Named = tuple[int, int, tuple[int, ...], tuple[tuple[str, int], ...]]  # end, start, positions, what is bound


def named(chunk: MatchChunk, labels: tuple[frozenset[str], ...]) -> list[Named]:
    """Matches that can be compared."""
    positions, marks, offsets = (each.tolist() for each in (chunk.positions, chunk.labels, chunk.offsets))
    every: list[Named] = []
    for m, (a, b) in enumerate(pairwise(offsets)):
        marked = zip(positions[a:b], marks[a:b], strict=True)
        pairs = sorted((variable, position) for position, label in marked for variable in labels[label])
        every.append((int(chunk.ends[m]), int(chunk.starts[m]), tuple(positions[a:b]), tuple(pairs)))
    return every


def named_by_judge(match: Match) -> Named:
    pairs = sorted((variable, position) for variable, positions in match.bindings for position in positions)
    return match.end, match.start, match.positions, tuple(pairs)


def found_in_pieces(run: Run, table: pa.Table, cuts: list[int], *, restored: bool) -> list[list[Named]]:
    pieces = []
    labels = run.program.plan.automaton.labels
    for begin, end in zip([0, *cuts], [*cuts, table.num_rows], strict=True):
        some: list[Named] = []
        for batch in table.slice(begin, end - begin).combine_chunks().to_batches():
            for chunk in run.find(batch):
                some += named(chunk, labels)
        pieces.append(some)
        if isinstance(run.recogniser, GroupFinder):
            check_nodes(run.recogniser)
        if restored:
            again = in_groups(run.program)
            again.restore(run.state())
            assert again.state()["recogniser"].tobytes() == run.state()["recogniser"].tobytes()
            run = again
    return pieces


def check_nodes(engine: GroupFinder) -> None:
    """The invariants of `runs`: what takes the place of those of the tECS."""
    nodes = engine.nodes[: engine.cursor.nodes].tolist()
    optional = [kind == NOTHING for kind, *_ in nodes]  # whether the word without marks is one of its words
    for n, (kind, left, other, rank) in enumerate(nodes):
        assert (kind == NOTHING) == (n == 0)
        if kind in (UNION, JOIN):
            assert left < n
            assert other < n
        if kind == UNION:
            assert rank == nodes[left][RANK] + 1
            assert nodes[left][RANK] <= nodes[other][RANK]
            assert not optional[other] or left != 0  # at most once
            optional[n] = optional[left] or optional[other]
            assert 2**rank <= len(nodes)
        else:
            assert rank == 0
        if kind == JOIN:
            assert not optional[left]
            assert not optional[other]
        if kind > 0:
            assert left < n
    forest, (starts, _) = engine.forest, engine._alive()
    entries = [forest.own[starts], forest.sums[starts], forest.pending[starts][forest.tagged[starts]]]
    for entry in np.concatenate([each.ravel() for each in entries]).tolist():
        assert entry < 2 or not optional[(entry >> 1) - 1]


KINDS = st.sampled_from(list(VALUES))
DRAWN = KINDS.flatmap(lambda kind: st.tuples(st.just(kind), queries(kind)))
SEMANTICS = st.sampled_from(["valuations", "valuations", "complex-events"])


@often(240)
@given(DRAWN, SEMANTICS, st.integers(0, 2**32))
def test_oracle(drawn: tuple[str, str], semantics: Any, seed: int) -> None:
    """Any cutting with a snapshot at every cut gives what the judge finds."""
    (kind, text), rng = drawn, chance.Random(seed)
    table = table_of(rng, 9, kind)
    program = bound(text, table, semantics)
    cuts = sorted(rng.randrange(table.num_rows) for _ in range(rng.randrange(4)))
    expected = matches(cerite.query(text).query, Stream.of(table.to_pylist(), time="at"), semantics=semantics)
    with patch.object(base, "FEWEST_STARTS", 1):
        counts = in_pieces(Run(program), table, cuts, restored=rng.random() < 0.7)
    ends = zip([0, *cuts], [*cuts, table.num_rows], strict=True)
    assert counts == [sum(begin <= match.end < end for match in expected) for begin, end in ends], text


@often(120)
@given(DRAWN, SEMANTICS, st.integers(0, 2**32), st.sampled_from([60, 20, 8]))
def test_differential(drawn: tuple[str, str], semantics: Any, seed: int, bits: int) -> None:
    """Longer streams and wider windows; numbers are widened early, the numbers of strings and partitions recycled."""
    (kind, text), rng = drawn, chance.Random(seed)
    text = text.replace("7 EVENTS", "40 EVENTS").replace("9 milliseconds", "30 milliseconds")
    table = table_of(rng, 150, kind)
    program = bound(text, table, semantics)
    cuts = sorted(rng.randrange(table.num_rows) for _ in range(rng.randrange(6)))
    expected = in_pieces(by_registers(program), table, cuts, restored=False)
    small, recycled = patch.object(counter, "NARROW_BITS", bits), patch.object(Recycler, "due", rng.random() < 0.5)
    with patch.object(base, "FEWEST_STARTS", 1), small, recycled:
        counts = in_pieces(Run(program), table, cuts, restored=rng.random() < 0.3)
    assert counts == expected, text


def few(rng: chance.Random) -> Any:
    """Everything begins with too little room, and nodes are reclaimed all the time."""
    stack = ExitStack()
    stack.enter_context(patch.object(base, "FEWEST_STARTS", 1))
    stack.enter_context(patch.object(finder, "MOST_ROOTS", rng.choice((1, 3, 100))))
    stack.enter_context(patch.object(tecs_finder, "FEWEST", rng.choice((2, 64, 1_000))))
    stack.enter_context(patch.object(walking, "FEWEST_MARKS", rng.choice((1, 4))))
    return stack


@often(240)
@given(DRAWN, SEMANTICS, st.integers(0, 2**32))
def test_found_as_the_judge_does(drawn: tuple[str, str], semantics: Any, seed: int) -> None:
    """Any cutting with a snapshot at every cut gives the judge's matches, each once and with those of its end."""
    (kind, text), rng = drawn, chance.Random(seed)
    table = table_of(rng, 9, kind)
    program, named_variables = bound(text, table, semantics), semantics == "valuations"
    cuts = sorted(rng.randrange(table.num_rows) for _ in range(rng.randrange(4)))
    judged = matches(cerite.query(text).query, Stream.of(table.to_pylist(), time="at"), semantics=semantics)
    with few(rng):
        pieces = found_in_pieces(in_groups(program), table, cuts, restored=rng.random() < 0.7)
    ends = zip([0, *cuts], [*cuts, table.num_rows], strict=True)
    for piece, (begin, end) in zip(pieces, ends, strict=True):
        assert [each[0] for each in piece] == sorted(each[0] for each in piece)
        assert len(set(piece)) == len(piece), text
        shown = sorted((*each[:3], each[3] if named_variables else ()) for each in piece)
        assert shown == sorted(named_by_judge(each) for each in judged if begin <= each.end < end), text


@cases(often(120), DRAWN, SEMANTICS, st.integers(0, 2**32), least=1 / 5)
def test_found_as_one_by_one(share: Share, drawn: tuple[str, str], semantics: Any, seed: int) -> None:
    """Longer streams and wider windows against the register engine, the numbers of strings and partitions recycled."""
    (kind, text), rng = drawn, chance.Random(seed)
    text = text.replace("7 EVENTS", "12 EVENTS").replace("9 milliseconds", "10 milliseconds")
    table = table_of(rng, 80, kind)
    program = bound(text, table, semantics)
    cuts = sorted(rng.randrange(table.num_rows) for _ in range(rng.randrange(6)))
    assume(sum(in_pieces(Run(program), table, [], restored=False)) < 20_000)
    expected = found_in_pieces(by_registers(program), table, cuts, restored=False)
    with few(rng), patch.object(Recycler, "due", rng.random() < 0.5):
        pieces = found_in_pieces(in_groups(program), table, cuts, restored=rng.random() < 0.3)
    assert list(map(sorted, pieces)) == list(map(sorted, expected)), text
    share.note(any(expected) and isinstance(program.grouping, Grouping))


@pytest.mark.parametrize("kind", VALUES)
def test_most_of_the_queries_are_grouped(kind: str) -> None:
    """Else the tests above would compare the register engine with itself."""
    grouped: list[bool] = []

    @often(120)
    @given(queries(kind), SEMANTICS)
    def look(text: str, semantics: Any) -> None:
        program = bound(text, table_of(chance.Random(0), 1, kind), semantics)
        grouped.append(isinstance(program.grouping, Grouping))

    look()
    assert sum(grouped) > len(grouped) / 2


# ------------------------------------------------------------ large numbers
KLEENE = "SELECT * FROM S WHERE A AS x ; B+ ; C[v > x.v] WITHIN {} EVENTS"


def streamed(count: int, seed: int) -> pa.Table:
    """All values different."""
    rng = chance.Random(seed)
    return pa.table({
        "type": [rng.choice("ABBBBC") for _ in range(count)], "v": [rng.random() for _ in range(count)],
        "at": list(range(count)),
    })  # fmt: skip


@pytest.mark.parametrize("window", [30, 120, 700])
def test_numbers_of_any_size(window: int) -> None:
    """Of 20, 80 and 470 bits, and snapshots on the way from one size to the next."""
    table = streamed(1_500, window)
    program = bound(KLEENE.format(window), table, "valuations")
    cuts = [1, 50, 90, 333, 600, 1_111]
    counts = in_pieces(Run(program), table, cuts, restored=True)
    assert counts == in_pieces(by_registers(program), table, cuts, restored=False)
    assert sum(counts).bit_length() > window / 2


def test_numbers_become_short_again() -> None:
    """After a time of many B come few: what is left does not keep the width of what was."""
    table = streamed(600, 1)
    quiet = pa.table({"type": ["D"] * 300 + ["A", "B", "C"], "v": [0.5] * 302 + [1.0], "at": list(range(600, 903))})
    program = bound(KLEENE.format(200), table, "valuations")
    run = Run(program)
    in_pieces(run, table, [], restored=False)
    assert isinstance(run.counter, counter.GroupCounter)
    assert run.counter.forest.limbs > 2
    assert in_pieces(run, quiet, [301], restored=False) == [0, 1]
    run.recycle(now=True)
    assert run.counter.forest.limbs == 1


@pytest.mark.parametrize(("where", "values", "window", "groups"), [
    ("A AS x ; C[v = x.v]", 1_000, 50, False), ("A AS x ; C[v = x.v]", 1, 2_000, True),
    ("A AS x ; B ; C[v = x.v]", 5, 30, False), ("A AS x ; B ; C[v = x.v]", 1_000, 300, True),
    ("A AS x ; B ; C[v > x.v]", 5, 30, True), ("A AS x ; B ; C[v = x.v]", 5, 9_000, True),
])  # fmt: skip
def test_counting_follows_how_many_entries_move(where: str, values: int, window: int, groups: bool) -> None:
    """What equals an event is found by hash: where it moves few entries at once, they are counted one by one."""
    rng = chance.Random(values)
    rows = {"type": rng.choices("ABC", k=6_000), "v": [float(rng.randrange(values)) for _ in range(6_000)]}
    table = pa.table(rows | {"at": list(range(6_000))})
    program = bound(f"SELECT * FROM S WHERE {where} WITHIN {window} EVENTS", table, "valuations")
    run = Run(program)
    counts = in_pieces(run, table, [5_000], restored=False)
    assert isinstance(run.counter, counter.GroupCounter) == groups
    assert in_pieces(by_registers(program), table, [5_000], restored=False) == counts
    assert in_pieces(Run(program), table, [5_000], restored=True) == counts
    assert sum(counts) > 10


def test_memory_follows_the_window() -> None:
    table = streamed(20_000, 3)
    program = bound(KLEENE.format(20), table, "valuations")
    run = Run(program)
    in_pieces(run, table, [7_000], restored=False)
    assert isinstance(run.counter, counter.GroupCounter)
    assert run.counter.active <= 20
    assert run.counter.forest.left.size <= base.FEWEST_STARTS
    assert numbers.NARROW_BITS == 60


# ------------------------------------------------------------ finding
CROWDED = [
    "A AS x ; B ; C[v > x.v]", "A AS x ; B[v > x.v] ; C[v <= x.v]", "A AS x ; NOT C[v = x.v] ; B ; C[v != x.v]",
    "A AS x ; B[v < x.v]+ ; C", "A AS x : (B[v >= x.v] OR A[v > x.v]) ; C[v < x.v]",
]  # fmt: skip


@cases(often(60), st.sampled_from(CROWDED), st.integers(0, 2**32), least=2 / 3)
def test_found_in_a_crowd(share: Share, where: str, seed: int) -> None:
    """Trees of some dozen starts with equal values among them, and something pending wherever a snapshot is taken."""
    rng = chance.Random(seed)
    types, values = rng.choice(("AAAAAABC", "AAABBC", "ABC")), rng.choice((8, 50))
    table = pa.table({
        "type": [rng.choice(types) for _ in range(120)], "v": [float(rng.randrange(values)) for _ in range(120)],
        "at": list(range(120)),
    })  # fmt: skip
    program = bound(f"SELECT * FROM S WHERE {where} WITHIN {rng.choice((14, 25))} EVENTS", table, "valuations")
    assume(sum(in_pieces(Run(program), table, [], restored=False)) < 20_000)
    cuts = sorted(rng.sample(range(120), rng.randrange(12)))
    expected = found_in_pieces(by_registers(program), table, cuts, restored=False)
    with few(rng):
        pieces = found_in_pieces(in_groups(program), table, cuts, restored=rng.random() < 0.6)
    assert list(map(sorted, pieces)) == list(map(sorted, expected)), where
    share.note(any(expected))


def test_nodes_follow_the_window() -> None:
    table = streamed(20_000, 3)
    program = bound(KLEENE.format(20), table, "valuations")
    run = in_groups(program)
    for begin in range(0, table.num_rows, 1_000):
        for batch in table.slice(begin, 1_000).to_batches():
            chunks = run.find(batch)
            run.recogniser.discard(chunks)
    engine = run.recogniser
    assert isinstance(engine, GroupFinder)
    run.recycle(now=True)
    assert engine.active <= 20
    assert engine.cursor.nodes < 2_000
    assert engine.forest.left.size <= base.FEWEST_STARTS
    assert engine.nodes.shape[0] == tecs_finder.FEWEST
    assert int(engine.still_needed().min()) >= 20_000 - 20


@pytest.mark.parametrize("clauses", ["LIMIT 3", "SUPPRESS 40 milliseconds", "CONSUME BY ANY LIMIT 1"])
def test_limit_and_suppress_choose_among_the_matches(clauses: str) -> None:
    """Which ones is not defined: as many of every event as one by one, and all of them matches."""
    table = streamed(400, 5)
    text = KLEENE.format(12)
    program, every = (bound(each, table, "valuations") for each in (f"{text} {clauses}", text))
    whole = {each for piece in found_in_pieces(by_registers(every), table, [], restored=False) for each in piece}
    cuts = [100, 250]
    chosen = found_in_pieces(in_groups(program), table, cuts, restored=True)
    others = found_in_pieces(by_registers(program), table, cuts, restored=False)
    assert [Counter(end for end, *_ in piece) for piece in chosen] == [
        Counter(end for end, *_ in piece) for piece in others
    ]
    assert all(set(piece) <= whole for piece in chosen)
    assert sum(map(len, chosen)) > 4


def test_astronomically_many_matches_are_read_as_far_as_wanted() -> None:
    """What nobody reads costs nothing, and what is read late is what it was when its event came."""
    table = streamed(3_000, 7)
    program = bound(KLEENE.format(600), table, "valuations")
    run, (batch,) = in_groups(program), table.combine_chunks().to_batches()
    chunks = run.find(batch)
    some = named(next(chunks), program.plan.automaton.labels)
    run.recogniser.discard(chunks)
    values, types = table["v"].to_pylist(), table["type"].to_pylist()
    assert len(set(some)) == len(some) > 1_000
    for end, start, positions, _ in some:
        assert types[start] == "A"
        assert types[end] == "C"
        assert values[end] > values[start]
        assert end - start < 600
        assert {types[position] for position in positions[1:-1]} == {"B"}
    assert not list(run.find(batch.slice(0, 0)))
