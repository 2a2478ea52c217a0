"""Measures of matches, by columns: what `cerite.reference.semantics.measures` says of one match, for a whole chunk.

Every aggregate and `x.price` in the measures is a leaf, computed once: a segment of places in the matches' events gives
one value, with or without a kernel. Expressions over leaves are evaluated over their columns, as conditions are.

Invariants: a leaf has the type of its column if it is one of the column's values; sums of whole numbers and decimals
are exact or refused, floats are added in the order of the stream. NaN is NULL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from cerite.core.arrays import Flags, Longs
from cerite.core.errors import Hint, SchemaError, Setting, StreamError, listed, suggestion, sum_too_large
from cerite.core.jit import maker
from cerite.core.schema import arrow_kind
from cerite.engine.events.keys import keys_of
from cerite.engine.results.output import Labels, MatchChunk, lists_of
from cerite.pattern.query import Measure
from cerite.predicate import expression as ex
from cerite.predicate.columns.numbers import arrow_decimals, as_float
from cerite.predicate.columns.read import (
    Column,
    Decimals,
    Instants,
    Integers,
    Values,
    Wide,
    decoded,
    decoded_type,
    digits,
)
from cerite.predicate.columns.truth import Block
from cerite.predicate.expression import attributes
from cerite.predicate.kinds import UNKNOWN, Kinds, kinds_of

Leaf = ex.Aggregate | ex.Reference | ex.Moment
_PICKS = {"FIRST": 0, "LAST": 1, "MIN": 2, "MAX": 3}
_LEAST, _MOST = -(2**63), 2**63 - 1
_UNITS = {10**9: "s", 10**6: "ms", 10**3: "us", 1: "ns"}


class Segments(NamedTuple):
    """For every match the places of a variable's events: `places[offsets[m]:offsets[m + 1]]`."""

    offsets: Longs
    places: Longs


@dataclass(frozen=True)
class Measures:
    """The measures of a query over matches with these labels; `time` is the column of times."""

    measures: tuple[Measure, ...]
    labels: Labels
    time: str | None

    @cached_property
    def leaves(self) -> dict[Leaf, str]:
        """The leaves, which are taken from events, and the name of each in the expressions over them."""
        names: dict[Leaf, str] = {}
        for measure in self.measures:
            for node in ex.walk(ex.transform(measure.expression, _of_ends)):
                if isinstance(node, (ex.Aggregate, ex.Reference, ex.Moment)):
                    names.setdefault(node, f"leaf {len(names)}")
                    if isinstance(node, ex.Moment) and self.time is None:
                        raise StreamError(
                            f"`{measure.expression}` needs a time column", span=measure.span,
                            hint=Hint("name it: ", Setting("time")),
                        )  # fmt: skip
        return names

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        """The columns of events that are read."""
        named: dict[str, None] = {}
        for leaf in self.leaves:
            every = ((self.time,) if self.time else ()) if isinstance(leaf, ex.Moment) else sorted(attributes(leaf))
            named |= dict.fromkeys(every)
        return tuple(named)

    @cached_property
    def _expressions(self) -> dict[str, ex.Expression]:
        def named(node: ex.Expression) -> ex.Expression:
            return (
                ex.Attribute(self.leaves[node]) if isinstance(node, (ex.Aggregate, ex.Reference, ex.Moment)) else node
            )

        return {each.name: ex.transform(ex.transform(each.expression, _of_ends), named) for each in self.measures}

    @cached_property
    def _variables(self) -> tuple[str, ...]:
        return tuple(sorted(frozenset().union(*(ex.variables(each.expression) for each in self.measures))))

    def schema(self, events: pa.Schema) -> pa.Schema:
        """The types of the measures on events of this schema."""
        types = {name: leaf_type(leaf, events, self.time) for leaf, name in self.leaves.items()}
        for measure in self.measures:
            self._check_kinds(measure, types)
        leaves = {name: pa.nulls(1, kind) for name, kind in types.items()}
        return pa.schema([(name, array.type) for name, array in self._computed(leaves, 1).items()])

    def _check_kinds(self, measure: Measure, types: Mapping[str, pa.DataType]) -> None:
        """Refuse a measure that cannot be computed of values of these types, times above all."""

        def kind_of(node: ex.Attribute | ex.Reference) -> Kinds:
            kind = arrow_kind(types[node.name])
            return UNKNOWN if kind is None else frozenset((kind,))

        expression = self._expressions[measure.name]
        if not isinstance(expression, ex.Attribute):
            try:
                kinds_of(expression, kind_of)
            except SchemaError as error:
                message = f"`{measure.expression}` cannot be computed of these columns"
                raise SchemaError(message, span=measure.span, hint=error.hint) from error

    def columns(self, chunk: MatchChunk, rows: pa.RecordBatch) -> dict[str, pa.Array]:
        """The values of every measure; positions of the matches are places among the rows."""
        events = _Events(self, chunk, rows)
        return self._computed({name: events.leaf(leaf) for leaf, name in self.leaves.items()}, len(chunk))

    def _computed(self, leaves: dict[str, pa.Array], size: int) -> dict[str, pa.Array]:
        zone = next((each.type.tz for each in leaves.values() if is_.is_timestamp(each.type) and each.type.tz), None)
        columns = _Columns(leaves)
        values: dict[str, pa.Array] = {}
        for name, expression in self._expressions.items():
            if isinstance(expression, ex.Attribute):
                values[name] = leaves[expression.name]
            else:
                values[name] = as_arrow(Block(columns, 0, size).value(expression), zone)
        return values


