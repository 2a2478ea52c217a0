"""What conditions across events consist of: values of the event at hand and values stored from earlier events.

Every largest part of a condition that reads one event alone is a *leaf*: it is evaluated by columns, once per batch,
whether that event is the one at hand or will be read from a register later. So a register holds the values of leaves,
not events, and programs only combine them.

Invariant: a leaf's value is what `predicate.evaluate.value_of` gives on that event; equal leaves are evaluated once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cerite.core.arrays import Arrays, Buffers, Flags, Longs
from cerite.core.errors import StreamError
from cerite.core.schema import Kind
from cerite.engine.events.keys import LEAST, MOST, Ranks, count_keys, keys_of, time_of, value_keys
from cerite.engine.events.partitions import Numbering
from cerite.engine.events.rows import Stored
from cerite.engine.registers import interpret as op
from cerite.pattern.nodes import Size
from cerite.predicate import expression as ex
from cerite.predicate.columns.numbers import (
    among_wholes,
    as_float,
    at_scale,
    floor_at,
    ordered_text,
    whole_among_floats,
)
from cerite.predicate.columns.read import Column, Instants, Integers, plain
from cerite.predicate.columns.truth import Block
from cerite.predicate.formula import Formulas
from cerite.predicate.kinds import ValueKind

_HALF = 2**62
_NAMES = {
    op.SUM_WHOLE: "SUM", op.SUM_FLOAT: "SUM", op.MINIMUM: "MIN", op.MINIMUM_FLOAT: "MIN", op.MINIMUM_TEXT: "MIN",
    op.MAXIMUM: "MAX", op.MAXIMUM_FLOAT: "MAX", op.MAXIMUM_TEXT: "MAX", op.FIRST_VALUE: "FIRST", op.LAST_VALUE: "LAST",
    op.TALLY: "COUNT",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Value:
    """An expression over one event's attributes, as a value of this kind.

    Where kinds of numbers meet, the `form` says how the value is stored: "digits" at a scale (refused, or NULL, if 64
    bits are too few), "text" in the order of decimals of any length, "unsigned" numbers in signed order, "between":
    twice the digits, plus one for a float that lies between two decimals, and "among floats": whole numbers of any size
    and floats in one order.
    """

    expression: ex.Expression
    kind: ValueKind
    form: str = ""
    scale: int = 0

    @property
    def is_text(self) -> bool:
        """Whether a register holds the number of a string."""
        return self.form == "text" or (not self.form and self.kind == "string")


PRESENCE = Value(ex.Literal(True), "bool")  # of every event: what COUNT(y) counts


@dataclass(frozen=True, slots=True)
class Mark:
    """An event's key in a window or, if `low`, the least key at which a match that ends at the event may start."""

    size: Size
    low: bool
    kind: Kind = "int"


Leaf = Value | Mark


@dataclass(frozen=True, slots=True)
class Running:
    """What a register keeps of all its events: what is taken from each, and how that changes the stored value.

    NULLs change nothing; as long as there have been only NULLs, nothing is stored.
    """

    how: int  # op.SUM_WHOLE, op.MAXIMUM, op.TALLY, …
    of: Value

    @property
    def is_text(self) -> bool:
        """Whether it keeps the number of a string."""
        return self.of.is_text and self.how != op.TALLY

    def text(self, register: str) -> str:
        """The aggregate over a register's events, as a query writes it."""
        name = _NAMES[self.how]
        if isinstance(self.of.expression, ex.Literal):
            return f"{name}({register})"
        return str(ex.Aggregate(name, register, of=ex.Computed(self.of.expression)))


