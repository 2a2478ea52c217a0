"""The arguments of the assertions: a query in any form, and events as text or rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Union

from cerite.core.errors import ArgumentError
from cerite.testing.event_text import events

AnyEvents = Union[str, Iterable[Mapping[str, Any]]]
Rows = list[dict[str, Any]]


def rows_of(given: AnyEvents, type: str, time: str) -> tuple[Rows, str | None]:
    """The events, all with the same attributes, and the name of their time attribute if they have one."""
    rows = events(given, type=type, time=time) if isinstance(given, str) else list(map(_row, given))
    names = dict.fromkeys(name for row in rows for name in row)
    whole = [{name: row.get(name) for name in names} for row in rows]
    return whole, time if not rows or time in names else None


def _row(row: Any) -> dict[str, Any]:
    if not isinstance(row, Mapping):
        raise ArgumentError(f"an event is a dictionary, not {row!r}", hint="or write them all as text: 'A@0 B@5s'")
    return dict(row)
