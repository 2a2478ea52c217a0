"""Errors of Cerite that come back from a task: Spark wraps them in its own, `task_error` finds them in it.

In the task the error is raised without the frames of the worker (`refusal_first`), so that whoever calls `collect` on a
result reads the message first, before whatever Java adds. Where the call is ours, `refusals` raises the error itself.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache

import pyarrow as pa
from pyspark import TaskContext

from cerite.core import errors
from cerite.core.errors import CeriteError, Hint

Batches = Iterator[pa.RecordBatch]
_RAISED = re.compile(
    r"(?:^|: )cerite\.core\.errors\.(\w+): (.*?)(?:\nhint: (.*?))?$(?=\n\s*$|\n\n|\nJVM|\n\s+at |\n SQLSTATE|\Z)",
    re.M | re.S,
)


def task_error(failure: BaseException) -> CeriteError | None:
    """What a task refused, as the error it raised there, also of a streaming query; None if the failure is another.

    >>> task_error(RuntimeError("Traceback …\\ncerite.core.errors.StreamError: two events tie\\nhint: order_by=…"))
    StreamError('two events tie')
    """
    if isinstance(failure, CeriteError):
        return failure
    text = _RAISED.search(str(failure))
    if text is None:
        return None
    kind = getattr(errors, text[1], CeriteError)
    hint = Hint.read(text[3].strip()) if text[3] else None
    error: CeriteError = kind(text[2].strip(), hint=hint)
    return error


@contextmanager
def refusals() -> Iterator[None]:
    """What a task refuses in here is raised as the error it raised there."""
    try:
        yield
    except Exception as failure:
        error = task_error(failure)
        if error is None or error is failure:
            raise
        raise error from None


def refusal_first(function: Callable[[Batches], Batches]) -> Callable[[Batches], Batches]:
    """A task's function whose refusals reach the driver as their message alone."""

    def refused(batches: Batches) -> Batches:
        leave_quietly()
        try:
            yield from function(batches)
        except CeriteError:
            os.environ["SPARK_HIDE_TRACEBACK"] = "1"  # of this worker, which ends with the error
            raise

    return refused


@lru_cache(maxsize=1)
def leave_quietly() -> None:
    """Once in a worker: it says nothing when Spark stops listening, as it does after the rows of a `show` or `limit`.

    PySpark's daemon prints the broken pipe with a traceback, which looks like a failure and is none.
    """
    printed = traceback.print_exc

    def print_exc(*arguments: object, **options: object) -> None:
        if not isinstance(sys.exc_info()[1], (BrokenPipeError, ConnectionResetError)):
            printed(*arguments, **options)  # type: ignore[arg-type]

    if TaskContext.get() is not None:
        traceback.print_exc = print_exc
