"""The DataFrame that a query is asked of: the one that is given, or those that FROM names, put together."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from cerite.core.errors import StreamError, listed
from cerite.pattern.query import QuerySpec


def together(query: QuerySpec, data: Any) -> DataFrame:
    """One DataFrame; columns that a stream does not have are NULL in its rows."""
    if not isinstance(data, Mapping):
        if not hasattr(data, "sparkSession"):
            raise StreamError(
                f"`cerite.spark` reads a DataFrame of Spark, not {type(data).__name__}",
                hint="read it with session.read…, or run it here: cerite.query(…).run(data)",
            )
        if data.isStreaming:
            raise StreamError(
                "this DataFrame is a live stream (`isStreaming`), and `cerite.spark` reads data at rest",
                hint="match inside foreachBatch where no match spans two batches, or push the batches into "
                "cerite.query(…).stream(schema), which carries partial matches on",
            )
        return data  # type: ignore[no-any-return]
    missing = [name for name in query.streams if name not in data]
    if missing:
        raise StreamError(f"FROM names {listed(missing)}, but the data has only {listed(data)}")
    frames = [together(query, data[name]) for name in query.streams]
    try:
        return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)
    except AnalysisException as error:
        raise StreamError(f"the streams do not go together: {str(error).splitlines()[0]}") from None
