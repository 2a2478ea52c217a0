"""What text may stand for: guesses that hold for every value of a column, or none.

Invariant: text turns into a number, a boolean or a time only if all of it does, and no digit is lost: `007` and `0x7`
are text unless a number is declared. The usual spellings of a missing value (`MISSING`) are NULL among numbers,
booleans and times; among text only an empty value and NULL (`ABSENT`) are, because somebody may be called None.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from cerite.core.schema import Kind
from cerite.data.columns import STRINGS

ABSENT = ("", "NULL")
MISSING = (
    *ABSENT, "null", "Null", "NA", "N/A", "n/a", "na", "#N/A", "#NA", "<NA>", "NaN", "nan", "NAN", "-NaN", "-nan",
    "NaT", "None", "none", "nil", "-", "--", "?", ".",
)  # fmt: skip
WHOLE = r"^[+-]?[0-9]+$"
PADDED = r"^[+-]?0([0-9]+|[xX][0-9a-fA-F]+)$"
"""Digits that a number would lose."""
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$|^[+-]?(?i:inf|infinity)$"
_BOOL = r"^(?i:true|false)$"
ZONE = r":[0-9.]+(Z|[+-][0-9]{2}(:?[0-9]{2})?)$"
_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?)?$"
SHAPES = {"number": _NUMBER, "boolean": _BOOL, "time": _TIME}
"""What values of a kind look like."""
LOSING = "number that would lose digits"
OTHER_FORM = "time in another form"
FORMATTED = "formatted number"
SIGHTS = {
    LOSING: rf"{PADDED}|^[+-]?[0-9]{{19,}}$", **SHAPES,
    FORMATTED: r"^[+-]?[$€£¥]?[0-9]{1,3}([,' ][0-9]{3})*([.,][0-9]+)? ?[%$€£¥]?$",
}  # fmt: skip
"""What text is looked at for where its order matters: `1,000`, `3,14` and `5 %` are not read as numbers, but meant."""
ARROW: dict[Kind, pa.DataType] = {
    "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_(), "string": STRINGS, "timestamp": pa.timestamp("us"),
}  # fmt: skip
"""The type a declared column has; a timestamp's zone and unit are up to the text."""
Text: TypeAlias = "pa.Array | pa.ChunkedArray"


@dataclass
class MisfitError(Exception):
    """A value that is not of the kind its column has, by its row."""

    row: int
    value: str


def guessed(text: Text, nulls: tuple[str, ...] = ()) -> Text:
    """Words as integers, floats, booleans or times, or else as they are; of type `null` if there are no words.

    >>> [guessed(pa.array(each)).to_pylist() for each in (["1", "NA"], ["1", "2.5"], ["true", None], ["1", "x", "NA"])]
    [[1, None], [1.0, 2.5], [True, None], ['1', 'x', 'NA']]
    """
    values = without(text, (*MISSING, *nulls))
    first = _first(values)
    if first is None:
        return pa.nulls(len(text))
    kind = next((kind for kind, shape in SHAPES.items() if _is(pa.scalar(first), shape)), None)
    if kind is None or not _all(values, SHAPES[kind]) or (kind == "number" and _any(values, PADDED)):
        return without(text, nulls)
    if kind == "number":
        return _numbers(values)
    return times_guessed(text, nulls) if kind == "time" else pc.utf8_lower(values).cast(pa.bool_())


def times_guessed(text: Text, nulls: tuple[str, ...] = ()) -> Text:
    """Timestamps if every string is one (ISO 8601, all with a zone or all without), else the strings.

    >>> str(times_guessed(pa.chunked_array([["2024-01-01T10:00:00.5Z", "n/a"]])).type)
    'timestamp[us, tz=UTC]'
    """
    values = without(text, (*MISSING, *nulls))
    first = _first(values)
    if first is not None and _is(pa.scalar(first), _TIME):
        try:
            return as_times(values)
        except pa.ArrowInvalid:
            pass
    return without(text, nulls)


def as_times(text: Text) -> Text:
    """ISO 8601 as timestamps, all with a zone (then in UTC) or all without; microseconds unless that loses digits."""
    first = _first(text)
    zone = "UTC" if first is not None and len(first) > len("2024-01-01") and _is(pa.scalar(first), ZONE) else None
    try:
        return text.cast(pa.timestamp("us", zone))
    except pa.ArrowInvalid:
        return text.cast(pa.timestamp("ns", zone))


def typed(text: Text, arrow: pa.DataType, nulls: tuple[str, ...] = ()) -> Text:
    """Text as the values of a type, apart from spaces around them; the first that is not one is a `MisfitError`.

    >>> typed(pa.array(["1", " 2", "n/a"]), pa.int64()).to_pylist()
    [1, 2, None]
    """
    if arrow == STRINGS or is_.is_string(arrow):
        return without(text, nulls)
    values = without(pc.utf8_trim_whitespace(text), (*MISSING, *nulls))
    try:
        return _cast(values, arrow)
    except pa.ArrowInvalid:
        row = _first_misfit(values, arrow)
        raise MisfitError(row, values[row].as_py()) from None


