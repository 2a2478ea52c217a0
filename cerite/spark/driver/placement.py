"""Tasks for groups of rows: gets Spark's hash partitioning to put every unit where it is wanted.

`repartition(n, column)` puts a row into partition pmod(murmur3(column), n). `placement(n)` finds, for every partition,
an integer that hashes there; a column that holds these integers then spreads units exactly as planned, on any Spark
from 4.0 on, without a range partitioner's extra pass over the data.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from functools import lru_cache

from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

_MASK = 0xFFFFFFFF


@lru_cache(maxsize=64)
def placement(partitions: int) -> tuple[int, ...]:
    """For every partition, an integer that Spark's hash sends to it."""
    hashed: dict[int, int] = {}
    candidate = 0
    while len(hashed) < partitions:
        hashed.setdefault(murmur3(candidate) % partitions, candidate)
        candidate += 1
    return tuple(hashed[partition] for partition in range(partitions))


def murmur3(value: int) -> int:
    """Spark's hash of an int: Murmur3_x86_32 of four bytes with its seed, 42, as a signed number.

    >>> murmur3(0), murmur3(1), murmur3(-7)
    (933211791, -559580957, -1618159745)
    """
    k = _rotated(value & _MASK, 0xCC9E2D51, 15, 0x1B873593)
    h = 42 ^ k
    h = ((h << 13 | h >> 19) & _MASK) * 5 + 0xE6546B64 & _MASK
    h ^= 4
    h = (h ^ h >> 16) * 0x85EBCA6B & _MASK
    h = (h ^ h >> 13) * 0xC2B2AE35 & _MASK
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


def _rotated(value: int, before: int, by: int, after: int) -> int:
    value = value * before & _MASK
    return ((value << by | value >> (32 - by)) & _MASK) * after & _MASK


def packed(sizes: Sequence[int], bins: int) -> tuple[int, ...]:
    """A bin for every unit so that bins are even: the largest unit first, each into the emptiest bin.

    >>> packed([5, 1, 1, 4], 2)
    (0, 1, 0, 1)
    """
    heap = [(0, index) for index in range(bins)]
    bin_of = [0] * len(sizes)
    for unit in sorted(range(len(sizes)), key=lambda each: (-sizes[each], each)):
        filled, index = heapq.heappop(heap)
        bin_of[unit] = index
        heapq.heappush(heap, (filled + sizes[unit], index))
    return tuple(bin_of)


def parallelism(session: SparkSession) -> int:
    """How many tasks run at once; a Connect session does not say so, but spreads a range over as many."""
    context = getattr(session, "sparkContext", None)
    if context is not None:
        return max(1, int(context.defaultParallelism))
    spread = session.range(10_000).select(fn.spark_partition_id().alias("at")).agg(fn.countDistinct("at"))
    (row,) = spread.collect()
    return max(1, int(row[0]))
