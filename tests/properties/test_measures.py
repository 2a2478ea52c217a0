"""Measures are what the judge measures of every match: in process, pushed in any cut, from what is read once."""

from __future__ import annotations

import random as chance
from dataclasses import replace
from functools import cache, partial
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume
from hypothesis import strategies as st

import cerite
from cerite.core.errors import CeriteError
from cerite.pattern import Measure, QuerySpec, Size
from cerite.pattern.check import check
from cerite.pattern.variables import bound
from cerite.predicate import expression as ex
from cerite.reference import measures
from tests import strategies as random
from tests.dressed import Dress
from tests.properties.agreement import cases, engine_queries, looked_at, ready, runnable, sorted_window, unpicked
from tests.properties.amounts import MEASURES
from tests.properties.arrivals import REGISTERS
from tests.telling import Share, refused, telling

Rows = list[dict[str, Any]]
STREAMS = random.streams(9, random.full_rows | random.rows)
DRESSES = st.sampled_from(
    [Dress("int64", "float64"), Dress("int8", "float32 and -0.0"), Dress("int64", "decimal(8,2)"),
     Dress("decimal(5,0)", "float64", at="timestamp[us]")]
)  # fmt: skip
NUMBERS, ANY = ("id", "price"), ("id", "price", "name", "ok", "at")
EACH = 12  # measures of a query


@cache
@st.composite
def leaves(draw: st.DrawFn, variables: tuple[str, ...], *, number: bool) -> ex.Expression:
    variable = draw(st.sampled_from(variables))
    if number:
        function = draw(st.sampled_from(["COUNT", "SUM", "AVG", "MIN", "MAX", "FIRST", "LAST", "single", "all"]))
        name = draw(st.sampled_from(NUMBERS))
    else:
        function = draw(st.sampled_from(["COUNT", "MIN", "MAX", "FIRST", "LAST", "COLLECT", "single", "distinct"]))
        name = draw(st.sampled_from(ANY if function not in ("MIN", "MAX") else ("id", "price", "name", "at")))
    if function in ("single", "all", "distinct"):
        return {
            "single": ex.Reference(variable, name),
            "all": ex.Aggregate("COUNT", draw(st.sampled_from([None, variable]))),
            "distinct": ex.Aggregate("COUNT", variable, name, distinct=True),
        }[function]
    if number and draw(st.integers(0, 3)) == 0:
        other = draw(st.sampled_from(NUMBERS).map(ex.Attribute) | st.integers(1, 3).map(ex.Literal))
        of = ex.Arithmetic(draw(st.sampled_from(["+", "-", "*", "/"])), ex.Attribute(name), other)
        return ex.Aggregate(function, variable, of=ex.Computed(of))
    return ex.Aggregate(function, variable, name)


@cache
@st.composite
def expressions(draw: st.DrawFn, variables: tuple[str, ...]) -> ex.Expression:
    shape = draw(st.integers(0, 9))
    if shape < 5:
        return draw(leaves(variables, number=draw(st.booleans())))
    if shape == 5:
        return ex.Moment(draw(st.sampled_from(["START_TIME", "END_TIME", "DURATION"])))
    one = draw(leaves(variables, number=True))
    if shape == 6:
        return draw(st.sampled_from([ex.Negative(one), ex.Call("abs", (one,)), ex.Arithmetic("*", one, ex.Literal(3))]))
    other = draw(leaves(variables, number=True))
    return ex.Arithmetic(draw(st.sampled_from(["+", "-", "*", "/", "%"])), one, other)


@cache
@st.composite
def measuring(draw: st.DrawFn) -> QuerySpec:
    """A query with measures; most show and mention everything, some only what is measured."""
    query = unpicked(draw(engine_queries() | REGISTERS))  # which of an event's matches LIMIT and SUPPRESS leave is open
    variables = tuple(sorted(bound(query.where)))
    assume(variables)
    measures: list[Measure] = []
    while len(measures) < EACH:
        measure = Measure(f"m{len(measures)}", draw(expressions(variables)))
        try:
            check(replace(query, items=None, measures=(measure,)))
        except CeriteError:  # x.price of several events, which is refused
            measure = replace(measure, expression=ex.Aggregate("COUNT", variables[0]))
        measures.append(measure)
    shown = None if draw(st.integers(0, 2)) else ()
    return replace(query, items=shown, measures=tuple(measures[: EACH if shown is None else 2]))