class _Columns(dict[str, Column]):
    """Leaves in the form in which conditions read columns, each converted when it is first read: some never are."""

    def __init__(self, leaves: dict[str, pa.Array]) -> None:
        super().__init__()
        self._leaves = leaves

    def __missing__(self, name: str) -> Column:
        self[name] = Column(self._leaves[name])
        return self[name]


class _Events:
    """The events of some matches, and what leaves take from them."""

    def __init__(self, measures: Measures, chunk: MatchChunk, rows: pa.RecordBatch) -> None:
        self._time = measures.time
        self._chunk = chunk
        self._rows = rows
        lists = lists_of(chunk, measures.labels, measures._variables)
        self._lists: dict[str | None, pa.Array] = dict(zip((None, *measures._variables), lists, strict=True))
        self._columns: dict[str, pa.Array] = {}
        self._computed: dict[ex.Expression, str] = {}

    def leaf(self, node: Leaf) -> pa.Array:
        """The value of a leaf for every match."""
        if isinstance(node, ex.Moment):
            places = self._chunk.starts if node.function == "START_TIME" else self._chunk.ends
            return self._taken(str(self._time), pa.array(places))
        events = self._lists[node.variable]
        if isinstance(node, ex.Reference):
            return self._taken(node.name, events.flatten())
        if node.taken is None:
            return pc.list_value_length(events).cast(pa.int64())
        name = self._named(node.taken)
        offsets, places = Segments(_longs(events.offsets), _longs(events.flatten()))
        if node.function == "COUNT":
            return self._distinct(name, offsets, places) if node.distinct else self._counted(name, offsets, places)
        if node.function == "COLLECT":
            return self._collected(name, offsets, places)
        if node.function in _PICKS:
            return self._picked(node.function, name, offsets, places)
        return self._total(node, name, offsets, places)

    def _named(self, taken: ex.Expression) -> str:
        """The name of the column that is taken from events; what is computed gets a column of its own."""
        if isinstance(taken, ex.Attribute):
            return taken.name
        if taken not in self._computed:
            self._computed[taken] = f"computed {len(self._computed)}"
            self._columns[self._computed[taken]] = computed(taken, self._rows)
        return self._computed[taken]

    def _column(self, name: str) -> pa.Array:
        """A column of the events; dictionaries decoded, NaN is NULL."""
        if name not in self._columns:
            self._columns[name] = _plain(self._rows.column(name))
        return self._columns[name]

    def _valid(self, name: str) -> Flags:
        column = self._column(name)
        if not column.null_count:
            return np.ones(len(column), np.bool_)
        valid: Flags = column.is_valid().to_numpy(zero_copy_only=False)
        return valid

    def _taken(self, name: str, places: pa.Array) -> pa.Array:
        return self._column(name).take(places)

    def _counted(self, name: str, offsets: Longs, places: Longs) -> pa.Array:
        return pa.array(_segment_counts(self._valid(name)[places], offsets))

    def _distinct(self, name: str, offsets: Longs, places: Longs) -> pa.Array:
        valid = self._valid(name)[places]
        places, column = places[valid], self._column(name)
        if is_.is_floating(column.type):  # -0.0 is 0.0
            column = pc.add(column, pa.scalar(0.0, column.type))
        codes = column.dictionary_encode().indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)[places]
        owner = np.repeat(np.arange(offsets.size - 1), _segment_counts(valid, offsets))
        order = np.lexsort((codes, owner))
        owner, codes = owner[order], codes[order]
        new = np.ones(owner.size, np.bool_)
        new[1:] = (owner[1:] != owner[:-1]) | (codes[1:] != codes[:-1])
        return pa.array(np.bincount(owner[new], minlength=offsets.size - 1).astype(np.int64))

    def _collected(self, name: str, offsets: Longs, places: Longs) -> pa.Array:
        valid = self._valid(name)[places]
        if not valid.all():
            counts = _segment_counts(valid, offsets)
            offsets, places = np.concatenate([[0], np.cumsum(counts)]), places[valid]
        return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), self._taken(name, pa.array(places)))

    def _picked(self, function: str, name: str, offsets: Longs, places: Longs) -> pa.Array:
        keys = np.zeros(0, np.int64) if function in ("FIRST", "LAST") else order_keys(self._column(name))
        place = picked(offsets, places, self._valid(name), keys, _PICKS[function])
        return self._column(name).take(pa.array(place, mask=place < 0))

    def _total(self, node: ex.Aggregate, name: str, offsets: Longs, places: Longs) -> pa.Array:
        column, valid = self._column(name), self._valid(name)
        if is_.is_floating(column.type):
            values = column.fill_null(0).cast(pa.float64()).to_numpy(zero_copy_only=False)
            totals, counts = sum_floats(offsets, places, _writable(values), valid)
            with np.errstate(invalid="ignore", divide="ignore"):
                result = totals / counts if node.function == "AVG" else totals
            return pa.array(result, mask=(counts == 0) | np.isnan(result))
        whole = _wholes(column, node)
        sums, counts, beyond = sum_wholes(offsets, places, whole, valid)
        if beyond:
            raise sum_too_large(f"`{node}`", node.span)
        scale = column.type.scale if is_.is_decimal(column.type) else None
        total = Integers(sums, counts > 0) if scale is None else Decimals(sums, scale, counts > 0)
        if node.function == "SUM":
            return as_arrow(total, None)
        floats = as_float(total)
        with np.errstate(invalid="ignore", divide="ignore"):
            result = floats / counts
        return pa.array(result, mask=counts == 0)


