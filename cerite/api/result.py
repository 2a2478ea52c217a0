"""What a run finds: lazy matches that can be counted, looked at, iterated, or written as Arrow and files.

Nothing is enumerated before it is asked for. `count()` never enumerates where the automaton allows it, so a result of
10^15 matches is counted in the time it takes to read the stream.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, overload

import pyarrow as pa

from cerite.api.writing import write_csv, write_json, write_jsonl, write_parquet, write_text
from cerite.core.errors import CeriteError, StreamError, listed, suggestion
from cerite.core.extras import load
from cerite.core.match import Match
from cerite.engine.output import Labels, MatchChunk, lists_of
from cerite.pattern.query import QuerySpec

if TYPE_CHECKING:
    import pandas
    import polars
    from rich.table import Table

MOST_LISTED = 1 << 36  # matches that `len()` still says
FIRST = 10  # matches that are shown of a result
Shown = dict[str, "tuple[str, ...] | None"]  # which attributes of a variable's events are shown; None is all


def shown_attributes(query: QuerySpec) -> Shown | None:
    """What `SELECT x[price, volume]` asks for; None if it names no attributes."""
    if query.items is None or all(item.attributes is None for item in query.items):
        return None
    return {item.variable: item.attributes for item in query.items}


RESERVED = ("start", "end", "positions", "match", "start_time", "end_time", "events")  # columns that results have


def variable_columns(variables: Iterable[str], partition: Iterable[str] = ()) -> tuple[str, ...]:
    """The column that holds each variable, in every form of a result, local and Spark's.

    It has the variable's name, with `_` behind it where results have a column of that name, whatever its case, or where
    the query is partitioned by one.

    >>> variable_columns(("End", "start", "start_", "x"))
    ('End_', 'start__', 'start_', 'x')
    """
    names = tuple(variables)
    taken = {name.casefold() for name in (*RESERVED, *partition)}
    others = taken.union(name.casefold() for name in names)
    columns: list[str] = []
    for name in names:
        column = name
        while column.casefold() in (taken if column == name else others):
            column += "_"
        others.add(column.casefold())
        columns.append(column)
    return tuple(columns)


class UnknownVariableError(StreamError, KeyError):
    """A match was asked for a variable that its query does not have."""


class IndexTypeError(StreamError, TypeError):
    """Matches were asked for something that is no index."""


class Matches(ABC):
    """The matches of a query in some events, in the order of their ends.

    They are counted by `count()` and `len()`, true if there is one, and read by iterating, by index and by slice.
    """

    variables: tuple[str, ...]
    labels: Labels
    partition: tuple[str, ...] = ()
    shown: Shown | None = None
    _count: int | None = None  # how many there are, once that is known
    files: tuple[Path, ...] = ()  # what the events are read from: never written

    @abstractmethod
    def chunks(self) -> Iterator[MatchChunk]:
        """The matches in flat arrays, some at a time."""

    @abstractmethod
    def count(self) -> int:
        """How many matches there are, exactly."""

    @abstractmethod
    def suppressed(self) -> int:
        """How many more there are, which SUPPRESS left out."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the matches as a table."""
        return ("start", "end", "positions", *variable_columns(self.variables, self.partition))

    def fetch(self, positions: tuple[int, ...]) -> list[dict[str, Any]]:
        """The events at these positions."""
        raise StreamError("the events of these matches are not kept", hint="run the query on a table or a file")

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
                f"matches are numbered, so {which!r} is none of them",
                hint="write found[0] or found[:5]; for the events of a variable found[0]['x']",
            )
        index = operator.index(which)
        found_at = index if index >= 0 else index + self.count()
        match = next(self._from(found_at), None) if found_at >= 0 else None
        if match is None:
            raise IndexError(f"there is no match {index}: there are {self.count():,}")
        return match

    def _sliced(self, which: slice) -> list[Match]:
        step = 1 if which.step is None else operator.index(which.step)
        if step > 0 and all(end is None or end >= 0 for end in (which.start, which.stop)):
            first = which.start or 0
            count = None if which.stop is None else max(0, which.stop - first)
            return list(islice(self._from(first), 0, count, step))
        wanted = range(self.count())[which]
        if not wanted:
            return []
        first, last = sorted((wanted[0], wanted[-1]))
        return list(islice(self._from(first), last - first + 1))[::step]

    def _from(self, first: int) -> Iterator[Match]:
        """The matches from this index on; those before it are not made into objects."""
        for chunk in self.chunks():
            if first < len(chunk):
                yield from self.objects(chunk.slice(first, len(chunk)) if first else chunk)
            first = max(0, first - len(chunk))

    def objects(self, chunk: MatchChunk) -> Iterator[Match]:
        """The matches of a chunk one by one."""
        starts, ends, offsets = chunk.starts.tolist(), chunk.ends.tolist(), chunk.offsets.tolist()
        positions, marks = chunk.positions.tolist(), chunk.labels.tolist()
        for index, (start, end) in enumerate(zip(starts, ends, strict=True)):
            begin, stop = offsets[index], offsets[index + 1]
            bindings: dict[str, list[int]] = {}
            for place in range(begin, stop) if self.variables else ():
                for name in self.labels[marks[place]]:
                    bindings.setdefault(name, []).append(positions[place])
            bound = tuple((name, tuple(bindings[name])) for name in sorted(bindings))
            yield Match(start, end, tuple(positions[begin:stop]), bound, fetch=self.events_of)

    def events_of(self, match: Match, variable: str | None = None) -> list[dict[str, Any]]:
        """The events of a match, or of one of its variables, with the attributes that SELECT shows."""
        if variable is not None and variable not in self.variables:
            known = f"the variables are {listed(self.variables)}" if self.variables else "it has none"
            hint = suggestion(str(variable), self.variables) or known
            raise UnknownVariableError(f"the match has no variable `{variable}`", hint=hint)
        bound = match.variables
        positions = match.positions if variable is None else bound.get(variable, ())
        rows = self.fetch(positions)
        if self.shown is None:
            return rows
        holders = bound or dict.fromkeys(self.shown, match.positions)
        if variable is not None:
            holders = {variable: positions}
        shown: list[dict[str, Any]] = []
        for position, row in zip(positions, rows, strict=True):
            attributes = [self.shown.get(name) for name, marked in holders.items() if position in marked]
            names = None if None in attributes else {name for each in attributes for name in each or ()}
            shown.append({name: value for name, value in row.items() if names is None or name in names})
        return shown

    def head(self, n: int = 10) -> list[Match]:
        """The first n matches."""
        if isinstance(n, bool) or not isinstance(n, int) or n < 0:
            raise StreamError(f"head() takes a number of matches, not {n!r}", hint="write head(10)")
        return list(islice(self, n))

    # ------------------------------------------------------------ tables
    def tables(self) -> Iterator[pa.Table]:
        """The matches as Arrow tables, some at a time."""
        schema = schema_of(self.columns)
        for chunk in self.chunks():
            lists = lists_of(chunk, self.labels, self.variables)
            yield pa.Table.from_arrays([pa.array(chunk.starts), pa.array(chunk.ends), *lists], schema=schema)

    def to_arrow(self) -> pa.Table:
        """All matches in one Arrow table: start, end, positions, and one list of positions per variable."""
        tables = list(self.tables())
        return pa.concat_tables(tables) if tables else schema_of(self.columns).empty_table()

    def to_pandas(self) -> pandas.DataFrame:
        """All matches as a pandas frame."""
        load("pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """All matches as a Polars frame."""
        frame: polars.DataFrame = load("polars").from_arrow(self.to_arrow())
        return frame

    def to_parquet(self, path: str | Path | IO[bytes]) -> int:
        """Write a Parquet file, replacing one that is there; returns the number of matches."""
        return write_parquet(path, schema_of(self.columns), self.tables(), self.files)

    def to_jsonl(self, target: str | Path | IO[str], *, events: bool = False) -> int:
        """Write one JSON object per match; `events` adds the matched rows. Returns the number of matches."""
        return write_text(target, lambda out: write_jsonl(self, out, events=events), self.files)

    def to_json(self, target: str | Path | IO[str], *, events: bool = False) -> int:
        """Write one JSON array with an object per match, as `to_jsonl` has them; returns the number of matches."""
        return write_text(target, lambda out: write_json(self, out, events=events), self.files)

    def to_csv(self, target: str | Path | IO[str]) -> int:
        """Write a CSV file with positions separated by spaces; returns the number of matches."""
        return write_text(target, lambda out: write_csv(self, out), self.files)

    # ------------------------------------------------------------ for people
    def table(self, n: int = 10) -> Table:
        """The first n matches as a Rich table."""
        from rich.table import Table

        rich_table = Table(*self._heads())
        for match in self.head(n):
            rich_table.add_row(*self._cells(match))
        return rich_table

    def _heads(self) -> tuple[str, ...]:
        return ("start", "end", *(self.columns[3:] if self.variables else ("positions",)))

    def _cells(self, match: Match) -> list[str]:
        bound = match.variables
        cells = [bound.get(name, ()) for name in self.variables] if self.variables else [match.positions]
        return [str(match.start), str(match.end), *map(_short, cells)]

    def _preview(self) -> tuple[str, list[Match]]:
        """What is known of the number of matches without much work, in words, and the first of them."""
        first = self.head(FIRST + 1)
        return how_many(len(first), self._count), first[:FIRST]

    def __repr__(self) -> str:
        try:
            said, first = self._preview()
        except CeriteError as error:
            return f"<matches that cannot be read: {error.message}>"
        if not first:
            return said
        lines = [self._heads(), *map(self._cells, first)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        rows = ("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)
        return "\n".join((said, *rows))

    def __rich__(self) -> Table:
        return self.table()

    def _repr_html_(self) -> str:
        from html import escape

        said, first = self._preview()
        rows = ("".join(f"<td>{escape(cell)}</td>" for cell in self._cells(match)) for match in first)
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        head = "".join(f"<th>{escape(name)}</th>" for name in self._heads())
        table = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
        return f"<table><caption>{escape(said)}</caption>{table}</table>"


def how_many(seen: int, total: int | None) -> str:
    """The number of matches in words, as far as it is known: `seen` of them, at most one more than are shown."""
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
