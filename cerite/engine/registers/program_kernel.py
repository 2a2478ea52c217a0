"""Runs the programs of `programs` on one event and one row of stored values.

A payload is an int64: a whole number, a truth value, an instant, a string's number, or the bits of a float. Of every
stored value a row also says, in two bits of its flags, whether it is there: `UNBOUND`, `UNKNOWN` (NULL) or `KNOWN`.

Invariant: three-valued logic as in `predicate.evaluate`; whole numbers that overflow become NULL.
"""

import math

import numpy as np
import numpy.typing as npt

from cerite.engine.registers import programs as op
from cerite.jit import inlined, inner
from cerite.predicate.columns_functions import civil as _civil

Longs = npt.NDArray[np.int64]
UNBOUND, UNKNOWN, KNOWN = range(3)
STATE, FLAGS, VALUES = 0, 1, 2  # where things lie in a row

# columns of the table of programs
BEGIN, END, NEEDS, SIMPLE, SIMPLE_OP, SIMPLE_LEAF, SIMPLE_SLOT, SIMPLE_FLOAT = range(8)


civil = inner(_civil)


@inlined
def as_float(payload: int) -> float:
    """The float whose bits the payload is."""
    found: float = np.int64(payload).view(np.float64)
    return found


@inlined
def as_bits(value: float) -> int:
    """The payload of a float."""
    found: int = np.float64(value).view(np.int64)
    return found


@inner
def compare(how: int, a: float, b: float) -> bool:
    """`a how b`, for whole numbers or floats."""
    if how == op.EQUAL:
        return a == b
    if how == op.DIFFERENT:
        return a != b
    if how == op.LESS:
        return a < b
    if how == op.AT_MOST:
        return a <= b
    return a > b if how == op.MORE else a >= b


@inner
def holds(
    p: int,
    row: Longs,
    values: Longs,
    nulls: int,
    table: Longs,
    code: Longs,
    constants: Longs,
    string_order: Longs,
    stack: Longs,
    unknown: Longs,
) -> bool:
    """Whether program p is true of the event (`values`, `nulls`) and the row."""
    flags = row[FLAGS]
    needs = table[p, NEEDS]
    if (flags | flags >> 1) & needs != needs:
        return False  # some register holds nothing
    if table[p, SIMPLE]:
        leaf, slot = table[p, SIMPLE_LEAF], table[p, SIMPLE_SLOT]
        if nulls >> leaf & 1 or (flags >> 2 * slot & 3) != KNOWN:
            return False
        a, b = values[leaf], row[VALUES + slot]
        if table[p, SIMPLE_FLOAT]:
            return compare(table[p, SIMPLE_OP], as_float(a), as_float(b))
        return compare(table[p, SIMPLE_OP], a, b)
    return run(p, row, values, nulls, table, code, constants, string_order, stack, unknown)


