"""Random batches with columns of every type and layout, and conditions on them."""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from cerite.predicate import expression as ex
from tests import strategies as random

# ---------------------------------------------------------------- columns
_CONTEXT = Context(prec=80)


INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]


FLOATS = [pa.float16(), pa.float32(), pa.float64()]


DECIMALS = [pa.decimal128(5, 2), pa.decimal128(38, 20), pa.decimal256(60, 5), pa.decimal128(20, -3)]


STRINGS = [pa.string(), pa.large_string(), pa.string_view()]


ZONES = [None, "UTC", "Europe/Paris", "America/St_Johns", "+05:30"]


TIMES = [pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in ZONES] + [pa.date32(), pa.date64()]


TEXTS = (
    st.sampled_from(["", "a", "ab", "b%", "é", "🦊", "日本", "a\nb", "aaaaaaaab", "aaaaaaaac", "\0", "'"])
    | random.strings
)


NEAR = (
    datetime(1677, 9, 22, tzinfo=timezone.utc),
    datetime(2262, 4, 10, tzinfo=timezone.utc),
)  # the range of nanoseconds


INSTANTS = st.sampled_from(
    [
        datetime(1970, 1, 1),
        datetime(1969, 12, 31, 23, 59, 59, 999999),
        datetime(2024, 3, 31, 1),
        datetime(1900, 2, 3, 4),
    ]
).map(lambda time: time.replace(tzinfo=timezone.utc)) | st.datetimes(
    NEAR[0].replace(tzinfo=None), NEAR[1].replace(tzinfo=None), timezones=st.just(timezone.utc)
)


