"""Which queries are run with registers moved in groups, and what `explain` says of the others."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import cerite
from cerite.core.rejected import Rejected
from cerite.engine.bind import Program, bind
from cerite.engine.events.rows import Columns
from cerite.engine.groups.finder import GroupFinder
from cerite.engine.groups.grouping import Grouping, moved_one_by_one
from cerite.engine.registers.recogniser import RegisterRecogniser
from cerite.engine.run import Run

SCHEMA = pa.schema(
    {"type": pa.string(), "k": pa.int64(), "v": pa.float64(), "w": pa.float64(), "s": pa.string(), "at": pa.int64()}
)
GROUPED = {  # with the number of deterministic states
    "A AS x ; B+ ; C[v > x.v] WITHIN 300 EVENTS": 2,
    "A AS x ; (B ; D+)+ ; C[v > x.v] WITHIN 5 minutes": 3,
    "A AS x ; B ; C[v = x.v] ; D WITHIN 9 [at]": 3,
    "A AS x ; B[v > x.v] ; C[v < x.v OR w = x.v] PARTITION BY [k] WITHIN 9 EVENTS": 2,
    "A AS x ; B ; C[x.v IN RANGE(v - 1, v + 1)] WITHIN 9 EVENTS CONSUME BY ANY": 2,
    "A AS x ; B ; C[s != x.s] WITHIN 9 EVENTS": 2,
    "A AS x ; NOT B[v > 2 * x.v] ; C WITHIN 9 EVENTS": 1,
    "A[k = 1] AS x ; (A[k = 2] ; A[k = 3]+)+ ; A[v > x.v] WITHIN 9 EVENTS": 3,  # no event has two values of k
    "A[k = 1] AS x ; (A[k > 2] ; A[k > 3]+)+ ; A[v > x.v] WITHIN 9 EVENTS": 4,
    "A ; B ; C WITHIN 9 EVENTS": None,  # has no registers
}
REJECTED = {
    "A AS x ; B+ ; C[v > x.v]": "without a window no start ever leaves",
    "A AS x ; B ; C[v > x.v AND w > x.w] WITHIN 9 EVENTS": "2 values of earlier events are kept",
    "B ; A AS x ; C[v > x.v] WITHIN 9 EVENTS": "comes after the start of the match",
    "(A AS x)+ ; C[v > x.v] WITHIN 9 EVENTS": "or is replaced",
    "A AS x ; C[v - x.v > 1] WITHIN 9 EVENTS": "`v - x.v > 1` does not consist of comparisons",
    "A AS x ; C[s > x.s] WITHIN 9 EVENTS": "`s > x.s` does not consist of comparisons",
    "A AS x ; B+ AS y ; C[v > MAX(y.v)] WITHIN 9 EVENTS": "an aggregate changes what is kept",
    "A AS x ; C[v > x.v] ; NOT B WITHIN 9 EVENTS": "something is absent at an end",
    "A AS x ; NOT (B AS y ; B[v > y.v]) ; C WITHIN 9 EVENTS": "watched patterns",
    "A AS x ; C[v > x.v] PARTITION BY [k] WITHIN 9 EVENTS CONSUME BY ANY": "consume the runs of all others",
    "A AS x ; B{14} ; C[v > x.v] WITHIN 99 EVENTS": "more than 12 deterministic states",
    "A AS x ; C[v > x.v OR w > x.v OR v + w > x.v OR v - w = x.v OR w - v = x.v] WITHIN 9 EVENTS": "4 comparisons",
}


ONE_BY_ONE = {  # what is counted in groups, and found without them
    "* FROM S WHERE A AS x ; B+ ; C[v > x.v] WITHIN 19 EVENTS": "in fewer than 20 events",
    "NEXT * FROM S WHERE A AS x ; B+ ; C[v > x.v] WITHIN 5 minutes": "NEXT compares the matches of an event",
    "* FROM S WHERE A AS x ; C[v = x.v] WITHIN 5 minutes": "only the starts whose values equal its own",
    "* FROM S WHERE A AS x ; C[v = x.v AND v > 2 AND w < x.v] ; C[w = x.v] WITHIN 99 EVENTS": "only the starts",
    "* FROM S WHERE A AS x ; C[v = x.v] ; D WITHIN 5 minutes": None,
    "* FROM S WHERE A AS x ; C[v = x.v OR w = x.v] WITHIN 5 minutes": None,
    "* FROM S WHERE A AS x ; NOT B[v = x.v] ; C[v = x.v] WITHIN 5 minutes": None,
    "STRICT * FROM S WHERE A AS x ; B+ ; C[v > x.v] WITHIN 5 minutes LIMIT 3": None,
}


def program_of(query: str) -> Program:
    return bind(cerite.query(f"SELECT {query}").plan(), SCHEMA, Columns("type", "at"))


def grouping(where: str) -> Grouping | Rejected | None:
    return program_of(f"* FROM S WHERE {where}").grouping


@pytest.mark.parametrize("query", ONE_BY_ONE)
def test_found_in_groups_or_why_not(query: str) -> None:
    program, reason = program_of(query), ONE_BY_ONE[query]
    assert isinstance(program.grouping, Grouping)
    said = moved_one_by_one(program.plan, program.grouping)
    assert (program.grouping_for_matches is not None) == (said is None) == (reason is None)
    assert reason is None or reason in str(said)


def batch_of(values: int, events: int = 3_000) -> pa.RecordBatch:
    rng = random.Random(values)
    rows = [
        {"type": rng.choice("ABC"), "k": rng.choice((1, 1, 2)), "v": float(rng.randrange(values)), "at": at}
        for at in range(events)
    ]
    return pa.RecordBatch.from_pylist(rows, SCHEMA)


@pytest.mark.parametrize(
    ("window", "batch", "engine"),
    [
        ("200 EVENTS", batch_of(10**6), GroupFinder),
        ("200 EVENTS", batch_of(5), RegisterRecogniser),  # few values
        ("20 milliseconds", batch_of(10**6), RegisterRecogniser),  # few starts
        ("200 milliseconds", batch_of(10**6), GroupFinder),
        ("90 EVENTS", batch_of(5, 300), GroupFinder),  # too few events to tell
        ("5 seconds", batch_of(5), GroupFinder),  # no window is over
    ],
)
@pytest.mark.parametrize("partition", ["", " PARTITION BY [k]"])
def test_the_first_events_decide_and_a_snapshot_keeps_it(
    window: str, batch: pa.RecordBatch, engine: type[GroupFinder | RegisterRecogniser], partition: str
) -> None:
    program = program_of(f"* FROM S WHERE A AS x ; B ; C[v > x.v]{partition} WITHIN {window}")
    run = Run(program)
    chunks = run.find(batch)
    assert isinstance(run.recogniser, engine)
    run.recogniser.discard(chunks)
    again = Run(program)
    again.restore(run.state())
    assert isinstance(again.recogniser, engine)
    other = batch_of(7, 50)
    later = pa.RecordBatch.from_arrays(
        [pa.array(range(3_000, 3_050)) if name == "at" else other.column(name) for name in other.schema.names],
        schema=other.schema,
    )
    assert sum(map(len, again.find(later))) == sum(map(len, run.find(later)))


@pytest.mark.parametrize("where", GROUPED)
def test_grouped(where: str) -> None:
    decision = grouping(where)
    assert (len(decision.states) if isinstance(decision, Grouping) else decision) == GROUPED[where]


@pytest.mark.parametrize("where", REJECTED)
def test_rejected_with_the_reason(where: str) -> None:
    decision = grouping(where)
    assert isinstance(decision, Rejected)
    assert REJECTED[where] in decision.reason


def test_without_a_column_of_types_every_event_has_the_one() -> None:
    events = pa.table({"v": [3.0, 1.0, 2.0, 5.0, 4.0, 6.0]})
    query = cerite.query("SELECT * FROM S WHERE A AS x ; (A AS y OR _ AS y)+ ; A[v > x.v] WITHIN 5 EVENTS")
    for semantics in ("valuations", "complex-events"):
        matches = list(query.run(events, semantics=semantics))
        assert query.run(events, semantics=semantics).count() == len(matches) > 10
