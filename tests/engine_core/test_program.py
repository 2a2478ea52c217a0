"""A program is the same after any number of runs: whatever changes while events are read belongs to the run.

Compared is everything that can be reached from the program, tables and all, but for the two caches that it documents:
`learnt`, and the dictionaries that `conditions` remembers from run to run.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from types import FunctionType, MethodType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import cerite
from cerite.api.stream import EventStream
from cerite.engine.at_rest.threads import ThreadedRun
from cerite.engine.bind import Program, bind
from cerite.engine.events.rows import Columns
from cerite.engine.run import Run
from cerite.predicate.columns.bits import ConditionBits

CACHES = {(Program, "learnt"), (ConditionBits, "_earlier")}
QUERIES = {
    "subsets": "A AS x ; B+ ; C AS z FILTER z[v > 3] AND x[name LIKE 'a%']",
    "registers": "A AS x ; B+ AS y ; C AS z FILTER z[v = x.v AND name = x.name]",
    "groups": "A AS x ; B+ ; C[v > x.v]",
    "watched": "A AS x ; NEXT(B AS y ; C) ; A AS z FILTER z[v >= x.v]",
    "absence before": "NOT B ; A AS x ; C[v > x.v]",
    "absence before that reads": "NOT B[v = x.v] ; A AS x ; C",
    "absence after": "A AS x ; C ; NOT B[v = x.v]",
    "aggregates": "A AS x ; B+ AS y ; C[v > AVG(y.v)]",
}
CLAUSES = ("WITHIN 9 milliseconds", "PARTITION BY [name] WITHIN 40 milliseconds CONSUME BY PARTITION")


def table(seed: int) -> pa.Table:
    """Events whose names come as a dictionary, another one in every stream."""
    rng, count = random.Random(seed), 60
    names = pa.array([rng.choice(("ann", "bob", "al", f"a{seed}", None)) for _ in range(count)]).dictionary_encode()
    values = [rng.choice((1, 2, 4, 7, None)) for _ in range(count)]
    columns = {"type": rng.choices("ABBC", k=count), "v": values, "name": names, "at": range(count)}
    return pa.table({name: column if name == "name" else pa.array(column) for name, column in columns.items()})


def picture(value: Any, around: tuple[int, ...] = ()) -> Any:
    """All that can be reached from a value, in terms that can be compared."""
    if id(value) in around:
        return "itself"
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, value.tobytes()
    if value is None or isinstance(value, (str, bytes, int, float, type, FunctionType, MethodType)):
        return repr(value)
    if isinstance(value, (pa.Schema, pa.DataType, pa.Array)):
        return str(value)
    around = (*around, id(value))
    if isinstance(value, dict):
        return [(picture(key, around), picture(each, around)) for key, each in value.items()]
    if isinstance(value, (set, frozenset)):
        return sorted(repr(picture(each, around)) for each in value)
    if isinstance(value, (list, tuple)):
        return [picture(each, around) for each in value]
    return type(value), [(name, picture(each, around)) for name, each in parts(value)]


def parts(value: Any) -> Iterator[tuple[str, Any]]:
    """The attributes of an object: those that it has, and those that it computes once."""
    kinds = type(value).__mro__
    slots = {name for kind in kinds for name in getattr(kind, "__slots__", ())}
    computed = {name for kind in kinds for name, each in vars(kind).items() if isinstance(each, cached_property)}
    for name in sorted({*getattr(value, "__dict__", {}), *slots, *computed} - {"__dict__", "__weakref__"}):
        if (type(value), name) not in CACHES and hasattr(value, name):
            yield name, getattr(value, name)


def in_pieces(events: pa.Table) -> list[pa.RecordBatch]:
    whole = events.combine_chunks().to_batches()[0]
    return [whole.slice(begin, end - begin) for begin, end in pairwise((0, 7, 30, 60))]


def read(program: Program, events: pa.Table) -> int:
    """Every kind of run; how many matches they find."""
    finding, counting, pieces = Run(program), Run(program, learnt=program.learnt), in_pieces(events)
    found = sum(len(chunk) for piece in pieces for chunk in finding.find(piece))
    counted = sum(map(counting.count, pieces))
    counting.end()
    finding.recycle(now=True)
    threaded = sum(len(each) for each in ThreadedRun(program, 2, events.num_rows).find(pieces) if each is not None)
    stream = EventStream(program, counting=True)
    for piece in pieces:
        stream.push(piece).count()
        again = EventStream(program, counting=True)
        again.restore(stream.snapshot())
        stream = again
    stream.close()
    return min(found, counted, threaded)


@pytest.mark.parametrize("clauses", CLAUSES)
@pytest.mark.parametrize("where", QUERIES.values(), ids=QUERIES)
def test_a_program_is_the_same_after_runs(where: str, clauses: str) -> None:
    first = table(0)
    plan = cerite.query(f"SELECT * FROM S WHERE {where} {clauses}").plan()
    program = bind(plan, first.schema, Columns("type", "at"))
    before = picture(program)
    matches = [read(program, table(seed)) for seed in range(3)]
    assert picture(program) == before
    assert any(matches)
