"""What a run finds: lazy matches that can be counted, looked at, iterated, or written as Arrow and files.

Nothing is enumerated before it is asked for. `count()` never enumerates where the automaton allows it, so a result of
10^15 matches is counted in the time it takes to read the stream.
"""

from __future__ import annotations

import csv
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pyarrow as pa

from cerite.engine.by_variable import Labels, lists_of
from cerite.engine.matches import Matches as Chunk
from cerite.errors import StreamError
from cerite.match import Match
from cerite.pattern.query import Query

if TYPE_CHECKING:
    import pandas
    import polars
    from rich.table import Table

Shown = dict[str, "tuple[str, ...] | None"]  # which attributes of a variable's events are shown; None is all


def shown_attributes(query: Query) -> Shown | None:
    """What `SELECT x[price, volume]` asks for; None if it names no attributes."""
    if query.items is None or all(item.attributes is None for item in query.items):
        return None
    return {item.variable: item.attributes for item in query.items}


class Matches(ABC):
    """The matches of a query in some events, in the order of their ends."""

    variables: tuple[str, ...]
    labels: Labels
    shown: Shown | None = None

    @abstractmethod
    def chunks(self) -> Iterator[Chunk]:
        """The matches in flat arrays, some at a time."""

    @abstractmethod
    def count(self) -> int:
        """How many matches there are, exactly."""

    def fetch(self, positions: tuple[int, ...]) -> list[dict[str, Any]]:
        """The events at these positions."""
        raise StreamError("the events of these matches are not kept", hint="run the query on a table or a file")

    def exists(self) -> bool:
        """Whether there is any match; stops at the first."""
        return next(iter(self.chunks()), None) is not None

    def __iter__(self) -> Iterator[Match]:
        for chunk in self.chunks():
            yield from _match_objects(chunk, self.labels if self.variables else None, self.events_of)

    def events_of(self, match: Match) -> list[dict[str, Any]]:
        """The events of a match, with the attributes that SELECT shows."""
        rows = self.fetch(match.positions)
        if self.shown is None:
            return rows
        holders = match.variables or dict.fromkeys(self.shown, match.positions)
        shown: list[dict[str, Any]] = []
        for position, row in zip(match.positions, rows, strict=True):
            asked = [self.shown[name] for name, positions in holders.items() if position in positions]
            names = None if None in asked else {name for each in asked for name in each or ()}
            shown.append({name: value for name, value in row.items() if names is None or name in names})
        return shown

    def head(self, n: int = 10) -> list[Match]:
        """The first n matches."""
        return list(islice(self, n))

    # ------------------------------------------------------------ tables
    def tables(self) -> Iterator[pa.Table]:
        """The matches as Arrow tables, some at a time."""
        for chunk in self.chunks():
            yield table_of(chunk, self.labels, self.variables)

    def to_arrow(self) -> pa.Table:
        """All matches in one Arrow table: start, end, positions, and one list of positions per variable."""
        found = list(self.tables())
        return pa.concat_tables(found) if found else schema_of(self.variables).empty_table()

    def to_pandas(self) -> pandas.DataFrame:
        """All matches as a pandas frame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """All matches as a Polars frame."""
        import polars

        return polars.from_arrow(self.to_arrow())  # type: ignore[return-value]

    def to_parquet(self, path: str | Path) -> int:
        """Write a Parquet file; returns the number of matches."""
        import pyarrow.parquet as pq

        written = 0
        with pq.ParquetWriter(path, schema_of(self.variables)) as writer:
            for table in self.tables():
                writer.write_table(table)
                written += table.num_rows
        return written

    def to_jsonl(self, target: str | Path | IO[str], *, events: bool = False) -> int:
        """Write one JSON object per match; `events` adds the matched rows. Returns the number of matches."""
        return _written(target, lambda out: _write_jsonl(self, out, events=events))

    def to_csv(self, target: str | Path | IO[str]) -> int:
        """Write a CSV file with positions separated by spaces; returns the number of matches."""
        return _written(target, lambda out: _write_csv(self, out))

    # ------------------------------------------------------------ for people
    def table(self, n: int = 10) -> Table:
        """The first n matches as a Rich table."""
        from rich.table import Table

        made = Table(*self._heads())
        for match in self.head(n):
            made.add_row(*self._cells(match))
        return made

    def _heads(self) -> tuple[str, ...]:
        return ("start", "end", *(self.variables or ("positions",)))

    def _cells(self, match: Match) -> list[str]:
        bound = match.variables
        cells = [bound.get(name, ()) for name in self.variables] if self.variables else [match.positions]
        return [str(match.start), str(match.end), *map(_short, cells)]

    def __rich__(self) -> Table:
        return self.table()

    def _repr_html_(self) -> str:
        from html import escape

        rows = ("".join(f"<td>{escape(cell)}</td>" for cell in self._cells(match)) for match in self.head(10))
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        head = "".join(f"<th>{escape(name)}</th>" for name in self._heads())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


@lru_cache
def schema_of(variables: tuple[str, ...]) -> pa.Schema:
    """The columns of a table of matches."""
    lists = [(name, pa.list_(pa.int64())) for name in ("positions", *variables)]
    return pa.schema([("start", pa.int64()), ("end", pa.int64()), *lists])


def table_of(chunk: Chunk, labels: Labels, variables: tuple[str, ...]) -> pa.Table:
    """A chunk as an Arrow table; a variable's column holds the positions whose label names it."""
    columns = [pa.array(chunk.starts), pa.array(chunk.ends), *lists_of(chunk, labels, variables)]
    return pa.Table.from_arrays(columns, schema=schema_of(variables))


