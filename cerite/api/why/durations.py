"""Lengths of time in an explanation, as people read them: `3 min 8 s`, `1 hour`.

A check measures in the unit of its window, `0.0522222222222 hours`, whose text is exact and hard to read.
"""

from __future__ import annotations

import re

from cerite.pattern.nodes import UNITS

_UNITS = "|".join(UNITS)
_PASSED = re.compile(rf"\A(\d[\d.e+-]*) ({_UNITS})(?= after row)")
_SINGLE = re.compile(rf"(?<![\d.])1 ({_UNITS})\b")
_DIGITS = 11  # of the twelve that a check writes
_LARGER = (("d", 86_400), ("h", 3_600), ("min", 60))


def readable(text: str) -> str:
    """The text of a check with its lengths of time in words.

    >>> readable("0.0523538888889 hours after row 500, window 1 hours")
    '3 min 8.474 s after row 500, window 1 hour'
    >>> readable("31.2 seconds after row 0, window 30 seconds")
    '31.2 seconds after row 0, window 30 seconds'
    """
    return _SINGLE.sub(lambda found: f"1 {found[1][:-1]}", _PASSED.sub(_in_parts, text))


def _in_parts(found: re.Match[str]) -> str:
    """The length in days, hours, minutes and seconds, unless it is short in its own unit."""
    number, unit = found[1], found[2]
    if "e" not in number and len(number.partition(".")[2]) < 4:
        return found[0]
    seconds = float(number) * float(UNITS[unit]) / 1_000
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
