"""The kinds of Python values, and arrays of them without loss.

Invariant: a value enters an array only if its kind is the column's (an integer may enter a float column it fits in).
Arrow alone is laxer: it would cut 1.5 to an integer, a time to its day, and forget a zone.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as is_

from cerite.core.errors import StreamError, a, first_line
from cerite.data.columns import STRINGS, canonical

FAILURES = (pa.ArrowException, TypeError, ValueError, OverflowError)
_ABSENT = {"NoneType", "NAType", "NaTType"}  # pandas' own NULLs, known by name because pandas may not be installed
_TYPES = {
    "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_(), "string": STRINGS, "date": pa.date32(),
    "timestamp": pa.timestamp("us"), "timestamp with zone": pa.timestamp("us", "UTC"),
}  # fmt: skip
_CLASSES: tuple[tuple[str, tuple[type, ...]], ...] = (
    ("bool", (bool, np.bool_)), ("int", (int, np.integer)), ("float", (float, np.floating)), ("string", (str,)),
    ("timestamp", (datetime,)), ("date", (date,)),
)  # fmt: skip


def kind_of(value: Any) -> str | None:
    """The kind of a value, None for NULL.

    >>> kind_of(1), kind_of(True), kind_of(None), kind_of("x")
    ('int', 'bool', None, 'string')
    """
    each = type(value)
    if each.__name__ in _ABSENT:
        return None
    kind = next((kind for kind, classes in _CLASSES if issubclass(each, classes)), each.__name__)
    return "timestamp with zone" if kind == "timestamp" and value.tzinfo is not None else kind


def kinds_of(values: Sequence[Any]) -> set[str]:
    """The kinds of the values that are not NULL.

    >>> sorted(kinds_of([1, None, 2.5]))
    ['float', 'int']
    """
    examples = dict(zip(map(type, values), values, strict=True))  # one value of each class, at the speed of C
    timed = any(issubclass(each, datetime) for each in examples)  # whether there is a zone is up to the value
    return {kind for value in (values if timed else examples.values()) if (kind := kind_of(value)) is not None}


def type_of(values: Sequence[Any], where: str, column: str) -> pa.DataType:
    """The type of a column that begins with these values."""
    kinds = kinds_of(values)
    if not kinds:
        return pa.null()
    if kinds == {"int", "float"}:
        return pa.float64()
    if len(kinds) > 1:
        rows = {kind: next(at for at, value in enumerate(values) if kind_of(value) == kind) for kind in kinds}
        (first, at), (second, then) = sorted(rows.items(), key=lambda each: each[1])[:2]
        raise StreamError(
            f"{where}, row {then} (from 0), column `{column}`: {shown(values[then])} is {a(second)}, "
            f"but row {at} holds {a(first)}",
            hint="give the column one type",
        )
    (kind,) = kinds
    if any(getattr(value, "nanosecond", 0) for value in values):  # pandas' timestamps are finer than Python's
        return pa.timestamp("ns", _TYPES[kind].tz)
    if kind in _TYPES:
        return _TYPES[kind]
    try:
        return canonical(pa.array(_plain(values)).type)
    except FAILURES as error:
        raise StreamError(f"{where}, column `{column}`: {first_line(error)}") from error


def array_of(values: Sequence[Any], column: pa.Field, start: int, where: str) -> pa.Array:
    """The values as the column's type; `start` is the first one's position, for messages."""
    wanted = _kind(column.type)
    kinds = kinds_of(values)
    numpy_times = is_.is_timestamp(column.type) and kinds <= {"datetime64"}  # Arrow itself compares their units
    if wanted is not None and not numpy_times and not kinds <= ({"int", "float"} if wanted == "float" else {wanted}):
        for at, value in enumerate(values):
            kind = kind_of(value)
            if kind not in (None, wanted) and (kind, wanted) != ("int", "float"):
                raise _misfit(where, start + at, column, value, f"{a(kind)} where the column has {wanted}")
    if wanted is not None and wanted.startswith("timestamp") and column.type.unit != "ns":
        for at, value in enumerate(values):
            if getattr(value, "nanosecond", 0):
                raise _misfit(where, start + at, column, value, "the column has no nanoseconds")
    plain = _plain(values)
    try:
        return pa.array(plain, column.type)
    except FAILURES as error:
        for at, value in enumerate(plain):
            try:
                pa.array([value], column.type)
            except FAILURES as one:
                raise _misfit(where, start + at, column, value, first_line(one)) from one
        raise StreamError(f"{where}, column `{column.name}`: {first_line(error)}") from error


def shown(value: object) -> str:
    """The value for a message, cut when it is long."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _plain(values: Sequence[Any]) -> Sequence[Any]:
    if all(each.__name__ not in _ABSENT or each is type(None) for each in set(map(type, values))):
        return values
    return [None if type(value).__name__ in _ABSENT else value for value in values]


def _misfit(where: str, row: int, column: pa.Field, value: object, why: str) -> StreamError:
    return StreamError(
        f"{where}, row {row} (from 0), column `{column.name}`: {shown(value)} does not fit: {why}",
        hint="the first batch fixes each column's type; begin with a row that has a value of the type meant",
    )


def _kind(arrow: pa.DataType) -> str | None:
    if is_.is_null(arrow):
        return "only NULL so far"
    if is_.is_timestamp(arrow):
        return "timestamp" if arrow.tz is None else "timestamp with zone"
    return next((kind for kind, each in _TYPES.items() if each == arrow), None)
