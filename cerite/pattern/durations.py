"""Lengths of time that were measured, as people read them: `3 min 8.474 s` rather than `0.0523538888889 hours`."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Union

from cerite.pattern.nodes import UNITS

_LARGER = (("d", 86_400), ("h", 3_600), ("min", 60))
_DIGITS = 11  # that are shown at most


def passed_text(milliseconds: Union[int, float, Decimal, Fraction], unit: str) -> str:
    """So much time, in the unit of a window if few digits say it, else in days, hours, minutes and seconds.

    >>> passed_text(5_400_000, "hours"), passed_text(188_474, "hours"), passed_text(3_600_001, "hours")
    ('1.5 hours', '3 min 8.474 s', '1 h 0.001 s')
    """
    number = f"{float(milliseconds) / float(UNITS[unit]):.12g}"
    if "e" not in number and len(number.partition(".")[2]) < 4:
        return f"{number} {unit[:-1] if number == '1' else unit}"
    seconds = float(milliseconds) / 1_000
    decimals = min(6, max(0, _DIGITS - len(str(int(seconds)))))
    rest = round(seconds, decimals)
    if rest < 1:
        return f"{rest * 1_000:.6g} ms"
    parts = []
    for name, size in _LARGER:
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{int(count)} {name}")
    last = f"{rest:.{decimals}f}".rstrip("0").rstrip(".") if decimals else f"{rest:.0f}"
    return " ".join([*parts, *([] if last == "0" else [f"{last} s"])])
