"""The streams themselves, one function each: NumPy columns with planted matches and near misses in them.

Invariant: a dataset's query has exactly the planted matches. Every generator says what keeps the background from
matching by chance.
"""

from __future__ import annotations

import numpy as np

from cerite.datasets.drafts import (
    HOUR,
    MINUTE,
    SECOND,
    Array,
    Groups,
    Random,
    Stream,
    apart,
    arrivals,
    by_end,
    count_planted,
    groups,
    merged,
    skewed,
)

COUNTRIES = ("DE", "FR", "ES", "IT", "NL", "PL", "SE", "US")
SHOPS = ("grocer", "bakery", "fuel", "books", "pharmacy", "travel", "clothes", "electronics")
PAGES = ("shoes", "coats", "lamps", "chairs", "books", "games", "plants", "tea")
ZONES = (
    "Midtown", "Chelsea", "SoHo", "Harlem", "Tribeca", "Gramercy", "Astoria", "Bushwick", "Flatbush", "Red Hook",
    "Greenpoint", "Jamaica", "Corona", "Midwood", "Gravesend", "Riverdale", "Fordham", "Sunnyside", "JFK", "LaGuardia",
)  # fmt: skip
SYMBOLS = ("ACME", "BOLT", "CRUX", "DUNE", "ECHO", "FLUX", "GALE", "HALO", "IRIS", "JADE", "KITE", "LUNA")
NAMES = (
    "ada", "ben", "cleo", "dan", "eva", "finn", "gia", "hugo", "ida", "jon", "kim", "leo", "mia", "noor", "oli", "pia",
)  # fmt: skip


