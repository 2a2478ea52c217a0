"""What a run finds: lazy matches that can be counted, looked at, iterated, or written as Arrow and files.

Nothing is enumerated before it is needed. `count()` never enumerates where the automaton allows it, so a result of
10^15 matches is counted in the time it takes to read the stream.

A table of matches has one of three forms: positions, which cost least; `events=True`, the shape that Spark's results
have; `long=True`, a row for every event of a match. Invariant: a form is the same wherever the events come from.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, overload

import pyarrow as pa

from cerite.api.shown import EVERYTHING, Selection, variable_columns
from cerite.api.timeline import Timeline, timeline
from cerite.api.views import View, view
from cerite.api.writing import write_csv, write_json, write_jsonl, write_parquet, write_text
from cerite.core.errors import ArgumentError, CeriteError, StreamError, listed, suggestion
from cerite.core.extras import load
from cerite.core.match import Match
from cerite.engine.results.event_buffer import Placed
from cerite.engine.results.measures import Measures
from cerite.engine.results.output import Labels, MatchChunk, lists_of
from cerite.engine.results.shape import Shape, pieces

if TYPE_CHECKING:
    import pandas
    import polars
    from rich.table import Table

MOST_LISTED = 1 << 36  # the most matches that `len()` returns
FIRST = 10  # the matches of a result that are shown
Rows = list[dict[str, Any]]


class UnknownVariableError(StreamError, KeyError):
    """A match has no such variable, because its query has none."""


class IndexTypeError(StreamError, TypeError):
    """Something that is not an index was used as one."""


class Matches(ABC):
    """The matches of a query in some events, in the order of their ends.

    Count them with `count()` or `len()`, test whether there are any with `if`, and read them by iterating, by index or
    by slice.
    """

    variables: tuple[str, ...]
    labels: Labels
    shape: Shape
    event_schema: pa.Schema  # of the columns that the shape takes
    partition: tuple[str, ...] = ()
    type_column: str | None = None
    selection: Selection = EVERYTHING
    _count: int | None = None  # how many there are, once that is known
    files: tuple[Path, ...] = ()  # what the events are read from: never written

    @abstractmethod
    def chunks(self) -> Iterator[MatchChunk]:
        """The matches in flat arrays, some at a time."""

    @abstractmethod
    def placed(self) -> Iterator[tuple[MatchChunk, Placed]]:
        """The matches in flat arrays, some at a time, each chunk together with its events."""

    @abstractmethod
    def count(self) -> int:
        """The exact number of matches."""

    @abstractmethod
    def suppressed(self) -> int:
        """How many more matches there are that SUPPRESS left out."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the matches as a table."""
        if self.selection.flat:
            return tuple(self.shape.schema(self.event_schema).names)
        return ("start", "end", "positions", *variable_columns(self.variables, self.partition))

    @abstractmethod
    def fetch(self, positions: tuple[int, ...]) -> Rows:
        """The events at these positions."""

    def exists(self) -> bool:
        """Whether there is any match; stops at the first."""
        return any(len(chunk) for chunk in self.chunks())

    def __bool__(self) -> bool:
        return self.exists()

    def __len__(self) -> int:
        total = self.count()
        if total > MOST_LISTED:  # list() would ask for the memory at once
            raise StreamError(f"there are {total:,} matches, more than a list can hold", hint="use count() or head(n)")
        return total

    def __iter__(self) -> Iterator[Match]:
        return self._from(0)

    @overload
    def __getitem__(self, which: int) -> Match: ...

    @overload
    def __getitem__(self, which: slice) -> list[Match]: ...

    def __getitem__(self, which: int | slice) -> Match | list[Match]:
        """A match, or a list of matches; only what lies before them is read, unless they are counted from the end."""
        if isinstance(which, slice):
            return self._sliced(which)
        if not hasattr(which, "__index__"):
            raise IndexTypeError(
                f"matches are numbered: {which!r} is not an index",
                hint="write matches[0] or matches[:5]; for the events of a variable matches[0]['x']",
            )
        index = operator.index(which)
        at = index if index >= 0 else index + self.count()
        match = next(self._paged(at), None) if at >= 0 else None
        if match is None:
            raise IndexError(f"there is no match {index}: there are {self.count():,}")
        return match

    def _sliced(self, which: slice) -> list[Match]:
        step = 1 if which.step is None else operator.index(which.step)
        if step > 0 and all(end is None or end >= 0 for end in (which.start, which.stop)):
            first = which.start or 0
            count = None if which.stop is None else max(0, which.stop - first)
            return list(islice(self._paged(first), 0, count, step))
        wanted = range(self.count())[which]
        if not wanted:
            return []
        first, last = sorted((wanted[0], wanted[-1]))
        return list(islice(self._paged(first), last - first + 1))[::step]

    def _paged(self, first: int) -> Iterator[Match]:
        """The matches from this index on, in an order that is the same each time."""
        return self._from(first)

    def _from(self, first: int) -> Iterator[Match]:
        """The matches from this index on; those before it do not become objects."""
        if self._with_events:
            for chunk, placed in self.placed():
                if first < len(chunk):
                    yield from self.objects_with_events(chunk, placed, first)
                first = max(0, first - len(chunk))
            return
        for chunk in self.chunks():
            if first < len(chunk):
                yield from self.objects(chunk.slice(first, len(chunk)) if first else chunk)
            first = max(0, first - len(chunk))

    @property
    def _with_events(self) -> bool:
        """Whether matches are created with their events at hand."""
        return self.selection.flat

    def objects_with_events(self, chunk: MatchChunk, placed: Placed, first: int = 0) -> Iterator[Match]:
        """The matches of a chunk from this index on, one by one, with their measures and events."""
        matches = self.objects(chunk.slice(first, len(chunk)) if first else chunk, self._beside(chunk, placed))
        if not self.selection.values:
            yield from matches
            return
        measures = Measures(self.selection.values, self.labels, self.shape.time)
        mine = placed.matches.slice(first, len(chunk)) if first else placed.matches
        for piece in pieces(mine):
            columns = measures.columns(piece, placed.rows)
            for values in pa.RecordBatch.from_pydict(columns).to_pylist():
                yield replace(next(matches), measures=values)

    def _beside(self, chunk: MatchChunk, placed: Placed) -> Callable[[tuple[int, ...]], Rows] | None:
        """A function that returns the events of these matches, if `fetch` cannot return them later; None if it can."""
        return None

    def objects(self, chunk: MatchChunk, fetch: Callable[[tuple[int, ...]], Rows] | None = None) -> Iterator[Match]:
        """The matches of a chunk one by one; `fetch` returns their events, instead of the method of that name."""
        events_of = self.events_of if fetch is None else partial(self._events_of, fetch)
        starts, ends, offsets = chunk.starts.tolist(), chunk.ends.tolist(), chunk.offsets.tolist()
        positions, marks = chunk.positions.tolist(), chunk.labels.tolist()
        for index, (start, end) in enumerate(zip(starts, ends, strict=True)):
            begin, stop = offsets[index], offsets[index + 1]
            bindings: dict[str, list[int]] = {}
            for place in range(begin, stop) if self.variables else ():
                for name in self.labels[marks[place]]:
                    bindings.setdefault(name, []).append(positions[place])
            bound = tuple((name, tuple(bindings[name])) for name in sorted(bindings))
            yield Match(start, end, tuple(positions[begin:stop]), bound, fetch=events_of)

    def events_of(self, match: Match, variable: str | None = None) -> Rows:
        """The events of a match, or of one of its variables, with the attributes that SELECT shows."""
        return self._events_of(self.fetch, match, variable)

    def _events_of(self, fetch: Callable[[tuple[int, ...]], Rows], match: Match, variable: str | None) -> Rows:
        if variable is not None and variable not in self.variables:
            values = [each.name for each in self.selection.values]
            known = f"the variables are {listed(self.variables)}" if self.variables else "it has none"
            known += f"; the measures are {listed(values)}" if values else ""
            hint = suggestion(str(variable), [*self.variables, *values]) or known
            raise UnknownVariableError(f"the match has no variable `{variable}`", hint=hint)
        bound = match.variables
        positions = match.positions if variable is None else bound.get(variable, ())
        rows = fetch(positions)
        attributes = self.selection.attributes
        if attributes is None:
            return rows
        holders = bound or dict.fromkeys(attributes, match.positions)
        if variable is not None:
            holders = {variable: positions}
        shown: Rows = []
        for position, row in zip(positions, rows, strict=True):
            marked_by = [attributes.get(name) for name, marked in holders.items() if position in marked]
            names = None if None in marked_by else {name for each in marked_by for name in each or ()}
            shown.append({name: value for name, value in row.items() if names is None or name in names})
        return shown

    def head(self, n: int = 10) -> list[Match]:
        """The first n matches."""
        if isinstance(n, bool) or not isinstance(n, int) or n < 0:
            raise StreamError(f"head() takes a number of matches, not {n!r}", hint="write head(10)")
        return list(islice(self._paged(0), n))

    # ------------------------------------------------------------ tables
    def tables(self, *, events: bool = False, long: bool = False) -> Iterator[pa.Table]:
        """The matches as Arrow tables, some at a time, in the forms of `to_arrow`."""
        schema = self.table_schema(events=events, long=long)
        if not (events or long or self.selection.flat):
            for chunk in self.chunks():
                lists = lists_of(chunk, self.labels, self.variables)
                yield pa.Table.from_arrays([pa.array(chunk.starts), pa.array(chunk.ends), *lists], schema=schema)
            return
        rows_of = self.shape.long_batches if long else self.shape.batches
        for _, (matches, rows, marks, *_) in self.placed():
            for batch in rows_of(matches, rows, marks):
                yield pa.Table.from_batches([batch if batch.schema.equals(schema) else batch.cast(schema)])

    def table_schema(self, *, events: bool = False, long: bool = False) -> pa.Schema:
        """The columns of `to_arrow` in one of its forms."""
        if events and long:
            raise ArgumentError("a row is a match or an event, not both", hint="write events=True or long=True")
        if long and self.selection.flat and not self.shape.shown:
            raise ArgumentError("SELECT shows no events, only measures", hint="name variables as well: SELECT x, y, …")
        if events or long or self.selection.flat:
            return (self.shape.long_schema if long else self.shape.schema)(self.event_schema)
        return schema_of(self.columns)

    def to_arrow(self, *, events: bool = False, long: bool = False) -> pa.Table:
        """All matches in one Arrow table.

        By default a row has `start`, `end`, `positions`, and a list of positions per variable. With `events` it has the
        columns of `cerite.spark.match`: `match` (an id), `start_time` and `end_time` if there is a time, `start` and
        `end` if there is a column of positions, the partition's columns, and per variable a list of its events as
        structs. With `long` a row is one event of a match: `match`, `variable`, `rank` among the variable's events, and
        the event's columns.

        If SELECT has measures, a row has `match`, the times, the partition's columns and the measures.
        """
        tables = list(self.tables(events=events, long=long))
        return pa.concat_tables(tables) if tables else self.table_schema(events=events, long=long).empty_table()

    def to_pandas(self, *, events: bool = False, long: bool = False) -> pandas.DataFrame:
        """All matches as a pandas frame, in the forms of `to_arrow`."""
        load("pandas")
        return self.to_arrow(events=events, long=long).to_pandas()

    def to_polars(self, *, events: bool = False, long: bool = False) -> polars.DataFrame:
        """All matches as a Polars frame, in the forms of `to_arrow`."""
        frame: polars.DataFrame = load("polars").from_arrow(self.to_arrow(events=events, long=long))
        return frame

    def to_parquet(self, path: str | Path | IO[bytes], *, events: bool = False, long: bool = False) -> int:
        """Write a Parquet file in a form of `to_arrow`, replacing an existing file; returns the number of rows."""
        schema = self.table_schema(events=events, long=long)
        return write_parquet(path, schema, self.tables(events=events, long=long), self.files)

    def to_jsonl(self, target: str | Path | IO[str], *, events: bool = False, long: bool = False) -> int:
        """Write one JSON object per row of `to_arrow`; returns the number of rows.

        By default the positions of variables are under `bindings`.
        """
        return write_text(target, "JSON lines", lambda out: write_jsonl(self._records(events, long), out), self.files)

    def to_json(self, target: str | Path | IO[str], *, events: bool = False, long: bool = False) -> int:
        """Write one JSON array with an object per row, as `to_jsonl` has them; returns the number of rows."""
        return write_text(target, "JSON", lambda out: write_json(self._records(events, long), out), self.files)

    def to_csv(self, target: str | Path | IO[str], *, events: bool = False, long: bool = False) -> int:
        """Write a CSV file: positions separated by spaces, events as JSON; returns the number of rows."""
        names = self.table_schema(events=events, long=long).names
        tables = self.tables(events=events, long=long)
        positions = not (events or long or self.selection.flat)
        return write_text(target, "CSV", lambda out: write_csv(names, tables, out, positions=positions), self.files)

    def _records(self, events: bool, long: bool) -> Iterator[dict[str, Any]]:
        if events or long or self.selection.flat:
            for table in self.tables(events=events, long=long):
                yield from table.to_pylist()
            return
        for match in self:
            row: dict[str, Any] = {"start": match.start, "end": match.end, "positions": match.positions}
            yield row | ({"bindings": match.variables} if self.variables else {})

    # ------------------------------------------------------------ for people
    def plot(self, path: str | Path | None = None, *, limit: int = 50, lanes: int = 12) -> Timeline:
        """The first matches on a timeline: lanes are partitions, arcs join the events of a match.

        The result shows itself as text in a terminal and as a chart in a notebook; with a `path` that ends in .html,
        .svg, .png, .pdf or .json, the chart is also written there (which needs the extra `plot`). At most `limit`
        matches in at most `lanes` lanes are drawn, and some of the events between them; the picture says what it leaves
        out.
        """
        drawn = timeline(self, limit, lanes)
        if path is not None:
            drawn.save(path)
        return drawn

    def between(self, first: int, last: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Columns of the events from `first` to `last`, both included; nothing if they cannot be read again."""
        return iter(())

    def table(self, n: int = 10) -> Table:
        """The first n matches as a Rich table, with their times and the values of their events."""
        return self._view(self._first_rows(n, self.placed())).rich()

    def _first_rows(self, n: int, placed: Iterator[tuple[MatchChunk, Placed]]) -> Rows:
        """The first n matches as rows, with their events and with where they begin and end."""
        rows: Rows = []
        for chunk, (matches, events, marks, *_) in placed:
            few = min(n - len(rows), len(chunk))
            batch = self.shape.batch(matches.slice(0, few), events, marks)
            ends = zip(chunk.starts[:few].tolist(), chunk.ends[:few].tolist(), strict=True)
            rows += [
                {"start": start, "end": end} | row for (start, end), row in zip(ends, batch.to_pylist(), strict=True)
            ]
            if len(rows) >= n:
                break
        return rows

    def _view(self, rows: Rows) -> View:
        timed, shown = self.shape.time is not None, [each.column for each in self.shape.shown]
        if self.selection.variables is not None:  # in SELECT's order
            by_name = {each.variable: each.column for each in self.shape.shown}
            shown = [by_name[name] for name in self.selection.variables if name in by_name] or shown
        ends = ("start_time", "end_time") if timed else ("start", "end")
        columns = (*ends, *self.partition, *shown, *(each.name for each in self.selection.measures))
        every = self.selection.variables is not None
        return view(rows, columns, time=self.shape.time, type=self.type_column, every=every)

    def _heads(self) -> tuple[str, ...]:
        if self.selection.flat:
            measures = (each.name for each in self.selection.measures)
            return ("start", "end", *self.partition, *(each.column for each in self.shape.shown), *measures)
        return ("start", "end", *(self.columns[3:] if self.variables else ("positions",)))

    def _cells(self, match: Match, key: Sequence[Any]) -> list[str]:
        bound = match.variables
        if self.selection.flat:
            shown = (bound.get(each.variable, ()) if each.variable else match.positions for each in self.shape.shown)
            measures = (match.measures[each.name] for each in self.selection.measures)
            return [str(match.start), str(match.end), *map(str, key), *map(_short, shown), *map(str, measures)]
        cells = [bound.get(name, ()) for name in self.variables] if self.variables else [match.positions]
        return [str(match.start), str(match.end), *map(_short, cells)]

    def _preview(self) -> tuple[str, list[Match]]:
        """What is known of the number of matches without much work, in words; and the first of them."""
        first = self.head(FIRST + 1)
        return how_many(len(first), self._count), first[:FIRST]

    def __repr__(self) -> str:
        try:
            summary, first = self._preview()
        except CeriteError as error:
            advice = f"; {error.hint}" if error.hint else ""
            return f"<matches that cannot be read: {error.message}{advice}>"
        if not first:
            return summary
        keys: list[list[Any]] = [[] for _ in first]
        if self.selection.flat and self.partition:
            keys = [[row[name] for name in self.partition] for row in self._preview_rows()[1]]
        lines = [self._heads(), *map(self._cells, first, keys)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        rows = ("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)
        return "\n".join((summary, *rows))

    def __rich__(self) -> Table:
        return self.table()

    def _repr_html_(self) -> str:
        summary, rows = self._preview_rows()
        return self._view(rows).html(summary)

    def _preview_rows(self) -> tuple[str, Rows]:
        """As `_preview`, with the values of events."""
        rows = self._first_rows(FIRST + 1, self.placed())
        return how_many(len(rows), self._count), rows[:FIRST]


def how_many(seen: int, total: int | None) -> str:
    """The number of matches in words, as far as it is known; `seen` were read, at most one more than are shown."""
    if total is None and seen <= FIRST:
        total = seen
    if total is None:
        return f"more than {FIRST} matches (count() counts them), the first {FIRST}:"
    return f"{total:,} match{'' if total == 1 else 'es'}" + (f", the first {FIRST}:" if total > FIRST else "")


@lru_cache
def schema_of(columns: tuple[str, ...]) -> pa.Schema:
    """The types of a table of matches: start, end, and lists of positions."""
    lists = [(name, pa.list_(pa.int64())) for name in columns[2:]]
    return pa.schema([("start", pa.int64()), ("end", pa.int64()), *lists])


def _short(positions: tuple[int, ...]) -> str:
    if len(positions) <= 6:
        return " ".join(map(str, positions))
    return f"{' '.join(map(str, positions[:4]))} … {positions[-1]} ({len(positions)})"
