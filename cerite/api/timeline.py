"""`matches.plot()`: the stream on a timeline, a lane for each partition, and every match as arcs between its events.

A terminal gets text, which needs nothing; a notebook and files get a chart, which needs the extra `plot` (Altair).
Invariant: a picture is small whatever the stream: the matches, lanes and events drawn are limited in number, matched
events are drawn before others, and the caption says what was left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cerite.api.views import cell, text
from cerite.automaton.draw import picture_file
from cerite.core.arrays import Longs
from cerite.core.errors import ArgumentError, CeriteError
from cerite.core.extras import load
from cerite.predicate.columns.read import decoded

if TYPE_CHECKING:
    from cerite.api.result import Matches

MOST_EVENTS = 1_000  # in addition to those of the matches
MOST_MATCHES, MOST_LANES = 500, 50  # that an eye can distinguish
MOST_MARKED = 40  # events of one match: the first and the last ones
WIDTH, LANE = 860, 46  # pixels
BARS = 40  # characters of a match in a terminal
ENDINGS = (".html", ".svg", ".png", ".pdf", ".json")
_INK, _PALE, _ARC = "#1f2937", "#c3c8d0", "#4c78a8"


@dataclass(frozen=True)
class Mark:
    """An event of a match: where it is on the axis, the variables that hold it, its values as text."""

    at: Any
    names: tuple[str, ...]
    values: str


@dataclass(frozen=True)
class Drawn:
    """A match: its number, its lane and its events in order; `left_out` of them are not drawn."""

    number: int
    lane: str
    marks: tuple[Mark, ...]
    left_out: int = 0


@dataclass(frozen=True)
class Timeline:
    """Matches to draw, and other events by lane; it prints as text, and shows itself as a chart in a notebook.

    `save(path)` writes a file; `chart` is the Altair chart, which may be changed at will.
    """

    axis: str
    lanes: tuple[str, ...]
    matches: tuple[Drawn, ...]
    beside: tuple[tuple[str, Any], ...] = field(default=(), repr=False)
    notes: tuple[str, ...] = ()

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the chart: .html is interactive and needs no network; .svg, .png, .pdf; .json is Vega-Lite."""
        target = picture_file(path, ENDINGS)
        options = {"inline": True} if target.suffix.lower() == ".html" else {}
        load("vl_convert")  # without it, Altair would fail with a message of its own
        self.chart.save(str(target), **options)
        return target

    @property
    def chart(self) -> Any:
        """The picture as an Altair chart."""
        return _chart(load("altair"), self)

    @property
    def caption(self) -> str:
        """What the picture shows, and what it leaves out."""
        return "; ".join(self.notes)

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    __repr__ = __str__

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        """The chart where Altair is installed, and text."""
        bundle: dict[str, Any] = {"text/plain": str(self)}
        with suppress(CeriteError):
            drawn = self.chart._repr_mimebundle_(include, exclude)
            bundle |= drawn[0] if isinstance(drawn, tuple) else drawn or {}
        return bundle


# ------------------------------------------------------------ what is drawn
def timeline(matches: Matches, limit: int, lanes: int) -> Timeline:
    """The first matches, up to `limit` and in up to so many `lanes`, and other events of these lanes."""
    for name, number, most in (("limit", limit, MOST_MATCHES), ("lanes", lanes, MOST_LANES)):
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= most:
            raise ArgumentError(f"{name}={number!r} is not a number from 1 to {most}", hint=f"write {name}=20")
    axis = matches.shape.time or matches.shape.position or "position"
    keys: dict[str, tuple[Any, ...]] = {}  # of the lanes
    drawn: list[Drawn] = []
    hidden, first, last, more = 0, None, 0, False
    for number, (rows, positions, places, labels) in enumerate(_events(matches)):
        if number == limit:
            more = True
            break
        values = tuple(rows[-1][name] for name in matches.partition)
        lane = ", ".join(map(text, values))
        if lane not in keys and len(keys) == lanes:
            hidden += 1
            continue
        keys[lane] = values
        drawn.append(_drawn(matches, number + 1, lane, rows, positions, labels))
        first, last = places[0] if first is None else min(places[0], first), max(places[-1], last)
    beside, others = ((), 0) if first is None else _beside(matches, keys, first, last)
    notes = [_counted(matches, len(drawn) + hidden, more)]
    if hidden:
        notes.append(f"{hidden:,} of them, in other lanes, are not drawn")
    if others > len(beside):
        notes.append(f"{len(beside):,} of {others:,} events of these lanes are drawn as well")
    if any(match.left_out for match in drawn):
        notes.append(f"of a long match the first {MOST_MARKED // 2} and last {MOST_MARKED // 2} events")
    return Timeline(axis, tuple(keys), tuple(drawn), beside, tuple(notes))


def _counted(matches: Matches, seen: int, more: bool) -> str:
    if not more:
        return f"{seen:,} match{'' if seen == 1 else 'es'}"
    total = "" if matches._count is None else f" of {matches._count:,}"
    return f"the first {seen:,}{total} matches" + ("" if total else " (there are more)")


