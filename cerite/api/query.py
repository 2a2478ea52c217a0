"""Running queries in process: `query.run(data)` for data at rest, `query.stream(schema)` for data that keeps coming."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import cached_property
from itertools import chain, islice
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cerite.api.explain.text import Explanation
from cerite.api.inputs import READ_ONCE, bind_query, prepare
from cerite.api.result import FIRST, Matches, Shown, how_many, schema_of, shown_attributes
from cerite.api.stream import EventStream, Late, checked_late, stream_ordering, stream_schema
from cerite.automaton import Automaton
from cerite.core.errors import CeriteWarning, StreamError, in_plain_words, listed, suggestion
from cerite.core.match import Match
from cerite.core.schema import Schema
from cerite.data import Source
from cerite.data.columns import canonical_schema
from cerite.data.reading import Reading
from cerite.engine.bind import Program
from cerite.engine.events.rows import Columns, TimeUnit, checked_unit
from cerite.engine.output import MatchChunk
from cerite.engine.plan import Plan, Semantics, plan
from cerite.engine.run import Run
from cerite.language.builder import Builder, Width
from cerite.language.queries import SchemaLike, declared, make_query
from cerite.pattern.check import declared_kinds
from cerite.pattern.nodes import Pattern
from cerite.pattern.query import QuerySpec, Suppress

MANY = 5_000_000  # matches after which it is worth counting whether all will fit
MOST_IN_MEMORY = 500_000_000
PREVIEWED = 1 << 20  # events that are read to show the first matches
Progress = Callable[[int, int, int], None]  # rows read, matches found so far, active states


class Query:
    """A checked query that can be run.

    >>> import cerite
    >>> q = cerite.query("SELECT * FROM S WHERE A AS x ; B AS y FILTER y[v > 1]")
    >>> found = q.run([{"type": "A", "v": 0}, {"type": "B", "v": 1}, {"type": "B", "v": 2}])
    >>> found.count()
    1
    >>> [str(match) for match in found]
    ['[0,2] A=0, B=2, x=0, y=2']
    """

    def __init__(self, query: QuerySpec, schema: Schema | None = None) -> None:
        self.query = query
        self.schema = schema
        self._plans: dict[Semantics, Plan] = {}

    def __str__(self) -> str:
        return str(self.query)

    def __repr__(self) -> str:
        return f"Query({str(self.query)!r})"

    def plan(self, semantics: Semantics = "valuations") -> Plan:
        """How the engine will run it."""
        if semantics not in self._plans:
            self._plans[semantics] = plan(self.query, semantics)
        return self._plans[semantics]

    @property
    def automaton(self) -> Automaton:
        """The automaton the engine runs."""
        return self.plan().automaton

    def explain(self, schema: SchemaLike | None = None) -> Explanation:
        """What the query means and how it will run: text, a tree in a terminal, or HTML in a notebook.

        >>> import cerite
        >>> text = str(cerite.query("SELECT * FROM S WHERE A AS x ; B AS y WITHIN 5 EVENTS").explain())
        >>> [line.strip(" │├└─") for line in text.splitlines() if "chosen" in line]
        ['chosen: subsets; every condition looks at one event: deterministic states are sets of automaton states']
        """
        return Explanation(self.query, self.schema if schema is None else declared(schema))

    def run(
        self,
        data: Any,
        *,
        time: str | None = None,
        type: str | None = None,
        order_by: str | Sequence[str] = (),
        position: str | None = None,
        semantics: Semantics = "valuations",
        progress: Progress | None = None,
        time_unit: TimeUnit = "ms",
        schema: SchemaLike | None = None,
        null_values: str | Sequence[str] = (),
        delimiter: str | None = None,
        format: str | None = None,
    ) -> BatchMatches:
        """The matches in `data`: an Arrow table or reader, a pandas or Polars frame, a path or glob, or dicts.

        `time` names the column of the event time (a timestamp, or numbers: of milliseconds, or what `time_unit` says),
        `type` that of the event type (by default `type`, if there is such a column; a query about one type does
        without). The data must be in time order, unless `order_by` names columns to break ties by: then it is sorted by
        time and by these. `position` names a column of rising positions that is reported instead of the row number. A
        mapping from stream names to data gives the streams that FROM names, merged by time.

        `schema` declares the kinds of columns beside those that the query declares, as `{"zip": "string"}`,
        `{"BUY": {"price": "float"}}` or `CREATE STREAM` text: text files are read as declared, other data is checked
        against it. `null_values` are spellings of missing values in text files besides the usual ones, `delimiter`
        separates the values of CSV, and `format` is that of files whose ending does not say it.
        """
        columns = Columns(type, time, position, checked_unit(time_unit))
        kinds = declared_kinds(self.query, self.schema, None if schema is None else declared(schema))
        reading = Reading.of(kinds, null_values, delimiter, format)
        prepared = prepare(self.query, self.plan(semantics), data, columns, order_by, reading)
        shown = shown_attributes(self.query)
        matches = BatchMatches(prepared.program, prepared.source, progress, shown, prepared.order)
        matches.files = prepared.files
        return matches

    def stream(
        self,
        schema: Any,
        *,
        time: str | None = None,
        type: str | None = None,
        position: str | None = None,
        semantics: Semantics = "valuations",
        time_unit: TimeUnit = "ms",
        watermark: str | timedelta | None = None,
        late: Late = "count",
        order_by: str | Sequence[str] = (),
        deduplicate: str | Sequence[str] = (),
        counting: bool = False,
    ) -> EventStream:
        """An object that takes batches of this schema as they come, and can be snapshotted between them.

        `schema` is an Arrow schema, a mapping of names to types (`"int"`, `"float"`, `"string"`, `"bool"`,
        `"timestamp"`, or Arrow's), or a table or frame that has the columns. With `counting` the matches of every push
        are counted beside finding them, so that `push(…).count()` enumerates nothing; it takes as long again.

        Without `watermark` events must come in the order of `time`. With one, e.g. `"10 seconds"`, they may come in any
        order: an event is read once the latest time seen is more than so much later, in the order of time, then of the
        columns `order_by`, then of arrival. What comes later than that is late: it is counted (`stream.metrics`), with
        a warning the first time; `late="side"` gives it as `matches.late` instead, together with events that have no
        time, and `late="raise"` refuses the push. Of events that are equal in the columns `deduplicate` the first
        counts, as long as the watermark has not passed it.
        """
        columns = Columns(type, time, position, checked_unit(time_unit))
        arrow = canonical_schema(stream_schema(schema))
        Reading.of(declared_kinds(self.query, self.schema)).refuse_other_kinds(arrow, "the stream")
        program = bind_query(self.query, self.plan(semantics), columns, arrow)
        return EventStream(
            program, ordering=stream_ordering(program, watermark, order_by, deduplicate), late=checked_late(late),
            counting=counting, shown=shown_attributes(self.query),
        )  # fmt: skip


def query(
    source: str | QuerySpec | Builder | Pattern,
    *,
    schema: SchemaLike | None = None,
    select: Sequence[str] | None = None,
    strategy: str | None = None,
    partition_by: Sequence[str] = (),
    within: Width | None = None,
    consume: str = "NONE",
    limit: int | None = None,
    suppress: Width | Suppress | None = None,
) -> Query:
    """A query from CEQL text, a built pattern or a pattern, checked and ready to run.

    `schema` declares event types or columns: the query is checked against it, and data is read as it says. The other
    keywords are the clauses of a pattern; text has its own. `within` is text (`"30 seconds"`, `"500 events"`), a
    timedelta, or `cerite.seconds(30)`; `suppress` is a time, as text also `"10 minutes per partition"`.

    >>> from cerite import attr, event
    >>> rising = query(event("A").as_("x") >> event("A", attr.v > 3).as_("y"), select=["y"])
    >>> rising.run([{"type": "A", "v": 1}, {"type": "A", "v": 5}]).head()
    [Match(start=0, end=1, positions=(1,), bindings=(('y', (1,)),))]
    """
    known = None if schema is None else declared(schema)
    spec = make_query(
        source, schema=known, select=select, strategy=strategy, partition_by=partition_by, within=within,
        consume=consume, limit=limit, suppress=suppress,
    )  # fmt: skip
    return Query(spec, known)


class UnknownLengthError(StreamError, TypeError):
    """`len()` of matches whose events can be read only once; a TypeError, so that `list()` does without it."""


class BatchMatches(Matches):
    """The matches of one run over a source; every question reads the source anew."""

    def __init__(
        self,
        program: Program,
        source: Source,
        progress: Progress | None,
        shown: Shown | None,
        order: npt.NDArray[np.int64] | None = None,
    ) -> None:
        plan = program.plan
        self._program = program
        self._source = source
        self._order = order  # the row of the input for every row of the source, where it was sorted
        self._progress = progress
        self.shown = shown
        self.variables = plan.variables if plan.semantics == "valuations" else ()
        self.labels = plan.automaton.labels
        self.partition = plan.partition
        self._count: int | None = None
        self._exists: bool | None = None
        self._first: list[Match] | None = None
        self._begun: Iterator[MatchChunk] | None = None  # what is left of a source that can be read only once

    @property
    def rows(self) -> int | None:
        """How many events the source has, where that is known before reading them."""
        return self._source.rows

    def chunks(self) -> Iterator[MatchChunk]:
        """The matches in flat arrays, some at a time."""
        begun, self._begun = self._begun, None
        return self._chunks() if begun is None else begun

    def _chunks(self, most: int | None = None) -> Iterator[MatchChunk]:
        """The matches that end in the first batches, up to about so many events, or all of them."""
        run = Run(self._program)
        with in_plain_words("find the matches"):
            matches = 0
            for batch in self._source.batches():
                for chunk in run.find(batch):
                    matches += len(chunk)
                    yield chunk if self._order is None else chunk.renumbered(self._order)
                self._tell(run, matches)
                if most is not None and run.intake.rows >= most:
                    return
        self._count = matches
        self._warn_of_types(run, matches)

    def exists(self) -> bool:
        """Whether there is any match; stops at the first, which a source that is read once still gives later."""
        if self._exists is None and self._count is None:
            chunks = self.chunks()
            first = next(chunks, None)
            self._exists = first is not None
            if self._read_once:
                self._begun = iter(()) if first is None else chain([first], chunks)
        return bool(self._exists) if self._count is None else self._count > 0

    def count(self) -> int:
        """How many matches there are, exactly; without enumerating them unless a strategy or clause needs it."""
        if self._count is None:
            self._count = self._counted()
        return self._count

    def suppressed(self) -> int:
        """How many more matches there are, which SUPPRESS left out; reads the data again to count them."""
        plan = self._program.plan
        if plan.suppress is None:
            return 0
        if self._read_once:
            raise StreamError(
                f"what SUPPRESS leaves out is counted by reading {self._source.name} again, which can be read once",
                hint="run the query on a table or a file, or push the events into query.stream(…, counting=True)",
            )
        everything = replace(self._program, plan=plan.everything)
        return BatchMatches(everything, self._source, None, self.shown).count() - self.count()

    def __len__(self) -> int:
        if self._count is None and self._read_once:  # list() asks for the length first, and must not lose the events
            raise UnknownLengthError(
                f"the number of matches is not known before {self._source.name} is read",
                hint="use count(), or read the matches: list(…)",
            )
        return super().__len__()

    def _counted(self) -> int:
        if self._begun is not None or not self._program.plan.counts_without_enumerating:
            return sum(len(chunk) for chunk in self.chunks())
        run = Run(self._program)
        with in_plain_words("count the matches"):
            matches = 0
            for batch in self._source.batches():
                matches += run.count(batch)
                self._tell(run, matches)
        self._warn_of_types(run, matches)
        return matches

    def _warn_of_types(self, run: Run, matches: int) -> None:
        """Say which event types the data does not have: one that is spelt like another, or any if nothing matched."""
        unseen, seen = run.intake.types()
        for name in sorted(unseen):
            near = suggestion(name, seen)
            if near is not None or not matches:
                said = f"no event has the type `{name}`; the data has {listed(seen)}"
                warnings.warn(CeriteWarning(said + (f"; {near}" if near else "")), stacklevel=3)

    @property
    def _read_once(self) -> bool:
        return isinstance(self._source, READ_ONCE)

    def _preview(self) -> tuple[str, list[Match]]:
        if self._read_once:
            return f"matches in {self._source.name}, which can be read once" + (
                "" if self._count is None else f": {how_many(0, self._count)}"
            ), []
        if self._first is None:
            some = (each for chunk in self._chunks(PREVIEWED) for each in self.objects(chunk))
            self._first = list(islice(some, FIRST + 1))
        first = self._first
        if self._count is None and len(first) <= FIRST and (self.rows or 0) > PREVIEWED:
            return f"{how_many(len(first), None)} in the first {PREVIEWED:,} events (count() reads on)", first
        return how_many(len(first), self._count), first[:FIRST]

    def fetch(self, positions: tuple[int, ...]) -> list[dict[str, Any]]:
        """The events at these positions."""
        wanted = np.array(positions, np.int64)
        if self._program.columns.position is not None:
            wanted = np.searchsorted(self._all_positions(), wanted)
        elif self._order is not None:
            wanted = self._place_of_row[wanted]
        rows: list[dict[str, Any]] = self._source.take(wanted.tolist(), columns=self._source.available).to_pylist()
        return rows

    @cached_property
    def _place_of_row(self) -> npt.NDArray[np.int64]:
        """Where each row of the input went when it was sorted."""
        assert self._order is not None
        places = np.empty_like(self._order)
        places[self._order] = np.arange(self._order.size)
        return places

    def _all_positions(self) -> Any:
        if not hasattr(self, "_known_positions"):
            columns = [batch.column(self._program.columns.position) for batch in self._source.batches()]
            self._known_positions = np.concatenate([column.to_numpy(zero_copy_only=False) for column in columns])
        return self._known_positions

    def to_arrow(self) -> pa.Table:
        """All matches in one Arrow table; refused when there are too many for any memory."""
        tables: list[pa.Table] = []
        rows = 0
        with in_plain_words("hold the matches in a table"):
            for table in self.tables():
                tables.append(table)
                if rows < MANY <= rows + table.num_rows:
                    self._refuse_too_many()
                rows += table.num_rows
            return pa.concat_tables(tables) if tables else schema_of(self.columns).empty_table()

    def _refuse_too_many(self) -> None:
        countable = self._program.plan.counts_without_enumerating and not isinstance(self._source, READ_ONCE)
        if countable and self.count() > MOST_IN_MEMORY:
            raise StreamError(
                f"there are {self.count():,} matches, too many for a table in memory",
                hint="count() them, take head(n), add LIMIT or a selection strategy, or write them with to_parquet()",
            )

    def _tell(self, run: Run, matches: int) -> None:
        if self._progress is not None:
            self._progress(run.intake.rows, matches, run.active)
