"""What an explanation looks at: data at rest as the judge reads it, and what the engine reports in it.

Inside, events are known by their *rank*, the place in stream order; outside by the position that results report, which
is the number of the row unless a column of positions is named. Invariant: both sides read the same rows, once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from cerite.api.inputs import Prepared
from cerite.core.errors import BudgetError, StreamError
from cerite.data.open import opened
from cerite.data.reading import Reading
from cerite.engine.bind import bind
from cerite.engine.plan import plan
from cerite.engine.results.output import MatchChunk
from cerite.engine.run import find
from cerite.pattern.nodes import Complement, Event, Pattern, Select, walk
from cerite.pattern.nodes import Sequence as Parts
from cerite.pattern.query import QuerySpec
from cerite.pattern.references import resolve
from cerite.pattern.rewrite.skips import expand_skips
from cerite.pattern.variables import nullable
from cerite.reference.semantics.short_stream import Stream, StreamEvent, instant

MOST_MATCHES = 5_000_000  # the most matches that are searched for one
_IN_MILLISECONDS = {"s": Fraction(1_000), "ms": Fraction(1), "us": Fraction(1, 1_000), "ns": Fraction(1, 1_000_000)}
Ranks = tuple[int, ...]


class Scene:
    """The events around a match that is, or should have been."""

    def __init__(self, query: QuerySpec, prepared: Prepared) -> None:
        table = prepared.source.narrowed(prepared.source.available).table()
        self.query = query
        self.columns = prepared.program.columns
        self.semantics = prepared.program.plan.semantics
        self.pattern = expand_skips(resolve(query.where))
        self._source = opened(table, Reading())
        self._flat = self._source.narrowed(self._source.everything.names).table()
        self._order = prepared.order

    @property
    def rows(self) -> int:
        """How many events there are."""
        return int(self._flat.num_rows)

    # ------------------------------------------------------------ positions
    @cached_property
    def positions(self) -> Sequence[int]:
        """The position that is reported for every rank."""
        if self.columns.position is not None:
            return [int(each) for each in self._flat[self.columns.position].to_pylist()]
        return range(self.rows) if self._order is None else [int(each) for each in self._order]

    @cached_property
    def _ranks(self) -> dict[int, int]:
        return {position: rank for rank, position in enumerate(self.positions)}

    def rank(self, position: int) -> int:
        """The rank of the event with this reported position."""
        if position not in self._ranks:
            known = f"from 0 to {self.rows - 1}" if isinstance(self.positions, range) else "those of the data"
            raise StreamError(
                f"there is no row {position}", hint=f"the data has {self.rows:,} rows; positions are {known}"
            )
        return self._ranks[position]

    # ------------------------------------------------------------ events
    def event(self, rank: int) -> dict[str, Any]:
        """The row of an event, as the data has it."""
        row: dict[str, Any] = self._source.take([rank], columns=self._source.available).to_pylist()[0]
        return row

    def all_rows(self) -> list[dict[str, Any]]:
        """Every row, in stream order."""
        rows: list[dict[str, Any]] = self._source.table().to_pylist()
        return rows

    def key(self, rank: int) -> tuple[Any, ...] | None:
        """The partition that an event belongs to; None if it belongs to none."""
        values = tuple(self._flat[name][rank].as_py() for name in self.query.partition)
        return None if any(value is None or value != value for value in values) else values

    @cached_property
    def _kinds(self) -> list[Any] | None:
        return None if self.columns.type is None else self._flat[self.columns.type].to_pylist()

    def kind(self, rank: int) -> str:
        """The type of an event."""
        return self._only if self._kinds is None else str(self._kinds[rank])

    @cached_property
    def _only(self) -> str:
        """The type of all events if no column holds it."""
        return next((node.type for node in walk(self.query.where) if isinstance(node, Event) and node.type), "")

    def stream(self, begin: int, end: int, like: int | None) -> Stream:
        """The events with ranks from `begin` up to `end`, of the partition that `like` belongs to."""
        part = self._flat.slice(begin, max(0, end - begin))
        ranks = np.arange(begin, begin + part.num_rows)
        if like is not None and self.query.partition:
            same = np.ones(part.num_rows, bool)
            for name in self.query.partition:
                column = part[name].combine_chunks()
                column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
                value = self._flat[name][like].as_py()
                same &= np.array([each == value for each in column.to_pylist()], bool)
            part, ranks = part.filter(pa.array(same)), ranks[same]
        return Stream(tuple(self._events(ranks.tolist(), part.to_pylist())))

    def _events(self, ranks: Iterable[int], rows: Iterable[dict[str, Any]]) -> Iterator[StreamEvent]:
        kind, time = self.columns.type, self.columns.time
        for rank, row in zip(ranks, rows, strict=True):
            name = self._only if kind is None else str(row[kind])
            yield StreamEvent(name, row, self.positions[rank], None if time is None else self._time(row[time]))

    def _time(self, value: Any) -> Any:
        if isinstance(value, date):
            return instant(value) / 1_000_000
        return value if self.columns.unit == "ms" else Fraction(value) * _IN_MILLISECONDS[self.columns.unit]

    def begins(self, first: int, restart: int) -> int:
        """The first rank whose event helps to decide about a match whose first event is `first`."""
        return restart if looks_back(self.pattern) else first

    def ends(self, last: int) -> int:
        """The end of the ranks whose events help to decide about a match whose last event is `last`."""
        awaited = any(isinstance(node, Parts) and node.after for node in walk(self.pattern))
        return self.rows if awaited else last + 1

    # ------------------------------------------------------------ what the engine reports
    def reported(self, query: QuerySpec, last: int) -> Iterator[tuple[int, int, Ranks]]:
        """Start, end and positions, as ranks, of every match that a query reports, up to those that end at `last`."""
        columns = replace(self.columns, position=None)
        program = bind(plan(query, self.semantics), self._source.everything, columns)
        source = self._source.narrowed(program.read) if program.read else self._source
        seen = 0
        for chunk in find(program, _up_to(source.batches(), self.ends(last))):
            seen += len(chunk)
            if seen > MOST_MATCHES:
                raise BudgetError(
                    f"there are more than {MOST_MATCHES:,} matches to compare with",
                    hint="explain with less data around the events, or give the query a window",
                )
            yield from _matches(chunk)


def looks_back(pattern: Pattern) -> bool:
    """Whether what comes before the first event of a match can decide about it."""
    return any(
        isinstance(node, (Select, Complement))
        or (isinstance(node, Event) and not node.output)
        or (isinstance(node, Parts) and (bool(node.before) or (any(node.absent) and nullable(node.parts[0]))))
        for node in walk(pattern)
    )


def _up_to(batches: Iterable[pa.RecordBatch], end: int) -> Iterator[pa.RecordBatch]:
    begin = 0
    for batch in batches:
        if begin < end:
            yield batch.slice(0, end - begin)
        begin += batch.num_rows


def _matches(chunk: MatchChunk) -> Iterator[tuple[int, int, Ranks]]:
    offsets, positions = chunk.offsets.tolist(), chunk.positions.tolist()
    for index, (start, end) in enumerate(zip(chunk.starts.tolist(), chunk.ends.tolist(), strict=True)):
        yield start, end, tuple(positions[offsets[index] : offsets[index + 1]])
