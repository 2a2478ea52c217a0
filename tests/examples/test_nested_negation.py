"""A negated part inside a negated part: the engine finds what the judge finds, and forgets no memory."""

from __future__ import annotations

import random

import pytest

from cerite.api.query import Query
from cerite.core.errors import PatternError
from cerite.language.ceql import parse_query
from cerite.pattern.nodes import Complement, Concat, Event, Named, Sequence, Size
from cerite.pattern.query import QuerySpec
from cerite.predicate.expression import Attribute, Comparison, Reference
from cerite.reference.semantics import Stream, matches

ANY = Event(None)
SAME = Comparison("=", Attribute("id"), Reference("x", "id"))


@pytest.mark.parametrize("output", [True, False])
@pytest.mark.parametrize("register", ["x", None])
def test_a_complement_inside_a_complement_reads_a_register(output: bool, register: str | None) -> None:
    """Also where the inner event would be bound to the very variable it reads, which is the one of before."""
    inner = Complement(Event("A", SAME, output, register))
    outer = Complement(Concat((ANY, inner, ANY)))
    query = QuerySpec(Sequence((Named(Event("A"), "x"), Concat((ANY, outer, ANY)))), within=Size.events(8))
    matched = 0
    for seed in range(20):
        draw = random.Random(seed)
        rows = [{"type": draw.choice("AAB"), "id": draw.choice([1, 2])} for _ in range(7)]
        expected = set(matches(query, Stream.of(rows)))
        assert set(Query(query).run(rows)) == expected
        matched += bool(expected)
    assert matched > 10


def test_stateful_patterns_run_four_deep() -> None:
    deep = "D AS d ; E[id = d.id]"
    for _ in range(3):
        deep = f"A ; NOT ({deep}) ; B"
    query = parse_query(f"SELECT * FROM S WHERE A ; NOT ({deep}) ; C WITHIN 12 EVENTS")
    rows = [{"type": kind, "id": 1} for kind in "AADEBC"]
    assert set(Query(query).run(rows)) == set(matches(query, Stream.of(rows)))
    assert Query(query).plan().automaton.depth == 4
    deeper = parse_query(f"SELECT * FROM S WHERE A ; NOT (A ; NOT ({deep}) ; B) ; C WITHIN 12 EVENTS")
    with pytest.raises(PatternError, match="watches at most 4 stateful patterns one inside the other"):
        Query(deeper).plan()
