"""Cerite on Spark: `match` finds a query's matches in a DataFrame, `count` counts them, `table` shows the first ones,
`explain` says how.

For a live stream, `progress` returns its numbers, `watch` shows them, `split` separates late events from matches, and
`finish` ends it.

`session` starts a Spark session, `task_error` returns the Cerite error behind a failed Spark job. PySpark is not
imported before one of these is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cerite.core.extras import load

if TYPE_CHECKING:
    from cerite.spark.api import OneTaskWarning, count, match
    from cerite.spark.driver.live import finish
    from cerite.spark.explaining import explain
    from cerite.spark.following import Progress, progress, split, watch
    from cerite.spark.sessions import session
    from cerite.spark.showing import table
    from cerite.spark.worker.failures import task_error

__all__ = [
    "OneTaskWarning", "Progress", "count", "explain", "finish", "match", "progress", "session", "split", "table",
    "task_error", "watch",
]  # fmt: skip

_HOMES = {
    "OneTaskWarning": "api", "Progress": "following", "count": "api", "explain": "explaining", "finish": "driver.live",
    "match": "api", "progress": "following", "session": "sessions", "split": "following",
    "table": "showing", "task_error": "worker.failures", "watch": "following",
}  # fmt: skip


if not TYPE_CHECKING:  # for type checkers, a name that is not there is a mistake

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(load(f"{__name__}.{_HOMES[name]}"), name)