def leaf_type(leaf: Leaf, events: pa.Schema, time: str | None) -> pa.DataType:
    """The type of a leaf on events of this schema."""
    if isinstance(leaf, ex.Aggregate) and (leaf.function == "COUNT" or leaf.taken is None):
        return pa.int64()
    for name in (str(time),) if isinstance(leaf, ex.Moment) else sorted(attributes(leaf)):
        if name not in events.names:
            raise StreamError(
                f"the events have no column `{name}`, which `{leaf}` measures", span=leaf.span,
                hint=suggestion(name, events.names) or f"they have {listed(events.names)}",
            )  # fmt: skip
    if isinstance(leaf, ex.Aggregate) and leaf.of is not None:
        kind = computed(leaf.of.expression, pa.RecordBatch.from_arrays([pa.nulls(0, t) for t in events.types],
                                                                       names=events.names)).type  # fmt: skip
    else:
        kind = events.field(str(time) if isinstance(leaf, ex.Moment) else str(leaf.name)).type
    kind = decoded_type(kind)
    if not isinstance(leaf, ex.Aggregate) or leaf.function in _PICKS:
        return kind
    if leaf.function == "COLLECT":
        return pa.list_(kind)
    if leaf.function == "AVG" or is_.is_floating(kind):
        return pa.float64()
    return pa.decimal128(38, kind.scale) if is_.is_decimal(kind) else pa.int64()


def computed(expression: ex.Expression, rows: pa.RecordBatch) -> pa.Array:
    """An expression, computed for every event, as a column."""
    columns = _Columns({name: rows.column(name) for name in sorted(attributes(expression))})
    zones = (rows.column(name).type for name in sorted(attributes(expression)))
    zone = next((kind.tz for kind in zones if is_.is_timestamp(kind) and kind.tz), None)
    return _plain(as_arrow(Block(columns, 0, rows.num_rows).value(expression), zone))


def _plain(column: pa.Array) -> pa.Array:
    """A column without dictionaries, NaN as NULL."""
    column = decoded(column)
    if is_.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py():
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    return column


def as_arrow(values: Values, zone: str | None) -> pa.Array:
    """Computed values as a column: whole numbers and floats of 64 bits, times in microseconds unless finer."""
    if isinstance(values, Integers):
        return pa.array(values.values, mask=None if values.valid is None else ~values.valid)
    if isinstance(values, Decimals):
        array = arrow_decimals(values)
        return array if values.valid is None else pc.if_else(pa.array(values.valid), array, pa.scalar(None, array.type))
    if isinstance(values, Instants):
        unit = _UNITS[values.unit]
        kind = pa.duration(unit) if values.is_duration else pa.timestamp(unit, zone)
        array = pa.array(values.values, mask=None if values.valid is None else ~values.valid).cast(kind)
        finer = pa.duration("us") if values.is_duration else pa.timestamp("us", zone)
        return array if unit in ("us", "ns") else array.cast(finer)
    if isinstance(values, Wide):
        return values.array
    if isinstance(values, np.ndarray):
        return pa.array(values, mask=np.isnan(values))
    return values.cast(pa.string()) if is_.is_large_string(values.type) else values


