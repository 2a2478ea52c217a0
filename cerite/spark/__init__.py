"""Cerite on Spark: `match` finds a query's matches in a DataFrame, `count` counts them, `explain` says how.

`session` gives a Spark to those who have none, `task_error` the error of Cerite behind a failed Spark job. Nothing of
PySpark is imported before one of them is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cerite.core.extras import load

if TYPE_CHECKING:
    from cerite.spark.api import OneTaskWarning, count, match
    from cerite.spark.explaining import explain
    from cerite.spark.sessions import session
    from cerite.spark.worker.failures import task_error

__all__ = ["OneTaskWarning", "count", "explain", "match", "session", "task_error"]

_HOMES = {
    "OneTaskWarning": "api", "count": "api", "explain": "explaining", "match": "api",
    "session": "sessions", "task_error": "worker.failures",
}  # fmt: skip


if not TYPE_CHECKING:  # for type checkers, a name that is not there is a mistake

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(load(f"{__name__}.{_HOMES[name]}"), name)
