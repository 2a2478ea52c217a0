"""Cerite on Spark: `match` finds a query's matches in a DataFrame, `count` counts them, `table` shows the first ones,
`explain` says how.

For a live stream, `progress` returns its numbers, `watch` shows them, `split` separates late events from matches, and
`finish` ends it.

`session` starts a Spark session, `task_error` returns the Cerite error behind a failed Spark job. PySpark is not
imported before one of these is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cerite.core.extras import load
from cerite.core.lazy import lazy

if TYPE_CHECKING:
    from cerite.spark.api import OneTaskWarning, count, match, table
    from cerite.spark.driver.live import finish
    from cerite.spark.explaining import explain
    from cerite.spark.following import Progress, progress, split, watch
    from cerite.spark.sessions import session
    from cerite.spark.worker.failures import task_error

__all__ = [
    "OneTaskWarning", "Progress", "count", "explain", "finish", "match", "progress", "session", "split", "table",
    "task_error", "watch",
]  # fmt: skip

_HOMES = {  # the imports above, for `__getattr__`
    "spark.api": ("OneTaskWarning", "count", "match", "table"),
    "spark.driver.live": ("finish",),
    "spark.explaining": ("explain",),
    "spark.following": ("Progress", "progress", "split", "watch"),
    "spark.sessions": ("session",),
    "spark.worker.failures": ("task_error",),
}

if not TYPE_CHECKING:  # for type checkers, a name that is not there is a mistake
    __getattr__ = lazy(__name__, _HOMES, load=load)
