"""The stock stream, generated day by day from the figures of the real one.

Invariants: the same seed gives the same stream; a shorter stream is a prefix of a longer one; stock_time does not
decrease.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import numpy as np
import pyarrow as pa

from bench import stock_figures as real
from bench.columns import coded, renewed
from cerite.core.arrays import Floats, Longs

SCHEMA = pa.schema(
    [
        ("type", pa.dictionary(pa.int32(), pa.string())),
        ("id", pa.int64()),
        ("name", pa.dictionary(pa.int32(), pa.string())),
        ("volume", pa.int64()),
        ("price", pa.float64()),
        ("stock_time", pa.int64()),
    ]
)
TYPES = ("BUY", "SELL")


def stock_days(seed: int = 1) -> Iterator[pa.RecordBatch]:
    """Market days without end."""
    for day in count():
        yield _day(np.random.default_rng([seed, day]), day)


def _day(rng: np.random.Generator, day: int) -> pa.RecordBatch:
    lengths = _tick_lengths(rng)
    tick = np.repeat(np.arange(lengths.size), lengths)
    names, sells = _ticks(rng, lengths.size)
    name = names[tick]
    time = _times(rng, lengths.size)[tick] + day * real.DAY_MS
    number = np.arange(tick.size) + day * tick.size
    columns = [
        coded(sells[tick], TYPES),
        pa.array((number * real.IDS_PER_EVENT).astype(np.int64)),
        coded(name, real.NAMES),
        pa.array(_volumes(rng, tick.size)),
        pa.array(_prices(rng, name)),
        pa.array(time),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _tick_lengths(rng: np.random.Generator) -> Longs:
    shares = np.array(real.TICK_LENGTHS) / sum(real.TICK_LENGTHS)
    lengths = 1 + rng.choice(shares.size, real.DAY_EVENTS, p=shares)
    ends = np.cumsum(lengths)
    ticks = int(np.searchsorted(ends, real.DAY_EVENTS)) + 1
    lengths[ticks - 1] -= ends[ticks - 1] - real.DAY_EVENTS
    return lengths[:ticks].astype(np.int64)


def _ticks(rng: np.random.Generator, ticks: int) -> tuple[Longs, Longs]:
    """The stock of every tick, and whether it is a sell."""
    shares = np.array(real.COUNTS) / sum(real.COUNTS)
    by_chance = float((shares**2).sum())
    renew = rng.random(ticks) >= (real.SAME_NAME - by_chance) / (1 - by_chance)
    renew[0] = True
    names = renewed(rng.choice(shares.size, ticks, p=shares), renew)
    sells = (rng.random(ticks) < np.array(real.SELL_SHARES)[names]).astype(np.int64)
    changed = np.append(True, names[1:] != names[:-1])
    return names, renewed(sells, changed | (rng.random(ticks) >= 2 * real.SAME_TYPE - 1))


def _times(rng: np.random.Generator, ticks: int) -> Longs:
    """Gaps between ticks, stretched so that every half hour has its share of the day."""
    gaps = np.cumsum(rng.lognormal(*real.TICK_GAP_LOG, ticks))
    share = np.cumsum((0, *real.HALF_HOURS)) / sum(real.HALF_HOURS)
    hours = real.OPENING_HOUR + 0.5 * np.arange(share.size)
    times: Longs = (np.interp(gaps / gaps[-1], share, hours) * 3_600_000).astype(np.int64)
    return times


def _volumes(rng: np.random.Generator, events: int) -> Longs:
    rest = 1 - sum(real.VOLUME_SHARES)
    usual = rng.choice(np.append(real.VOLUMES, 0), events, p=np.append(real.VOLUME_SHARES, rest))
    return np.where(usual == 0, rng.integers(1, real.LARGEST_OTHER_VOLUME + 1, events), usual)


def _prices(rng: np.random.Generator, name: Longs) -> Floats:
    path = np.array(real.PRICES)
    place = np.linspace(0, path.shape[1] - 1, name.size)
    left = np.minimum(place.astype(np.int64), path.shape[1] - 2)
    between = place - left
    price = path[name, left] * (1 - between) + path[name, left + 1] * between
    noisy: Floats = np.round(price * (1 + rng.normal(0, 0.0005, name.size)), 2)
    return noisy
