"""What the workers of a live stream have to know: the job of its shards, and what must stay the same in a checkpoint.

Rows travel from the packer to the shards as `PACKED`, from the shards to the result as `REPORTS`. Invariant: the names
and types of both never depend on the query, so that Spark's own record of a checkpoint stays the same for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from cerite.core.errors import Hint, Setting, SnapshotError
from cerite.engine.events.rows import TimeUnit
from cerite.engine.plan import Plan
from cerite.engine.results.shape import Shown
from cerite.pattern.query import Measure
from cerite.spark.worker.job import CHUNK, OWNED, Job, live_plan, unary_tests

PLACEMENT, SOURCE, FINAL = "cerite.placement", "cerite.source", "cerite.final"
PACKED = "placement int, part int, flush int, seen array<bigint>, final boolean, events bigint, payload binary"
MATCH, LATE, SHARD = "match", "late", "shard"  # kinds of rows that a shard reports
COUNTS = ("relevant", "matches", "late", "untimed", "duplicates")  # of one micro-batch
GAUGES = ("pending", "kept", "live", "state_bytes")  # held after it
NUMBERS = (*COUNTS, *GAUGES, "watermark")
REPORTS = f"kind string, shard int, {', '.join(f'{name} bigint' for name in NUMBERS)}, payload binary"


@dataclass(frozen=True)
class Chunking:
    """T-CER's chunks of time, in ticks: chunk c owns [c · size, (c + 1) · size) and reads `reach` before it as well."""

    size: int
    reach: int

    @staticmethod
    def of(reach: int, *least: int) -> Chunking:
        """Chunks some windows long, so that what is read twice is at most a quarter; and at least this long."""
        return Chunking(max(4 * reach, *least, 1), reach)


@dataclass(frozen=True)
class ShardColumns:
    """The columns of a shard's events, what orders them, and what is shown of them."""

    columns: tuple[str, ...]
    order: tuple[str, ...]
    time: str
    position: str | None
    shown: tuple[Shown, ...]
    measures: tuple[Measure, ...] = ()


@dataclass(frozen=True)
class LiveJob:
    """One query on a live stream.

    `arriving` are the columns as Spark ships them; `placement` the number that stands for each shard in the checkpoint;
    `delay` and `per_millisecond` are in ticks of the time column. With several `sources` the slowest one drives time.
    """

    job: Job
    arriving: tuple[str, ...]
    placement: tuple[int, ...]
    sources: int
    delay: Fraction
    per_millisecond: Fraction
    unit: TimeUnit
    chunking: Chunking | None
    ties: tuple[str, ...]
    deduplicate: tuple[str, ...]
    side: bool
    identity: Mapping[str, str]
    types: Mapping[str, str]

    @staticmethod
    def of(
        plan: Plan, operator: str, chunking: Chunking | None, shard: ShardColumns, *, deduplicate: tuple[str, ...],
        **others: Any,
    ) -> LiveJob:  # fmt: skip
        """The job for a plan; events are ordered, and compared for duplicates, inside their partition or chunk."""
        chunked = chunking is not None
        own = live_plan(plan)
        unit = (CHUNK,) if chunked else () if operator == "sequence" else plan.partition
        job = Job(
            plan=replace(own, partition=(CHUNK,)) if chunked else own,
            columns=(*shard.columns, *((CHUNK, OWNED) if chunked else ())), tests=len(unary_tests(plan)), unit=unit,
            order=shard.order, keys=plan.partition, time=shard.time, position=shard.position, shown=shard.shown,
            window=None, owned=chunked, files=(), root="", measures=shard.measures,
        )  # fmt: skip
        ties = dict.fromkeys((*(name for name in shard.order if name != shard.time), *unit))
        ids = dict.fromkeys((*deduplicate, *unit)) if deduplicate else {}
        return LiveJob(job=job, chunking=chunking, ties=tuple(ties), deduplicate=tuple(ids), **others)


def check_identity(taken: Mapping[str, str], columns: Mapping[str, str], live: LiveJob) -> None:
    """Refuse a checkpoint that belongs to something else, and say what differs.

    Columns that are not shown any more may be missing; what the state holds of them disappears with its events.
    """
    for part, mine in live.identity.items():
        there = taken.get(part)
        if there != mine:
            raise SnapshotError(
                f"this checkpoint belongs to another {part}: {there or 'none'} there, {mine or 'none'} here",
                hint=_advice(part),
            )
    for name, kind in live.types.items():
        there = columns.get(name)
        if there != kind:
            known = "do not have it" if there is None else f"have {there} there"
            raise SnapshotError(
                f"column `{name}` is {kind} here, and the events in this checkpoint {known}",
                hint="start with a new checkpoint, or select and cast the columns as they were",
            )


def _advice(part: str) -> str:
    if part == "number of shards":
        return Hint("it is fixed in a checkpoint: name it again, ", Setting("shards"), ", or start a new checkpoint")
    return (
        "start with a new checkpoint and read the stream again; LIMIT may change, and SELECT may show fewer attributes"
    )
