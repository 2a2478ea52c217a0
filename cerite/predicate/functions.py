"""The functions of conditions and the arithmetic of time, defined on single values: the reference for every other form.

A timestamp is an instant, in UTC; a duration is a whole number of microseconds, written `5 seconds`, or, if it is the
difference of two timestamps, of their own unit. The parts of a timestamp are those of UTC, whatever zone its column
has, so that they are the same in process and on Spark. A function of NULL is NULL, except `coalesce`; what has no
result is NULL.

Invariant: `call` and `time_arithmetic` raise nothing on operands of the kinds that `predicate.kinds` lets pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

MICROSECOND = timedelta(microseconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
EARLIEST = (datetime.min.replace(tzinfo=timezone.utc) - EPOCH) // MICROSECOND  # the years 1 to 9999 in microseconds
LATEST = (datetime.max.replace(tzinfo=timezone.utc) - EPOCH) // MICROSECOND
_MICRO = 1_000  # nanoseconds
UNITS = {
    "days": 86_400_000_000, "hours": 3_600_000_000, "minutes": 60_000_000, "seconds": 1_000_000,
    "milliseconds": 1_000, "microseconds": 1,
}  # fmt: skip
PARTS = ("year", "month", "day", "hour", "minute", "second", "weekday")
ROUNDING = ("round", "floor", "ceil")
TEXT = ("lower", "upper", "length")
NAMES = ("abs", *ROUNDING, *TEXT, "coalesce", *PARTS)
TIMES = {  # how timestamps and durations can be combined, and what that gives
    ("timestamp", "-", "timestamp"): "duration", ("timestamp", "+", "duration"): "timestamp",
    ("duration", "+", "timestamp"): "timestamp", ("timestamp", "-", "duration"): "timestamp",
    ("duration", "+", "duration"): "duration", ("duration", "-", "duration"): "duration",
    ("duration", "/", "duration"): "float",
}  # fmt: skip


def arity(name: str) -> tuple[int, int | None]:
    """The least and the greatest number of arguments."""
    return (2, None) if name == "coalesce" else (1, 1)


def duration_text(value: timedelta) -> str:
    """A duration in the largest unit of which it is a whole multiple.

    >>> duration_text(timedelta(seconds=90)), duration_text(timedelta(hours=-48)), duration_text(timedelta())
    ('90 seconds', '-2 days', '0 seconds')
    """
    count = value // MICROSECOND
    unit = next(name for name, size in UNITS.items() if count % size == 0) if count else "seconds"
    return f"{count // UNITS[unit]} {unit}"


def call(name: str, values: list[Any]) -> Any:
    """The value of a function other than `coalesce` on arguments that are not NULL.

    >>> call("round", [-2.5]), call("floor", [-0.5]), call("length", ["日本"]), call("weekday", [datetime(2024, 5, 5)])
    (-3.0, -1.0, 2, 7)
    """
    (value,) = values
    if name in PARTS:
        instant = utc(value)
        part: int = instant.isoweekday() if name == "weekday" else getattr(instant, name)
        return part
    if name in ROUNDING:
        return value if isinstance(value, int) or not math.isfinite(value) else _ROUND[name](value)
    return _PLAIN[name](value)


def time_arithmetic(op: str, left: Any, right: Any) -> datetime | timedelta | float | None:
    """`left op right` of timestamps and durations, exactly; in nanoseconds if one side is, NULL where those do not fit
    64 bits (the years 1677 to 2262)."""
    fine = _is_fine(left) or _is_fine(right)
    one, other = (_nanoseconds(each) for each in (left, right))
    if fine and not (_fits_pandas(one) and _fits_pandas(other)):
        return None
    unit = 1 if fine else _MICRO
    if op == "/":
        return float(one // unit) / float(other // unit) if other else None
    ticks = one + other if op == "+" else one - other
    if isinstance(left, datetime) == isinstance(right, datetime):
        return _duration(ticks, fine)
    return _instant(ticks, fine)


def _is_fine(value: Any) -> bool:
    """Whether a timestamp or duration is in nanoseconds, which pandas has and Python does not."""
    return getattr(value, "unit", None) == "ns"


def _nanoseconds(value: Any) -> int:
    """The nanoseconds since 1970, or those of a duration."""
    length = utc(value) - EPOCH if isinstance(value, datetime) else value
    whole = timedelta(length.days, length.seconds, length.microseconds)
    return (whole // MICROSECOND) * _MICRO + int(getattr(length, "nanoseconds", 0))


def _fits_pandas(ticks: int) -> bool:
    return -(2**63) < ticks < 2**63


def _duration(ticks: int, fine: bool) -> timedelta | None:
    if fine:
        return _pandas().Timedelta(ticks, unit="ns") if _fits_pandas(ticks) else None
    try:
        return timedelta(microseconds=ticks // _MICRO)
    except OverflowError:
        return None


def _instant(ticks: int, fine: bool) -> datetime | None:
    if fine:
        return _pandas().Timestamp(ticks, unit="ns", tz="UTC") if _fits_pandas(ticks) else None
    micros = ticks // _MICRO
    return EPOCH + micros * MICROSECOND if EARLIEST <= micros <= LATEST else None


def _pandas() -> Any:
    import pandas  # whoever has a value in nanoseconds has pandas, too

    return pandas


def utc(value: datetime) -> datetime:
    """The instant in UTC; a time without a zone is in UTC already."""
    return value.astimezone(timezone.utc) if value.tzinfo else value.replace(tzinfo=timezone.utc)


def _half_away(value: float) -> float:
    whole = float(math.trunc(value))
    return whole + math.copysign(1.0, value) if abs(value - whole) >= 0.5 else whole


_ROUND: dict[str, Callable[[float], float]] = {
    "round": _half_away,
    "floor": lambda value: float(math.floor(value)),
    "ceil": lambda value: float(math.ceil(value)),
}
_PLAIN: dict[str, Callable[[Any], Any]] = {"abs": abs, "lower": str.lower, "upper": str.upper, "length": len}
