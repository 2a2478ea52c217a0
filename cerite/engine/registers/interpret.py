"""Runs the programs of `programs` on one event and one row of stored values: the instructions and what they do.

A program is a stretch of (operation, argument) pairs in postfix order over a stack of payloads with NULL flags. A
payload is an int64: a whole number, a truth value, an instant, a string's number, or the bits of a float. For every
stored value, two bits in the flags of a row say whether it is there: `UNBOUND`, `UNKNOWN` (NULL) or `KNOWN`. Most
programs are one comparison, which needs no stack: if all of them are (`Code` is None), the rest is not compiled.

Invariant: three-valued logic as in `predicate.evaluate`; whole numbers that overflow become NULL.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from cerite.core.arrays import Longs
from cerite.core.jit import embedded, inlined, inner
from cerite.engine.registers.layout import RAN_OVER
from cerite.predicate.columns.functions import civil as _civil

EVENT, STORED, CONSTANT, TO_FLOAT, COMPARE_INT, COMPARE_FLOAT, COMPARE_STRING = range(7)
ADD, SUBTRACT, MULTIPLY, DIVIDE, MODULO, ADD_FLOAT, SUBTRACT_FLOAT, MULTIPLY_FLOAT, MODULO_FLOAT = range(7, 16)
ALL, ANY_OF, NEGATE, IS_NULL, IS_TRUE, NULL = range(16, 22)
COMPARE_MIXED, COMPARE_SCALED = 22, 23  # a decimal or whole number with a float; a decimal with one of more places
PLACES = 8  # in the argument of both: this times the (additional) places, plus the comparison
ABS, ABS_FLOAT, ROUND, FLOOR, CEIL, PART, IN_YEARS, COALESCE = range(24, 32)
ACCUMULATE, COUNTED, NUMBER = range(32, 35)  # the event joins an aggregate; a count, never NULL; NULL where it is NaN
EQUAL, DIFFERENT, LESS, AT_MOST, MORE, AT_LEAST = range(6)
# how one more value changes an aggregate
SUM_WHOLE, SUM_FLOAT, MINIMUM, MINIMUM_FLOAT, MAXIMUM, MAXIMUM_FLOAT = range(6)
FIRST_VALUE, LAST_VALUE, TALLY, MINIMUM_TEXT, MAXIMUM_TEXT = range(6, 11)

UNBOUND, UNKNOWN, KNOWN = range(3)
STATE, FLAGS, VALUES = 0, 1, 2  # places in a row

# columns of the table of programs
BEGIN, END, NEEDS, SIMPLE, SIMPLE_OP, SIMPLE_LEAF, SIMPLE_SLOT, SIMPLE_FLOAT = range(8)
# columns of the table of instructions
NAME, ARGUMENT = range(2)


class Code(NamedTuple):
    """What programs need that are not just one comparison: instructions, constants, the order of strings, a stack."""

    instructions: Longs
    constants: Longs
    string_order: Longs
    stack: Longs
    unknown: Longs
    beyond: Longs  # in place `RAN_OVER`: 1 once a sum has left 64 bits


civil = inner(_civil)


@inlined
def as_float(payload: int) -> float:
    """The float whose bits the payload is."""
    value: float = np.int64(payload).view(np.float64)
    return value


@inlined
def as_bits(value: float) -> int:
    """The payload of a float."""
    payload: int = np.float64(value).view(np.int64)
    return payload


@embedded
def compare(how: int, a: float, b: float) -> bool:
    """`a how b`, for whole numbers or floats."""
    if how == EQUAL:
        return a == b
    if how == DIFFERENT:
        return a != b
    if how == LESS:
        return a < b
    if how == AT_MOST:
        return a <= b
    return a > b if how == MORE else a >= b


@embedded
def holds(p: int, row: Longs, values: Longs, nulls: int, table: Longs, code: Code | None) -> bool:
    """Whether program p is true for the event (`values`, `nulls`) and the row."""
    flags = row[FLAGS]
    needs = table[p, NEEDS]
    if (flags | flags >> 1) & needs != needs:
        return False  # some register holds nothing
    if code is not None and not table[p, SIMPLE]:
        return run(p, row, values, nulls, table, code)
    leaf, slot = table[p, SIMPLE_LEAF], table[p, SIMPLE_SLOT]
    if nulls >> leaf & 1 or (flags >> 2 * slot & 3) != KNOWN:
        return False
    a, b = values[leaf], row[VALUES + slot]
    if table[p, SIMPLE_FLOAT]:
        return compare(table[p, SIMPLE_OP], as_float(a), as_float(b))
    return compare(table[p, SIMPLE_OP], a, b)


@inner
def run(p: int, row: Longs, values: Longs, nulls: int, table: Longs, code: Code) -> bool:
    """Run a program that is not just one comparison."""
    stack, unknown, constants = code.stack, code.unknown, code.constants
    flags = row[FLAGS]
    top = -1
    for at in range(table[p, BEGIN], table[p, END]):
        name, argument = code.instructions[at, NAME], code.instructions[at, ARGUMENT]
        if name <= CONSTANT or name in (NULL, COUNTED):
            top += 1
            if name == EVENT:
                stack[top], unknown[top] = values[argument], nulls >> argument & 1
            elif name == STORED:
                stack[top], unknown[top] = row[VALUES + argument], (flags >> 2 * argument & 3) != KNOWN
            elif name == CONSTANT:
                stack[top], unknown[top] = constants[argument], 0
            elif name == COUNTED:
                stack[top], unknown[top] = row[VALUES + argument], 0
            else:
                stack[top], unknown[top] = 0, 1
        elif name in (ALL, ANY_OF):
            top = join(name == ALL, argument, top, stack, unknown)
        elif name in (NEGATE, IS_NULL, IS_TRUE, TO_FLOAT):
            change(name, argument, top, stack, unknown)
        elif name == COALESCE:
            top = choose(argument, top, stack, unknown)
        elif name == ACCUMULATE:
            top -= 1
            if not unknown[top + 1]:
                stack[top], lost = accumulated(
                    argument, stack[top], unknown[top] == 0, stack[top + 1], code.string_order
                )
                unknown[top], code.beyond[RAN_OVER] = 0, code.beyond[RAN_OVER] | lost
        elif name >= ABS:
            if not unknown[top]:
                apply(name, argument, top, constants, stack, unknown)
        else:
            top -= 1
            unknown[top] |= unknown[top + 1]
            if not unknown[top]:
                combine(name, argument, top, code.string_order, stack, unknown)
    return stack[0] == 1 and unknown[0] == 0


@inner
def accumulated(how: int, so_far: int, known: bool, value: int, string_order: Longs) -> tuple[int, int]:
    """An aggregate after one more value; the second is 1 where a sum leaves 64 bits."""
    if how == TALLY:
        return so_far + 1, 0
    if not known:
        return value, 0
    if how == SUM_WHOLE:
        return whole(ADD, so_far, value)
    if how == SUM_FLOAT:
        return as_bits(as_float(so_far) + as_float(value)), 0
    if how == MINIMUM:
        return min(so_far, value), 0
    if how == MAXIMUM:
        return max(so_far, value), 0
    if how == MINIMUM_FLOAT:
        return (value if as_float(value) < as_float(so_far) else so_far), 0
    if how == MAXIMUM_FLOAT:
        return (value if as_float(value) > as_float(so_far) else so_far), 0
    if how == MINIMUM_TEXT:
        return (value if string_order[value] < string_order[so_far] else so_far), 0
    if how == MAXIMUM_TEXT:
        return (value if string_order[value] > string_order[so_far] else so_far), 0
    return (value if how == LAST_VALUE else so_far), 0


@inner
def join(every: bool, count: int, top: int, stack: Longs, unknown: Longs) -> int:
    """AND or OR of the last `count` truth values."""
    first = top - count + 1
    doubt, decided = 0, False
    for k in range(first, top + 1):
        if unknown[k]:
            doubt = 1
        elif (stack[k] == 1) != every:
            decided = True
    stack[first] = int(decided != every)
    unknown[first] = 0 if decided else doubt
    return first


@inner
def change(name: int, places: int, top: int, stack: Longs, unknown: Longs) -> None:
    """Operations on one value."""
    if name == NEGATE:
        stack[top] = 1 - stack[top]
    elif name == IS_NULL:
        stack[top], unknown[top] = unknown[top], 0
    elif name == IS_TRUE:
        stack[top], unknown[top] = int(stack[top] == 1 and unknown[top] == 0), 0
    else:
        stack[top] = as_bits(point(stack[top], places))


@inner
def choose(count: int, top: int, stack: Longs, unknown: Longs) -> int:
    """The first of the last `count` values that is known."""
    first = top - count + 1
    for k in range(first, top + 1):
        if not unknown[k]:
            stack[first], unknown[first] = stack[k], 0
            return first
    return first


@inner
def apply(name: int, argument: int, top: int, constants: Longs, stack: Longs, unknown: Longs) -> None:
    """Functions of one known value; those of time find what they need among the constants."""
    value = stack[top]
    if name == ABS:
        stack[top], unknown[top] = abs(value), int(value == -value and value != 0)
    elif name == ABS_FLOAT:
        stack[top] = as_bits(abs(as_float(value)))
    elif name == NUMBER:
        unknown[top] = int(math.isnan(as_float(value)))
    elif name == IN_YEARS:
        unknown[top] = int(value < constants[argument] or value > constants[argument + 1])
    elif name == PART:
        stack[top] = part(constants[argument], value // constants[argument + 1])
    else:
        stack[top] = as_bits(rounded(name, as_float(value)))


@inner
def rounded(name: int, value: float) -> float:
    """A whole number near the value; halves away from zero."""
    if name == FLOOR:
        return np.floor(value)
    if name == CEIL:
        return np.ceil(value)
    whole = np.trunc(value)
    return whole + math.copysign(1.0, value) if abs(value - whole) >= 0.5 else whole


@inner
def part(which: int, seconds: int) -> int:
    """A part of an instant in UTC, in the order of `functions.PARTS`, as `columns.functions.part` finds it."""
    days = seconds // 86_400
    if which == 6:
        return (days + 3) % 7 + 1
    if which == 5:
        return seconds % 60
    if which == 4:
        return seconds // 60 % 60
    if which == 3:
        return seconds // 3_600 % 24
    year, month, day = civil(days)
    if which == 2:
        return day
    return month if which == 1 else year


@inner
def combine(name: int, how: int, top: int, string_order: Longs, stack: Longs, unknown: Longs) -> None:
    """Operations on two known values, stack[top] and stack[top + 1]."""
    a, b = stack[top], stack[top + 1]
    if name == COMPARE_INT:
        stack[top] = int(compare(how, a, b))
    elif name == COMPARE_FLOAT:
        stack[top] = int(compare(how, as_float(a), as_float(b)))
    elif name == COMPARE_MIXED:
        stack[top] = int(compare(how % PLACES, float(beside(a, as_float(b), how // PLACES)), 0.0))
    elif name == COMPARE_SCALED:
        stack[top] = int(compare(how % PLACES, float(coarser(a, b, how // PLACES)), 0.0))
    elif name == COMPARE_STRING and how in (EQUAL, DIFFERENT):
        stack[top] = int(compare(how, a, b))
    elif name == COMPARE_STRING:
        stack[top] = int(compare(how, string_order[a], string_order[b]))
    elif name in (ADD, SUBTRACT, MULTIPLY, MODULO):
        stack[top], unknown[top] = whole(name, a, b)
    else:
        stack[top], unknown[top] = real(name, as_float(a), as_float(b))


@inner
def beside(a: int, b: float, places: int) -> int:
    """-1, 0 or 1 if digits with so many places behind the point are below, at or above a float; exactly.

    The product with a power of ten is a float and its exact error (Dekker); see `numbers.floor_at`.
    """
    factor = 1.0
    for _ in range(places):
        factor *= 10.0
    product = b * factor
    if product >= 9223372036854775808.0:
        return -1
    if product < -9223372036854775808.0:
        return 1
    if b != 0.0 and abs(product) < 1e-200:  # the error may vanish there
        return -1 if a < 0 or (a == 0 and b > 0.0) else 1
    one, other = 134217729.0 * b, 134217729.0 * factor
    high, power = one - (one - b), other - (other - factor)
    low, rest = b - high, factor - power
    error = low * rest - (((product - high * power) - low * power) - high * rest)
    below = np.floor(product)
    whole = np.int64(below)
    more = product != below
    if not more:
        whole += np.int64(np.floor(error))
        more = error != np.floor(error)
    if a != whole:
        return -1 if a < whole else 1
    return -1 if more else 0


@inner
def coarser(a: int, b: int, places: int) -> int:
    """-1, 0 or 1 if digits are below, at or above digits with so many more places behind the point."""
    step = np.int64(1)
    for _ in range(min(places, 18)):
        step *= 10
    whole = b // step
    rest = b - whole * step
    if places > 18:  # a step is more than 64 bits reach
        rest = b
        whole = np.int64(0)
        if b < 0:
            whole = np.int64(-1)
            rest = np.int64(1)
    if a != whole:
        return -1 if a < whole else 1
    return -1 if rest > 0 else 0


@inner
def point(digits: int, places: int) -> float:
    """The float nearest to a decimal: a quotient of floats, corrected by the rounding error (Dekker)."""
    step = 1.0
    for _ in range(places):
        step *= 10.0
    high = float(digits)
    quotient = high / step
    if -9007199254740992 <= digits <= 9007199254740992 or places == 0:
        return quotient
    product = quotient * step
    a, b = 134217729.0 * quotient, 134217729.0 * step
    one, other = a - (a - quotient), b - (b - step)
    rest, more = quotient - one, step - other
    error = rest * more - (((product - one * other) - rest * other) - one * more)
    low = -1.0 if high >= 9223372036854775808.0 else float(digits - np.int64(high))
    return quotient + (((high - product) - error) + low) / step


@inner
def whole(name: int, a: int, b: int) -> tuple[int, int]:
    """Arithmetic on whole numbers; the second is 1 where the result is NULL."""
    if name == ADD:
        result = a + b
        return result, int((a >= 0) == (b >= 0) and (result >= 0) != (a >= 0))
    if name == SUBTRACT:
        result = a - b
        return result, int((a >= 0) != (b >= 0) and (result >= 0) != (a >= 0))
    if name == MULTIPLY:
        result = a * b
        return result, int(abs(float(a) * float(b) - float(result)) > 1e18)
    if b == 0:
        return 0, 1
    if b == -1:
        return 0, 0
    return a - b * int_quotient(a, b), 0


@inner
def int_quotient(a: int, b: int) -> int:
    """The quotient rounded towards zero."""
    quotient = a // b
    return quotient + 1 if quotient < 0 and quotient * b != a else quotient


@inner
def real(name: int, a: float, b: float) -> tuple[int, int]:
    """Arithmetic on floats; the second is 1 where the result is NULL."""
    result = 0.0
    if name == ADD_FLOAT:
        result = a + b
    elif name == SUBTRACT_FLOAT:
        result = a - b
    elif name == MULTIPLY_FLOAT:
        result = a * b
    elif b == 0.0:
        return 0, 1
    elif name == DIVIDE:
        result = a / b
    else:
        result = np.fmod(a, b)
    return as_bits(result), int(math.isnan(result))