@cases(MEASURES["measures"], measuring(), STREAMS, DRESSES, st.randoms(use_true_random=True))
def test_measures_are_the_judges(share: Share, query: QuerySpec, rows: Rows, dress: Dress, rng: Any) -> None:
    """About 130 queries of up to 12 measures each with every change: more than 1,000 measures."""
    query, rows = telling(query, rows, partial(looked_at, semantics="valuations"))
    if not sorted_window(query, rows):
        query = replace(query, within=Size.events(4))
    assume(runnable(query) and rows)
    table = dress.table(rows)
    rows = table.to_pylist()
    expected = dict(measures(query, rows, time="at"))
    share.note(bool(expected))
    try:
        whole = ready(query).run(table, time="at")
    except CeriteError as error:
        if "cannot be computed" in str(error) or refused(error):
            share.refused += 1
            return
        raise
    actual = {match: dict(match.measures) for match in whole}
    assert actual.keys() == expected.keys()
    for match, values in expected.items():
        assert texts(actual[match]) == texts(values), f"{query}: {match}"
    result = whole.to_arrow()
    assert result.schema.equals(whole.table_schema())
    assert len(set(result["match"].to_pylist())) == result.num_rows == len(expected)
    stream = pushed(query, table, rng)
    assert stream["end_time"].to_pylist() == result["end_time"].to_pylist(), "in the order of their ends"
    assert sorted(texts_of_rows(stream)) == sorted(texts_of_rows(result))  # those of one end come in any order
    assert texts_of_rows(result) == texts_of_rows(ready(query).run(table.to_reader(2), time="at").to_arrow())


def pushed(query: QuerySpec, table: pa.Table, rng: Any) -> pa.Table:
    """The result of a stream that is cut anywhere and restored now and then."""
    stream = ready(query).stream(table.schema, time="at")
    parts = []
    at = 0
    while at < table.num_rows:
        size = rng.randint(0, 3)
        parts.append(stream.push(table.slice(at, size)).to_arrow())
        at += size
        if rng.random() < 0.3:
            again = ready(query).stream(table.schema, time="at")
            again.restore(stream.snapshot())
            stream = again
    return pa.concat_tables([*parts, stream.close().to_arrow()])


def texts(values: dict[str, Any]) -> list[str]:
    """Values as texts: NaN is unlike itself, and 1 is not 1.0."""
    return [f"{name}={_plain(value)!r}" for name, value in values.items()]


def texts_of_rows(table: pa.Table) -> list[str]:
    return [repr(row) for row in table.to_pylist()]


def _plain(value: Any) -> Any:
    """Decimals without their trailing zeros, lists one by one; -0.0 and 0.0 are equal."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if type(value).__name__ == "Decimal":
        return value.normalize() + 0
    return value + 0.0 if isinstance(value, float) else value


RULES = (
    "SELECT x.v AS v, COUNT(y) AS n, START_TIME() AS s FROM S WHERE A AS x ; B+ AS y ; NOT C WITHIN 20 milliseconds",
    "SELECT x.v AS v, DURATION() AS s FROM S WHERE A AS x ; NOT B[v = x.v] PARTITION BY [k] WITHIN 15 milliseconds",
    "SELECT x.v AS v, COUNT(*) AS n FROM S WHERE NOT C ; A AS x ; B AS y WITHIN 9 milliseconds",
    "SELECT COUNT(y) AS n, AVG(y.v) AS m FROM S WHERE A ; B+ AS y ; NOT C FILTER COUNT(y) >= 2 WITHIN 20 milliseconds",
)


@pytest.mark.parametrize("text", RULES)
def test_measures_of_what_did_not_happen(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Matches that wait for a deadline keep their events, however little is kept otherwise."""
    monkeypatch.setattr("cerite.engine.results.event_buffer.FEWEST", 1)
    rng = chance.Random(text)
    query, matched = cerite.query(text), 0
    for _ in range(12):
        times = accumulate(rng.choice([1, 2, 5, 11]) for _ in range(12))
        rows = [{"type": rng.choice("ABBC"), "v": rng.randint(1, 3), "k": rng.choice("pq"), "at": at} for at in times]
        table = pa.Table.from_pylist(rows)
        expected = [values for _, values in measures(query.query, rows, time="at")]
        whole = query.run(table, time="at").to_arrow()
        names = [each.name for each in query.query.measures]
        assert sorted(texts_of_rows(whole.select(names))) == sorted(map(repr, expected))
        assert sorted(texts_of_rows(whole)) == sorted(texts_of_rows(pushed(query.query, table, rng)))
        matched += bool(expected)
    assert matched > 4
