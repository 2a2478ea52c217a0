"""What text may stand for: guesses that hold for every value of a column, or are not made.

Invariant: text turns into a number, a boolean or a time only if all of it does, and no digit is lost.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

WHOLE = r"^[+-]?[0-9]+$"
_NUMBER = re.compile(r"[+-]?(\d|\.\d|nan|inf)", re.IGNORECASE)
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d(:?\d\d)?)?")


def guessed(text: pa.Array) -> pa.Array:
    """Unquoted words as integers, floats, booleans, else as they are; of type `null` if there are none.

    >>> [guessed(pa.array(each)).to_pylist() for each in (["1"], ["1", "2.5"], ["true", None], ["1", "x"])]
    [[1], [1.0, 2.5], [True, None], ['1', 'x']]
    """
    first = next((value.as_py() for value in text if value.is_valid), None)
    if first is None:
        return pa.nulls(len(text))
    if _NUMBER.match(first) and not pc.any(pc.match_substring_regex(text, "0[xX]")).as_py():  # no hexadecimal
        for arrow in (pa.int64(), pa.float64()):
            try:
                numbers = text.cast(arrow)
            except pa.ArrowInvalid:
                continue
            huge = is_.is_floating(arrow) and pc.all(pc.match_substring_regex(text, WHOLE)).as_py()
            return text if huge else numbers
    if first.lower() in ("true", "false"):
        folded = pc.utf8_lower(text)
        if pc.all(pc.is_in(folded, value_set=pa.array(["true", "false", None], text.type))).as_py():
            return folded.cast(pa.bool_())
    return text


def times_guessed(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """Timestamps if every string is one (ISO 8601, all with a zone or all without), else the strings.

    >>> str(times_guessed(pa.chunked_array([["2024-01-01T10:00:00.5Z"]])).type)
    'timestamp[us, tz=UTC]'
    """
    first = next((value.as_py() for value in text if value.is_valid), None)
    shape = None if first is None else _TIME.fullmatch(first)
    if shape is None:
        return text
    zone = "UTC" if shape[3] else None
    for unit in ("us", "ns"):
        try:
            return text.cast(pa.timestamp(unit, zone))
        except pa.ArrowInvalid:
            continue
    return text


def settled_times(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Microseconds, as Python and the frames have them, unless that loses nanoseconds."""
    try:
        return column.cast(pa.timestamp("us", column.type.tz))
    except pa.ArrowInvalid:
        return column
