"""Data frames of pandas and Polars, without importing either: whoever passes a frame has it installed.

Invariant: a frame's rows keep their order, and its named index levels (and a datetime index) are columns too, because
that is often where the time is. A column whose values are of several kinds is refused, with the row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import pyarrow as pa

from cerite.core.errors import StreamError, a, first_line
from cerite.data.kinds import kind_of
from cerite.data.memory import TableSource


def is_pandas(data: object) -> bool:
    """Whether it is a pandas DataFrame."""
    return _is(data, "pandas", "DataFrame")


def is_polars(data: object) -> bool:
    """Whether it is a Polars DataFrame or LazyFrame."""
    return _is(data, "polars", "DataFrame") or _is(data, "polars", "LazyFrame")


def is_spark(data: object) -> bool:
    """Whether it is a DataFrame of Spark."""
    return _is(data, "pyspark", "DataFrame")


def open_pandas(frame: Any, columns: Sequence[str] | None, batch_rows: int) -> TableSource:
    """A pandas frame. NaN in a float column is NULL, as pandas means it.

    >>> import pandas as pd
    >>> open_pandas(pd.DataFrame({"a": [1, 2]}), None, 10).table().to_pylist()
    [{'a': 1}, {'a': 2}]
    """
    series: list[tuple[str, Callable[[], Any]]] = []
    index = frame.index
    for level, label in enumerate(index.names):
        if label is not None or (index.nlevels == 1 and index.dtype.kind == "M"):
            series.append(("index" if label is None else str(label), partial(index.get_level_values, level)))
    for at, label in enumerate(frame.columns):
        series.append((str(label), partial(frame.iloc.__getitem__, (slice(None), at))))
    values = dict(series)

    def load(names: Sequence[str]) -> pa.Table:
        return pa.table([_array_of(values[name](), name) for name in names], names=list(names))

    return TableSource(load, [title for title, _ in series], "the pandas frame", columns, batch_rows)


def open_polars(frame: Any, columns: Sequence[str] | None, batch_rows: int) -> TableSource:
    """A Polars frame; of a lazy one, only the wanted columns are computed.

    >>> import polars as pl
    >>> open_polars(pl.LazyFrame({"a": [1, 2], "b": [3, 4]}), ["b"], 10).table().to_pylist()
    [{'b': 3}, {'b': 4}]
    """
    lazy = _is(frame, "polars", "LazyFrame")
    name = "the Polars lazy frame" if lazy else "the Polars frame"

    def load(names: Sequence[str]) -> pa.Table:
        objects = [each for each in names if str(types[each]) == "Object"]
        if objects:  # Polars would hand over the objects' addresses
            raise StreamError(f"{name}, column `{objects[0]}` holds Python objects", hint="give the column a type")
        chosen = frame.select(list(names))
        try:
            return (chosen.collect() if lazy else chosen).to_arrow()
        except Exception as error:  # Polars has many kinds of errors, all of its own
            raise StreamError(f"{name}: {first_line(error)}", hint="convert the columns Arrow cannot hold") from error

    try:
        types = dict(frame.collect_schema())
    except Exception as error:
        raise StreamError(f"{name}: {first_line(error)}") from error
    return TableSource(load, list(types), name, columns, batch_rows)


def _is(data: object, package: str, name: str) -> bool:
    return any(
        each.__name__ == name and each.__module__.split(".")[0] == package for each in type(data).__mro__
    )  # subclasses (GeoDataFrame) too


def _array_of(series: Any, name: str) -> pa.Array | pa.ChunkedArray:
    _refuse_mixture(series, name)
    try:
        return pa.array(series, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise StreamError(
            f"the pandas frame, column `{name}`: {first_line(error)}", hint="give the column one type, e.g. with astype"
        ) from error


def _refuse_mixture(series: Any, name: str) -> None:
    """Refuse mixed types: Arrow would turn some into one and drop what does not fit (times of day, bytes, booleans)."""
    classes = set(map(type, series)) if series.dtype == object else set()
    if len(classes) < 2 and not any(issubclass(each, datetime) for each in classes):  # whose zones may differ
        return
    first: tuple[int, str] | None = None
    for row, (value, absent) in enumerate(zip(series, series.isna(), strict=True)):
        kind = None if bool(absent) else kind_of(value)
        if kind is None:
            continue
        kind = "number" if kind in ("int", "float") else kind
        if first is None:
            first = row, kind
        elif kind != first[1]:
            raise StreamError(
                f"the pandas frame, column `{name}` has mixed types: row {first[0]} (from 0) holds {a(first[1])}, "
                f"row {row} {a(kind)}",
                hint=f"give the column one type, e.g. frame[{name!r}].astype(str)",
            )
