"""The taxi trips stream (DEBS 2015): trips between New York zones in the order of their ends, 5.5 a second.

The popularity of zones follows Zipf's law, with the queries' zones among the rare ones; each leg that the queries look
for is one more trip in 10,000, so that short queries find matches, as in the paper.

Invariants: the same seed gives the same stream; a shorter stream is a prefix of a longer one; dropoff_datetime does
not decrease.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import numpy as np
import pyarrow as pa

from bench.columns import coded, constant

ZONES = 250
TOURED = (
    "East Harlem North", "Midwood", "Gravesend", "West Brighton", "Lincoln Square West",
    "Sutton Place/Turtle Bay North", "East Concourse/Concourse Village",
)  # fmt: skip
LEGS = np.array(
    [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 6], [6, 0], [0, 0], [0, 2], [2, 1], [1, 1]]
)  # of TOURED, as T24 goes
LEG_SHARE = 1e-4
TRIPS_PER_SECOND = 5.49  # 173 million in a year
TAXIS = 13_237
BATCH = 1 << 16
FIRST_SECOND = 1_356_998_400  # 1 January 2013
SCHEMA = pa.schema(
    [
        ("type", pa.dictionary(pa.int32(), pa.string())),
        ("medallion", pa.dictionary(pa.int32(), pa.string())),
        ("pickup_loc", pa.dictionary(pa.int32(), pa.string())),
        ("dropoff_loc", pa.dictionary(pa.int32(), pa.string())),
        ("fare", pa.float64()),
        ("dropoff_datetime", pa.int64()),
    ]
)


def zone_names() -> tuple[str, ...]:
    """The toured zones, and others to make up the number."""
    return (*TOURED, *(f"Zone {number}" for number in range(len(TOURED) + 1, ZONES + 1)))


def taxi_batches(seed: int = 1) -> Iterator[pa.RecordBatch]:
    """An endless stream of trips."""
    names = zone_names()
    medallions = [f"{number:06X}" for number in range(TAXIS)]
    popular = 1.0 / np.arange(ZONES, 0, -1)  # the toured zones come first, so they are the rarest
    popular /= popular.sum()
    span = round(BATCH / TRIPS_PER_SECOND)
    for batch in count():
        rng = np.random.default_rng([seed, batch])
        pickup, dropoff = rng.choice(ZONES, (2, BATCH), p=popular)
        places = np.flatnonzero(rng.random(BATCH) < LEG_SHARE * len(LEGS))
        pickup[places], dropoff[places] = LEGS[rng.integers(len(LEGS), size=places.size)].T
        time = FIRST_SECOND + batch * span + np.sort(rng.integers(0, span, BATCH))
        columns = [
            constant("TRIP", BATCH),
            coded(rng.integers(TAXIS, size=BATCH), medallions),
            coded(pickup, names),
            coded(dropoff, names),
            pa.array(np.round(2.5 + rng.gamma(2.0, 5.0, BATCH), 1)),
            pa.array(time),
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
