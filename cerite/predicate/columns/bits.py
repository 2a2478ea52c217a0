"""Conditions on whole record batches: one bit per condition and event (docs/architecture.md, *Conditions*).

Conditions on one string or dictionary column are evaluated on its distinct values only and looked up by code: one
gather and one AND per column and 64 conditions. Everything else is evaluated on the events, in blocks that stay in
the cache. Equal atoms are evaluated once however many conditions they occur in.

Invariant: bit c of event i is set exactly when the event has condition c's type and `evaluate.holds` says so.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.types as is_

from cerite.core.arrays import Buffers, Bytes, Words
from cerite.core.errors import SchemaError, repeated_column
from cerite.core.schema import Kind, Schema
from cerite.predicate.columns.codes import Coded, Coder
from cerite.predicate.columns.factors import factored
from cerite.predicate.columns.kernels import Lookup, clear, gather, gather_and, gather_both
from cerite.predicate.columns.read import Column, decoded_type
from cerite.predicate.columns.truth import Block
from cerite.predicate.expression import Attribute, Comparison, Expression, Literal, walk
from cerite.predicate.formula import Formulas, atoms, attributes

Condition = tuple["str | None", "Expression | None"]  # event type or None for any, expression or None for true

_BLOCK = 1 << 18  # events; with fewer, several threads spend their time handing over Python's lock
_WORD = 2**64 - 1
_FEW = 1 << 12  # values of a dictionary that is worth remembering from run to run
_MOST_TYPES = 1_000  # event types that are worth remembering; a column with more is something else


@dataclass(frozen=True, slots=True)
class _Tables:
    """What a column's codes mean for the conditions: a mask per word and code, a flag per leaf and code."""

    column: Coded
    masks: Words
    leaves: tuple[Bytes, ...]


