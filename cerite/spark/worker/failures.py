"""Cerite's errors that come back from a task: Spark wraps them in errors of its own, in which `task_error` finds them.

In the task the error is raised without the frames of the worker (`refusal_first`), so that whoever calls `collect` on a
result reads the message first, before anything that Java adds. Where Cerite makes the call, `refusals` raises the
error itself.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache

from pyspark import TaskContext

from cerite.core import errors
from cerite.core.errors import CeriteError, Hint
from cerite.spark.worker import Batches

_RAISED = re.compile(
    r"(?:^|: )cerite\.core\.errors\.(\w+): (.*?)(?:\nhint: (.*?))?$(?=\n\s*$|\n\n|\nJVM|\n\s+at |\n SQLSTATE|\Z)",
    re.M | re.S,
)


def task_error(failure: BaseException) -> CeriteError | None:
    """The error of Cerite that a task raised, in a streaming query as well; None if the failure is of another kind.

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
    """If a task fails within this context with an error of Cerite, that error is raised."""
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
    """Called once in a worker, which then is silent when Spark stops reading, as after the rows of `show` or `limit`.

    PySpark's daemon would print the broken pipe with a traceback, which looks like a failure but is not one.
    """
    printed = traceback.print_exc

    def print_exc(*arguments: object, **options: object) -> None:
        if not isinstance(sys.exc_info()[1], (BrokenPipeError, ConnectionResetError)):
            printed(*arguments, **options)  # type: ignore[arg-type]

    if TaskContext.get() is not None:
        traceback.print_exc = print_exc
