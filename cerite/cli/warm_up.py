"""`cerite warm-up`: runs small queries of every kind, so that their kernels are on disk before any are needed.

Invariant: a step that is done leaves its kernels where every later process on this machine finds them; if no folder
can be written, the command says so and fails.
"""

from __future__ import annotations

import os
import time as clock
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import NamedTuple

import pyarrow as pa
from rich.console import Console
from rich.text import Text

from cerite.api.query import query
from cerite.core.errors import CeriteError
from cerite.core.kernel_cache import places, writable

_EVENTS = pa.table({
    "type": ["A", "B", "B", "A", "B", "C"] * 3, "k": ["x", "y"] * 9, "v": [float(v % 7) for v in range(18)],
    "n": [1, 2] * 9, "at": range(0, 1_800, 100),
})  # fmt: skip


_WINDOW = "WITHIN 1 seconds"
_PLAIN = "* FROM S WHERE A AS x ; B+ AS y"
_NAMED = "* FROM S WHERE A AS x ; B AS y FILTER y[k = 'x']"
_NEXT_TO = "x, y FROM S WHERE A AS x : B:+ AS y PARTITION BY [n]"
_ACROSS = "x, y FROM S WHERE A AS x ; B AS y FILTER y[v > x.v]"
_LONGER = "x, y FROM S WHERE A AS x ; B AS y FILTER y[v < x.v + 1 OR v = 2] PARTITION BY [k]"


class Step(NamedTuple):
    """A kind of query: its name, examples of it, and whether their matches are counted."""

    name: str
    queries: tuple[str, ...]
    counted: bool = False


STEPS = (
    Step(
        "finding matches",
        tuple(f"SELECT {each} {_WINDOW}" for each in (_PLAIN, f"{_PLAIN} PARTITION BY [k]", _NAMED, _NEXT_TO)),
    ),
    Step("counting matches", (f"SELECT {_PLAIN} {_WINDOW}", f"SELECT {_PLAIN}"), counted=True),
    Step(
        "conditions across events",
        (f"SELECT {_ACROSS} {_WINDOW}", f"SELECT {_ACROSS}", f"SELECT {_LONGER} {_WINDOW}"),
    ),
    Step("counting with conditions across events", (f"SELECT {_ACROSS} {_WINDOW}", f"SELECT {_ACROSS}"), counted=True),
)
FURTHER = (
    Step("strategies", tuple(f"SELECT {each} {_PLAIN} {_WINDOW}" for each in ("NEXT", "LAST", "MAX"))),
    Step("strategies with such conditions", tuple(f"SELECT {each} {_ACROSS} {_WINDOW}" for each in ("NEXT", "MAX"))),
    Step(
        "absence",
        tuple(
            f"SELECT * FROM S WHERE {each} {_WINDOW}"
            for each in ("A ; NOT B", "NOT A ; C", "NOT (A AS x ; B[v > x.v]) ; C")
        ),
    ),
    Step("aggregates", (f"SELECT {_PLAIN} FILTER AVG(y.v) > 2 AND y[v >= x.v] {_WINDOW}",)),
    Step("consuming", (f"SELECT {_PLAIN} {_WINDOW} CONSUME BY ANY", f"SELECT {_PLAIN} {_WINDOW} SUPPRESS 1 seconds")),
)


def warm_up(*, everything: bool, out: Console, err: Console) -> None:
    """Run the steps, one line for each with the time it took."""
    folder = next((place for place in places() if writable(place)), None)
    if folder is None:
        raise CeriteError("no folder for compiled kernels can be written", hint="set NUMBA_CACHE_DIR to one that can")
    steps = (*STEPS, *(FURTHER if everything else ()))
    began = clock.perf_counter()
    with _quiet():
        for number, step in enumerate(steps, 1):
            label = f"{number}/{len(steps)} {step.name}"
            with err.status(Text(f"compiling: {label}")) if err.is_terminal else nullcontext():
                started = clock.perf_counter()
                _run(step)
            out.print(Text(f"{label}: {clock.perf_counter() - started:.1f} s"))
    out.print(Text(f"ready after {clock.perf_counter() - began:.1f} s; kept in {folder}"))


def _run(step: Step) -> None:
    for each in step.queries:
        matches = query(each).run(_EVENTS, time="at")
        if step.counted:
            matches.count()
        else:
            matches.to_arrow()
            matches.to_arrow(events=True)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silences the kernels' own lines about what is compiled: this command prints that itself."""
    before = os.environ.get("CERITE_QUIET")
    os.environ["CERITE_QUIET"] = "1"
    try:
        yield
    finally:
        del os.environ["CERITE_QUIET"]
        if before is not None:
            os.environ["CERITE_QUIET"] = before
