"""Guards by columns: from a bit per test and event to one per guard and event.

Invariant: bit g of event i is set exactly when all tests of guard g hold there and none that it negates.
"""

from __future__ import annotations

import numpy as np

from cerite.automaton.guards import Guard, Test
from cerite.core.arrays import Words


def combined(guards: tuple[Guard, ...], tests: tuple[Test, ...], raw: Words) -> Words:
    """The bits of guards, from those of the tests that they consist of."""
    holds: dict[object, Words] = {}
    for k, test in enumerate(tests):
        holds[test] = (raw[:, k // 64] >> np.uint64(k % 64)) & np.uint64(1)
    bits = np.zeros((raw.shape[0], max(1, -(-len(guards) // 64))), np.uint64)
    for k, guard in enumerate(guards):
        value = np.ones(raw.shape[0], np.uint64)
        for each in guard.tests:
            value &= holds[each]
        for each in guard.negated:
            value &= holds[each] ^ np.uint64(1)
        bits[:, k // 64] |= value << np.uint64(k % 64)
    return bits
