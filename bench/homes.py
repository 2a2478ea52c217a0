"""The smart homes stream (DEBS 2014, house 28 as in CORE): 85 plugs in 17 households, each measured every second.

One plug of every household is on for most of the time, the others for a quarter of it, in blocks of ten minutes; the
mean load is about 76 W, the queries' threshold. As in the paper, H9 and H12 have very many matches.

Invariants: the same seed gives the same stream; a shorter stream is a prefix of a longer one; plug_timestamp does not
decrease.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import numpy as np
import pyarrow as pa

from bench.columns import constant

PLUGS, HOUSEHOLDS = 85, 17
BLOCK_SECONDS = 600
REPORTED = 0.98  # measurements that arrive
STANDING, ON = 0.8, 0.25  # blocks in which the first plug of a household is on, and any other
STANDING_WATTS = (90, 200)
MEAN_WATTS = 76.0  # over all plugs and times
SPREAD = 1.19  # deviation of the logarithm of a plug's load while it is on
FIRST_SECOND = 1_377_986_401  # 1 September 2013
SCHEMA = pa.schema(
    [
        ("type", pa.dictionary(pa.int32(), pa.string())),
        ("id", pa.int64()),
        ("plug_timestamp", pa.int64()),
        ("value", pa.float64()),
        ("plug_id", pa.int64()),
        ("household_id", pa.int64()),
    ]
)


def home_blocks(seed: int = 1) -> Iterator[pa.RecordBatch]:
    """An endless stream in blocks of ten minutes."""
    rng = np.random.default_rng(seed)
    standing = rng.uniform(*STANDING_WATTS, HOUSEHOLDS)
    others = rng.lognormal(0, SPREAD, PLUGS - HOUSEHOLDS)
    others *= (MEAN_WATTS * PLUGS - STANDING * standing.sum()) / (ON * others.sum())
    watts = np.concatenate([standing, others])
    share = np.where(np.arange(PLUGS) < HOUSEHOLDS, STANDING, ON)
    before = 0
    for block in count():
        rng = np.random.default_rng([seed, block])
        order = np.argsort(rng.random((BLOCK_SECONDS, PLUGS)), axis=1).ravel()
        second = np.repeat(np.arange(BLOCK_SECONDS), PLUGS)
        arrived = rng.random(order.size) < REPORTED
        plug, second = order[arrived], second[arrived]
        load = np.where(rng.random(PLUGS) < share, watts * rng.normal(1, 0.1, PLUGS), 0.0)
        value = np.round(load[plug] * rng.normal(1, 0.02, plug.size), 3)
        columns = [
            constant("LOAD", plug.size),
            pa.array(before + np.arange(plug.size)),
            pa.array(FIRST_SECOND + block * BLOCK_SECONDS + second),
            pa.array(value),
            pa.array(plug),
            pa.array(plug % HOUSEHOLDS),
        ]
        before += plug.size
        yield pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
