"""Errors of Cerite that come back from a task: Spark wraps them into a traceback, `told` finds them in it."""

from __future__ import annotations

import re

from cerite import errors
from cerite.errors import CeriteError

_RAISED = re.compile(r"^cerite\.errors\.(\w+): (.*?)(?:\nhint: (.*?))?$(?=\n\s*$|\n\n|\nJVM|\n\s+at |\Z)", re.M | re.S)


def told(failure: BaseException) -> CeriteError | None:
    """What a task refused, as the error it raised there; None if the failure is another.

    >>> told(RuntimeError("Traceback …\\ncerite.errors.StreamError: two events cannot be ordered\\nhint: order_by=[…]"))
    StreamError('two events cannot be ordered')
    """
    if isinstance(failure, CeriteError):
        return failure
    found = _RAISED.search(str(failure))
    if found is None:
        return None
    kind = getattr(errors, found[1], CeriteError)
    made: CeriteError = kind(found[2].strip(), hint=(found[3] or "").strip() or None)
    return made
