"""The DataFrame that a query runs on: the one that is given, or the union of those that FROM names."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from cerite.core.errors import StreamError, listed
from cerite.pattern.check import check_streams
from cerite.pattern.query import QuerySpec


def streams_of(query: QuerySpec, data: Any) -> list[DataFrame]:
    """The DataFrames that FROM names, or the only one; refused unless all of them are live streams, or none."""
    if not isinstance(data, Mapping):
        if not hasattr(data, "sparkSession"):
            raise StreamError(
                f"`cerite.spark` reads a DataFrame of Spark, not {type(data).__name__}",
                hint="read it with session.read…, or run it here: cerite.query(…).run(data)",
            )
        return [data]
    check_streams(query, data)
    frames = [frame for name in query.streams for frame in streams_of(query, data[name])]
    live = [name for name in query.streams if data[name].isStreaming]
    if live and len(live) < len(frames):
        raise StreamError(
            f"{listed(live)} are live streams (`isStreaming`), {listed(set(query.streams) - set(live))} are not",
            hint="read all of them with session.readStream…, or all of them with session.read…",
        )
    return frames


def union_streams(frames: list[DataFrame]) -> DataFrame:
    """One DataFrame; columns that a stream does not have are NULL in its rows."""
    try:
        return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)
    except AnalysisException as error:
        raise StreamError(f"the streams do not go together: {str(error).splitlines()[0]}") from None