class LeafColumns:
    """Evaluates leaves on batches."""

    def __init__(
        self,
        leaves: tuple[Leaf, ...],
        kinds: Mapping[str, Kind],
        time: tuple[str | None, str],
        finest: int,
        *,
        ordered: bool,
    ) -> None:
        self.leaves = leaves
        self.strings = Numbering()
        formulas = Formulas(kinds)
        conditions = [leaf for leaf in leaves if isinstance(leaf, Value) and leaf.kind == "bool"]
        self._formulas = {
            leaf: (formulas.of(leaf.expression), formulas.of(ex.Not(leaf.expression))) for leaf in conditions
        }
        self._time, self._unit = time
        self._finest = finest
        self._ordered = ordered
        self._ranks = Ranks()
        self._buffers = Buffers()
        self._order: Longs | None = None  # of all strings known, once a condition has needed it

    def of(self, batch: pa.RecordBatch, partition: Longs | None) -> Stored:
        """One row of payloads per event, and which of them are NULL as bits; it is overwritten by the next batch."""
        count = batch.num_rows
        width = max(1, len(self.leaves))
        values = self._buffers.take("values", count * width, np.int64).reshape(count, width)
        nulls = self._buffers.take("nulls", count, np.uint64)
        nulls[:] = 0
        if not self.leaves:
            values[:] = 0
        counted = any(isinstance(leaf, Mark) and leaf.size.unit == "events" for leaf in self.leaves)
        ranks = self._ranks.of(partition, count) if counted else np.zeros(0, np.int64)
        block = Block(_Columns(batch), 0, count)
        for number, leaf in enumerate(self.leaves):
            if isinstance(leaf, Mark):
                payload, null = self._mark(leaf, batch, ranks)
            elif leaf == PRESENCE:
                payload, null = np.ones(count, np.int64), None
            elif leaf.kind == "string" and isinstance(leaf.expression, ex.Literal):
                payload, null = np.full(count, self.strings.of(pa.array([leaf.expression.value]))[0]), None
            elif leaf.kind == "string" and not leaf.form and isinstance(leaf.expression, ex.Attribute):
                payload, null = self._codes(batch.column(leaf.expression.name))
            else:
                payload, null = self._value(leaf, block)
            values[:, number] = payload
            if null is not None:
                nulls |= null.astype(np.uint64) << np.uint64(number)
                values[null, number] = LEAST if isinstance(leaf, Mark) and leaf.low else 0  # it closes no window
        return Stored(values, nulls, self._string_order())

    def _string_order(self) -> Longs:
        """For every string's number, its place in the order of all strings seen so far, if a condition needs it."""
        known = self.strings.known if self._ordered else None
        if known is None:
            return np.zeros(0, np.int64)
        if self._order is None or len(known) != self._order.size:
            self._order = np.empty(len(known), np.int64)
            self._order[pc.array_sort_indices(known).to_numpy()] = np.arange(len(known))
        return self._order

    def advance(self) -> None:
        """Count the batch that was last evaluated."""
        self._ranks.advance()

    def forget(self, count: int | None) -> None:
        """Know only the first `count` strings again: what came after them was refused."""
        self._ranks.undo()
        self.strings.forget(count)
        self._order = None

    def keep(self, partitions: Longs | None, strings: Longs) -> None:
        """Number these partitions and strings from 0 on and forget the others."""
        if partitions is not None:
            self._ranks.keep(partitions)
        self.strings.keep(strings)
        self._order = None

    def state(self) -> Arrays:
        """What a snapshot keeps."""
        return {"ranks": self._ranks.seen, **self.strings.state()}

    def restore(self, state: Arrays) -> None:
        """Continue where a snapshot was taken."""
        self._ranks.seen = state["ranks"].astype(np.int64)
        self.strings.restore(state)
        self._order = None

    def _mark(self, leaf: Mark, batch: pa.RecordBatch, ranks: Longs) -> tuple[Longs, Flags | None]:
        if leaf.size.unit == "events":
            return count_keys(leaf.size, ranks)[leaf.low], None
        name = time_of(leaf.size, self._time)
        key, low, missing = value_keys(batch.column(name), name, leaf.size, self._unit)
        return (low if leaf.low else key), missing

    def _value(self, leaf: Value, block: Block) -> tuple[Longs, Flags | None]:
        if leaf.kind == "bool":
            true, false = (block.truth(formula) for formula in self._formulas[leaf])
            return true.astype(np.int64), ~(true | false)
        column = block.value(leaf.expression)
        if leaf.form == "text":
            return self._codes(ordered_text(column, leaf.scale))
        if leaf.form:
            return _formed(leaf, column)
        if leaf.kind == "string":
            return self._codes(column)
        if isinstance(column, Instants):
            return _scaled(column, self._finest), None if column.valid is None else ~column.valid
        if isinstance(column, Integers) and leaf.kind == "int":
            if column.values.dtype == np.uint64 and (column.values > np.uint64(MOST)).any():
                raise _beyond(leaf)
            return column.values.astype(np.int64), None if column.valid is None else ~column.valid
        floats = np.asarray(as_float(column), np.float64)
        null = np.isnan(floats)
        return (floats + 0.0).view(np.int64), null if null.any() else None

    def _codes(self, column: pa.Array) -> tuple[Longs, Flags | None]:
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        numbers = self.strings.of(plain(column) if pa.types.is_string_view(kind) else column)
        null = numbers < 0
        return numbers, null if null.any() else None


class _Columns(dict[str, Column]):
    """The columns of a batch, each read when a leaf needs it."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        super().__init__()
        self._batch = batch

    def __missing__(self, name: str) -> Column:
        column = self[name] = Column(self._batch.column(name))
        return column


def _formed(leaf: Value, column: Any) -> tuple[Longs, Flags | None]:
    """The payloads of a number in the leaf's form."""
    if leaf.form == "unsigned":
        return keys_of(column.values), None if column.valid is None else ~column.valid
    if leaf.form == "among floats":
        if isinstance(column, Integers):
            return whole_among_floats(column.values), None if column.valid is None else ~column.valid
        return among_wholes(column), np.isnan(column)
    if isinstance(column, np.ndarray):  # between decimals
        whole, more, beyond = floor_at(column, leaf.scale)
        inside = (beyond == 0) & (whole > -_HALF) & (whole < _HALF)
        return np.where(inside, 2 * whole + more, np.where(column > 0, MOST, LEAST)), np.isnan(column)
    digits = at_scale(column, leaf.scale)
    null = np.zeros(digits.values.size, np.bool_) if digits.valid is None else ~digits.valid
    lost = null if column.valid is None else null & column.valid
    if leaf.form == "between":
        lost = lost | (~null & ((digits.values >= _HALF) | (digits.values <= -_HALF)))
    if leaf.form != "digits or NULL" and lost.any():
        raise _beyond(leaf)
    return (2 * digits.values if leaf.form == "between" else digits.values), null


def _beyond(leaf: Value) -> StreamError:
    return StreamError(
        f"`{leaf.expression}` holds a number that 64 bits cannot keep exactly together with what it is compared with",
        hint="cast the column to the type of the other, or both to decimal(38, …)",
    )


def _scaled(column: Instants, finest: int) -> Longs:
    """Instants in units of `finest` nanoseconds."""
    factor = column.unit // finest
    if factor > 1 and column.values.size and int(np.abs(column.values).max()) > MOST // factor:
        raise StreamError("a timestamp is too far from 1970 to be compared with one of a finer unit")
    return column.values * factor
