"""The time column as keys: instants of any type become integers in the same order, and integers instants again.

Invariant: `keys` are those that windows compare; `before(key)` is the least key whose instant is not more than the
delay before the key's, according to the column's own arithmetic (exact for whole numbers, decimals and timestamps).
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from cerite.core.arrays import Flags, Longs
from cerite.core.errors import StreamError
from cerite.engine.events.keys import LEAST, MOST, below, keys_of, lowest, numbers, ordered, tick_text
from cerite.predicate.columns.read import decoded_type

_SIGN = 1 << 63


@dataclass(frozen=True)
class Clock:
    """Reads the time column called `name`, of type `kind`."""

    name: str
    kind: pa.DataType

    def keys(self, column: pa.Array) -> tuple[Longs, Flags | None]:
        """The key of every event, and which have no time (None: all have one)."""
        values, missing = numbers(column, self.name)
        return keys_of(values), missing

    def before(self, key: int, delay: Fraction) -> int:
        """The least key that lies at most `delay` ticks before this one."""
        if not self._is_float:
            return below(key, delay)
        return int(ordered(lowest(_float(key), delay))[0])

    def value(self, key: int) -> pa.Scalar:
        """The instant of a key, in the column's type (days as milliseconds)."""
        kind = self._plain
        if pa.types.is_timestamp(kind):
            return pa.scalar(key, pa.int64()).cast(kind)
        if pa.types.is_date(kind):
            return pa.scalar(key, pa.int64()).cast(pa.timestamp("ms"))
        if pa.types.is_decimal(kind):
            return pa.scalar(Decimal(key).scaleb(-kind.scale))
        if self._is_float:
            return pa.scalar(float(_float(key)[0]))
        return pa.scalar(key + _SIGN, pa.uint64()) if pa.types.is_uint64(kind) else pa.scalar(key, pa.int64())

    def text(self, key: int) -> str:
        """The instant of a key as readable text."""
        return tick_text(self.value(key))

    def key(self, value: Any) -> int:
        """The key of an instant that a user names."""
        try:
            column = pa.array([value]) if isinstance(value, str) else pa.array([value], self._plain)
            key, missing = self.keys(column.cast(self._plain))
        except (pa.ArrowException, ValueError, TypeError, OverflowError):
            missing = np.ones(1, np.bool_)
        if missing is not None:
            raise StreamError(f"{value!r} is not a time: `{self.name}` holds {self._plain}")
        return int(key[0])

    def lateness(self, column: pa.Array, watermark: int) -> pa.Array:
        """How far each event lies before the watermark: a duration, or a number; NULL without time."""
        keys, missing = self.keys(column)
        kind = self._plain
        if self._is_float:
            return pa.array(_float(watermark)[0] - np.asarray(column.cast(pa.float64()), np.float64), mask=missing)
        with np.errstate(over="ignore"):
            apart = np.uint64(watermark - LEAST) - (keys.view(np.uint64) ^ np.uint64(_SIGN))
        whole = np.minimum(apart, np.uint64(MOST)).astype(np.int64)
        if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
            unit = kind.unit if pa.types.is_timestamp(kind) else "ms"
            return pa.array(whole, pa.int64(), mask=missing).cast(pa.duration(unit))
        if pa.types.is_decimal(kind):
            return pa.array(whole * 10.0**-kind.scale, mask=missing)
        return pa.array(whole, mask=missing)

    @property
    def _plain(self) -> pa.DataType:
        return decoded_type(self.kind)

    @property
    def _is_float(self) -> bool:
        return bool(pa.types.is_floating(self._plain))


def _float(key: int) -> np.ndarray:
    """The float of a key, as an array of one."""
    bits = np.array([key], np.int64)
    return np.where(bits < 0, bits ^ MOST, bits).view(np.float64)
