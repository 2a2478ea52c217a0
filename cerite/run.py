"""Running queries in process: `query.run(data)` for data at rest, `query.stream(schema)` for data that keeps coming."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from cerite.automaton import Automaton
from cerite.data import Source
from cerite.engine.engines import Engine, counter_of, recogniser_of
from cerite.engine.intake import Columns, Intake
from cerite.engine.matches import Matches as Chunk
from cerite.engine.plan import Plan, Semantics, plan
from cerite.errors import StreamError
from cerite.language.builder import Builder
from cerite.language.queries import make_query
from cerite.pattern.base import Pattern
from cerite.pattern.query import Query
from cerite.prepare import READ_ONCE, fitted, prepare
from cerite.results import Matches, Shown, schema_of, shown_attributes
from cerite.schema import Schema
from cerite.streaming import EventStream

MANY = 5_000_000  # matches after which it is worth counting whether all will fit
MOST_IN_MEMORY = 500_000_000
Progress = Callable[[int, int, int], None]  # rows read, matches found so far, active states


class RunnableQuery:
    """A checked query that can be run.

    >>> import cerite
    >>> q = cerite.query("SELECT * FROM S WHERE A AS x ; B AS y FILTER y[v > 1]")
    >>> found = q.run([{"type": "A", "v": 0}, {"type": "B", "v": 1}, {"type": "B", "v": 2}])
    >>> found.count()
    1
    >>> [str(match) for match in found]
    ['[0,2] A=0, B=2, x=0, y=2']
    """

    def __init__(self, query: Query) -> None:
        self.query = query

    def __str__(self) -> str:
        return str(self.query)

    def __repr__(self) -> str:
        return f"RunnableQuery({str(self.query)!r})"

    def plan(self, semantics: Semantics = "valuations") -> Plan:
        """How the engine will run it."""
        return plan(self.query, semantics)

    @property
    def automaton(self) -> Automaton:
        """The automaton the engine runs."""
        return self.plan().automaton

    def run(
        self,
        data: Any,
        *,
        time: str | None = None,
        type: str | None = None,
        order_by: Sequence[str] = (),
        position: str | None = None,
        semantics: Semantics = "valuations",
        progress: Progress | None = None,
    ) -> Found:
        """The matches in `data`: an Arrow table or reader, a pandas or Polars frame, a path or glob, or dicts.

        `time` names the column of the event time (a timestamp, or numbers taken as milliseconds), `type` that of the
        event type (by default `type`, if there is such a column; a query about one type does without). The data must
        be in time order, unless `order_by` names columns to break ties by: then it is sorted by time and by these.
        `position` names a column of rising positions that is reported instead of the row number. A mapping from
        stream names to data gives the streams that FROM names, merged by time.
        """
        made = self.plan(semantics)
        source, columns = prepare(self.query, made, data, Columns(type, time, position), order_by)
        return Found(made, source, columns, progress, shown_attributes(self.query))

    def stream(
        self,
        schema: pa.Schema,
        *,
        time: str | None = None,
        type: str | None = None,
        position: str | None = None,
        semantics: Semantics = "valuations",
    ) -> EventStream:
        """An object that takes batches of this schema as they come, and can be snapshotted between them."""
        made = self.plan(semantics)
        return EventStream(made, schema, fitted(self.query, made, Columns(type, time, position), schema))


def query(source: str | Query | Builder | Pattern, *, schema: Schema | None = None, **clauses: Any) -> RunnableQuery:
    """A query from CEQL text, a built pattern or a pattern, checked and ready to run.

    The clauses of a pattern are keywords: select, strategy, partition_by, within, consume, limit.

    >>> from cerite import attr, event
    >>> rising = query(event("A").as_("x") >> event("A", attr.v > 3).as_("y"), select=["y"])
    >>> rising.run([{"type": "A", "v": 1}, {"type": "A", "v": 5}]).head()
    [Match(start=0, end=1, positions=(1,), bindings=(('y', (1,)),))]
    """
    return RunnableQuery(make_query(source, schema=schema, **clauses))


class Found(Matches):
    """The matches of one run over a source; every question reads the source anew."""

    def __init__(
        self, made: Plan, source: Source, columns: Columns, progress: Progress | None, shown: Shown | None
    ) -> None:
        self._plan = made
        self._source = source
        self._columns = columns
        self._progress = progress
        self.shown = shown
        self.variables = made.variables if made.semantics == "valuations" else ()
        self.labels = made.automaton.labels
        self._count: int | None = None

    @property
    def rows(self) -> int | None:
        """How many events the source has, where that is known before reading them."""
        return self._source.rows

    def chunks(self) -> Iterator[Chunk]:
        """The matches in flat arrays, some at a time."""
        intake = self._intake()
        engine = recogniser_of(intake)
        found = 0
        for batch in self._source.batches():
            rows = intake.take(batch)
            for chunk in engine.read(rows):
                found += len(chunk)
                yield chunk
            self._tell(intake.rows, found, engine)

    def count(self) -> int:
        """How many matches there are, exactly; without enumerating them unless a strategy or limit asks for it."""
        if self._count is None:
            self._count = self._counted()
        return self._count

    def _counted(self) -> int:
        if not self._plan.counts_without_enumerating:
            return sum(len(chunk) for chunk in self.chunks())
        intake = self._intake()
        engine = counter_of(intake)
        matches = 0
        for batch in self._source.batches():
            rows = intake.take(batch)
            matches += engine.read(rows).matches
            self._tell(intake.rows, matches, engine)
        return matches

    def fetch(self, positions: tuple[int, ...]) -> list[dict[str, Any]]:
        """The events at these positions."""
        wanted = np.array(positions, np.int64)
        if self._columns.position is not None:
            wanted = np.searchsorted(self._all_positions(), wanted)
        rows: list[dict[str, Any]] = self._source.take(wanted.tolist(), columns=self._source.available).to_pylist()
        return rows

    def _all_positions(self) -> Any:
        if not hasattr(self, "_known_positions"):
            columns = [batch.column(self._columns.position) for batch in self._source.batches()]
            self._known_positions = np.concatenate([column.to_numpy(zero_copy_only=False) for column in columns])
        return self._known_positions

    def to_arrow(self) -> pa.Table:
        """All matches in one Arrow table; refused when there are too many for any memory."""
        tables: list[pa.Table] = []
        found = 0
        for table in self.tables():
            tables.append(table)
            if found < MANY <= found + table.num_rows:
                self._refuse_too_many()
            found += table.num_rows
        return pa.concat_tables(tables) if tables else schema_of(self.variables).empty_table()

    def _refuse_too_many(self) -> None:
        countable = self._plan.counts_without_enumerating and not isinstance(self._source, READ_ONCE)
        if countable and self.count() > MOST_IN_MEMORY:
            raise StreamError(
                f"there are {self.count():,} matches, too many for a table in memory",
                hint="count() them, take head(n), add LIMIT or a selection strategy, or write them with to_parquet()",
            )

    def _intake(self) -> Intake:
        return Intake(self._plan, self._source.schema, self._columns)

    def _tell(self, rows: int, matches: int, engine: Engine) -> None:
        if self._progress is not None:
            self._progress(rows, matches, engine.active)
