"""How numbers are hashed in kernels: `fold` for hash tables, `mix` for hashes that leave the program.

A table only needs that its low bits spread, as fast as possible, and nothing but order inside the table follows from
them. Ids of matches are compared by users and between versions, and are sums of hashes: every bit of theirs must depend
on every bit hashed, and `mix` may never change.
"""

import numpy as np

from cerite.core.jit import inlined

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio, odd


@inlined
def fold(hashed: np.uint64, word: np.uint64) -> np.uint64:
    """The hash of all words so far and one more; begin with 0. Its low 32 bits are good for a table.

    >>> hex(fold(np.uint64(0), np.uint64(7)))
    '0x53845412288d3081'
    """
    product = (hashed ^ word) * GOLDEN
    return product ^ (product >> np.uint64(32))


@inlined
def mix(value: np.uint64) -> np.uint64:
    """SplitMix64's finaliser: every bit of the result depends on every bit of the value.

    >>> hex(mix(GOLDEN))
    '0xe220a8397b1dcdaf'
    """
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