def _values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """Values of an Arrow type, its extremes among them."""
    if pa.types.is_integer(kind):
        limits = np.iinfo(kind.to_pandas_dtype())
        low, high = int(limits.min), int(limits.max)
        return st.integers(max(low, -3), 3) | st.sampled_from([low, low + 1, high, high - 1, high // 2 + 1])
    if pa.types.is_floating(kind):
        width = kind.bit_width
        usual = st.sampled_from([-1.5, 0.0, -0.0, 0.5, 2.0, math.nan, math.inf, -math.inf])
        values = usual | st.floats(width=width)
        return values.map(np.float16) if width == 16 else values
    if pa.types.is_decimal(kind):
        most = 10**kind.precision - 1
        whole = st.sampled_from([0, 1, -1, most, -most]) | st.integers(-most, most)
        return whole.map(lambda value: Decimal(value).scaleb(-kind.scale, _CONTEXT))
    if pa.types.is_boolean(kind):
        return st.booleans()
    if pa.types.is_date(kind):
        return INSTANTS.map(lambda time: time.date())
    if pa.types.is_timestamp(kind):
        steps = {"s": 10**6, "ms": 10**3, "us": 1, "ns": 1}[kind.unit]
        since = INSTANTS.map(
            lambda time: (time - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(microseconds=1)
        )
        return since.map(lambda micro: micro * 1000 + micro % 7 if kind.unit == "ns" else micro // steps)
    return TEXTS


@st.composite
def _array(draw: st.DrawFn, kinds: list[pa.DataType], size: int) -> pa.Array:
    """A column of one of these types, perhaps a dictionary, perhaps a slice of a longer one."""
    kind = draw(st.sampled_from(kinds))
    values = st.none() | _values(kind) if draw(st.booleans()) else _values(kind)
    some = draw(st.lists(values, min_size=1, max_size=5))
    before, after = draw(st.sampled_from([(0, 0), (1, 0), (9, 2)]))
    codes: list[int | None] = [code % len(some) for code in draw(_bytes(before + size + after))]
    if draw(st.integers(0, 2)):
        return pa.array([some[code or 0] for code in codes], kind).slice(before, size)
    if draw(st.booleans()):
        codes = [None if code == 0 else code for code in codes]
    index = draw(st.sampled_from([pa.int8(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64()]))
    return pa.DictionaryArray.from_arrays(pa.array(codes, index), pa.array(some, kind)).slice(before, size)


def _bytes(size: int) -> st.SearchStrategy[bytes]:
    return st.binary(min_size=size, max_size=size)


COLUMNS = {
    "type": STRINGS,
    "id": INTEGERS,
    "price": [*FLOATS, *DECIMALS, *INTEGERS],
    "name": STRINGS,
    "other": STRINGS,
    "ok": [pa.bool_()],
    "at": TIMES,
    "until": TIMES,
}


@st.composite
def batches(draw: st.DrawFn, most: int = 12) -> pa.RecordBatch:
    """A batch with some of the columns, perhaps of type null."""
    size = draw(st.integers(0, most))
    values: dict[str, pa.Array] = {}
    for name, kinds in COLUMNS.items():
        shape = draw(st.integers(0, 15))
        if shape > 1:
            values[name] = draw(_array(kinds, size))
        elif shape == 1:
            values[name] = pa.nulls(size)
    return pa.record_batch(values) if values else pa.record_batch({"x": pa.nulls(size)})


# ---------------------------------------------------------------- conditions
def _operators() -> st.SearchStrategy[Any]:
    return st.sampled_from(["=", "!=", "<", "<=", ">", ">="])


@st.composite
def _times(draw: st.DrawFn) -> ex.Expression:
    written = (INSTANTS | st.sampled_from([datetime.min, datetime.max])).map(lambda time: ex.Literal(_written(time)))
    zoned = st.sampled_from(["2024-03-31T03:00:00+02:00", "1970-01-01", "1969-12-31T20:29:59.999999-03:30"]).map(
        ex.Literal
    )
    column = st.sampled_from(["at", "until"]).map(ex.Attribute)
    value = written | zoned | column
    own, one, two = draw(column), draw(value), draw(value)
    literals = draw(st.lists(written | zoned, min_size=1, max_size=3))
    kind = draw(st.integers(0, 5))
    if kind == 0:
        return ex.In(own, (*literals, ex.Interval(literals[0], literals[-1])))
    if kind == 1:
        return ex.InRange(own, one, two)
    if kind == 2:
        return ex.IsNull(own)
    return ex.Comparison(draw(_operators()), one, own) if kind == 3 else ex.Comparison(draw(_operators()), own, one)


def _written(time: datetime) -> str:
    return time.replace(tzinfo=None).isoformat() if time.microsecond % 2 else time.isoformat()


def _more() -> st.SearchStrategy[ex.Expression]:
    """What `strategies.conditions` leaves out: times, two string columns, comparisons of truth values, extremes."""
    inner = random.conditions()
    wide = st.sampled_from([2**63 - 1, -(2**63), 2**53 + 1, 2**63, 2**64 - 1, 0.1, math.inf]).map(ex.Literal)
    number = st.sampled_from(["id", "price"]).map(ex.Attribute)
    sums = st.builds(ex.Arithmetic, st.sampled_from("+-*/%"), number | wide, number | wide) | number.map(ex.Negative)
    names = st.sampled_from(["name", "other"]).map(ex.Attribute)
    items = st.lists((random.ints | random.floats).map(ex.Literal) | wide, min_size=9, max_size=11).map(tuple)
    texts = st.lists(TEXTS.map(ex.Literal), min_size=9, max_size=10).map(tuple)
    truths = st.sampled_from(["=", "!="])
    return (
        _times()
        | _times()
        | random.function_conditions()
        | st.builds(ex.Comparison, _operators(), number | sums, wide | sums)
        | st.builds(ex.Comparison, _operators(), names, names | TEXTS.map(ex.Literal))
        | st.builds(ex.Like, names, TEXTS)
        | st.builds(ex.Comparison, truths, inner, inner)
        | st.builds(ex.Comparison, truths, st.just(ex.Attribute("ok")), inner)
        | st.builds(ex.In, st.just(ex.Attribute("ok")), st.lists(st.booleans().map(ex.Literal), min_size=1).map(tuple))
        | st.builds(ex.In, number | sums, items)
        | st.builds(ex.In, names, texts)
        | (inner | sums).map(ex.IsNull)
    )


def conditions() -> st.SearchStrategy[ex.Expression]:
    """Conditions on `batches`: those of the other tests and more."""
    either = random.conditions() | _more()
    joined = st.lists(either, min_size=2, max_size=3).map(tuple)
    return either | either | joined.map(ex.And) | joined.map(ex.Or) | either.map(ex.Not)
