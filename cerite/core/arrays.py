"""The columns of a batch, checked and in the one form kernels are compiled for.

Kernels do not check bounds, and Numba compiles anew for every kind of array (Arrow's are read-only); so columns are
brought here to contiguous, writable arrays of one type, without a copy where they already are; what kernels only read
may be Arrow's memory itself (`borrowed`). Memory is used again: from batch to batch (`Buffers`), and by results once
nobody refers to them (`Pool`).

Invariant: all columns have the same length and partitions are not negative; nobody writes to what is borrowed, nor to
memory that a caller still has.
"""

from sys import getrefcount
from typing import Any, ClassVar, TypeVar
from weakref import finalize

import numpy as np
import numpy.typing as npt

S = TypeVar("S", bound=np.generic)
# What arrays of these types are called everywhere (a test looks for the long spelling).
Longs = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]
Bytes = npt.NDArray[np.uint8]
Arrays = dict[str, npt.NDArray[Any]]


_PROBE = {"": np.empty(1)}
_ALONE = getrefcount(_PROBE[""])  # what Python says of an array that only a dictionary holds


class Buffers:
    """Memory for what is computed of one batch after the other: allocating large arrays again costs more than what is
    written into them, above all where several threads do it.

    What was handed out under a name is overwritten when the name is used again. Whoever is done leaves memory to the
    next one, up to `LEFT` bytes in all, unless somebody still refers to it: the system clears every page of fresh
    memory, which takes as long as a run over a few hundred thousand events.

    >>> buffers = Buffers()
    >>> buffers.take("key", 3, np.int64).size
    3
    """

    LEFT = 1 << 26
    _left: ClassVar[list[tuple[int, dict[str, npt.NDArray[Any]]]]] = []  # with how many bytes there are

    def __init__(self) -> None:
        try:
            self._arrays = self._left.pop()[1]
        except IndexError:
            self._arrays = {}
        finalize(self, self._leave, self._arrays).atexit = False

    def take(self, name: str, size: int, kind: type[S]) -> npt.NDArray[S]:
        """An array of this size, with anything in it."""
        array = self._arrays.get(name)
        if array is None or array.size < size or array.dtype != kind:
            array = self._arrays[name] = np.empty(size, kind)
        return array[:size]

    @classmethod
    def _leave(cls, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Keep the arrays to which nobody else refers, views included, if that is not too much."""
        for name in [name for name in arrays if getrefcount(arrays[name]) > _ALONE]:
            del arrays[name]
        size = sum(each.nbytes for each in arrays.values())
        if 0 < size <= cls.LEFT - sum(other for other, _ in list(cls._left)):
            cls._left.append((size, arrays))

    def steps(self, name: str, size: int, first: int = 0) -> Longs:
        """`first` and the numbers after it, so many.

        >>> Buffers().steps("position", 3, 5)
        array([5, 6, 7])
        """
        known = self._arrays.get("0, 1, 2, …")
        if known is None or known.size < size:
            known = self._arrays["0, 1, 2, …"] = np.arange(size)
        return np.add(known[:size], first, out=self.take(name, size, np.int64))


class Pool:
    """Arrays for results that callers keep or drop: memory that nobody refers to any more is handed out again.

    Fresh memory costs more than what is written into it, above all where several threads ask for it. What is given
    back last, which the cache still has, goes first.

    >>> pool = Pool()
    >>> first = pool.take(4)
    >>> first[:2].fill(7)
    >>> kept = first[1:2]
    >>> del first
    >>> pool.take(4).ctypes.data == kept.ctypes.data - 8, kept  # a part of it is still in use
    (False, array([7]))
    """

    def __init__(self) -> None:
        self._spare: list[Longs] = []

    def take(self, size: int) -> Longs:
        """An array of this size, with anything in it."""
        while self._spare:
            memory = self._spare.pop()
            if memory.size == size:  # others are of before chunks changed their size
                break
        else:
            memory = np.empty(size, np.int64)
        lent: Longs = np.asarray(memory.data)  # its views keep it alive; those of `memory` would not
        finalize(lent, self._spare.append, memory).atexit = False
        return lent


class _Lender:
    """Memory that is read-only, as an array that kernels take; and its owner, who lives as long."""

    def __init__(self, owner: npt.NDArray[Any]) -> None:
        self._owner, given = owner, owner.__array_interface__
        self.__array_interface__ = {**given, "data": (given["data"][0], False)}


def borrowed(values: npt.NDArray[S]) -> npt.NDArray[S]:
    """The array as kernels know it, without a copy: Arrow's memory is read-only, and nobody writes to this either."""
    if values.flags.writeable:
        return values
    return np.asarray(_Lender(values)) if values.flags.c_contiguous and values.flags.aligned else values.copy()


def long_column(values: npt.ArrayLike, events: int, name: str) -> Longs:
    """A column of int64."""
    column: Longs = np.require(values, np.int64, ["C", "W"])
    if column.shape != (events,):
        raise ValueError(f"{name} has the shape {column.shape}, but there are {events} events")
    return column


def bit_rows(bits: npt.ArrayLike) -> Words:
    """The condition bits, one row of words per event."""
    rows: Words = np.require(bits, np.uint64, ["C", "W"])
    if rows.ndim != 2:
        raise ValueError(f"bits must have the shape (events, words), not {rows.shape}")
    return rows


def partition_ids(partition: npt.ArrayLike | None, events: int) -> Longs:
    """The partition column: empty for a single stream."""
    if partition is None:
        return np.zeros(0, np.int64)
    ids = long_column(partition, events, "partition")
    if events and int(ids.min()) < 0:
        raise ValueError("partition ids must not be negative")
    return ids


def picked(array: npt.NDArray[S], places: Longs, fill: int = 0) -> npt.NDArray[S]:
    """`array[places]` for ascending places, as far as the array has them; one place with `fill` if it has none."""
    inside = places[: np.searchsorted(places, array.shape[0])]
    return array[inside] if inside.size else np.full((1, *array.shape[1:]), fill, array.dtype)


def under(prefix: str, arrays: Arrays) -> Arrays:
    """The arrays whose names begin like this, without the beginning: the part of a state that one owner restores.

    >>> under("run.", {"run.key": np.zeros(1), "time": np.zeros(1)})
    {'key': array([0.])}
    """
    return {name.removeprefix(prefix): value for name, value in arrays.items() if name.startswith(prefix)}


def distinct(*numbers: Longs) -> Longs:
    """The numbers, small and not negative, that are in one of these, rising; np.unique would sort or hash them."""
    marks = np.zeros(max((int(each.max()) + 1 for each in numbers if each.size), default=0), np.bool_)
    for each in numbers:
        marks[each] = True
    return np.flatnonzero(marks)
