"""What a stream has seen and holds, for people and programs."""

from __future__ import annotations

from dataclasses import dataclass, fields
from html import escape
from typing import Any

from cerite.engine.live.live_run import LiveRun

_SAID = {
    "events": "events pushed", "read": "events read", "relevant": "events that could be part of a match",
    "occurrences": "events that completed a match", "matches": "matches counted or given out",
    "suppressed": "matches that SUPPRESS left out", "late": "late events",
    "untimed": "events without a time", "duplicates": "duplicates", "pending": "events waiting for the watermark",
    "kept": "events kept for matches to come", "ids": "ids known", "active": "states with partial matches",
    "watermark": "watermark", "latest": "latest time seen",
}  # fmt: skip


@dataclass(frozen=True)
class StreamMetrics:
    """Counts since the stream began, restores included, and what it holds now.

    Every event pushed is read, pending, late, without a time, or a duplicate. What the last push completed is counted
    once its matches have been read, or when the stream goes on. `suppressed` is None unless the query has SUPPRESS and
    the stream was opened with `counting=True`.

    >>> import cerite
    >>> stream = cerite.query("SELECT * FROM S WHERE A ; B").stream({"type": "string", "at": "int"}, time="at")
    >>> stream.push([{"type": "A", "at": 1}, {"type": "C", "at": 1}, {"type": "B", "at": 2}]).count()
    1
    >>> stream.metrics.events, stream.metrics.relevant, stream.metrics.matches
    (3, 2, 1)
    """

    events: int
    read: int
    relevant: int
    occurrences: int
    matches: int
    suppressed: int | None
    late: int
    untimed: int
    duplicates: int
    pending: int
    kept: int
    ids: int
    active: int
    watermark: Any = None
    latest: Any = None

    @staticmethod
    def of(run: LiveRun) -> StreamMetrics:
        """The metrics of a run, times as Python reads them."""
        own = run.metrics

        def time(key: int | None) -> Any:
            return None if key is None or run.clock is None else run.clock.value(key).as_py()

        return StreamMetrics(
            own.events, own.read, own.relevant, own.occurrences, own.matches, own.suppressed, own.late, own.untimed,
            own.duplicates, own.pending, own.kept_rows, own.ids, own.active, time(own.watermark),
            time(own.seen),
        )  # fmt: skip

    def _lines(self) -> list[tuple[str, str]]:
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        times = {"watermark", "latest"}
        known = {name: value for name, value in values.items() if value is not None}
        return [(_SAID[name], str(value) if name in times else f"{value:,}") for name, value in known.items()]

    def __str__(self) -> str:
        lines = self._lines()
        wide, most = max(len(name) for name, _ in lines), max(len(value) for _, value in lines)
        return "\n".join(f"{name.ljust(wide)}  {value.rjust(most)}" for name, value in lines)

    def _repr_html_(self) -> str:
        rows = (f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in self._lines())
        return f"<table>{''.join(rows)}</table>"
