"""The answers of `why` and `why_not`: events with what is known of each, shown as text, as a table or as HTML."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Literal

from cerite.core.match import Match

if TYPE_CHECKING:
    from rich.console import Group

Kind = Literal[
    "condition",
    "contiguity",
    "negation",
    "window",
    "strategy",
    "type",
    "partition",
    "consumption",
    "limit",
    "suppression",
    "missing",
]
"""What can admit events to a match, and what can keep them from being one."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Something that was compared, in words; `position` is that of the event it is about, if it is about one."""

    kind: Kind
    text: str
    position: int | None = None

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Explained:
    """An event, the variables it is bound to, and the conditions that it met, or the one that it failed."""

    position: int
    variables: tuple[str, ...]
    row: dict[str, Any]
    reasons: tuple[Reason, ...]
    verdict: Literal["met", "failed", "not reached"] = "met"


class Answer(ABC):
    """An answer, which shows itself as text, as a table in a terminal, or as HTML in a notebook."""

    events: tuple[Explained, ...]
    columns: tuple[str, ...] = ()  # of the data: what is shown of every event

    @property
    @abstractmethod
    def title(self) -> str:
        """The answer in one line."""

    @property
    @abstractmethod
    def notes(self) -> tuple[str, ...]:
        """What there is to say besides the events."""

    def _lines(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        heads = ("row", *self.columns, "variables", "why")
        rows = []
        for each in self.events:
            reasons = "; ".join(map(str, each.reasons)) or "only its type is tested"
            reasons = {"met": reasons, "failed": f"✗ {reasons}", "not reached": "not reached"}[each.verdict]
            values = (str(each.row.get(name)) for name in self.columns)
            rows.append((str(each.position), *values, ", ".join(each.variables), reasons))
        return heads, rows

    def __str__(self) -> str:
        heads, rows = self._lines()
        widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
        lines = [self.title] if not rows else [self.title, *(_line(each, widths) for each in (heads, *rows))]
        return "\n".join((*lines, *self.notes))

    def __repr__(self) -> str:
        return str(self)

    def __rich__(self) -> Group:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        heads, rows = self._lines()
        table = Table(*heads)
        for each, row in zip(self.events, rows, strict=True):
            table.add_row(*map(Text, row), style={"failed": "red", "not reached": "dim"}.get(each.verdict))
        shown = [table] if rows else []
        return Group(Text(self.title, style="bold"), *shown, *map(Text, self.notes))

    def _repr_html_(self) -> str:
        heads, rows = self._lines()
        head = "".join(f"<th>{escape(name)}</th>" for name in heads)
        body = "".join(
            f"<tr{_colour(each.verdict)}>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>"
            for each, row in zip(self.events, rows, strict=True)
        )
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if rows else ""
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return f"<p><b>{escape(self.title)}</b></p>{table}{notes}"


class Why(Answer):
    """Why a match is one: `events` with the conditions that admitted each, and `reasons` about all of them."""

    def __init__(
        self, match: Match, events: Sequence[Explained], reasons: Sequence[Reason], columns: tuple[str, ...] = ()
    ) -> None:
        self.match = match
        self.events = tuple(events)
        self.reasons = tuple(reasons)
        self.columns = columns

    @property
    def title(self) -> str:
        """The match."""
        return f"{self.match} is a match"

    @property
    def notes(self) -> tuple[str, ...]:
        """What holds of the whole match."""
        return tuple(f"and {reason}" for reason in self.reasons)


class WhyNot(Answer):
    """Why events are not a match.

    `culprit` is what first ended the partial match that got furthest, `besides` what would have ended it later. If the
    events are a match, `match` is that match and `culprit` is None; if they are only some of the events of a match,
    `culprit` says what is missing and `match` is that match. Where the pattern needs more events than were given,
    `added` are the events of the data that bring them nearest to a match.
    """

    def __init__(
        self,
        positions: tuple[int, ...],
        events: Sequence[Explained] = (),
        culprit: Reason | None = None,
        besides: Sequence[Reason] = (),
        *,
        match: Match | None = None,
        why: Why | None = None,
        added: tuple[int, ...] = (),
        columns: tuple[str, ...] = (),
    ) -> None:
        self.positions = positions
        self.added = added
        self.events = tuple(events)
        self.culprit = culprit
        self.besides = tuple(besides)
        self.match = match
        self.why = why
        self.columns = columns

    def __bool__(self) -> bool:
        """Whether there is something that keeps the events from being a match."""
        return self.culprit is not None

    @property
    def title(self) -> str:
        """The answer in one line."""
        if self.culprit is None:
            return f"{rows_text(self.positions)} are a match" if self.why is None else self.why.title
        part = "" if self.match is None else ", only part of one"
        return f"{rows_text(self.positions)} {'is' if len(self.positions) == 1 else 'are'} no match{part}"

    @property
    def notes(self) -> tuple[str, ...]:
        """What ended the match, and what would have ended it later."""
        if self.culprit is None:
            return () if self.why is None else self.why.notes
        larger = () if self.match is None else (f"but they are part of the match {self.match}",)
        more = f"the pattern needs more events; with {rows_text(self.added)} they come nearest" if self.added else ""
        return (
            *([more] if more and self.culprit.kind != "missing" else []),
            f"ended by {self.culprit.kind}: {self.culprit}",
            *(f"besides: {each}" for each in self.besides),
            *larger,
        )


def rows_text(positions: Sequence[int]) -> str:
    """Rows by their numbers.

    >>> rows_text((3,)), rows_text((3, 7))
    ('row 3', 'rows 3, 7')
    """
    return f"row{'' if len(positions) == 1 else 's'} {', '.join(map(str, positions))}"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  " + "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _colour(verdict: str) -> str:
    return {"failed": ' style="color:#c00"', "not reached": ' style="color:#999"'}.get(verdict, "")