@inner
def run(
    p: int,
    row: Longs,
    values: Longs,
    nulls: int,
    table: Longs,
    code: Longs,
    constants: Longs,
    string_order: Longs,
    stack: Longs,
    unknown: Longs,
) -> bool:
    """Run a program that is more than one comparison."""
    flags = row[FLAGS]
    top = -1
    for at in range(table[p, BEGIN], table[p, END]):
        name, argument = code[at, 0], code[at, 1]
        if name <= op.CONSTANT or name == op.NULL:
            top += 1
            if name == op.EVENT:
                stack[top], unknown[top] = values[argument], nulls >> argument & 1
            elif name == op.STORED:
                stack[top], unknown[top] = row[VALUES + argument], (flags >> 2 * argument & 3) != KNOWN
            elif name == op.CONSTANT:
                stack[top], unknown[top] = constants[argument], 0
            else:
                stack[top], unknown[top] = 0, 1
        elif name in (op.ALL, op.ANY_OF):
            top = join(name == op.ALL, argument, top, stack, unknown)
        elif name in (op.NEGATE, op.IS_NULL, op.IS_TRUE, op.TO_FLOAT):
            change(name, argument, top, stack, unknown)
        elif name == op.COALESCE:
            top = choose(argument, top, stack, unknown)
        elif name >= op.ABS:
            if not unknown[top]:
                apply(name, argument, top, constants, stack, unknown)
        else:
            top -= 1
            unknown[top] |= unknown[top + 1]
            if not unknown[top]:
                combine(name, argument, top, string_order, stack, unknown)
    return stack[0] == 1 and unknown[0] == 0


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
    if name == op.NEGATE:
        stack[top] = 1 - stack[top]
    elif name == op.IS_NULL:
        stack[top], unknown[top] = unknown[top], 0
    elif name == op.IS_TRUE:
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
    if name == op.ABS:
        stack[top], unknown[top] = abs(value), int(value == -value and value != 0)
    elif name == op.ABS_FLOAT:
        stack[top] = as_bits(abs(as_float(value)))
    elif name == op.IN_YEARS:
        unknown[top] = int(value < constants[argument] or value > constants[argument + 1])
    elif name == op.PART:
        stack[top] = part(constants[argument], value // constants[argument + 1])
    else:
        stack[top] = as_bits(rounded(name, as_float(value)))


@inner
def rounded(name: int, value: float) -> float:
    """A whole number near the value; halves away from zero."""
    if name == op.FLOOR:
        return np.floor(value)
    if name == op.CEIL:
        return np.ceil(value)
    whole = np.trunc(value)
    return whole + math.copysign(1.0, value) if abs(value - whole) >= 0.5 else whole


@inner
def part(which: int, seconds: int) -> int:
    """A part of an instant in UTC, in the order of `functions.PARTS`, as `columns_functions.part` finds it."""
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
    if name == op.COMPARE_INT:
        stack[top] = int(compare(how, a, b))
    elif name == op.COMPARE_FLOAT:
        stack[top] = int(compare(how, as_float(a), as_float(b)))
    elif name == op.COMPARE_MIXED:
        stack[top] = int(compare(how, float(beside(a, as_float(b))), 0.0))
    elif name == op.COMPARE_SCALED:
        stack[top] = int(compare(how % op.PLACES, float(coarser(a, b, how // op.PLACES)), 0.0))
    elif name == op.COMPARE_STRING and how in (op.EQUAL, op.DIFFERENT):
        stack[top] = int(compare(how, a, b))
    elif name == op.COMPARE_STRING:
        stack[top] = int(compare(how, string_order[a], string_order[b]))
    elif name in (op.ADD, op.SUBTRACT, op.MULTIPLY, op.MODULO):
        stack[top], unknown[top] = whole(name, a, b)
    else:
        stack[top], unknown[top] = real(name, as_float(a), as_float(b))


@inner
def beside(a: int, b: float) -> int:
    """-1, 0 or 1 where a whole number is below, at or above a float; exactly."""
    if b >= 9223372036854775808.0:
        return -1
    if b < -9223372036854775808.0:
        return 1
    below = np.floor(b)
    whole = np.int64(below)
    if a != whole:
        return -1 if a < whole else 1
    return -1 if b > below else 0


@inner
def coarser(a: int, b: int, places: int) -> int:
    """-1, 0 or 1 where digits are below, at or above digits with so many more places behind the point."""
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
    """The float nearest to a decimal: a quotient of floats, corrected by what rounding took (Dekker)."""
    step = 1.0
    for _ in range(places):
        step *= 10.0
    high = float(digits)
    found = high / step
    if -9007199254740992 <= digits <= 9007199254740992 or places == 0:
        return found
    product = found * step
    a, b = 134217729.0 * found, 134217729.0 * step
    one, other = a - (a - found), b - (b - step)
    error = (found - one) * (step - other) - (((product - one * other) - (found - one) * other) - one * (step - other))
    low = -1.0 if high >= 9223372036854775808.0 else float(digits - np.int64(high))
    return found + (((high - product) - error) + low) / step


@inner
def whole(name: int, a: int, b: int) -> tuple[int, int]:
    """Arithmetic on whole numbers; the second is 1 where the result is NULL."""
    if name == op.ADD:
        result = a + b
        return result, int((a >= 0) == (b >= 0) and (result >= 0) != (a >= 0))
    if name == op.SUBTRACT:
        result = a - b
        return result, int((a >= 0) != (b >= 0) and (result >= 0) != (a >= 0))
    if name == op.MULTIPLY:
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
    found = a // b
    return found + 1 if found < 0 and found * b != a else found


@inner
def real(name: int, a: float, b: float) -> tuple[int, int]:
    """Arithmetic on floats; the second is 1 where the result is NULL."""
    result = 0.0
    if name == op.ADD_FLOAT:
        result = a + b
    elif name == op.SUBTRACT_FLOAT:
        result = a - b
    elif name == op.MULTIPLY_FLOAT:
        result = a * b
    elif b == 0.0:
        return 0, 1
    elif name == op.DIVIDE:
        result = a / b
    else:
        result = np.fmod(a, b)
    return as_bits(result), int(math.isnan(result))
