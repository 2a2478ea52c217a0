"""Registers moved in groups: random patterns on random streams, against the judge and against the register engine.

The two engines share the machine and nothing else: one keeps an entry for every live value, the other all starts in one
tree. Streams are cut anywhere, with a snapshot at every cut, and everything begins with too little room.
"""

from __future__ import annotations

import random as chance
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cerite
from cerite.data.columns import canonical_schema
from cerite.engine.bind import Program, bind
from cerite.engine.events.rows import Columns
from cerite.engine.groups import counter, numbers
from cerite.engine.groups.grouping import Grouping
from cerite.engine.plan import plan
from cerite.engine.recycle import Recycler
from cerite.engine.registers.counter import RegisterCounter
from cerite.engine.run import Run
from cerite.reference.semantics import Stream, matches
from tests.telling import often

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
    """A run that counts with today's register engine."""
    run, plan = Run(program), program.plan
    assert program.machine is not None
    run.__dict__["counter"] = RegisterCounter(
        program.machine, windowed=True, consume=plan.consume, shared_clock=program.shared_clock
    )
    return run


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
    found = matches(cerite.query(text).query, Stream.of(table.to_pylist(), time="at"), semantics=semantics)
    with patch.object(counter, "FEWEST_NODES", 1):
        counts = in_pieces(Run(program), table, cuts, restored=rng.random() < 0.7)
    ends = zip([0, *cuts], [*cuts, table.num_rows], strict=True)
    assert counts == [sum(begin <= match.end < end for match in found) for begin, end in ends], text


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
    with patch.object(counter, "FEWEST_NODES", 1), small, recycled:
        counts = in_pieces(Run(program), table, cuts, restored=rng.random() < 0.3)
    assert counts == expected, text


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
    assert run.counter.forest.size[1] > 2
    assert in_pieces(run, quiet, [301], restored=False) == [0, 1]
    run.recycle(now=True)
    assert run.counter.forest.size[1] == 1


def test_memory_follows_the_window() -> None:
    table = streamed(20_000, 3)
    program = bound(KLEENE.format(20), table, "valuations")
    run = Run(program)
    in_pieces(run, table, [7_000], restored=False)
    assert isinstance(run.counter, counter.GroupCounter)
    assert run.counter.active <= 20
    assert run.counter.forest.left.size <= counter.FEWEST_NODES
    assert numbers.NARROW_BITS == 60
