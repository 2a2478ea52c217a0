"""`cerite.spark.table`: the first matches of a DataFrame as people read them, in the form of `Matches.table`."""

from __future__ import annotations

from pyspark.sql import DataFrame
from rich.table import Table

from cerite.api.views import view


def table(matches: DataFrame, n: int = 10, *, time: str | None = None, type: str = "type") -> Table:
    """The first n rows of what `match` gave as a Rich table, with their times and the values of their events.

    `time` and `type` name the columns of the events as in `match`: a value that the match itself shows, and the type of
    events that all have the same one, are not repeated for every event.
    """
    rows = [row.asDict(recursive=True) for row in matches.limit(n).collect()]
    return view(rows, matches.columns, time=time, type=type).rich()
