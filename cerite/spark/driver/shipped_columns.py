"""What travels to Python: the columns under names of Spark's own, conditions as bits, and what tasks have to know."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as fn

from cerite.engine.results.match_ids import FILE
from cerite.spark.driver.layout import Layout
from cerite.spark.driver.request import Request
from cerite.spark.worker.job import BITS, CHUNK, GROUP, OWNED, RANK, WORD, Job, task_plan, unary_tests


def job_of(request: Request, layout: Layout) -> Job:
    """What the tasks have to know."""
    tests = unary_tests(request.plan)
    keys = request.plan.partition
    unit = () if layout.sequence else (*keys, CHUNK) if layout.chunked else keys
    plan = task_plan(request.plan, request.time, request.per_millisecond)
    if not layout.sequence:
        plan = replace(plan, partition=(GROUP,) if unit else ())
    own = (*((CHUNK, OWNED) if layout.chunked else ()), *((RANK,) if request.ranked else ()))
    words = tuple(f"{BITS}{word}" for word in range(-(-len(tests) // WORD)))
    tied = tuple(name for name in request.order if name not in request.frame.names)
    window = plan.window
    return Job(
        plan=plan, columns=(*request.shipped, *tied, *words, *own), tests=len(tests), unit=unit,
        order=tuple(request.order), keys=keys, time=request.time, position=request.position, shown=request.shown,
        window=None if window is None or window.attribute is None else (window.attribute, window),
        owned=layout.chunked, files=request.frame.files if FILE in request.order else (),
        root=request.frame.root if FILE in request.order else "", measures=request.selection.measures,
    )  # fmt: skip


def inner_name(request: Request, name: str) -> str:
    """What a shipped column is called inside Spark; only Python uses its own name, which may have any spelling."""
    if name in request.frame.names:
        return f"c{request.frame.names.index(name)}"
    return name.replace(".", "_")


def bit_words(request: Request) -> tuple[tuple[str, ...], list[Column]]:
    """Every condition on one event as a bit, packed into words: their names and the words themselves."""
    tests = [request.conditions.column(request.conditions.test(test)) for test in unary_tests(request.plan)]
    packed_words: list[Column] = []
    for begin in range(0, len(tests), WORD):
        bits = [
            fn.when(test, fn.lit(1 << place)).otherwise(fn.lit(0))
            for place, test in enumerate(tests[begin : begin + WORD])
        ]
        packed_words.append(reduce(Column.bitwiseOR, bits).cast("bigint"))
    return tuple(f"{BITS}{word}" for word in range(len(packed_words))), packed_words