def _events(matches: Matches) -> Iterator[tuple[list[dict[str, Any]], list[int], list[int], list[int]]]:
    """For every match its events, their positions as they are reported, their places in the stream, their labels."""
    for chunk, placed in matches.placed():
        for index in range(len(chunk)):
            mine = slice(chunk.offsets[index], chunk.offsets[index + 1])
            places = placed.matches.positions[mine]
            rows = placed.rows.take(pa.array(places)).to_pylist()
            yield rows, chunk.positions[mine].tolist(), placed.positions[places].tolist(), chunk.labels[mine].tolist()


def _drawn(
    matches: Matches, number: int, lane: str, rows: list[dict[str, Any]], positions: list[int], labels: list[int]
) -> Drawn:
    drawn = list(range(len(rows)))
    if len(rows) > MOST_MARKED:
        drawn = [*drawn[: MOST_MARKED // 2], *drawn[-MOST_MARKED // 2 :]]
    time, kind = matches.shape.time, matches.type_column or ""
    shown = [name for name in matches.shape.attributes if name not in (time, *matches.partition)]
    marks = []
    for k in drawn:
        row = rows[k]
        names = sorted(matches.labels[labels[k]], key=lambda name: (name == row.get(kind), name))
        values = {name: row[name] for name in shown}
        at = _moment(row[time]) if time else positions[k]
        marks.append(Mark(at, tuple(names), cell([values], {kind}) if values else ""))
    return Drawn(number, lane, tuple(marks), len(rows) - len(marks))


def _beside(
    matches: Matches, keys: dict[str, tuple[Any, ...]], first: int, last: int
) -> tuple[tuple[tuple[str, Any], ...], int]:
    """Events of the lanes from the first match to the last, some of them if there are many, and how many there are."""
    time, names = matches.shape.time, list(keys)
    lanes, times, at = [], [], first
    for batch in matches.between(first, last, tuple(dict.fromkeys((*filter(None, (time,)), *matches.partition)))):
        lane = _lane_numbers(batch, matches.partition, list(keys.values()))
        mine = np.flatnonzero(lane >= 0)
        lanes.append(lane[mine])
        times.append(batch.column(time).take(pa.array(mine)) if time else pa.array(at + mine))
        at += batch.num_rows
    total = sum(each.size for each in lanes)
    if not total:
        return (), 0
    some = np.unique(np.linspace(0, total - 1, min(total, MOST_EVENTS)).round().astype(np.int64))
    numbers, places = np.concatenate(lanes)[some], pa.chunked_array(times).take(pa.array(some)).to_pylist()
    return tuple((names[lane], _moment(place)) for lane, place in zip(numbers.tolist(), places, strict=True)), total


def _lane_numbers(batch: pa.RecordBatch, partition: Sequence[str], lanes: Sequence[tuple[Any, ...]]) -> Longs:
    """The lane of every event, -1 where it has none."""
    numbers: Longs = np.full(batch.num_rows, -1 if partition else 0, np.int64)
    columns = [decoded(batch.column(name)) for name in partition]
    for number, values in enumerate(lanes):
        mine = np.ones(batch.num_rows, bool)
        for column, value in zip(columns, values, strict=True):
            mine &= pc.is_in(column, value_set=pa.array([value], column.type)).to_numpy(zero_copy_only=False)
        numbers[mine] = number
    return numbers


def _moment(value: Any) -> Any:
    """A time; ISO text is parsed."""
    return datetime.fromisoformat(value.replace("Z", "+00:00")) if isinstance(value, str) else value


# ------------------------------------------------------------ a chart
def _chart(alt: Any, line: Timeline) -> Any:
    heights = {lane: len(line.lanes) - 1 - k for k, lane in enumerate(line.lanes)}
    x = _axis(alt, line)
    labels = json.dumps([*reversed(line.lanes)])
    y = alt.Y(
        "y:Q",
        title=None,
        scale=alt.Scale(domain=[-0.35, len(line.lanes) - 0.05], nice=False, zero=False),
        axis=alt.Axis(values=list(range(len(line.lanes))), labelExpr=f"{labels}[datum.value]", grid=False, ticks=False),
    )
    beside = [{"x": _number(at), "y": heights[lane]} for lane, at in line.beside]
    near = alt.selection_point(on="pointerover", fields=["match"], empty=False, clear="pointerout", nearest=False)
    arcs = alt.Chart(alt.Data(values=list(_arcs(line, heights)))).mark_line(interpolate="basis")
    marks = alt.Chart(alt.Data(values=list(_marks(line, heights)))).mark_circle(size=55, opacity=1)
    layers = [
        alt.Chart(alt.Data(values=beside)).mark_circle(size=9, color=_PALE).encode(x=x, y=y),
        arcs.encode(
            x=x, y=y, detail="arc:N", color=alt.condition(near, alt.value("#e45756"), alt.value(_ARC)),
            strokeWidth=alt.condition(near, alt.value(3), alt.value(1.4)), tooltip=["match:N", "lane:N"],
        ).add_params(near),
        marks.encode(
            x=x, y=y, color=alt.Color("variable:N", title=None, sort=_names(line)),
            tooltip=["match:N", "variable:N", alt.Tooltip("when:N", title=line.axis), "values:N"],
        ),
    ]  # fmt: skip
    title = alt.TitleParams(line.notes[0], subtitle=list(line.notes[1:]), anchor="start", color=_INK)
    chart = alt.layer(*layers).properties(width=WIDTH, height=max(90, LANE * len(line.lanes)), title=title)
    return chart.interactive(bind_y=False)


def _names(line: Timeline) -> list[str]:
    """The variables in the order in which they occur."""
    return list(dict.fromkeys(name for match in line.matches for mark in match.marks for name in mark.names[:1]))


def _axis(alt: Any, line: Timeline) -> Any:
    days = {mark.at.isoformat()[:10] for match in line.matches for mark in match.marks if isinstance(mark.at, date)}
    if not days:
        return alt.X("x:Q", title=line.axis, scale=alt.Scale(zero=False, nice=False, padding=15))
    clock = alt.Axis(format="%H:%M:%S") if len(days) == 1 else alt.Axis()
    title = f"{line.axis}, {days.pop()}" if len(days) == 1 else line.axis
    return alt.X("x:T", title=title, scale=alt.Scale(type="utc", nice=False, padding=15), axis=clock)


def _arcs(line: Timeline, heights: dict[str, int]) -> Iterator[dict[str, Any]]:
    """Three points for every arc, joined by a curve; the longer an arc is in time, the higher it rises."""
    pairs = [
        (match, _number(one.at), _number(other.at))
        for match in line.matches
        for one, other in zip(match.marks, match.marks[1:], strict=False)
    ]
    longest = max((end - begin for _, begin, end in pairs), default=0) or 1
    for number, (match, begin, end) in enumerate(pairs):
        floor = heights[match.lane]
        top = floor + 0.35 + 0.8 * ((end - begin) / longest) ** 0.5
        for x, y in ((begin, floor), ((begin + end) / 2, top), (end, floor)):
            yield {"x": x, "y": y, "arc": number, "match": match.number, "lane": match.lane}


def _marks(line: Timeline, heights: dict[str, int]) -> Iterator[dict[str, Any]]:
    for match in line.matches:
        for mark in match.marks:
            yield {
                "x": _number(mark.at), "y": heights[match.lane], "match": match.number, "when": text(mark.at),
                "variable": mark.names[0] if mark.names else "event", "values": mark.values,
            }  # fmt: skip


def _number(at: Any) -> float:
    """A place on the axis; for times the milliseconds since 1970, in UTC if they have no zone."""
    if isinstance(at, datetime):
        return (at if at.tzinfo else at.replace(tzinfo=timezone.utc)).timestamp() * 1_000
    if isinstance(at, date):
        return datetime(at.year, at.month, at.day, tzinfo=timezone.utc).timestamp() * 1_000
    return float(at)


# ------------------------------------------------------------ text
def _lines(line: Timeline) -> Iterator[str]:
    """A line for every match: its start, its lane, its events on a bar as long as its time, and how long it took."""
    yield line.caption
    if not line.matches:
        return
    names = _names(line)
    letters, longest = _letters(names), max(map(_span, line.matches))
    starts = [text(match.marks[0].at) for match in line.matches]
    wide, lane = max(map(len, starts)), max(len(each) for each in line.lanes)
    for start, match in zip(starts, line.matches, strict=True):
        yield f"{start:<{wide}}  {match.lane:<{lane}}  {_bar(match, letters, longest):<{BARS}}  {_took(match)}".rstrip()
    if names:
        yield ", ".join(f"{letters[name]} {name}" for name in names)


def _span(match: Drawn) -> float:
    return _number(match.marks[-1].at) - _number(match.marks[0].at)


def _bar(match: Drawn, letters: dict[str, str], longest: float) -> str:
    """The events of a match, spaced as in time; of those that would share a place, the last is shown."""
    begin = _number(match.marks[0].at)
    places = [round((_number(mark.at) - begin) / (longest or 1) * (BARS - 1)) for mark in match.marks]
    cells = ["─"] * (places[-1] + 1)
    for place, mark in zip(places, match.marks, strict=True):
        cells[place] = letters[mark.names[0]] if mark.names else "●"
    return "".join(cells)


def _took(match: Drawn) -> str:
    begin, end = match.marks[0].at, match.marks[-1].at
    if isinstance(begin, datetime):
        return f"{(end - begin) / timedelta(seconds=1):,.10g} s"
    return f"{text(begin)} to {text(end)}"


def _letters(names: Sequence[str]) -> dict[str, str]:
    """A letter for each name: the first of its own that is free.

    >>> _letters(["large", "last", "probe"])
    {'large': 'l', 'last': 'a', 'probe': 'p'}
    """
    taken: dict[str, str] = {}
    for name in names:
        free = (letter for letter in (*name, *"ABCDEFGHIJKLMNOPQRSTUVWXYZ", "●") if letter not in taken.values())
        taken[name] = next(free, "●")
    return taken
