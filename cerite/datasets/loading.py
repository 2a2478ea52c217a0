"""`load(name)`: a generated stream with the query that finds what was planted in it, and where that is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from cerite.core.errors import ArgumentError, listed, suggestion
from cerite.datasets import generators
from cerite.datasets.drafts import Random, Stream

FEWEST = 100  # events that hold a planted match


@dataclass(frozen=True)
class Dataset:
    """Events in the order of `time`, a query about them, and the positions of exactly the matches that the query has.

    `about` says in one sentence what the events are and what the query looks for.
    """

    name: str
    about: str
    query: str
    events: pa.Table = field(repr=False)
    planted: tuple[tuple[int, ...], ...] = field(repr=False)
    time: str = "at"


@dataclass(frozen=True)
class Recipe:
    """What a dataset is about, its query, and what generates it."""

    about: str
    query: str
    generate: Callable[[Random, int], Stream]


RECIPES = {
    "cards": Recipe(
        "Card payments; somebody tries a stolen card with a tiny amount, then takes a large one in another country.",
        """SELECT probe, large FROM cards
WHERE PAY AS probe ; PAY AS large
FILTER probe[amount < 2] AND large[amount > 500 AND country != probe.country]
PARTITION BY [card]
WITHIN 10 minutes""",
        generators.cards,
    ),
    "logins": Recipe(
        "Logins; somebody guesses a password: five failures in a row or more, and then the door opens.",
        """SELECT MAX guesses, entry FROM logins
WHERE FAILED:{5,} AS guesses : LOGIN AS entry
PARTITION BY [user]
WITHIN 1 minute""",
        generators.logins,
    ),
    "homes": Recipe(
        "Loads of smart plugs, one reading every ten seconds; a V-shape: the load falls below a half and comes back.",
        """SELECT high, low, back FROM homes
WHERE LOAD AS high : LOAD:+ AS low : LOAD AS back
FILTER low[watts < 0.5 * high.watts] AND back[watts > 0.9 * high.watts]
PARTITION BY [plug]
WITHIN 2 minutes""",
        generators.homes,
    ),
    "clicks": Recipe(
        "Clicks in a shop; something is put into a cart, and no payment follows: an absence.",
        """SELECT cart FROM clicks
WHERE CART AS cart ; NOT PAY
PARTITION BY [user]
WITHIN 30 minutes""",
        generators.clicks,
    ),
    "taxi": Recipe(
        "Taxi trips in order of their ends; three in a row, each from where the last ended, that make a round trip.",
        """SELECT away, on, back FROM taxi
WHERE TRIP AS away : TRIP AS on : TRIP AS back
FILTER on[pickup = away.dropoff] AND back[pickup = on.dropoff AND dropoff = away.pickup]
PARTITION BY [taxi]
WITHIN 2 hours""",
        generators.taxi,
    ),
    "trades": Recipe(
        "Trades; a trader buys large lots, however many, and sells still more of them for 3 % more: pump and dump.",
        """SELECT MAX first, more, dump FROM trades
WHERE BUY AS first ; BUY+ AS more ; SELL AS dump
FILTER first[volume >= 1000] AND more[volume >= 1000 AND trader = first.trader]
   AND dump[volume >= 5000 AND trader = first.trader AND price > 1.03 * first.price]
PARTITION BY [symbol]
WITHIN 5 minutes""",
        generators.trades,
    ),
}
NAMES = tuple(RECIPES)


def load(name: str, *, rows: int = 10_000, seed: int = 0) -> Dataset:
    """The dataset of this name with `rows` events; the same seed gives the same events.

    The names are `cards`, `logins`, `homes`, `clicks`, `taxi` and `trades`. One match in about a thousand events is
    planted, and as many near misses.

    >>> print(load("clicks").about)
    Clicks in a shop; something is put into a cart, and no payment follows: an absence.
    """
    if name not in RECIPES:
        near = suggestion(str(name), NAMES)
        raise ArgumentError(f"there is no dataset {name!r}", hint=near or f"the datasets are {listed(NAMES)}")
    for what, number, least in (("rows", rows, FEWEST), ("seed", seed, 0)):
        if isinstance(number, bool) or not isinstance(number, int) or number < least:
            raise ArgumentError(
                f"{what} must be a whole number of at least {least}, not {number!r}", hint=f"write {what}={least}"
            )
    recipe = RECIPES[name]
    stream = recipe.generate(np.random.default_rng([seed, NAMES.index(name)]), rows)
    return Dataset(name, recipe.about, recipe.query, stream.table(), stream.planted)
