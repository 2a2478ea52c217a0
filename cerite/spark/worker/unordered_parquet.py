"""Parquet in any order, read by the tasks themselves: the relevant rows of some row groups, on their way into parcels.

Conditions on one event are evaluated as the local engine does, on dictionaries; the rows kept have the columns, types
and bits that Spark's rows would have. Invariant: every row group is in one share; the rows kept are those that are in a
partition and matter to the query.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cerite.automaton.guards import Test
from cerite.core.arrays import Flags, Longs, Words
from cerite.data.columns import canonical
from cerite.engine.results.match_ids import FILE, ROW
from cerite.predicate.columns.bits import ConditionBits
from cerite.predicate.columns.read import decoded
from cerite.predicate.expression import Attribute
from cerite.predicate.formula import All, Formula, Negated, Some
from cerite.spark.worker import Batches
from cerite.spark.worker.footers import Footers, Group, located
from cerite.spark.worker.job import BIT, WORD, Job
from cerite.spark.worker.ordered_parquet import has_cores
from cerite.spark.worker.packing import gathered
from cerite.spark.worker.parcels import FLUSH_BYTES, FLUSH_ROWS, Addresses, posted


@dataclass(frozen=True)
class Shares:
    """What the reading tasks have to know: `shares` are places among the footers' groups, one for every task.

    `columns` are read. Rows are kept where `relevant` is true of the bits of `tests`; `type` is the column of types.
    """

    job: Job
    addresses: Addresses
    footers: Footers
    shares: tuple[tuple[int, ...], ...]
    columns: tuple[str, ...]
    tests: tuple[Test, ...]
    type: str | None
    relevant: Formula

    @cached_property
    def rows_before(self) -> Longs:
        """How many rows the files before each file have: rows, if they are numbered, are numbered through all files."""
        rows = np.zeros(len(self.footers.files), np.int64)
        for group in self.footers.groups:
            rows[group.file] += group.rows
        before: Longs = np.cumsum(rows) - rows
        return before


def reader(shares: Shares) -> Callable[[Batches], Batches]:
    """The function for `mapInArrow`: numbers of shares in, parcels out."""

    def sent(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for rows in gathered(relevant_rows(shares, number), FLUSH_ROWS, FLUSH_BYTES):
                    yield from posted(shares.job, shares.addresses, rows)

    return sent


def relevant_rows(shares: Shares, number: int) -> Batches:
    """The rows of a share that matter, row group by row group, as they lie in the files."""
    schema = shares.footers.schema
    read = pa.schema([(name, canonical(schema.field(name).type)) for name in shares.columns])
    conditions = ConditionBits([(test.type, test.condition) for test in shares.tests], read, shares.type)
    groups = [shares.footers.groups[place] for place in shares.shares[number]]
    for group in sorted(groups, key=lambda each: (each.file, each.index)):
        yield _kept(shares, group, _read(shares, group, read), conditions)


def _read(shares: Shares, group: Group, schema: pa.Schema) -> pa.RecordBatch:
    """A row group; strings are dictionaries."""
    system, path = located(shares.footers.files[group.file])
    strings = [field.name for field in schema if pa.types.is_dictionary(field.type)]
    with pq.ParquetFile(path, filesystem=system, read_dictionary=strings, pre_buffer=True) as file:
        table = file.read_row_group(group.index, columns=schema.names, use_threads=has_cores()).select(schema.names)
    table = table.cast(schema) if table.schema != schema else table
    return table.unify_dictionaries().combine_chunks().to_batches()[0]


def _kept(shares: Shares, group: Group, rows: pa.RecordBatch, conditions: ConditionBits) -> pa.RecordBatch:
    """The rows that matter, with the columns that travel."""
    bits = conditions.bits(rows)
    keep = matters(shares.relevant, bits)
    for name in shares.job.keys:
        keep &= pc.invert(pc.is_null(rows.column(name), nan_is_null=True)).to_numpy(zero_copy_only=False)
    places = np.flatnonzero(keep)
    named = [name for name in shares.job.columns if name in rows.schema.names]
    columns = {name: decoded(rows.column(name).take(pa.array(places))) for name in named}
    before = shares.rows_before[group.file] if shares.addresses.numbered else 0
    columns[FILE] = pa.array(np.full(places.size, 0 if shares.addresses.numbered else group.file, np.int64))
    columns[ROW] = pa.array(places + group.first_row + before)
    words = words_of(bits[places], len(shares.tests))
    columns |= {name: pa.array(word) for name, word in zip(shares.job.words, words, strict=True)}
    mine = [name for name in shares.addresses.columns if name in columns]
    return pa.RecordBatch.from_arrays([columns[name] for name in mine], names=mine)


def matters(formula: Formula, bits: Words) -> Flags:
    """For which rows a formula over bits is true.

    >>> matters(All((Attribute(f"{BIT}0"), Negated(Attribute(f"{BIT}1")))), np.array([[0], [1], [2], [3]], np.uint64))
    array([False,  True, False, False])
    """
    if isinstance(formula, bool):
        return np.full(len(bits), formula)
    if isinstance(formula, Attribute):
        return _are_set(bits, [formula], every=True)
    if isinstance(formula, Negated):
        return ~matters(formula.part, bits)
    assert isinstance(formula, (All, Some))
    every = isinstance(formula, All)
    single = [part for part in formula.parts if isinstance(part, Attribute)]
    flags = _are_set(bits, single, every=every)
    for part in formula.parts:
        if not isinstance(part, Attribute):
            join = np.logical_and if every else np.logical_or
            join(flags, matters(part, bits), out=flags)
    return flags


def _are_set(bits: Words, wanted: Sequence[Attribute], *, every: bool) -> Flags:
    """Whether all of some bits are set, or (without `every`) any of them, a word at a time."""
    masks: dict[int, int] = {}
    for each in wanted:
        number = int(each.name.removeprefix(BIT))
        masks[number // 64] = masks.get(number // 64, 0) | 1 << number % 64
    flags: Flags = np.full(len(bits), every)
    for word, mask in masks.items():
        known = bits[:, word] & np.uint64(mask)
        flags = flags & (known == np.uint64(mask)) if every else flags | (known != 0)
    return flags


def words_of(bits: Words, tests: int) -> list[Longs]:
    """The words that Spark would send, each of which has fewer bits than a word given here.

    >>> [word.tolist() for word in words_of(np.array([[1 << 63 | 1, 5]], np.uint64), 66)]
    [[1], [6]]
    """
    words = []
    for begin in range(0, tests, WORD):
        first, shift = begin // 64, begin % 64
        word = bits[:, first] >> np.uint64(shift)
        if shift and first + 1 < bits.shape[1]:
            word = word | bits[:, first + 1] << np.uint64(64 - shift)
        words.append((word & np.uint64((1 << min(WORD, tests - begin)) - 1)).view(np.int64))
    return words
