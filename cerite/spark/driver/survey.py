"""A look at the data before it is cut: one Spark job that counts rows and takes quantiles, nothing more.

It runs only where its answer changes the plan: for chunks, unless footers tell (how many rows, and where to cut?), and
for partitions under a window (is some key hot?). Keys are looked at in hashed buckets, so the answer stays small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from cerite.spark.driver.cuts import step, time_cuts
from cerite.spark.worker.job import Cut, Number

POINTS = 512  # quantiles that are taken
BUCKETS = 256
HOT = 1.25  # a bucket with more than so many times a task's fair share is cut
_HOT_ROWS = 100_000  # and with at least so many rows
_TICK = "cerite_tick"


@dataclass(frozen=True)
class Survey:
    """The number of rows, the number of those without a tick, and quantiles of the ticks, the least first."""

    rows: int
    missing: int
    quantiles: tuple[Number, ...]


def survey(df: DataFrame, tick: Column) -> Survey:
    """The survey of a whole stream."""
    (figures,) = df.select(tick.alias(_TICK)).agg(*_figures()).collect()
    return Survey(figures[0], figures[0] - figures[1], tuple(figures[2] or ()))


def bins(df: DataFrame, tick: Column, edges: Sequence[Number]) -> tuple[int, ...]:
    """The number of rows from every edge to the next."""
    bin_of = fn.expr(step(_TICK, edges[1:]))
    rows = df.select(tick.alias(_TICK)).groupBy(bin_of.alias("bin")).count().collect()
    counts = {row["bin"]: row["count"] for row in rows}
    return tuple(counts.get(index, 0) for index in range(len(edges)))


@dataclass(frozen=True)
class Hot:
    """Buckets of keys: their sizes, and the cuts of those that are too large for one task."""

    sizes: tuple[int, ...]
    cuts: dict[int, tuple[Cut, ...]]
    missing: int


def bucket(keys: Sequence[Column]) -> Column:
    """The bucket of a partition value."""
    return fn.pmod(fn.xxhash64(*keys), fn.lit(BUCKETS)).cast("int")


def hot_buckets(
    df: DataFrame, keys: Sequence[Column], tick: Column | None, width: Fraction, tasks: int, *, least: int = _HOT_ROWS
) -> Hot:
    """Which buckets of keys hold more than a task's share, and where to cut them: by tick, or without one, by rank.

    Quantiles are taken only of buckets that turn out to be hot, by a second job.
    """
    rows = df.select(bucket(keys).alias("bucket"), (fn.lit(0) if tick is None else tick).alias(_TICK))
    counted = rows.groupBy("bucket").agg(fn.count(fn.lit(1)), fn.count(_TICK)).collect()
    counts = {row[0]: row[1] for row in counted}
    sizes = tuple(counts.get(index, 0) for index in range(BUCKETS))
    share = sum(sizes) / tasks
    hot = [index for index, count in counts.items() if count >= least and count > HOT * share]
    if tick is None:
        quantiles = {index: [counts[index] * k // POINTS for k in range(POINTS)] for index in hot}
    else:
        figures = rows.filter(fn.col("bucket").isin(hot)).groupBy("bucket").agg(*_figures()).collect() if hot else []
        quantiles = {row[0]: row[3] or [] for row in figures}
    cuts: dict[int, tuple[Cut, ...]] = {}
    for index in hot:
        own = time_cuts(quantiles[index], round(2 * counts[index] / share), width, spaced=least == _HOT_ROWS)
        if own:
            cuts[index] = own
    return Hot(sizes, cuts, sum(row[1] - row[2] for row in counted))


def _figures() -> list[Column]:
    points = ", ".join(f"{point / POINTS}D" for point in range(POINTS))  # as text: each literal is a call to Java
    quantiles = fn.expr(f"percentile_approx({_TICK}, array({points}), 10000)")
    return [fn.count(fn.lit(1)), fn.count(_TICK), quantiles]
