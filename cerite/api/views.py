"""Matches for people: a table with times and the values of events, the same in a terminal, a notebook and on Spark.

Rows are those of a result with events. A variable that only repeats what others show (the event type of `SELL AS x`) is
left out, and so are values of events that the match shows in columns of its own: the key, the time.
Invariant: a cell is short, whatever a match holds: at most `MOST_EVENTS` events and `MOST_VALUES` values of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

MOST_EVENTS, MOST_VALUES, LONGEST = 3, 4, 40
Row = Mapping[str, Any]


@dataclass(frozen=True)
class View:
    """The heads and cells of a table, as text."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def rich(self) -> Table:
        """For a terminal."""
        from rich.table import Table
        from rich.text import Text

        table = Table()
        for head in self.heads:
            table.add_column(Text(head))
        for row in self.rows:
            table.add_row(*map(Text, row))
        return table

    def html(self, caption: str) -> str:
        """For a notebook."""
        lines = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in self.rows)
        body = "".join(f"<tr>{line}</tr>" for line in lines)
        head = "".join(f"<th>{escape(name)}</th>" for name in self.heads)
        table = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
        return f"<table><caption>{escape(caption)}</caption>{table}</table>"


def view(
    rows: Sequence[Row], columns: Iterable[str], *, time: str | None = None, type: str | None = None,
    every: bool = False,
) -> View:  # fmt: skip
    """These columns of the rows of a result; with `every`, none of them is left out.

    >>> sold = [{"type": "SELL", "card": 4, "v": 0.5}]
    >>> match = {"card": 4, "SELL": sold, "x": sold}
    >>> view([match], match, type="type")
    View(heads=('card', 'x'), rows=(('4', '0.5'),))
    """
    names = [name for name in columns if name != "match"]
    lists = [name for name in names if any(isinstance(row[name], list) for row in rows)]
    left_out = set() if every else repeated(rows, lists, type)
    heads = [name for name in names if name not in left_out]
    hidden = {time, *(name for name in names if name not in lists)}
    mixed = {name for name in lists if len({_type(event, type) for row in rows for event in row[name] or ()}) > 1}
    cells = tuple(
        tuple(
            cell(row[name], hidden if name in mixed else {type, *hidden}) if name in lists else moment(row, name)
            for name in heads
        )
        for row in rows
    )
    return View(tuple(heads), cells)


def repeated(rows: Sequence[Row], lists: Sequence[str], type: str | None) -> set[str]:
    """The variables that are event types, and whose events other variables have as well."""
    types = {
        name
        for name in lists
        if type is not None and all(_type(event, type) == name for row in rows for event in row[name] or ())
    }
    others = [name for name in lists if name not in types]

    def is_covered(row: Row, name: str) -> bool:
        return all(any(event in (row[other] or ()) for other in others) for event in row[name] or ())

    return {name for name in types if all(is_covered(row, name) for row in rows)}


def _type(event: Row, type: str | None) -> Any:
    return None if type is None else event.get(type)


def cell(events: Sequence[Row] | None, hidden: Iterable[str | None]) -> str:
    """The events of a variable.

    >>> cell([{"at": at, "v": at} for at in range(9)], ["at"]), cell([{"at": 1}], ["at"]), cell([], [])
    ('0 1 2 … 8 (9)', '1', '-')
    >>> cell([{"at": at, "ip": "10.0.0.1"} for at in range(9)], ["at"])
    '10.0.0.1 (9)'
    """
    if not events:
        return "-"
    names = [name for name in events[0] if name not in hidden] or list(events[0])
    several = len(names) > 1
    if len(events) > 1 and all(all(event[name] == events[0][name] for name in names) for event in events):
        return f"{_event(events[0], names)} ({len(events)})"
    few = events if len(events) <= MOST_EVENTS + 1 else [*events[:MOST_EVENTS], events[-1]]
    texts = [_event(event, names) for event in few]
    if len(few) < len(events):
        texts[-1] = f"… {texts[-1]} ({len(events)})"
    return ("; " if several else " ").join(texts)


def _event(event: Row, names: Sequence[str]) -> str:
    if len(names) == 1:
        return text(event[names[0]])
    values = [f"{name}={text(event[name])}" for name in names[:MOST_VALUES]]
    return " ".join(values) + (" …" if len(names) > MOST_VALUES else "")


def moment(row: Row, name: str) -> str:
    """A value of the match itself; the end is shown without a date if that is the start's date.

    >>> ends = {"start_time": datetime(2024, 3, 4, 8), "end_time": datetime(2024, 3, 4, 9)}
    >>> moment(ends, "start_time"), moment(ends, "end_time")
    ('2024-03-04 08:00:00', '09:00:00')
    """
    value, start = row[name], row.get("start_time")
    if name == "end_time" and isinstance(value, datetime) and isinstance(start, datetime):
        return text(value.timetz() if value.date() == start.date() else value)
    return text(value)


def text(value: Any) -> str:
    """A value, shortened."""
    if value is None:
        return "null"
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, datetime) or (hasattr(value, "isoformat") and not isinstance(value, date)):
        spec = "milliseconds" if value.microsecond else "seconds"
        return str(value.isoformat(sep=" ", timespec=spec) if isinstance(value, datetime) else value.isoformat(spec))
    written = str(value)
    return written if len(written) <= LONGEST else f"{written[: LONGEST - 1]}…"