def order_keys(column: pa.Array) -> Longs:
    """Whole numbers in the order of a column's values; any number may stand for NULL."""
    kind = column.type
    if is_.is_floating(kind):
        return keys_of(column.fill_null(0).cast(pa.float64()).to_numpy(zero_copy_only=False))
    if is_.is_integer(kind):
        return keys_of(column.fill_null(0).to_numpy(zero_copy_only=False))
    if is_.is_temporal(kind):
        return keys_of(column.cast(pa.int32() if kind.bit_width == 32 else pa.int64()).fill_null(0).to_numpy())
    if is_.is_decimal(kind) and (whole := digits(column)) is not None:
        return whole
    ranks = pc.rank(column, tiebreaker="dense")
    return _longs(ranks.cast(pa.int64()))


def _wholes(column: pa.Array, node: ex.Aggregate) -> Longs:
    """Whole numbers, or the digits of decimals."""
    if is_.is_decimal(column.type):
        whole = digits(column)
        if whole is None:
            raise StreamError(f"`{node}` adds decimals of more digits than 64 bits hold", span=node.span)
        return whole
    try:
        return _longs(column.fill_null(0).cast(pa.int64()))
    except pa.ArrowInvalid as error:
        raise StreamError(f"`{node}` adds numbers beyond 2^63", span=node.span) from error


def _of_ends(node: ex.Expression) -> ex.Expression:
    """A duration as the difference of its ends."""
    if isinstance(node, ex.Moment) and node.function == "DURATION":
        return ex.Arithmetic("-", ex.Moment("END_TIME"), ex.Moment("START_TIME"))
    return node


def _segment_counts(valid: Flags, offsets: Longs) -> Longs:
    before = np.concatenate([[0], np.cumsum(valid)])
    counts: Longs = before[offsets[1:]] - before[offsets[:-1]]
    return counts


def _longs(array: pa.Array) -> Longs:
    values: Longs = _writable(array.to_numpy(zero_copy_only=False).astype(np.int64, copy=False))
    return values


def _writable(values: Any) -> Any:
    """An array that is writable, because kernels are compiled for such arrays only."""
    return np.require(values, None, ["C", "W"])


@maker
def picked(offsets: Longs, places: Longs, valid: Flags, keys: Longs, pick: int) -> Longs:
    """The wanted place of every segment, the first of equals; -1 where none is valid."""
    chosen = np.full(offsets.size - 1, -1, np.int64)
    for m in range(chosen.size):
        best = -1
        for k in range(offsets[m], offsets[m + 1]):
            place = places[k]
            if not valid[place]:
                continue
            if (
                best < 0
                or pick == 1
                or (pick == 2 and keys[place] < keys[best])
                or (pick == 3 and keys[place] > keys[best])
            ):
                best = place
            if pick == 0:
                break
        chosen[m] = best
    return chosen


@maker
def sum_floats(
    offsets: Longs, places: Longs, values: np.ndarray[Any, Any], valid: Flags
) -> tuple[np.ndarray[Any, Any], Longs]:
    """The sums of segments, added from left to right, and how many values each has."""
    totals, counts = np.zeros(offsets.size - 1, np.float64), np.zeros(offsets.size - 1, np.int64)
    for m in range(totals.size):
        total, count = 0.0, 0
        for k in range(offsets[m], offsets[m + 1]):
            if valid[places[k]]:
                total = values[places[k]] if count == 0 else total + values[places[k]]
                count += 1
        totals[m], counts[m] = total, count
    return totals, counts


@maker
def sum_wholes(offsets: Longs, places: Longs, values: Longs, valid: Flags) -> tuple[Longs, Longs, bool]:
    """The sums of segments, how many values each has, and whether one left 64 bits."""
    totals, counts = np.zeros(offsets.size - 1, np.int64), np.zeros(offsets.size - 1, np.int64)
    beyond = False
    for m in range(totals.size):
        total, count = 0, 0
        for k in range(offsets[m], offsets[m + 1]):
            if valid[places[k]]:
                value = values[places[k]]
                if (value > 0 and total > _MOST - value) or (value < 0 and total < _LEAST - value):
                    beyond = True  # checked before it happens: the compiler assumes that sums do not wrap around
                else:
                    total += value
                count += 1
        totals[m], counts[m] = total, count
    return totals, counts, beyond
