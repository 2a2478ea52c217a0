"""Events in a compact notation: `A@0 B(price=3)@5s C@9s`.

An event is its type, optionally followed by attributes in parentheses and by its time after `@`. A time is a number of
milliseconds or has a unit (`5s`, `1.5min`, `250ms`); with `+` it counts from the event before (`@+5s`). A value is a
number, TRUE, FALSE, NULL, text in quotes, or one word, which is text. Events are separated by spaces.

Invariant: `events(notation(rows)) == rows` for rows that the notation can write.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from cerite.core.errors import ArgumentError, QuerySyntaxError, Span
from cerite.pattern.nodes import UNITS, unit_named

_NAME = r"[^\W\d]\w*|`(?:[^`]|``)+`"
_VALUE = r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|[^\s,()'\"]+"
_EVENT = re.compile(rf"\s*(?P<type>{_NAME})")
_ATTRIBUTE = re.compile(rf"\s*(?P<name>{_NAME})\s*=\s*(?P<value>{_VALUE})\s*(?P<end>[,)])")
_TIME = re.compile(r"@(?P<later>\+)?(?P<amount>-?\d+(?:\.\d+)?)(?P<unit>[a-z]*)(?=\s|$)")
_INTEGER, _FLOAT = re.compile(r"[+-]?\d+"), re.compile(r"[+-]?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][+-]?\d+)?")
_WORDS: dict[str, bool | None] = {"TRUE": True, "FALSE": False, "NULL": None}
_SHAPE = "write TYPE(name=value, …)@time, e.g. A@0 B(price=3)@5s"


def events(text: str, *, type: str = "type", time: str = "at") -> list[dict[str, Any]]:
    """The events as dictionaries, with their types and times under these names.

    >>> events("BUY(price=3.5, name=MSFT, ok=TRUE, note='a b')@1.5s SELL@+250ms")
    ... # doctest: +NORMALIZE_WHITESPACE
    [{'type': 'BUY', 'at': 1500, 'price': 3.5, 'name': 'MSFT', 'ok': True, 'note': 'a b'},
     {'type': 'SELL', 'at': 1750}]
    >>> events("A B")
    [{'type': 'A'}, {'type': 'B'}]
    """
    if not isinstance(text, str):
        raise ArgumentError(f"events are written as text, not {text!r}", hint=_SHAPE)
    rows: list[dict[str, Any]] = []
    place, now = 0, None
    while text[place:].strip():
        row, place = _event(text, place, type)
        when = _TIME.match(text, place)
        if when is not None:
            now = _time(text, when, now)
            row = {type: row.pop(type), time: now} | row
            place = when.end()
        elif place < len(text) and not text[place].isspace():
            raise _error(text, place, "this is not a time" if text[place] == "@" else f"unexpected `{text[place]}`")
        if rows and (time in row) != (time in rows[0]):
            raise _error(text, place - 1, "some events have a time and some have none")
        rows.append(row)
    return rows


def _event(text: str, place: int, kind: str) -> tuple[dict[str, Any], int]:
    event = _EVENT.match(text, place)
    if event is None:
        raise _error(text, place + len(text[place:]) - len(text[place:].lstrip()), "an event begins with its type")
    row: dict[str, Any] = {kind: _name(event["type"])}
    place = event.end()
    if text[place : place + 1] != "(":
        return row, place
    place += 1
    while True:
        attribute = _ATTRIBUTE.match(text, place)
        if attribute is None:
            raise _error(text, place, "attributes are written name=value, and end with `)`")
        name = _name(attribute["name"])
        if name in row:
            raise _error(text, place, f"`{name}` is given twice")
        row[name] = _value(attribute["value"])
        place = attribute.end()
        if attribute["end"] == ")":
            return row, place


def _time(text: str, when: re.Match[str], now: Any) -> Any:
    unit = unit_named(when["unit"]) if when["unit"] else "milliseconds"
    if unit is None or unit not in UNITS:
        raise _error(text, when.start("unit"), f"`{when['unit']}` is no unit of time", hint="us, ms, s, min, h or d")
    exact = Fraction(Decimal(when["amount"])) * UNITS[unit]
    if when["later"]:
        if now is None:
            raise _error(text, when.start(), "there is no event before this one to count from")
        exact += Fraction(now)
    return int(exact) if exact.denominator == 1 else float(exact)


def _name(text: str) -> str:
    return text[1:-1].replace("``", "`") if text[0] == "`" else text


def _value(text: str) -> Any:
    if text[0] in "'\"":
        return text[1:-1].replace(2 * text[0], text[0])
    if text.upper() in _WORDS:
        return _WORDS[text.upper()]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def _error(text: str, place: int, message: str, hint: str = _SHAPE) -> QuerySyntaxError:
    return QuerySyntaxError(message, source=text, span=Span(place, place + 1), hint=hint)


def notation(rows: Iterable[Mapping[str, Any]], *, type: str = "type", time: str = "at") -> str:
    """Events in the compact notation; attributes that are NULL are left out.

    >>> notation([{"type": "A", "at": 0}, {"type": "B", "at": 5000, "price": 3, "name": "x y", "id": None}])
    "A@0 B(price=3, name='x y')@5s"
    """
    return " ".join(_written(row, type, time) for row in rows)


def _written(row: Mapping[str, Any], type: str, time: str) -> str:
    values = {name: value for name, value in row.items() if name not in (type, time) and value is not None}
    inside = ", ".join(f"{_named(name)}={_shown(value)}" for name, value in values.items())
    when = "" if row.get(time) is None else f"@{_moment(row[time])}"
    return f"{_named(str(row.get(type, '_')))}{f'({inside})' if inside else ''}{when}"


def _named(name: str) -> str:
    return name if re.fullmatch(r"[^\W\d]\w*", name) else f"`{name.replace('`', '``')}`"


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, (int, float)):
        return repr(value)
    text = str(value)
    plain = re.fullmatch(_VALUE, text) is not None and text[:1] not in "'\"" and _value(text) == text
    return text if plain else "'" + text.replace("'", "''") + "'"


def _moment(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    return f"{value // 1000}s" if value and value % 1000 == 0 else repr(value)
