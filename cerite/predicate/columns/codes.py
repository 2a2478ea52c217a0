"""Columns as codes into a short list of distinct values, so that a condition is evaluated once per value.

Invariant: row i holds `dictionary[codes[i]]`, or NULL where the code is the dictionary's length.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as is_

from cerite.core.arrays import Ints, Words
from cerite.predicate.columns.kernels import Codes, number_strings
from cerite.predicate.columns.read import Column, aligned, fixed_width, plain

_MOST = 1 << 15  # more distinct strings than this are not worth numbering: the hash table would leave the cache
_MANY = 1 << 12  # rows from which a table of our own is worth building, and values up to which it is faster


@dataclass(frozen=True, slots=True)
class Coded:
    """The codes of a column's rows and the values they stand for."""

    codes: Codes
    dictionary: pa.Array

    def values(self) -> Column:
        """The value of every code, NULL last."""
        return Column(pa.concat_arrays([self.dictionary, pa.nulls(1, self.dictionary.type)]))

    def means_the_same(self, other: Coded) -> bool:
        """Whether the codes of both stand for the same values; quick where these are the same memory."""
        mine, others = self.dictionary, other.dictionary
        if mine.type != others.type or len(mine) != len(others):
            return False
        return _memory(mine) == _memory(others) or bool(mine.equals(others))


class Coder:
    """Gives the rows of one column their codes, batch after batch.

    Strings keep their numbers from batch to batch, so that what was found out about them stays true.
    """

    def __init__(self) -> None:
        self._strings: Strings | None = None

    def coded(self, array: pa.Array) -> Coded:
        """The codes of the next batch. A string column with very many values gets its row numbers as codes."""
        if is_.is_dictionary(array.type):
            return _indexed(array.indices, plain(array.dictionary))
        array = plain(array)
        if not (is_.is_string(array.type) or is_.is_large_string(array.type)):
            encoded = array.dictionary_encode()
            return _indexed(encoded.indices, encoded.dictionary)
        for strings in (self._strings, None):  # those known before, else only this batch's
            self._strings = strings or Strings(_MOST)
            codes = self._strings.numbered(array)
            if codes is not None:
                return codes
        self._strings = None
        return Coded(aligned(np.arange(len(array))), array)


class Strings:
    """The strings seen so far, at most `most`, and their numbers, in the layout of `number_strings`."""

    def __init__(self, most: int) -> None:
        self._slots = np.zeros(2 * most, np.int32)
        self._heads = np.empty(most, np.uint64)
        self._ends = np.zeros(most + 1, np.int64)
        self._text = np.empty(1 << 10, np.uint64)
        self.dictionary = pa.array([], pa.large_string())

    def numbered(self, array: pa.Array) -> Coded | None:
        """The array's codes, or None where there is no room for its strings."""
        codes, known, done = np.empty(len(array), np.int32), len(self.dictionary), 0
        for offsets, words in _text(array):
            part = codes[done : done + len(offsets) - 1]
            done += len(part)
            row, known = self._number(offsets, words, part, 0, known)
            while row < len(part):
                if known == self._heads.size:
                    return None
                needed = (self._ends[known] + offsets[row + 1] - offsets[row]) // 8
                grown = np.empty(2 * self._text.size + int(needed), np.uint64)
                grown[: self._text.size] = self._text
                self._text = grown
                row, known = self._number(offsets, words, part, row, known)
        if known > len(self.dictionary):  # what is known never changes, so the array may share its memory
            buffers = [None, pa.py_buffer(self._ends), pa.py_buffer(self._text)]
            self.dictionary = pa.Array.from_buffers(pa.large_string(), known, buffers)
        if array.null_count:
            codes[~Column(array).valid(0, len(array))] = known  # type: ignore[operator]
        return Coded(aligned(codes), self.dictionary)

    def doubled(self) -> Strings:
        """The same strings and numbers, with room for twice as many."""
        larger = Strings(2 * self._heads.size)
        larger.numbered(self.dictionary)
        return larger

    def _number(self, offsets: Codes, words: Words, codes: Ints, row: int, known: int) -> Any:
        return number_strings(offsets, words, self._slots, self._heads, self._ends, self._text, codes, row, known)


def encoded(array: pa.Array) -> pa.DictionaryArray:
    """Strings with their values numbered, as by Arrow's `dictionary_encode`, which takes several times as long.

    >>> encoded(pa.array(["b", None, "a", "b"])).indices.to_pylist()
    [0, None, 1, 0]
    """
    coded = Strings(_MANY).numbered(array) if len(array) >= _MANY else None
    if coded is None:
        return array.dictionary_encode()
    invalid = ~Column(array).valid(0, len(array)) if array.null_count else None  # type: ignore[operator]
    return pa.DictionaryArray.from_arrays(pa.array(coded.codes, pa.int32(), mask=invalid), coded.dictionary)


def _text(array: pa.Array) -> Iterator[tuple[Codes, Words]]:
    """Offsets and bytes of a string array: as they are, then of its end, copied so that reading past it is safe."""
    kind = np.dtype(np.int64 if is_.is_large_string(array.type) else np.int32)
    _, offsets, text = array.buffers()
    starts = aligned(np.frombuffer(offsets, kind, len(array) + 1, array.offset * kind.itemsize))
    data = aligned(np.frombuffer(text, np.uint8) if text is not None and text.size else np.zeros(0, np.uint8))
    safe = (data.size & ~7) - 8
    cut = int(np.searchsorted(starts[1:], safe, side="right"))
    if cut:
        yield starts[: cut + 1], data[: data.size & ~7].view(np.uint64)
    rest = data[starts[cut] : starts[-1]]
    padded = np.zeros(rest.size // 8 + 3, np.uint64)
    padded.view(np.uint8)[: rest.size] = rest
    yield aligned(starts[cut:] - starts[cut]), aligned(padded)


def _indexed(indices: pa.Array, dictionary: pa.Array) -> Coded:
    dtype = np.dtype(indices.type.to_pandas_dtype())
    codes = fixed_width(indices, dtype)
    if indices.null_count:
        valid = Column(indices).valid(0, len(indices))
        codes = aligned(np.where(valid, codes, len(dictionary)).astype(np.int64))  # type: ignore[arg-type]
    elif dtype.itemsize < 4:
        codes = aligned(codes.astype(np.int32))
    else:
        codes = codes.view(f"i{dtype.itemsize}")
    return Coded(codes, dictionary)


def _memory(array: pa.Array) -> tuple[int, ...]:
    addresses = (0 if buffer is None else int(buffer.address) for buffer in array.buffers())
    return (array.offset, *addresses)