def cards(rng: Random, rows: int) -> Stream:
    """Background payments are of 2 or more and in the card's own country, so none is a probe or made abroad."""
    keys, half = max(40, rows // 25), count_planted(rows)
    gaps = rng.uniform(20 * SECOND, 9 * MINUTE, (2 * half, 1))
    miss = np.arange(2 * half) - half  # which near miss: the same country, too late, too little
    gaps[half + 1 :: 3, 0] = rng.uniform(11 * MINUTE, 20 * MINUTE, gaps[half + 1 :: 3, 0].size)
    at = arrivals(rng, rows - 4 * half, 6.0)
    group = groups(rng, rows, keys, gaps, None, at[-1])
    home = rng.integers(0, len(COUNTRIES), keys)
    abroad = (home[group.keys] + rng.integers(1, len(COUNTRIES), 2 * half)) % len(COUNTRIES)
    abroad = np.where((miss >= 0) & (miss % 3 == 0), home[group.keys], abroad)
    large = np.where((miss >= 0) & (miss % 3 == 2), rng.uniform(380, 499, 2 * half), rng.uniform(501, 2_500, 2 * half))
    key = skewed(rng, keys, at.size)
    order, time, planted = merged(at, group)
    amount = np.concatenate([
        np.maximum(2, rng.lognormal(3.3, 1.1, at.size)),
        group.flat(np.stack([rng.uniform(0.5, 1.9, 2 * half), large], axis=1)),
    ])  # fmt: skip
    card = np.concatenate([key, group.flat(group.keys[:, None])])
    country = np.concatenate([home[key], group.flat(np.stack([home[group.keys], abroad], axis=1))])
    kind = np.concatenate([(rng.random(at.size) < 0.03).astype(np.int64), np.zeros(group.size, np.int64)])
    shop = rng.integers(0, len(SHOPS), order.size)
    return Stream(
        {
            "type": (kind[order], ("PAY", "REFUND")), "card": 4_000 + card[order],
            "country": (country[order], COUNTRIES), "shop": (shop, SHOPS), "amount": np.round(amount[order], 2),
        },
        time, planted,
    )  # fmt: skip


def logins(rng: Random, rows: int) -> Stream:
    """In the background nobody fails more than three times in a row."""
    keys, half = max(40, rows // 50), count_planted(rows)
    guesses = rng.integers(5, 9, 2 * half)
    slow = (np.arange(2 * half) >= half) & (np.arange(2 * half) % 2 == 0)
    guesses[half:] = np.where(slow[half:], guesses[half:], 4)  # near misses: too slow, or too few
    used = np.concatenate([np.arange(9)[None, :] < guesses[:, None], np.ones((2 * half, 1), bool)], axis=1)
    gaps = rng.uniform(1, 5, (2 * half, 9)) * np.where(slow[:, None], 4, 1) * SECOND
    gaps[slow] += 11 * SECOND
    gaps[:, :8] *= used[:, 1:9]
    at = arrivals(rng, rows - int(used.sum()), 4.0)
    group = groups(rng, rows, keys, gaps, used, at[-1])
    key = apart(rng, keys, skewed(rng, keys, at.size), at, group, MINUTE)
    kind = capped(rng.choice(3, at.size, p=(0.55, 0.3, 0.15)), key)
    order, time, planted = merged(at, group)
    user = np.concatenate([key, group.flat(group.keys[:, None])])[order]
    kinds = np.concatenate([kind, group.flat(np.where(np.arange(10) < 9, 2, 0)[None, :])])[order]
    strange = np.concatenate([np.zeros(at.size, np.int64), group.flat(rng.integers(1, 250, 2 * half)[:, None])])[order]
    addresses = [f"10.0.{number // 250}.{number % 250}" for number in range(keys)]
    addresses += [f"203.0.113.{number}" for number in range(250)]
    return Stream(
        {
            "type": (kinds, ("LOGIN", "LOGOUT", "FAILED")), "user": (user, users(keys)),
            "ip": (np.where(strange > 0, keys + strange, user), addresses),
        },
        time, planted,
    )  # fmt: skip


def users(count: int) -> list[str]:
    """This many names.

    >>> users(18)[-2:]
    ['ada1', 'ben1']
    """
    return [f"{NAMES[number % len(NAMES)]}{number // len(NAMES) or ''}" for number in range(count)]


def capped(kind: Array, key: Array, failed: int = 2, most: int = 3) -> Array:
    """The kinds, with a success in place of every failure that follows `most` failures of the same user in a row."""
    order = np.argsort(key, kind="stable")
    failing, user = kind[order] == failed, key[order]
    place = np.arange(order.size)
    begins = ~failing
    begins[1:] |= user[1:] != user[:-1]
    begins[:1] = True
    last = np.maximum.accumulate(np.where(begins, place, 0))
    length = place - last + failing[last]  # failures in a row up to here
    changed = kind.copy()
    changed[order[failing & (length % (most + 1) == 0)]] = 0
    return changed


def homes(rng: Random, rows: int) -> Stream:
    """Appliances are on or off for five minutes at least, longer than the window; their load hardly moves meanwhile."""
    plugs, every, block = max(6, min(40, rows // 250)), 10 * SECOND, 30
    half, whole = count_planted(rows), rows // plugs  # readings that every plug has
    ticks, blocks = -(-rows // plugs), max(1, whole // block)
    places = rng.permutation(plugs * blocks)[: 2 * half]
    plug, first = places % plugs, places // plugs * block
    start = first + rng.integers(2, min(12, max(3, whole - 7)), places.size)
    low = rng.integers(1, 5, places.size)  # readings that are low
    depth = rng.uniform(0.05, 0.4, places.size)
    miss = np.arange(places.size) - half
    low = np.where((miss >= 0) & (miss % 2 == 0), min(14, max(1, whole - 12)), low)  # near misses: too long, too high
    depth = np.where(miss >= 0, np.where((miss % 2 == 0) & (whole > block), depth, 0.6), depth)
    on = rng.random((blocks + 1, plugs)) < 0.6
    on[places // plugs, plug] = True
    level = np.where(on, rng.lognormal(5, 0.8, plugs) + 20, 2.0)
    watts = np.repeat(level, block, axis=0)[:ticks] if blocks * block + block >= ticks else level
    watts = watts * rng.normal(1, 0.01, watts.shape).clip(0.97, 1.03)
    sag = np.arange(4 * block)[None, :] < low[:, None]
    rows_of = (start[:, None] + np.arange(4 * block)[None, :])[sag]
    watts[rows_of, np.repeat(plug, low)] *= np.repeat(depth, low)
    at = np.arange(ticks)[:, None] * every + rng.permuted(np.linspace(0, every * 0.9, plugs))[None, :]
    at = at + rng.uniform(0, every * 0.02, at.shape)
    order = np.argsort(at.ravel(), kind="stable")[:rows]
    place = np.empty(ticks * plugs, np.int64)
    place[order] = np.arange(rows)
    planted = [
        tuple(place[(tick - 1 + np.arange(n + 2)) * plugs + p].tolist())
        for tick, n, p in zip(start[:half].tolist(), low[:half].tolist(), plug[:half].tolist(), strict=True)
    ]
    number = np.broadcast_to(np.arange(plugs), at.shape).ravel()[order]
    return Stream(
        {
            "type": (np.zeros(rows, np.int64), ("LOAD",)), "house": number // 4, "plug": number,
            "watts": np.round(watts.ravel()[order], 1),
        },
        at.ravel()[order].astype(np.int64), by_end(planted),
    )  # fmt: skip


def clicks(rng: Random, rows: int) -> Stream:
    """In the background whoever fills a cart pays within 25 minutes."""
    keys, half = max(40, rows // 30), count_planted(rows)
    later = rng.uniform(32 * MINUTE, 60 * MINUTE, 2 * half)  # a match may be paid after all, when the window is over
    later[half:] = rng.uniform(26 * MINUTE, 29 * MINUTE, half)  # a near miss just before
    paid = np.where(np.arange(2 * half) < half, rng.random(2 * half) < 0.4, True)
    used = np.stack([np.ones(2 * half, bool), paid], axis=1)
    pairs = rows // 40
    at = arrivals(rng, rows - int(used.sum()) - pairs, 5.0)
    group = groups(rng, rows, keys, later[:, None], used, at[-1])
    others = np.setdiff1d(np.arange(keys), group.keys)
    key, kind = skewed(rng, keys, at.size), rng.choice(2, at.size, p=(0.8, 0.2))
    carts = rng.choice(at.size, pairs, replace=False)
    key[carts], kind[carts] = others[skewed(rng, others.size, pairs)], 2
    pays = at[carts] + rng.uniform(MINUTE, 25 * MINUTE, pairs).astype(np.int64)
    order, time, _ = merged(np.concatenate([at, pays]), group)
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    starts = place[at.size + pairs :][np.concatenate([[0], np.cumsum(used.sum(axis=1))[:-1]])]
    user = np.concatenate([key, key[carts], group.flat(group.keys[:, None])])[order]
    kinds = np.concatenate([kind, np.full(pairs, 3), group.flat(np.array([[2, 3]]))])[order]
    price = np.round(rng.lognormal(3.4, 0.6, order.size), 2)
    return Stream(
        {
            "type": (kinds, ("VIEW", "SEARCH", "CART", "PAY")), "user": (user, users(keys)),
            "page": (skewed(rng, len(PAGES), order.size), PAGES), "price": price,
        },
        time, by_end([(int(each),) for each in starts[:half]]),
    )  # fmt: skip


def taxi(rng: Random, rows: int) -> Stream:
    """In the background no taxi takes its next passenger where the last one left it."""
    keys, half, zones = max(40, rows // 40), count_planted(rows), len(ZONES)
    gaps = rng.uniform(8 * MINUTE, 40 * MINUTE, (2 * half, 2))
    miss = np.arange(2 * half) - half  # near misses: not back to the start, or only after two hours
    gaps[half + 1 :: 2] = rng.uniform(70 * MINUTE, 2 * HOUR, gaps[half + 1 :: 2].shape)
    at = arrivals(rng, rows - 6 * half, 4.0)
    group = groups(rng, rows, keys, gaps, None, at[-1])
    key = apart(rng, keys, skewed(rng, keys, at.size, 0.3), at, group)
    tour = np.argsort(rng.random((2 * half, zones)), axis=1)[:, :4]  # zones that differ
    back = np.where((miss >= 0) & (miss % 2 == 0), tour[:, 3], tour[:, 0])
    order, time, planted = merged(at, group)
    pickup = np.concatenate([skewed(rng, zones, at.size), group.flat(tour[:, :3])])[order]
    ends = np.stack([tour[:, 1], tour[:, 2], back], axis=1)
    dropoff = np.concatenate([skewed(rng, zones, at.size), group.flat(ends)])[order]
    cab = np.concatenate([key, group.flat(group.keys[:, None])])[order]
    unchained(pickup, dropoff, cab, order < at.size)
    fare = np.round(2.5 + rng.gamma(2.0, 5.0, order.size), 1)
    return Stream(
        {
            "type": (np.zeros(order.size, np.int64), ("TRIP",)), "taxi": 7_000 + cab, "pickup": (pickup, ZONES),
            "dropoff": (dropoff, ZONES), "fare": fare,
        },
        time, planted,
    )  # fmt: skip


def unchained(pickup: Array, dropoff: Array, cab: Array, background: Array) -> None:
    """Move background trips that begin where the cab's last one ended, or end where its next one, a group's, begins."""
    order = np.argsort(cab, kind="stable")
    before, after = order[:-1], order[1:]
    chained = (cab[before] == cab[after]) & (dropoff[before] == pickup[after])
    mine = after[chained & background[after]]
    pickup[mine] = (pickup[mine] + 1) % len(ZONES)
    last = before[chained & ~background[after] & background[before]]
    dropoff[last] = (dropoff[last] + 1) % len(ZONES)


def trades(rng: Random, rows: int) -> Stream:
    """Background lots are smaller than 1,000."""
    keys, half = max(40, rows // 20), count_planted(rows)
    lots = rng.integers(2, 7, 2 * half)
    used = np.concatenate([np.arange(6)[None, :] < lots[:, None], np.ones((2 * half, 1), bool)], axis=1)
    gaps = rng.uniform(5 * SECOND, 40 * SECOND, (2 * half, 6))
    gaps[:, :5] *= used[:, 1:6]
    at = arrivals(rng, rows - int(used.sum()), 1.5)
    group = groups(rng, rows, keys, gaps, used, at[-1])
    own = rng.integers(0, len(SYMBOLS), 2 * half)
    order, time, planted = merged(at, group)
    symbol = np.concatenate([skewed(rng, len(SYMBOLS), at.size), group.flat(own[:, None])])[order]
    trader = np.concatenate([skewed(rng, keys, at.size), group.flat(group.keys[:, None])])[order]
    side = np.concatenate([rng.integers(0, 2, at.size), group.flat((np.arange(7) == 6)[None, :])])[order]
    gain = np.where(np.arange(2 * half) < half, rng.uniform(0.05, 0.09, 2 * half), rng.uniform(0.0, 0.02, 2 * half))
    small = np.maximum(10, np.minimum(99, rng.lognormal(3, 0.9, at.size)).astype(np.int64) * 10)
    volume = np.concatenate([small, group.flat(lot_sizes(rng, group))])[order]
    paid = pushed(walks(rng, symbol), group, order, at.size, gain)
    return Stream(
        {
            "type": (side.astype(np.int64), ("BUY", "SELL")), "symbol": (symbol, SYMBOLS), "trader": 100 + trader,
            "price": np.round(paid, 2), "volume": volume,
        },
        time, planted,
    )  # fmt: skip


def lot_sizes(rng: Random, group: Groups) -> Array:
    """Large lots that are bought, and a larger one that is sold."""
    bought = rng.integers(10, 30, (group.used.shape[0], 6)) * 100
    return np.concatenate([bought, rng.integers(50, 90, (group.used.shape[0], 1)) * 100], axis=1)


def walks(rng: Random, symbol: Array) -> Array:
    """Prices that wander by symbol."""
    order = np.argsort(symbol, kind="stable")
    steps = np.cumsum(rng.normal(0, 2e-4, symbol.size))
    first = np.searchsorted(symbol[order], np.arange(len(SYMBOLS)))
    base = np.log(rng.uniform(15, 120, len(SYMBOLS))) - steps[np.minimum(first, symbol.size - 1)]
    price = np.empty(symbol.size)
    price[order] = np.exp(base[symbol[order]] + steps)
    return price


def pushed(price: Array, group: Groups, order: Array, background: int, gain: Array) -> Array:
    """The prices, with those of groups rising from the price at which the group began."""
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    own, lengths = place[background:], group.used.sum(axis=1)
    begin = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    rank = np.arange(own.size) - np.repeat(begin, lengths)
    rise = np.repeat(gain, lengths) * rank / np.repeat(lengths - 1, lengths)
    moved = price.copy()
    moved[own] = np.repeat(price[own[begin]], lengths) * (1 + rise)
    return moved
