"""Guards by columns: from a bit per test and event to one per guard and event.

Invariant: bit g of event i is set exactly when all tests of guard g hold there and none that it negates.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from cerite.automaton.guards import Guard, Test
from cerite.core.arrays import Words
from cerite.core.jit import kernel
from cerite.predicate.columns.kernels import gather

NARROW = 12  # up to so many tests, all combinations of their answers are in a table


def combined(guards: tuple[Guard, ...], tests: tuple[Test, ...], raw: Words) -> Words:
    """The bits of guards, from those of the tests that they consist of.

    >>> a, b = Test("A", None), Test("B", None)
    >>> combined((Guard(frozenset({a}), frozenset({b})), Guard()), (a, b), np.array([[1], [3]], np.uint64)).tolist()
    [[3], [2]]
    """
    raw = np.require(raw, np.uint64, ["C", "W"])
    if len(tests) > NARROW:
        return _computed(guards, tests, raw)
    table = _table(guards, tests)
    bits = np.empty((raw.shape[0], table.shape[0]), np.uint64)
    for word, masks in enumerate(table):
        gather(raw[:, 0].view(np.int64), masks, bits[:, word])
    return bits


@lru_cache(maxsize=64)
def _table(guards: tuple[Guard, ...], tests: tuple[Test, ...]) -> Words:
    """The bits of guards, by word and by every combination of the tests' answers."""
    every = np.arange(1 << len(tests), dtype=np.uint64).reshape(-1, 1)
    return np.ascontiguousarray(_computed(guards, tests, every).T)


def _computed(guards: tuple[Guard, ...], tests: tuple[Test, ...], raw: Words) -> Words:
    bits = np.zeros((raw.shape[0], max(1, -(-len(guards) // 64))), np.uint64)
    combine(raw, *_masks(guards, tests), bits)
    return bits


@lru_cache(maxsize=256)  # a stream asks for every push
def _masks(guards: tuple[Guard, ...], tests: tuple[Test, ...]) -> tuple[Words, Words]:
    """The bits that must be set for each guard, and those that must not."""
    number = {test: k for k, test in enumerate(tests)}
    words = max(1, -(-len(tests) // 64))
    must, never = (np.zeros((len(guards), words), np.uint64) for _ in range(2))
    for g, guard in enumerate(guards):
        for mask, some in ((must, guard.tests), (never, guard.negated)):
            for each in some:
                k = number[each]  # type: ignore[index]
                mask[g, k // 64] |= np.uint64(1 << k % 64)
    return must, never


@kernel
def combine(raw: Words, must: Words, never: Words, bits: Words) -> None:
    """Set the bits of guards, which are all 0."""
    for i in range(raw.shape[0]):
        for g in range(must.shape[0]):
            holds = True
            for w in range(must.shape[1]):
                holds = holds and (raw[i, w] & must[g, w]) == must[g, w] and raw[i, w] & never[g, w] == 0
            bits[i, g >> 6] |= np.uint64(holds) << np.uint64(g & 63)
