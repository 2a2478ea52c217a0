"""Numbers of all kinds meet by their exact values: vectorised conditions and registers say what the judge says."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import event, example, given
from hypothesis import strategies as st

from cerite.api.query import Query
from cerite.core.errors import CeriteError
from cerite.engine.registers.interpret import beside
from cerite.pattern import Event, Filter, Named, On, QuerySpec, Sequence
from cerite.predicate import expression as ex
from cerite.predicate.columns.bits import ConditionBits
from cerite.predicate.columns.numbers import among_wholes, floor_at, whole_among_floats
from cerite.predicate.evaluate import holds
from cerite.reference.semantics import matches
from tests.telling import often, refused

D = Decimal
MANY = often(300)
BIG = 2**53
WHOLE = [-(2**63), -BIG - 1, -7, -1, 0, 1, 3, 35, BIG, BIG + 1, 2**63 - 1]
KINDS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i": (pa.int64(), WHOLE),
    "u": (pa.uint64(), [0, 1, 35, BIG + 1, 2**63 - 1, 2**63, 2**64 - 1]),
    "s": (pa.int16(), [-7, 0, 1, 35]),
    "f": (
        pa.float64(),
        [-0.0, 0.1, 0.35, 1.0, 35.0, -7.5, 2.0**53, 2.0**63, 2.0**64, 1e300, 5e-324, np.inf, np.nan],
    ),
    "g": (pa.float32(), [0.1, 0.5, 35.0, 2.0**24]),
    "d": (pa.decimal128(8, 2), [D("0.35"), D("0.10"), D("35.00"), D("-7.50"), D("0.00"), D("999999.99")]),
    "e": (pa.decimal128(18, 4), [D("0.3500"), D("0.1000"), D("1.0001"), D("99999999999999.9999"), D("0.5000")]),
    "w": (pa.decimal128(38, 10), [D("0.35"), D("0.5"), D(BIG + 1), D(2**63), D(10) ** 27, D("1E-10")]),
    "x": (pa.decimal256(76, 20), [D("0.35"), D("0.1"), D(10) ** 50, -(D(10) ** 50), D("1E-20")]),
    "z": (pa.decimal32(5, 1), [D("0.5"), D("35.0"), D("-7.5")]),
}
CALCULATED = tuple("iusfgdez")  # wide decimals only compare


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    count = draw(st.integers(1, 6))
    columns = {
        name: pa.array(draw(st.lists(st.none() | st.sampled_from(values), min_size=count, max_size=count)), kind)
        for name, (kind, values) in KINDS.items()
    }
    return pa.table(columns)


literals = st.sampled_from([0, 1, 35, -7, BIG + 1, 0.35, 0.1, -7.5, 1.0001, 2.0**63, 0.5, 1e-10, 1e22]).map(ex.Literal)
plain = st.sampled_from(list(KINDS)).map(ex.Attribute) | literals
calculated: st.SearchStrategy[ex.Expression] = st.recursive(
    st.sampled_from(CALCULATED).map(ex.Attribute) | literals,
    lambda inner: st.builds(ex.Arithmetic, st.sampled_from("+-*/%"), inner, inner) | st.builds(ex.Negative, inner),
    max_leaves=3,
)
operators = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
conditions = st.builds(ex.Comparison, operators, plain, plain) | st.builds(
    ex.Comparison, operators, calculated, calculated
)
ITEMS = st.lists(literals, min_size=1, max_size=12).map(tuple)
memberships = st.builds(ex.In, st.sampled_from(list(KINDS)).map(ex.Attribute), ITEMS)


@MANY
@given(tables(), st.lists(conditions | memberships, min_size=1, max_size=6))
@example(
    pa.table({"d": pa.array([D("0.35")], pa.decimal128(8, 2))}),
    [ex.Comparison("=", ex.Attribute("d"), ex.Literal(0.35))],
)
def test_differential_conditions_on_one_event(table: pa.Table, conditions: list[ex.Expression]) -> None:
    bits = ConditionBits([(None, each) for each in conditions], table.schema, None)
    for batch in table.to_batches():
        actual = bits.bits(batch)
        for row, values in enumerate(batch.to_pylist()):
            for number, condition in enumerate(conditions):
                expected = holds(condition, values)
                assert bool(int(actual[row, 0]) >> number & 1) == expected, (str(condition), values)


@MANY
@given(st.floats(), st.integers(0, 22))
def test_floats_are_rounded_down_exactly(value: float, scale: int) -> None:
    whole, more, beyond = (each[0] for each in floor_at(np.array([value]), scale))
    if value != value:
        return
    exact = Decimal(value).as_integer_ratio() if abs(value) != np.inf else (int(np.sign(value)) * 10**400, 1)
    digits, rest = divmod(exact[0] * 10**scale, exact[1])
    if beyond:
        assert (digits >= 2**63 - 1024) if beyond > 0 else (digits < -(2**63))
    else:
        assert (int(whole), bool(more)) == (digits, rest != 0)


LARGE = st.sampled_from([sign * (2**power + less) for power in (52, 53, 60, 61, 62, 63) for less in (-1, 0, 1)
                         for sign in (-1, 1)])  # fmt: skip
wholes = LARGE | st.integers(-(2**63), 2**64 - 1)
any_floats = st.floats(allow_nan=False) | LARGE.map(float) | LARGE.map(lambda each: float(np.nextafter(each, np.inf)))


@MANY
@given(wholes.filter(lambda each: each >= -(2**63)), any_floats)
@example(2**64 - 1, 2.0**64)
@example(-(2**63), -(2.0**63))
@example(0, -5e-324)
def test_whole_numbers_and_floats_are_in_one_order(whole: int, other: float) -> None:
    kind = np.int64 if whole < 2**63 else np.uint64
    one = int(whole_among_floats(np.array([whole], kind))[0])
    two = int(among_wholes(np.array([other]))[0])
    assert (one > two) - (one < two) == (whole > other) - (whole < other)


@MANY
@given(st.integers(-(2**62), 2**62) | st.integers(-999, 999), any_floats, st.integers(0, 22), st.booleans())
def test_digits_meet_floats_exactly(digits: int, other: float, places: int, near: bool) -> None:
    other = digits / 10**places if near else other
    exact = Fraction(digits, 10**places)
    expected = (exact > other) - (exact < other)
    assert getattr(beside, "py_func", beside)(digits, other, places) == expected  # `inner` has no wrapper for Python


def references(names: tuple[str, ...]) -> st.SearchStrategy[ex.Expression]:
    own = st.sampled_from(names).map(ex.Attribute)
    return own | own | st.builds(ex.Reference, st.just("x"), st.sampled_from(names))


across = st.builds(ex.Comparison, operators, st.sampled_from(list(KINDS)).map(ex.Attribute),
                   st.builds(ex.Reference, st.just("x"), st.sampled_from(list(KINDS))))  # fmt: skip
combined: st.SearchStrategy[ex.Expression] = st.builds(
    ex.Arithmetic, st.sampled_from("+-*/%"), references(CALCULATED), references(CALCULATED) | literals
)
computed = st.builds(ex.Comparison, operators, combined, combined | references(CALCULATED) | literals)


@MANY
@given(tables(), st.lists(across | across | computed, min_size=1, max_size=2))
def test_differential_conditions_across_events(table: pa.Table, conditions: list[ex.Expression]) -> None:
    events = table.append_column("type", pa.array(["A", "B"] * len(table), pa.string()).slice(0, len(table)))
    condition = conditions[0] if len(conditions) == 1 else ex.Or(tuple(conditions))
    pattern = Filter(Sequence((Named(Event(None), "x"), Named(Event(None), "y"))), (On("y", condition),))
    expected = sorted(map(str, matches(QuerySpec(pattern), events.to_pylist())))
    try:
        actual = sorted(map(str, Query(QuerySpec(pattern)).run(events)))
    except CeriteError as error:
        event(f"refused: {error.message}"[:60])
        assert refused(error), error  # noqa: PT017
        return
    event("matches" if expected else "none")
    assert actual == expected, str(condition)
