"""The two stacks of `count_kernel` for one partition, over numbers of any size.

A number is a row of `limbs` uint64 in base 2**32, low limb first. Limbs may exceed the base: adding numbers is adding
rows, so the steps of `count_steps` serve unchanged, on rows as wide as all numbers together. Only when a limb nears the
limit are the carries propagated (`settle`), and only products need settled operands.

Invariants: no limb ever exceeds 2**62. The top limb never loses a carry: when, settled, it exceeds the base, the kernel
returns for more limbs with its state intact. `back_*[b0:b1]` are the events since the last flip, `front_*[f0:f1]` the
older starts, the oldest at f0.
"""

import numpy as np
import numpy.typing as npt

from cerite.engine.count_steps import advance_matrix, retreat_matrix
from cerite.engine.determinise import MISSING
from cerite.jit import inner, kernel

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Counts = npt.NDArray[np.uint64]

NEXT, B0, B1, F0, F1, OCCURRENCES, DSTATE, CLASS, READ = range(9)  # READ: the next event is read, not yet counted
DONE, MISS, MORE_LIMBS, READ_AND_FULL = range(4)
SHIFT, MASK = np.uint64(32), np.uint64(0xFFFFFFFF)


@inner
def settle(rows: Counts, begin: int, end: int, width: int, limbs: int) -> bool:
    """Propagate carries in the numbers of some rows; whether a top limb has outgrown the base."""
    full = False
    for a in range(begin, end):
        for first in range(0, width, limbs):
            carry = np.uint64(0)
            for k in range(first, first + limbs - 1):
                value = rows[a, k] + carry
                rows[a, k] = value & MASK
                carry = value >> SHIFT
            rows[a, first + limbs - 1] += carry
            full |= rows[a, first + limbs - 1] > MASK
    return full


@inner
def is_zero(row: Counts, first: int, limbs: int) -> bool:
    """Whether one number is zero."""
    bits = np.uint64(0)
    for k in range(first, first + limbs):
        bits |= row[k]
    return bool(bits == 0)


@inner
def add_product(total: Counts, a: Counts, b: Counts, first: int, limbs: int) -> None:
    """total += a[first:] · b[first:] for two settled numbers; `total` stays unsettled."""
    for i in range(limbs):
        x = a[first + i]
        if x:
            for j in range(limbs):
                product = x * b[first + j]
                total[0, i + j] += product & MASK
                total[0, i + j + 1] += product >> SHIFT


@inner
def flip_limbs(
    size: int,
    limbs: int,
    limit: np.uint64,
    back_class: Ints,
    back_key: Longs,
    front_key: Longs,
    front_v: Counts,
    entry: Ints,
    touched: Ints,
    n_touched: Ints,
    succ: Ints,
    spare: Counts,
    r: Counts,
    regs: Longs,
) -> bool:
    """Move the back to the empty front; False, with the back intact, when more limbs are needed."""
    width = size * limbs
    r[:, :] = np.uint64(0)
    for d in range(size):
        r[d, d * limbs] = np.uint64(1)
    place = front_key.size
    suffix = spare[size : size + 1]
    suffix[:, :] = np.uint64(0)
    for b in range(regs[B1] - 1, regs[B0] - 1, -1):
        c = back_class[b]
        offset = entry[c, 0]
        for y in range(offset + 1, offset + 1 + 2 * succ[offset], 2):
            for k in range(width):
                suffix[0, k] += r[succ[y + 1], k]
        if succ[offset]:
            if settle(suffix, 0, 1, width, limbs):
                return False
            place -= 1
            front_key[place] = back_key[b]
            for k in range(width):
                front_v[place, k] = suffix[0, k]
        if retreat_matrix(r, width, c, entry, touched, n_touched, succ, spare) > limit and settle(
            r, 0, size, width, limbs
        ):
            return False
    regs[F0], regs[F1] = place, front_key.size
    regs[B0], regs[B1] = 0, 0
    return True


