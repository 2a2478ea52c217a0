"""PARTITION BY: value tuples become dense numbers that stay the same from batch to batch, until `keep` renumbers them.

An event with a NULL (or NaN) in one of the columns belongs to no partition and gets -1; 0.0 and -0.0 are one value.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cerite.core.arrays import Arrays, Buffers, Bytes, Flags, Ints, Longs, borrowed, distinct
from cerite.core.hashing import fold
from cerite.core.jit import kernel
from cerite.predicate.columns.codes import Strings
from cerite.predicate.columns.read import plain

_HALF = 31  # bits of a pair's second number
_SECOND = (1 << _HALF) - 1


class Groups:
    """The partitions that are known: those seen so far, except for the ones that `keep` left out."""

    def __init__(self, columns: tuple[str, ...]) -> None:
        self.columns = columns
        self._values = [Numbering() for _ in columns]
        self._pairs = [Numbering() for _ in columns[1:]]

    def of(self, batch: pa.RecordBatch) -> Longs:
        """The partition of every event; -1 for none."""
        numbers = _numbered(self._values[0], batch.column(self.columns[0]))
        for name, values, pairs in zip(self.columns[1:], self._values[1:], self._pairs, strict=True):
            other = _numbered(values, batch.column(name))
            both = np.where((numbers < 0) | (other < 0), -1, (numbers << _HALF) | other)
            numbers = pairs.of(pa.array(both, mask=both < 0))
        return numbers

    @property
    def count(self) -> int:
        """How many partitions there are."""
        return (self._pairs or self._values)[-1].count or 0

    @property
    def known(self) -> int:
        """The most values that a numbering knows: more than there are partitions if another column was NULL."""
        return max(each.count or 0 for each in self._parts().values())

    def keep(self, partitions: Longs) -> None:
        """Number these partitions from 0 on, in their order, and forget the others."""
        for values, pairs in zip(reversed(self._values[1:]), reversed(self._pairs), strict=True):
            known = pairs.known
            both = np.zeros(0, np.int64) if known is None else known.to_numpy()[partitions]
            firsts, seconds = distinct(both >> _HALF), distinct(both & _SECOND)
            renumbered = np.searchsorted(firsts, both >> _HALF) << _HALF | np.searchsorted(seconds, both & _SECOND)
            pairs.know(pa.array(renumbered, pa.int64()))
            values.keep(seconds)
            partitions = firsts
        self._values[0].keep(partitions)

    @property
    def counts(self) -> dict[str, int | None]:
        """How many values each numbering knows."""
        return {name: each.count for name, each in self._parts().items()}

    def forget(self, counts: dict[str, int | None]) -> None:
        """Know only what was known when `counts` was read."""
        for name, each in self._parts().items():
            each.forget(counts[name])

    def state(self) -> Arrays:
        """What a snapshot keeps: the values in the order of their numbers."""
        return {f"{name} {key}": value for name, each in self._parts().items() for key, value in each.state().items()}

    def restore(self, state: Arrays) -> None:
        """Continue with the partitions of a snapshot."""
        for name, each in self._parts().items():
            mine = [key for key in state if key.startswith(f"{name} ")]
            each.restore({key.removeprefix(f"{name} "): state[key] for key in mine})

    def _parts(self) -> dict[str, Numbering]:
        values = {f"values{k}": each for k, each in enumerate(self._values)}
        return values | {f"pairs{k}": each for k, each in enumerate(self._pairs)}


def _numbered(numbering: Numbering, column: pa.Array) -> Longs:
    coded = pa.types.is_dictionary(column.type)
    kind = column.type.value_type if coded else column.type
    if pa.types.is_string_view(kind) or (coded and pa.types.is_floating(kind)):
        column = plain(column)
    if pa.types.is_floating(column.type):  # adding 0 makes -0.0 the same as 0.0
        column = pc.add(column.cast(pa.float64()), 0.0)
        column = pc.if_else(pc.is_nan(column), None, column)
    return numbering.of(column)


# Values as dense numbers that stay the same from batch to batch: partitions, and strings in registers.
#
# Whole numbers, times and strings, the kinds that keys have, are looked up in hash tables that grow with what is known,
# so a batch costs its own size however many values there are. Other kinds are looked up by Arrow, which hashes
# everything known for every batch.
#
# Invariant: numbers are given in the order of first appearance, so `known` alone says what every number stands for.

FEWEST = 1 << 10


class Numbering:
    """Numbers for the values of one column."""

    def __init__(self) -> None:
        self._table: _Longs | _Texts | _Others | None = None

    @property
    def known(self) -> pa.Array | None:
        """All values in the order of their numbers; None before the first."""
        return None if self._table is None else self._table.known

    def of(self, column: pa.Array) -> Longs:
        """The number of every row's value, -1 for NULL; new values get the next numbers.

        What is returned may be overwritten by the next call.
        """
        if not len(column):
            return np.zeros(0, np.int64)
        if pa.types.is_dictionary(column.type) and not _has_each_once(column.dictionary):
            column = column.dictionary_decode()
        if self._table is None:
            kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
            self._table = _table_for(kind)
        if isinstance(self._table, _Longs) and not pa.types.is_dictionary(column.type):
            return self._table.numbers(column)
        encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        numbers = np.append(self._table.numbers(encoded.dictionary), np.int64(-1))
        codes = pc.fill_null(encoded.indices, len(encoded.dictionary)).to_numpy(zero_copy_only=False)
        by_row: Longs = numbers[codes]
        return by_row

    @property
    def count(self) -> int | None:
        """How many values are known; None before the first column was seen."""
        return None if self._table is None else self._table.count

    def forget(self, count: int | None) -> None:
        """Know only the first `count` values again: what came after them was refused."""
        if count == self.count:
            return
        known = self.known
        self._table = None
        if count is not None and known is not None:
            self.know(known.slice(0, count))

    def keep(self, numbers: Longs) -> None:
        """Know only the values of these numbers, which rise; they are numbered from 0 on."""
        if self.known is not None and numbers.size < len(self.known):
            self.know(self.known.take(pa.array(numbers)))

    def know(self, values: pa.Array) -> None:
        """Know these distinct values, numbered as they come, and no others."""
        self._table = _table_for(values.type)
        self._table.numbers(values)

    def state(self) -> Arrays:
        """What a snapshot keeps: the values in the order of their numbers."""
        return {} if self.known is None else {"known": _packed(self.known)}

    def restore(self, state: Arrays) -> None:
        """Continue with the numbers of a snapshot."""
        self._table = None
        if "known" in state:
            self.know(_unpacked(state["known"]))


def _has_each_once(values: pa.Array) -> bool:
    return values.null_count == 0 and len(pc.unique(values)) == len(values)


def _table_for(kind: pa.DataType) -> _Longs | _Texts | _Others:
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _Texts()
    whole = pa.types.is_integer(kind) or (pa.types.is_temporal(kind) and not pa.types.is_interval(kind))
    return _Longs(kind) if whole else _Others(kind)


class _Texts:
    """Numbers of strings."""

    def __init__(self) -> None:
        self._strings = Strings(FEWEST)

    @property
    def known(self) -> pa.Array:
        return self._strings.dictionary

    @property
    def count(self) -> int:
        return len(self._strings.dictionary)

    def numbers(self, values: pa.Array) -> Longs:
        """The numbers of distinct strings."""
        while (numbered := self._strings.numbered(values)) is None:
            self._strings = self._strings.doubled()
        return numbered.codes.astype(np.int64)


class _Others:
    """Numbers of values that Arrow looks up."""

    def __init__(self, kind: pa.DataType) -> None:
        self.known = pa.array([], kind)

    @property
    def count(self) -> int:
        return len(self.known)

    def numbers(self, values: pa.Array) -> Longs:
        """The numbers of distinct values."""
        places = pc.index_in(values, value_set=self.known)
        numbers: Longs = pc.fill_null(places, -1).to_numpy(zero_copy_only=False).astype(np.int64)
        new = numbers < 0
        numbers[new] = np.arange(len(self.known), len(self.known) + int(new.sum()))
        self.known = pa.concat_arrays([self.known, values.filter(pa.array(new))])
        return numbers


class _Longs:
    """Numbers of whole numbers and times."""

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self._slots = np.full(2 * FEWEST, -1, np.int32)
        self._known: Longs = np.zeros(FEWEST, np.int64)
        self._buffers = Buffers()
        self.count = 0

    @property
    def known(self) -> pa.Array:
        return pa.array(self._known[: self.count].astype(self._stored.to_pandas_dtype())).view(self._kind)

    @property
    def _stored(self) -> pa.DataType:
        """The whole numbers that stand for values of this kind."""
        if pa.types.is_integer(self._kind):
            return self._kind
        return pa.int64() if self._kind.bit_width == 64 else pa.int32()

    def numbers(self, values: pa.Array) -> Longs:
        """The numbers of values, -1 for NULL; they need not be distinct. Overwritten by those of the next ones."""
        plain, missing = values.view(self._stored), np.zeros(0, np.bool_)
        if values.null_count:
            plain, missing = pc.fill_null(plain, 0), values.is_null().to_numpy(zero_copy_only=False)
        longs = borrowed(plain.to_numpy(zero_copy_only=False).astype(np.int64, copy=False))
        numbers, done = self._buffers.take("numbers", longs.size, np.int64), 0
        while done < longs.size:
            done, self.count = number_longs(longs, missing, done, self._slots, self._known, self.count, numbers)
            if done < longs.size:
                self._grow()
        return numbers

    def _grow(self) -> None:
        known = self._known
        self._known, self._slots = np.zeros(2 * known.size, np.int64), np.full(4 * known.size, -1, np.int32)
        number_longs(known, np.zeros(0, np.bool_), 0, self._slots, self._known, 0, np.empty(known.size, np.int64))


@kernel
def number_longs(values: Longs, missing: Flags, begin: int, slots: Ints, known: Longs,
                 count: int, numbers: Longs) -> tuple[int, int]:  # fmt: skip
    """Number the values from `begin` on; `slots` is a hash table of numbers, `known` has the first `count` values.

    Returns the place of the first value for which there was no room, and how many values are known then.
    """
    mask = np.uint64(slots.size - 1)
    for i in range(begin, values.size):
        if missing.size and missing[i]:
            numbers[i] = -1
            continue
        value = values[i]
        at = fold(np.uint64(0), np.uint64(value)) & mask
        while slots[at] >= 0 and known[slots[at]] != value:
            at = (at + np.uint64(1)) & mask
        if slots[at] < 0:
            if count == known.size:
                return i, count
            slots[at] = count
            known[count] = value
            count += 1
        numbers[i] = slots[at]
    return values.size, count


def _packed(values: pa.Array) -> Bytes:
    values = values.take(pa.array(np.arange(len(values))))  # without what lies behind it in memory
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pa.schema([("value", values.type)])) as writer:
        writer.write_batch(pa.record_batch([values], names=["value"]))
    return np.frombuffer(sink.getvalue(), np.uint8)


def _unpacked(data: Bytes) -> pa.Array:
    with pa.ipc.open_stream(data.tobytes()) as reader:
        return reader.read_all().column("value").combine_chunks()
