"""Exact numbers in rows, and products of small matrices of them.

A number is one word below 2**60 (narrow), or `limbs` words in base 2**32, low limb first, as in `counting/limbs.py`
(wide). All numbers of a tree are of the same form: `limbs` is 1 for narrow ones.

Invariant: between two events every narrow number is at most `limit`, which is 2**60 divided by the most terms that a
number gains at once, and the top limb of a wide number is below the base. Additions within an event may exceed that, in
which case the caller is notified, but never 64 bits; whether a product would is determined before anything is written.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cerite.core.arrays import Longs, Words
from cerite.core.jit import inlined, inner
from cerite.engine.counting.limbs import MASK, SHIFT, settle

NARROW_BITS = 60


class Numbers(NamedTuple):
    """What a tree of numbers needs besides them; None if a tree holds `runs`, and then nothing of it is compiled."""

    total: Words  # of all matches, in limbs
    limit: np.uint64  # the most that a narrow number may be between two events
    low: Words  # room for a product
    high: Words
    lengths: Longs  # room for the limbs in use of a matrix


@inlined
def settled(rows: Words, x: int, width: int, limbs: int, limit: np.uint64) -> bool:
    """Normalise rows[x] after additions; returns whether a number has outgrown its form."""
    full = False
    if limbs == 1:
        for j in range(width):
            full |= rows[x, j] > limit
    else:
        full = settle(rows, x, x + 1, width, limbs)
    return full


@inner
def add_to(total: Words, rows: Words, x: int, first: int, limbs: int) -> bool:
    """total += the number at rows[x, first]; whether that is not zero."""
    carry, some = np.uint64(0), np.uint64(0)
    for j in range(total.size):
        value = np.uint64(0)
        if limbs == 1:
            if j < 2:
                value = rows[x, first] >> SHIFT if j else rows[x, first] & MASK
        elif j < limbs:
            value = rows[x, first + j]
        some |= value
        value += total[j] + carry
        carry = value >> SHIFT
        total[j] = value & MASK
    return bool(some != 0)


@inner
def narrow_product(
    matrix: Words, x: int, rows: Words, y: int, size: int, columns: int, limit: float, out: Words, at: int
) -> bool:
    """out[at:] ← matrix[x] · rows[y], of `columns` columns; False where a number is too large."""
    for t in range(size):
        for c in range(columns):
            value, estimate = np.uint64(0), 0.0
            for s in range(size):
                factor = matrix[x, t * size + s]
                if factor:
                    other = rows[y, s * columns + c]
                    value += factor * other
                    estimate += float(factor) * float(other)
            if estimate > limit:
                return False
            out[at + t * columns + c] = value
    return True


@inlined
def length(rows: Words, x: int, first: int, limbs: int) -> int:
    """How many limbs of a number are in use."""
    n = limbs
    while n > 0 and rows[x, first + n - 1] == 0:
        n -= 1
    return n


@inner
def wide_product(matrix: Words, x: int, rows: Words, y: int, size: int, columns: int, limbs: int, out: Words, at: int,
                 low: Words, high: Words, lengths: Longs) -> bool:  # fmt: skip
    """`narrow_product` for wide numbers; `lengths` are those of the numbers in the matrix."""
    for t in range(size):
        for c in range(columns):
            reach = 0
            for s in range(size):
                m, first = lengths[t * size + s], (s * columns + c) * limbs
                n = length(rows, y, first, limbs) if m else 0
                if n == 0:
                    continue
                for j in range(reach, m + n + 1):
                    low[j] = high[j] = np.uint64(0)
                reach = max(reach, m + n + 1)
                for i in range(m):
                    factor = matrix[x, (t * size + s) * limbs + i]
                    if factor == 1:
                        for j in range(n):
                            low[i + j] += rows[y, first + j]
                    elif factor:
                        for j in range(n):
                            product = factor * rows[y, first + j]
                            low[i + j] += product & MASK
                            high[i + j] += product >> SHIFT
            carry, place = np.uint64(0), at + (t * columns + c) * limbs
            for j in range(max(reach, limbs)):
                value = carry
                if j < reach:
                    value += low[j]
                    if j > 0:
                        value += high[j - 1]
                if j < limbs:
                    out[place + j] = value & MASK
                elif value:
                    return False
                carry = value >> SHIFT
            if carry:
                return False
    return True