@inner
def read_event(
    c: int,
    now: int,
    oldest: int,
    windowed: bool,
    limit: np.uint64,
    size: int,
    limbs: int,
    entry: Ints,
    touched: Ints,
    n_touched: Ints,
    succ: Ints,
    back_class: Ints,
    back_key: Longs,
    front_key: Longs,
    front_v: Counts,
    p: Counts,
    v: Counts,
    spare: Counts,
    r: Counts,
    regs: Longs,
) -> int:
    """Expire, advance and start; a return of `MISS` or `MORE_LIMBS` has not read the event."""
    width = size * limbs
    if entry[c, 0] == MISSING:
        regs[DSTATE], regs[CLASS] = 0, c
        return MISS
    fresh = succ[entry[c, 0]]
    if windowed:
        while regs[F0] < regs[F1] and front_key[regs[F0]] < oldest:
            regs[F0] += 1
        if regs[F0] == regs[F1]:
            while regs[B0] < regs[B1] and succ[entry[back_class[regs[B0]], 0]] == 0:
                regs[B0] += 1
            if regs[B0] < regs[B1] and back_key[regs[B0]] < oldest:
                if not flip_limbs(size, limbs, limit, back_class, back_key, front_key, front_v, entry, touched,
                                  n_touched, succ, spare, r, regs):  # fmt: skip
                    return MORE_LIMBS
                p[:, :] = np.uint64(0)
                for d in range(size):
                    p[d, d * limbs] = np.uint64(1)
                v[:, :] = np.uint64(0)
                while regs[F0] < regs[F1] and front_key[regs[F0]] < oldest:
                    regs[F0] += 1
            elif regs[B0] == regs[B1]:
                regs[B0], regs[B1] = 0, 0
                v[:, :] = np.uint64(0)
    led = regs[F0] < regs[F1]
    for y in range(n_touched[c]):
        d = touched[c, y]
        if entry[c, d] == MISSING:
            occupied = not is_zero(v[d], 0, limbs)
            if led:
                for k in range(0, width, limbs):
                    occupied |= not is_zero(p[d], k, limbs) and not is_zero(front_v[regs[F0]], k, limbs)
            if occupied:
                regs[DSTATE], regs[CLASS] = d, c
                return MISS
    if windowed and (fresh or led or regs[B0] < regs[B1]):
        back_class[regs[B1]], back_key[regs[B1]] = c, now
        regs[B1] += 1
    full = advance_matrix(v, limbs, c, entry, touched, n_touched, succ, spare) > limit and settle(
        v, 0, size, limbs, limbs
    )
    if led and advance_matrix(p, width, c, entry, touched, n_touched, succ, spare) > limit:
        full |= settle(p, 0, size, width, limbs)
    for y in range(entry[c, 0] + 1, entry[c, 0] + 1 + 2 * fresh, 2):
        v[succ[y + 1], 0] += np.uint64(1)
    return READ_AND_FULL if full else DONE


@kernel
def count_limbs(
    events: Longs,
    classes: Ints,
    key: Longs,
    low: Longs,
    windowed: bool,
    consume: bool,
    limit: np.uint64,
    size: int,
    limbs: int,
    entry: Ints,
    touched: Ints,
    n_touched: Ints,
    succ: Ints,
    accepting: Ints,
    back_class: Ints,
    back_key: Longs,
    front_key: Longs,
    front_v: Counts,
    p: Counts,
    v: Counts,
    spare: Counts,
    r: Counts,
    total: Counts,
    regs: Longs,
) -> int:
    """Count over events[regs[NEXT]:] of one partition, adding all matches to `total`; returns why it stopped."""
    width = size * limbs
    for x in range(regs[NEXT], events.size):
        regs[NEXT] = x
        i = events[x]
        c = classes[i]
        if not regs[READ]:
            why = read_event(c, key[i], low[i], windowed, limit, size, limbs, entry, touched, n_touched, succ,
                             back_class, back_key, front_key, front_v, p, v, spare, r, regs)  # fmt: skip
            if why in (MISS, MORE_LIMBS):
                return why
            regs[READ] = 1
            if why == READ_AND_FULL:
                return MORE_LIMBS
        led = regs[F0] < regs[F1]
        full = False
        for a in accepting:
            full |= settle(v, a, a + 1, limbs, limbs)
            full |= led and settle(p, a, a + 1, width, limbs)
        if full:
            return MORE_LIMBS
        regs[READ] = 0
        found = False
        for a in accepting:
            if not is_zero(v[a], 0, limbs):
                found = True
                for k in range(limbs):
                    total[0, k] += v[a, k]
            if led:
                lead = front_v[regs[F0]]
                for k in range(0, width, limbs):
                    if not is_zero(p[a], k, limbs) and not is_zero(lead, k, limbs):
                        found = True
                        add_product(total, p[a], lead, k, limbs)
        if found:
            settle(total, 0, 1, total.shape[1], total.shape[1])
            regs[OCCURRENCES] += 1
            if consume:
                regs[B0], regs[B1], regs[F0], regs[F1] = 0, 0, 0, 0
                v[:, :] = np.uint64(0)
    regs[NEXT] = events.size
    return DONE
