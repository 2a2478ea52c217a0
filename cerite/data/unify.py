"""One schema for several: of the files of a glob, or of the chunks of a text file.

Invariant: every value of every input fits its column's unified type without loss, or there is an error that names the
column and both places. Columns keep the order in which they first appear. A type that was only guessed from text may
fall back to string (then the text is read again as such); a declared type never does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
import pyarrow.types as is_

from cerite.core.errors import StreamError
from cerite.data.columns import STRINGS, is_number

Guess = Literal["all", "times", "none"]
"""Which of a schema's types are guesses about text: all (CSV), timestamps only (JSON), none (Parquet)."""


@dataclass(frozen=True, slots=True)
class _Column:
    type: pa.DataType
    soft: bool
    where: str


def unified(schemas: Iterable[tuple[str, pa.Schema, Guess]]) -> pa.Schema:
    """One schema for all; each comes with the place it is from, to be named in messages.

    >>> first, second = pa.schema({"a": pa.int64()}), pa.schema({"b": pa.bool_(), "a": pa.float64()})
    >>> unified([("x", first, "none"), ("y", second, "none")])
    a: double
    b: bool
    """
    merged: dict[str, _Column] = {}
    for where, schema, guess in schemas:
        for column in schema:
            new = _Column(column.type, _soft(column.type, guess), where)
            old = merged.get(column.name)
            merged[column.name] = new if old is None else _joined(column.name, old, new)
    return pa.schema([(name, column.type) for name, column in merged.items()])


def _soft(arrow: pa.DataType, guess: Guess) -> bool:
    return is_.is_null(arrow) or arrow == STRINGS or guess == "all" or (guess == "times" and is_.is_temporal(arrow))


def _joined(name: str, old: _Column, new: _Column) -> _Column:
    if old.type == new.type:
        return old if new.soft else new
    if is_.is_null(new.type):
        return old
    if is_.is_null(old.type):
        return new
    common = _common(old.type, new.type)
    if common is None and old.soft and new.soft:
        common = STRINGS
    if common is None:
        raise StreamError(
            f"column `{name}` is {_spoken(old.type)} in {old.where}, but {_spoken(new.type)} in {new.where}",
            hint="give the column one type everywhere, or read the parts on their own",
        )
    return _Column(common, old.soft and new.soft, new.where)


def _common(old: pa.DataType, new: pa.DataType) -> pa.DataType | None:
    """The smallest type that holds both, if there is one that keeps every value."""
    kinds = (old, new)
    if all(map(is_number, kinds)):
        if any(map(is_.is_floating, kinds)) and any(map(is_.is_integer, kinds)):
            return pa.float64()  # an integer that does not fit is refused when it is read
        if is_.is_uint64(old) != is_.is_uint64(new) and all(map(is_.is_integer, kinds)):
            signed = new if is_.is_uint64(old) else old
            return pa.uint64() if is_.is_unsigned_integer(signed) else pa.int64()  # refused when read, as above
    dates = [kind for kind in kinds if is_.is_date(kind)]
    if len(dates) == 1:
        (other,) = (kind for kind in kinds if not is_.is_date(kind))
        return other if is_.is_timestamp(other) and other.tz is None else None
    try:
        both = [pa.schema({"it": kind}) for kind in kinds]
        return pa.unify_schemas(both, promote_options="permissive").field("it").type
    except (pa.ArrowException, TypeError):
        return None


def _spoken(arrow: pa.DataType) -> str:
    return "string" if arrow == STRINGS else str(arrow)