class ConditionBits:
    """Evaluates a fixed list of unary conditions on record batches, one bit per condition and event.

    Without a type column every event has every type; a column the schema does not have is NULL in every event.

    >>> from cerite.language.ceql import parse_condition
    >>> batch = pa.record_batch({"type": ["A", "B", "A"], "price": [3, 5, None]})
    >>> bits = ConditionBits([("A", None), (None, parse_condition("price > 4"))], batch.schema, "type")
    >>> bits.bits(batch)[:, 0].tolist(), [str(atom) for atom in bits.atoms]
    ([1, 2, 1], ["type = 'A'", 'price > 4'])
    """

    def __init__(self, conditions: Sequence[Condition], schema: pa.Schema, type_column: str | None) -> None:
        parts = [_conjuncts(each, type_column) for each in conditions]
        self._kinds = Schema.of_arrow(schema).columns or {}
        for expression in itertools.chain.from_iterable(parts):
            _check_columns(expression, schema, self._kinds)
        self._fits: pa.Schema = schema  # the last schema seen that has these kinds
        formulas = Formulas(self._kinds)
        conjunctions = [formulas.every([formulas.of(expression) for expression in each]) for each in parts]
        read = {name for formula in conjunctions for name in attributes(formula)}
        self.atoms: tuple[Expression, ...] = tuple(
            dict.fromkeys(atom for formula in conjunctions for atom in atoms(formula))
        )
        self.columns: tuple[str, ...] = tuple(name for name in schema.names if name in read)
        self._types: dict[str, pa.DataType] = {name: schema.field(name).type for name in self.columns}
        with_codes = (name for name in self.columns if self._kinds[name] == "string" or _coded(self._types[name]))
        self._factors = factored(conjunctions, formulas, frozenset(with_codes))
        self._words = max(1, -(-len(conditions) // 64))
        self._start = _split(self._factors.start, self._words)
        self._computed = [
            ([(word, ~mask) for word, mask in enumerate(_split(users, self._words)) if mask], factors)
            for users, factors in self._factors.computed
        ]
        self._type = type_column
        self.by_codes = self._words == 1 <= len(self._factors.masks) <= 2  # if what is computed holds everywhere
        self._earlier: dict[str, _Tables] = {}  # tables of the runs so far, shared by all of them
        self._begin()

    def _begin(self) -> None:
        """Set up what changes from batch to batch."""
        self._coders = {name: Coder() for name in self._factors.coded}
        self._tables: dict[str, _Tables] = {}
        self.types: set[str] | None = set()  # event types of the batches so far, or more; None: too many

    def fresh(self) -> ConditionBits:
        """The same conditions for another run, which has seen no batch yet."""
        other = copy(self)
        other._begin()
        return other

    def bits(self, batch: pa.RecordBatch, buffers: Buffers | None = None) -> Words:
        """A row of words per event; bit c % 64 of word c // 64 says whether condition c holds."""
        self._check_kinds(batch.schema)
        buffers = Buffers() if buffers is None else buffers
        out = buffers.take("bits", batch.num_rows * self._words, np.uint64).reshape(batch.num_rows, self._words)
        if not batch.num_rows:
            return out
        arrays = {name: self._array(name, batch) for name in self.columns}
        tables = {name: self._lookups(name, arrays[name]) for name in self._factors.coded}
        columns = _Columns(arrays)
        for start in range(0, batch.num_rows, _BLOCK):
            stop = min(start + _BLOCK, batch.num_rows)
            if self._factors.masks:
                self._look_up(tables, start, stop, out[start:stop])
            else:
                out[start:stop] = self._start
            if self._computed:
                self._compute(Block(columns, start, stop), tables, start, stop, out[start:stop])
        return out

    def lookup(self, batch: pa.RecordBatch) -> Lookup | None:
        """What the bits of a batch can be computed from later; None where codes are not enough."""
        if not self.by_codes:
            return None
        self._check_kinds(batch.schema)
        block = Block(_Columns({name: self._array(name, batch) for name in self.columns}), 0, batch.num_rows)
        if not all(block.holds_everywhere(factor) for _, factors in self._computed for factor in factors):
            return None
        tables = [self._lookups(name, self._array(name, batch)) for name in self._factors.masks]
        if any(each.column.codes.dtype != np.int32 for each in tables):
            return None
        first, last = tables[0], tables[-1]
        return Lookup(first.column.codes, first.masks[0], last.column.codes, last.masks[0])

    def _look_up(self, tables: dict[str, _Tables], start: int, stop: int, out: Words) -> None:
        known = [tables[name] for name in self._factors.masks]
        codes = [each.column.codes[start:stop] for each in known]
        for word in range(self._words):
            masks = [each.masks[word] for each in known]
            if len(known) == 1:
                gather(codes[0], masks[0], out[:, word])
            else:
                gather_both(codes[0], masks[0], codes[1], masks[1], out[:, word])
            for some, mask in zip(codes[2:], masks[2:], strict=True):
                gather_and(some, mask, out[:, word])

    def _compute(self, block: Block, tables: dict[str, _Tables], start: int, stop: int, out: Words) -> None:
        for name, leaves in self._factors.leaves.items():
            for leaf, table in zip(leaves, tables[name].leaves, strict=True):
                flags = np.empty(stop - start, np.uint8)
                gather(tables[name].column.codes[start:stop], table, flags)
                block.remember(leaf, flags.view(np.bool_))
        for masks, all_factors in self._computed:
            factors = [each for each in all_factors if not block.holds_everywhere(each)]
            if not factors:
                continue
            truth = block.truth(factors[0])
            for factor in factors[1:]:
                truth = truth & block.truth(factor)
            for word, mask in masks:
                clear(truth.view(np.uint8), mask, out[:, word])

    def _lookups(self, name: str, array: pa.Array) -> _Tables:
        """The column's codes and tables; those of the batch or the run before if the codes mean the same."""
        column = self._coders[name].coded(array)
        last = self._tables.get(name)
        if last is None or not column.means_the_same(last.column):
            if name == self._type and self.types is not None:  # only where the codes mean something new
                many = len(column.dictionary) > _MOST_TYPES
                self.types = None if many else self.types.union(column.dictionary.drop_null().to_pylist())
            last = self._earlier.get(name)
            if last is None or not column.means_the_same(last.column):
                last = self._evaluated(name, column)
                if is_.is_dictionary(array.type) and len(column.dictionary) <= _FEW:
                    self._earlier[name] = last
        self._tables[name] = _Tables(column, last.masks, last.leaves)
        return self._tables[name]

    def _evaluated(self, name: str, column: Coded) -> _Tables:
        """What the codes of a column mean, whichever rows have them."""
        size = len(column.dictionary) + 1
        block = Block({name: column.values()}, 0, size)
        masks = np.repeat(self._start[:, None], size, axis=1)
        for number, factor in self._factors.masks.get(name, ()):
            masks[number // 64, ~block.truth(factor)] &= np.uint64(_WORD ^ 1 << number % 64)
        leaves = (block.truth(leaf).view(np.uint8) for leaf in self._factors.leaves.get(name, ()))
        return _Tables(Coded(np.zeros(0, column.codes.dtype), column.dictionary), masks, tuple(leaves))

    def _array(self, name: str, batch: pa.RecordBatch) -> pa.Array:
        index = batch.schema.get_field_index(name)
        if index < 0 or is_.is_null(batch.schema.field(index).type):
            return pa.nulls(batch.num_rows, self._types[name])
        return batch.column(index)

    def _check_kinds(self, schema: pa.Schema) -> None:
        if schema.equals(self._fits):
            return
        kinds = Schema.of_arrow(schema).columns or {}
        for name in self.columns:
            index = schema.get_field_index(name)
            if index >= 0 and not is_.is_null(schema.field(index).type) and kinds.get(name) != self._kinds[name]:
                raise SchemaError(
                    f"column `{name}` is {schema.field(index).type} in this batch, "
                    f"but the stream was opened with {self._types[name]}"
                )
        self._fits = schema


class _Columns(dict[str, Column]):
    """The columns of a batch, prepared for reading when they are first needed."""

    def __init__(self, arrays: dict[str, pa.Array]) -> None:
        super().__init__()
        self._arrays = arrays

    def __missing__(self, name: str) -> Column:
        self[name] = column = Column(self._arrays[name])
        return column


def _conjuncts(condition: Condition, type_column: str | None) -> list[Expression]:
    event_type, expression = condition
    conjuncts = [] if expression is None else [expression]
    if event_type is not None and type_column is not None:
        conjuncts.insert(0, Comparison("=", Attribute(type_column), Literal(event_type)))
    return conjuncts


def _check_columns(expression: Expression, schema: pa.Schema, kinds: Mapping[str, Kind]) -> None:
    """Refuse columns that have no kind or are ambiguous; missing ones are NULL."""
    for node in walk(expression):
        if not isinstance(node, Attribute):
            continue
        indices = schema.get_all_field_indices(node.name)
        if len(indices) > 1:
            raise repeated_column(node.name, "the stream", SchemaError, node.span)
        if indices and node.name not in kinds and not is_.is_null(decoded_type(schema.field(indices[0]).type)):
            raise SchemaError(
                f"column `{node.name}` is {schema.field(indices[0]).type}, which conditions cannot read",
                span=node.span, hint="conditions read numbers, booleans, strings, timestamps and dates",
            )  # fmt: skip


def _coded(kind: pa.DataType) -> bool:
    return bool(is_.is_dictionary(kind))


def _split(conditions: int, words: int) -> Words:
    return np.array([conditions >> 64 * word & _WORD for word in range(words)], np.uint64)
