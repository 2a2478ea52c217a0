"""A stream in this process, without Spark: logins come out of order and twice, and guessed passwords are reported.

    python examples/late.py

The logins are those of `cerite.datasets`, so what should be reported is known; at the end it says whether it was.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

import cerite
from cerite import datasets

DELAY = 20.0  # seconds by which a login may come late
BATCH = 500


def arriving(events: pa.Table, seed: int = 0) -> Iterator[pa.Table]:
    """Batches of the events in the order of their arrival; one in a hundred is delivered twice."""
    rng = np.random.default_rng(seed)
    twice = np.sort(np.concatenate([np.arange(len(events)), rng.choice(len(events), len(events) // 100)]))
    times = events["at"].cast(pa.int64()).to_numpy()[twice] / 1e6
    order = twice[np.argsort(times + rng.uniform(0, DELAY, twice.size))]
    for first in range(0, order.size, BATCH):
        yield events.take(pa.array(order[first : first + BATCH]))


def main(rows: int = 10_000) -> int:
    """Follow the stream; returns how many matches there were."""
    logins = datasets.load("logins", rows=rows)
    events = logins.events.append_column("id", pa.array(range(rows)))
    print(f"{logins.about}\n\n{logins.query}\n")
    query = cerite.query(logins.query)
    stream = query.stream(events.schema, time="at", watermark=f"{DELAY:.0f} seconds", order_by="id", deduplicate="id")
    reported = 0
    for matches in stream.follow(arriving(events)):
        for match in matches:
            entry = match.entry[0]
            print(f"{entry['at']:%H:%M:%S}  {entry['user']}: {len(match.guesses)} failures, then in from {entry['ip']}")
            reported += 1
    numbers = stream.metrics
    print(f"\n{numbers.events:,} logins, {numbers.duplicates} twice, {numbers.late} late")
    print(f"{reported} reported of {len(logins.planted)} that were planted")
    return reported


if __name__ == "__main__":
    main()
