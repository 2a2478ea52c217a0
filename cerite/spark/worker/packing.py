"""What a live stream sends, in one wire format: events to shards, and from shards matches and late events.

Before the exchange (`packer`) the rows of a task become one row for each shard, with the shard's events as Arrow in it;
what shards report becomes the rows of the result (`unpacker`), matches and, on request, late events. Every flush tells
every shard the greatest time seen, even a shard that gets no event of it, so that all shards have the same watermark.
Invariant: the packed rows of a task, in the order of `flush`, hold its events in their order, each once in its shard,
or under T-CER once in every chunk that reads it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from cerite.core.arrays import Flags, Longs
from cerite.engine.events.keys import MOST, Numbers, keys_of, numbers
from cerite.spark.worker import Batches
from cerite.spark.worker.job import BIT, CHUNK, OWNED, WORD
from cerite.spark.worker.live_job import FINAL, LATE, PLACEMENT, SOURCE, Chunking, LiveJob

FLUSH_ROWS, FLUSH_BYTES = 1 << 20, 1 << 27
_SCHEMA = pa.schema(
    [
        ("placement", pa.int32()), ("part", pa.int32()), ("flush", pa.int32()), ("seen", pa.list_(pa.int64())),
        ("final", pa.bool_()), ("events", pa.int64()), ("payload", pa.binary()),
    ]
)  # fmt: skip


def packer(live: LiveJob) -> Callable[[Batches], Batches]:
    """The function for `mapInArrow` before the exchange."""

    def packed(batches: Batches) -> Batches:
        context = TaskContext.get()
        part = 0 if context is None else context.partitionId()
        for flush, rows in enumerate(gathered(batches, FLUSH_ROWS, FLUSH_BYTES)):
            yield _flushed(live, rows.rename_columns(list(live.arriving)), part, flush)

    return packed


def gathered(batches: Batches, most_rows: int, most_bytes: int) -> Batches:
    """Rows in pieces that are large enough to be worth packing; nothing if there are no rows."""
    some: list[pa.RecordBatch] = []
    for batch in batches:
        some.append(batch)
        if sum(each.num_rows for each in some) >= most_rows or sum(each.nbytes for each in some) >= most_bytes:
            yield _joined(some)
            some = []
    if any(each.num_rows for each in some):
        yield _joined(some)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def _flushed(live: LiveJob, rows: pa.RecordBatch, part: int, flush: int) -> pa.RecordBatch:
    final = rows.column(FINAL).to_numpy(zero_copy_only=False).astype(np.bool_)
    if final.any():
        rows = rows.filter(pa.array(~final))
    values, missing = numbers(rows.column(live.job.time), str(live.job.time))
    seen = _seen(live, rows, keys_of(values), missing)
    events = _prepared(live, rows)
    if live.chunking is None:
        shard = _number(rows.column(PLACEMENT).to_numpy(zero_copy_only=False), live.placement)
        owned = np.ones(shard.size, np.bool_)
    else:
        events, shard, owned = _chunked(live.chunking, events, values, len(live.placement))
    order = np.argsort(shard, kind="stable")
    events = events.take(pa.array(order))
    ends = np.searchsorted(shard[order], np.arange(len(live.placement) + 1))
    mine = np.bincount(shard[owned], minlength=len(live.placement))
    payloads = [written(events.slice(begin, stop - begin)) for begin, stop in pairwise(ends.tolist())]
    count = len(live.placement)
    columns = [
        pa.array(live.placement, pa.int32()), pa.array([part] * count, pa.int32()),
        pa.array([flush] * count, pa.int32()), pa.array([seen] * count, pa.list_(pa.int64())),
        pa.array([bool(final.any())] * count), pa.array(mine, pa.int64()), pa.array(payloads, pa.binary()),
    ]  # fmt: skip
    return pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)


def _seen(live: LiveJob, rows: pa.RecordBatch, keys: Longs, missing: Flags | None) -> list[int | None]:
    """The greatest time of every source, None for one without a time in these rows."""
    source = rows.column(SOURCE).to_numpy(zero_copy_only=False)
    known = np.ones(keys.size, np.bool_) if missing is None else ~missing
    greatest: list[int | None] = []
    for number in range(live.sources):
        mine = keys[known & (source == number)]
        greatest.append(int(mine.max()) if mine.size else None)
    return greatest


def _number(placed: Longs, known: tuple[int, ...]) -> Longs:
    """Which shard each row belongs to."""
    order = np.argsort(known)
    return order[np.searchsorted(np.array(known)[order], placed)]


def _prepared(live: LiveJob, rows: pa.RecordBatch) -> pa.RecordBatch:
    """The columns of the events: a flag for every condition instead of words of bits; instants in UTC."""
    words = [rows.column(name).to_numpy(zero_copy_only=False) for name in live.job.words]
    columns = {name: _in_utc(rows.column(name)) for name in live.job.columns if name in rows.schema.names}
    for k in range(live.job.tests):
        columns[f"{BIT}{k}"] = pa.array(((words[k // WORD] >> (k % WORD)) & 1).astype(np.bool_))
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _in_utc(column: pa.Array) -> pa.Array:
    """The column with instants in UTC: a checkpoint may be read in a session of another zone."""
    kind = column.type
    return column.cast(pa.timestamp(kind.unit, "UTC")) if pa.types.is_timestamp(kind) and kind.tz else column


def _chunked(
    chunking: Chunking, events: pa.RecordBatch, values: Numbers, shards: int
) -> tuple[pa.RecordBatch, Longs, Flags]:
    """Every event in its own chunk, and again in each later one that its window reaches into."""
    own, last = chunks_of(values, chunking)
    again = last - own + 1
    place = np.repeat(np.arange(own.size), again)
    first = np.concatenate([[0], np.cumsum(again)])[:-1]
    chunk = own[place] + (np.arange(place.size) - first[place])
    owned = chunk == own[place]
    events = events if place.size == own.size else events.take(pa.array(place))
    events = events.append_column(CHUNK, pa.array(chunk)).append_column(OWNED, pa.array(owned))
    return events, chunk % shards, owned


def chunks_of(values: Numbers, chunking: Chunking) -> tuple[Longs, Longs]:
    """The chunk that owns each time, and the last one that reads it.

    >>> own, last = chunks_of(np.array([-1, 0, 7, 9]), Chunking(10, 3))
    >>> own.tolist(), last.tolist()
    ([-1, 0, 0, 0], [0, 0, 1, 1])
    """
    if values.dtype == np.float64:
        with np.errstate(all="ignore"):
            far = np.nextafter(np.nextafter(values + float(chunking.reach), np.inf), np.inf)  # rounding reads more
            ends = [np.floor(each / float(chunking.size)) for each in (values, far)]
        own, last = (np.nan_to_num(np.clip(each, -(2.0**62), 2.0**62)).astype(np.int64) for each in ends)
        return own, np.minimum(last, own + 1)
    ticks = np.minimum(values.astype(np.int64), MOST - chunking.reach)
    return ticks // chunking.size, (ticks + chunking.reach) // chunking.size


def written(batch: pa.RecordBatch) -> bytes:
    """Rows as bytes (Arrow IPC)."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def read(payload: bytes) -> pa.RecordBatch:
    """The rows of one payload, in one batch."""
    table = pa.ipc.open_stream(payload).read_all().combine_chunks()
    if not table.num_rows:
        return pa.RecordBatch.from_arrays([pa.array([], each.type) for each in table.schema], schema=table.schema)
    return table.to_batches()[0]


