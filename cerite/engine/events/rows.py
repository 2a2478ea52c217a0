"""Which columns of the data hold what, and a batch as the kernels read it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Literal, TypeVar, cast, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cerite.core.arrays import Buffers, Longs, Words
from cerite.core.errors import StreamError
from cerite.engine.events.keys import Reach, write_lows
from cerite.predicate.columns.kernels import Lookup, gather_both

S = TypeVar("S", bound=np.generic)
TimeUnit = Literal["s", "ms", "us", "ns"]


@dataclass(frozen=True)
class Columns:
    """Which columns hold what: the event type (None: every event has every type), the time, the position.

    `unit` is what a time column of plain numbers counts.
    """

    type: str | None = None
    time: str | None = None
    position: str | None = None
    unit: TimeUnit = "ms"

    def __post_init__(self) -> None:
        for role in ("type", "time", "position"):
            name = getattr(self, role)
            if not isinstance(name, str | None):
                raise StreamError(f"`{role}` is the name of one column, not {name!r}", hint=f"write {role}='…'")


def checked_unit(unit: str) -> TimeUnit:
    """The unit of time, refused if there is no such unit."""
    if unit not in get_args(TimeUnit):
        raise StreamError(f"there is no time unit {unit!r}", hint="the units are 's', 'ms', 'us' and 'ns'")
    return cast(TimeUnit, unit)


@dataclass(frozen=True)
class Stored:
    """What conditions across events look at: values by leaf, which of them are NULL, and the order of strings."""

    values: Longs
    nulls: Words
    string_order: Longs


@dataclass(frozen=True)
class Deferred:
    """What bits and lows of a batch follow from: kernels may compute them while they read, some events at a time.

    So these stay in the cache, and threads need not pass Python's lock on for each of them.
    """

    lookup: Lookup
    reach: Reach
    buffers: Buffers

    def bits(self) -> Words:
        """The bits of all events."""
        bits = self.buffers.take("bits", self.lookup.codes.size, np.uint64)
        gather_both(*self.lookup, bits)
        return bits.reshape(-1, 1)

    def low(self, key: Longs) -> Longs:
        """The lows of all events."""
        low = self.buffers.take("low", key.size, np.int64)
        write_lows(key, self.reach, low)
        return low


@dataclass(frozen=True)
class Rows:
    """A batch as the kernels read it; `stored` only if conditions read other events; `places` are for `positions`."""

    key: Longs
    given: tuple[Words, Longs] | Deferred  # bits and lows
    places: Longs | int
    partition: Longs | None
    batch: pa.RecordBatch
    stored: Stored | None = None
    events: Longs | None = None  # which events of the batch these are, if not all

    @cached_property
    def bits(self) -> Words:
        """Which conditions hold, a row of words for each event."""
        return self.given.bits() if isinstance(self.given, Deferred) else self.given[0]

    @cached_property
    def low(self) -> Longs:
        """For every event, the least key at which a match that ends there may start."""
        return self.given.low(self.key) if isinstance(self.given, Deferred) else self.given[1]

    @property
    def last_low(self) -> int:
        """The low of the last event."""
        if not isinstance(self.given, Deferred):
            return int(self.low[-1])
        low = np.empty(1, np.int64)
        write_lows(self.key[-1:], self.given.reach, low)
        return int(low[0])

    def column(self, name: str) -> pa.Array:
        """A column of the batch, for these events."""
        column = self.batch.column(name)
        return column if self.events is None else column.take(pa.array(self.events))

    def of(self, events: Longs, buffers: Buffers) -> Rows:
        """The rows of these events alone, copied into memory that is used again."""

        def some(name: str, column: npt.NDArray[S]) -> npt.NDArray[S]:
            shape = events.size, *column.shape[1:]
            wanted = buffers.take(name, prod(shape), column.dtype.type).reshape(shape)
            return np.take(column, events, axis=0, out=wanted, mode="clip") if events.size else wanted

        if isinstance(self.places, int):
            places = np.add(events, self.places, out=buffers.take("places", events.size, np.int64))
        else:
            places = some("places", self.places)
        stored = self.stored
        if stored is not None:
            stored = Stored(some("values", stored.values), some("nulls", stored.nulls), stored.string_order)
        partition = None if self.partition is None else some("partition", self.partition)
        given = some("bits", self.bits), some("low", self.low)
        own = buffers.take("events", events.size, np.int64)
        own[:] = events
        return Rows(some("key", self.key), given, places, partition, self.batch, stored, own)

    @cached_property
    def position(self) -> Longs:
        """The positions of the events; counting does not need them."""
        return positions(self.places, self.batch.num_rows)


def positions(places: Longs | int, count: int) -> Longs:
    """The positions of events, given one by one or, where they are consecutive, by the first.

    >>> positions(3, 2)
    array([3, 4])
    """
    return np.arange(places, places + count, dtype=np.int64) if isinstance(places, int) else places
