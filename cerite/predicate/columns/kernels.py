"""The compiled inner loops of vectorised conditions, which gather masks by code, clear bits and number strings.

Each works on one word (64 conditions) of a block of events. Invariant: the kernels are the same for every query;
what a query asks for is in their tables.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from cerite.core.arrays import Bytes, Ints, Longs, Words
from cerite.core.hashing import fold
from cerite.core.jit import inlined, kernel

W = TypeVar("W", np.uint64, np.uint8)
Codes = npt.NDArray[Any]  # int32 or int64, never written to

_ZERO, _ONE, _THREE, _SEVEN = np.uint64(0), np.uint64(1), np.uint64(3), np.uint64(7)
_LAST = np.uint64(63)


class Lookup(NamedTuple):
    """What decides up to 64 conditions on its own: the codes of two columns, or of one twice, and what they mean."""

    codes: Ints
    masks: Words
    others: Ints
    other_masks: Words


@kernel
def gather(codes: Codes, table: npt.NDArray[W], out: npt.NDArray[W]) -> None:
    """`out[i] = table[codes[i]]`."""
    for i in range(codes.size):
        out[i] = table[codes[i]]


@kernel
def gather_both(codes: Codes, table: Words, others: Codes, other_table: Words, out: Words) -> None:
    """`gather` and `gather_and` in one pass, for types and one more column of strings: what most queries read."""
    for i in range(codes.size):
        out[i] = table[codes[i]] & other_table[others[i]]


@kernel
def gather_and(codes: Codes, table: Words, out: Words) -> None:
    """`out[i] &= table[codes[i]]`."""
    for i in range(codes.size):
        out[i] &= table[codes[i]]


@kernel
def clear(flags: Bytes, keep: np.uint64, out: Words) -> None:
    """Where the flag is 0, leave only the bits of `keep`."""
    for i in range(flags.size):
        out[i] &= (_ZERO - np.uint64(flags[i])) | keep


@inlined
def _load(words: Words, at: Any) -> Any:
    """The eight bytes from `at` on; they lie in two words."""
    index = np.uint64(at) >> _THREE
    shift = (np.uint64(at) & _SEVEN) << _THREE
    return (words[index] >> shift) | ((words[index + _ONE] << _ONE) << (_LAST - shift))


@inlined
def _first(word: Any, size: Any) -> Any:
    """Only the first `size` of eight bytes; `size` is less than eight."""
    return word & ((_ONE << (np.uint64(size) << _THREE)) - _ONE)


@kernel
def number_strings(
    offsets: npt.NDArray[Any],
    words: Words,
    slots: Ints,
    heads: Words,
    ends: Longs,
    text: Words,
    codes: Ints,
    row: int,
    known: int,
) -> tuple[int, int]:
    """Give every string from `row` on its number among the strings seen so far, adding those that are new.

    `words` are the strings' bytes, with at least eight more after the last. Known string k is the bytes of `text` from
    `ends[k]` to `ends[k + 1]` and starts with `heads[k]`; `slots` is a hash table of k + 1, never full. Returns the row
    for which there was no room (the number of rows if none did) and how many strings are known.
    """
    mask = np.uint64(slots.size - 1)
    data, known_data = words.view(np.uint8), text.view(np.uint8)
    at = np.int64(offsets[row])
    for i in range(row, codes.size):
        index = np.uint64(i)  # unsigned indices need no test for negative ones
        end = np.int64(offsets[index + _ONE])
        size = end - at
        head = _load(words, at)
        if size < 8:
            head = _first(head, size)
        mixed = fold(np.uint64(size), head)
        j = 8
        while j < size:
            word = _load(words, at + j)
            if size - j < 8:
                word = _first(word, size - j)
            mixed = fold(mixed, word)
            j += 8
        slot = mixed & mask
        while True:
            number = np.uint64(slots[slot])
            if number == _ZERO:
                break
            begin = ends[number - _ONE]
            if heads[number - _ONE] == head and ends[number] - begin == size:
                j = 8
                while j < size:
                    word = _load(words, at + j) ^ _load(text, begin + j)
                    if size - j < 8:
                        word = _first(word, size - j)
                    if word != _ZERO:
                        break
                    j += 8
                if j >= size:
                    break
            slot = (slot + _ONE) & mask
        if number == _ZERO:
            begin = ends[known]
            if known == heads.size or begin + size + 16 > known_data.size:
                return i, known
            for j in range(size):
                known_data[begin + j] = data[at + j]
            heads[known] = head
            known += 1
            ends[known] = begin + size
            slots[slot] = known
            number = np.uint64(known)
        codes[index] = number - _ONE
        at = end
    return codes.size, known