def filled(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The rows with the columns of a schema; columns that they lack are NULL."""
    if rows.schema.equals(schema):
        return rows
    have = {name: rows.column(name) for name in rows.schema.names}
    columns = [pc.cast(have[each.name], each.type) if each.name in have else pa.nulls(rows.num_rows, each.type)
               for each in schema]  # fmt: skip
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def unpacker(schema: StructType, events: list[str], *, side: bool) -> Callable[[Batches], Batches]:
    """The function for `mapInArrow` behind the shards.

    With late events (`side`), a row holds a match or a late event.
    """

    def unpacked(batches: Batches) -> Batches:
        whole = to_arrow_schema(schema, timezone="UTC") if side else None
        for batch in batches:
            for kind, payload in zip(*(batch.column(k).to_pylist() for k in range(2)), strict=True):
                rows = read(payload)
                if kind == LATE:
                    rows = _late(rows, events)
                yield rows if whole is None else filled(rows, whole)

    return unpacked


def _late(rows: pa.RecordBatch, events: list[str]) -> pa.RecordBatch:
    """Late events as structs: the event, why it was not read, and how far it lies behind the watermark."""
    late_by, reason = rows.column(rows.num_columns - 2), rows.column(rows.num_columns - 1)
    if pa.types.is_duration(late_by.type):
        late_by = pc.cast(late_by, pa.duration("us"))
    event = pa.StructArray.from_arrays([rows.column(name) for name in events], names=events)
    struct = pa.StructArray.from_arrays([event, reason, late_by], names=["event", "reason", "late_by"])
    return pa.RecordBatch.from_arrays([struct], names=["late"])