def _match_objects(
    chunk: Chunk, labels: Labels | None, fetch: Callable[[Match], list[dict[str, Any]]]
) -> Iterator[Match]:
    starts, ends, offsets = chunk.starts.tolist(), chunk.ends.tolist(), chunk.offsets.tolist()
    positions, marks = chunk.positions.tolist(), chunk.labels.tolist()
    for index, (start, end) in enumerate(zip(starts, ends, strict=True)):
        begin, stop = offsets[index], offsets[index + 1]
        bindings: dict[str, list[int]] = {}
        for place in range(begin, stop) if labels is not None else ():
            for name in labels[marks[place]] if labels is not None else ():
                bindings.setdefault(name, []).append(positions[place])
        bound = tuple((name, tuple(bindings[name])) for name in sorted(bindings))
        yield Match(start, end, tuple(positions[begin:stop]), bound, fetch=fetch)


def _short(positions: tuple[int, ...]) -> str:
    if len(positions) <= 6:
        return " ".join(map(str, positions))
    return f"{' '.join(map(str, positions[:4]))} … {positions[-1]} ({len(positions)})"


def as_json(match: Match, *, bindings: bool, events: bool) -> str:
    """One line of JSON."""
    shown: dict[str, Any] = {"start": match.start, "end": match.end, "positions": match.positions}
    if bindings:
        shown["bindings"] = match.variables
    if events:
        shown["events"] = match.events
    return json.dumps(shown, ensure_ascii=False, default=str, separators=(",", ":"))


def _write_jsonl(matches: Matches, out: IO[str], *, events: bool) -> int:
    written = 0
    for match in matches:
        out.write(as_json(match, bindings=bool(matches.variables), events=events) + "\n")
        written += 1
    return written


def _write_csv(matches: Matches, out: IO[str]) -> int:
    writer = csv.writer(out)
    writer.writerow(["start", "end", "positions", *matches.variables])
    written = 0
    for match in matches:
        bound = match.variables
        cells = (match.positions, *(bound.get(name, ()) for name in matches.variables))
        writer.writerow([match.start, match.end, *(" ".join(map(str, cell)) for cell in cells)])
        written += 1
    return written


def _written(target: str | Path | IO[str], write: Callable[[IO[str]], int]) -> int:
    if isinstance(target, (str, Path)):
        with open(target, "w", encoding="utf-8", newline="") as out:
            return write(out)
    return write(target)