def declared(text: Text, kind: Kind, nulls: tuple[str, ...] = ()) -> Text:
    """Text as values of a declared kind."""
    if kind != "timestamp":
        return typed(text, ARROW[kind], nulls)
    values = without(pc.utf8_trim_whitespace(text), (*MISSING, *nulls))
    try:
        return as_times(values)
    except pa.ArrowInvalid:
        first = _first(values)
        zone = "UTC" if first is not None and _is(pa.scalar(first), _TIME) and _is(pa.scalar(first), ZONE) else None
        row = _first_misfit(values, pa.timestamp("ns", zone))
        raise MisfitError(row, values[row].as_py()) from None


def shapes(text: Text) -> dict[str, tuple[int, str]]:
    """For every shape of value in the column, and for text of no shape, the first row that has it.

    >>> shapes(pa.array(["9", "NA", "oops", "10"]))
    {'number': (0, '9'), 'text': (2, 'oops')}
    """
    values = without(pc.utf8_trim_whitespace(text), MISSING)
    rest = pc.is_valid(values)
    first: dict[str, tuple[int, str]] = {}
    for shape, pattern in SIGHTS.items():
        fits = pc.and_(rest, pc.fill_null(pc.match_substring_regex(values, pattern), False))
        rest = pc.and_(rest, pc.invert(fits))
        if (row := pc.index(fits, True).as_py()) >= 0:
            first[shape] = row, values[row].as_py()
    if (row := pc.index(rest, True).as_py()) >= 0:
        first["text"] = row, values[row].as_py()
    return first


def sampled(text: Text) -> dict[str, tuple[int, str]]:
    """`shapes`; and of times, which are in order as text if all have one form, the first row that has another form.

    >>> sampled(pa.array(["2024-01-01T23:00:00Z", "2024-01-02T01:00:00+05:00"]))[OTHER_FORM]
    (1, '2024-01-02T01:00:00+05:00')
    """
    first = shapes(text)
    if first.keys() != {"time"}:
        return first
    times = without(pc.utf8_trim_whitespace(text), MISSING)
    zones, lengths = pc.replace_substring_regex(times, r"^[0-9-]+([T ][0-9:.]+)?", ""), pc.utf8_length(text)
    row, _ = first["time"]
    alike = pc.and_(pc.equal(lengths, lengths[row]), pc.equal(zones, zones[row]))
    other = pc.index(pc.or_kleene(alike, pc.is_null(times)), False).as_py()
    return first if other < 0 else first | {OTHER_FORM: (other, text[other].as_py())}


def is_time(text: str) -> bool:
    """Whether it is written as a time, with a zone or without."""
    return _is(pa.scalar(text), _TIME)


def has_zone(text: str) -> bool:
    """Whether a time is written with a zone."""
    return _is(pa.scalar(text), ZONE)


def settled_times(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Microseconds, as Python and the frames have them, unless that loses nanoseconds."""
    try:
        return column.cast(pa.timestamp("us", column.type.tz))
    except pa.ArrowInvalid:
        return column


def without(text: Text, spellings: tuple[str, ...]) -> Text:
    """The text, NULL where it is one of the spellings."""
    if not spellings:
        return text
    return pc.if_else(pc.is_in(text, pa.array(spellings, text.type)), pa.scalar(None, text.type), text)


def _numbers(text: Text) -> Text:
    """Numbers as integers or floats; whole numbers that 64 bits do not hold stay text."""
    try:
        return text.cast(pa.int64())
    except pa.ArrowInvalid:
        return text if _all(text, WHOLE) else text.cast(pa.float64())


def _cast(text: Text, arrow: pa.DataType) -> Text:
    if is_.is_integer(arrow):
        text = pc.replace_substring_regex(text, r"^\+([0-9])", r"\1")  # Arrow knows `+5` as a float only
    return text.cast(arrow)


def _first_misfit(text: Text, arrow: pa.DataType) -> int:
    """The first row that cannot be cast, by halving."""
    low, high = 0, len(text) - 1  # the first is among these
    while low < high:
        middle = (low + high) // 2
        try:
            _cast(text.slice(low, middle + 1 - low), arrow)
            low = middle + 1
        except pa.ArrowInvalid:
            high = middle
    return low


def _first(text: Text) -> str | None:
    valid = pc.is_valid(text)
    at = pc.index(valid, True).as_py()
    return None if at < 0 else str(text[at].as_py())


def _is(value: pa.Scalar, shape: str) -> bool:
    return bool(pc.match_substring_regex(value, shape).as_py())


def _all(text: Text, shape: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(text, shape)).as_py())


def _any(text: Text, shape: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(text, shape)).as_py())
