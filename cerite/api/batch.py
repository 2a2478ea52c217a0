"""The matches of a query in data at rest: every question reads the source anew, and only the columns that it needs.

Invariant: a source that can be read only once is read only once, and its matches carry their events with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, islice
from os.path import commonprefix
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from cerite.api.inputs import READ_ONCE, Prepared
from cerite.api.result import FIRST, Matches, Rows, how_many
from cerite.api.shown import Selection
from cerite.core.arrays import Longs
from cerite.core.errors import CeriteWarning, StreamError, in_plain_words, listed, suggestion, warn
from cerite.core.match import Match
from cerite.data import Source
from cerite.engine.at_rest.threads import ThreadedRun, thread_count
from cerite.engine.bind import Program
from cerite.engine.results.event_buffer import Placed
from cerite.engine.results.match_ids import FILE, ROW
from cerite.engine.results.output import MatchChunk
from cerite.engine.results.shape import Shape, Shown
from cerite.pattern.query import QuerySpec

MANY = 5_000_000  # matches after which it is worth counting whether all will fit
MOST_IN_MEMORY = 500_000_000
PREVIEWED = 1 << 20  # events that are read to show the first matches
_SINCE_2001 = {"s": (10**9, 10**10), "us": (10**15, 10**16), "ns": (10**18, 10**19)}  # and until 2286
_UNIT_NAMES = {"s": "seconds", "us": "microseconds", "ns": "nanoseconds"}
Reported = TypeVar("Reported", MatchChunk, tuple[MatchChunk, Placed])
Progress = Callable[[int, int, int], None]  # rows read, matches so far, active states


class UnknownLengthError(StreamError, TypeError):
    """Raised by `len()` if the events can be read only once; a TypeError, so that `list()` goes on without a length."""


class BatchMatches(Matches):
    """The matches of one run over a source; every question reads the source anew."""

    def __init__(
        self, query: QuerySpec, prepared: Prepared, progress: Progress | None, threads: int | None = None
    ) -> None:
        plan = prepared.program.plan
        self._query = query
        self.prepared = prepared
        self._program = prepared.program
        self._source = prepared.source
        self._order = prepared.order  # the row of the input for every row of the source, where it was sorted
        self._identity = prepared.identity
        self._progress = progress
        self._threads = thread_count(threads)
        self.files = prepared.files
        self.selection = Selection.of(query)
        self.variables = plan.variables if plan.semantics == "valuations" else ()
        self.labels = plan.automaton.labels
        self.partition = plan.partition
        self.type_column = prepared.program.columns.type
        self.event_schema = prepared.source.everything
        self.shape = _shape(prepared, self.selection).checked(self.event_schema, query.source)
        self._count: int | None = None
        self._exists: bool | None = None
        self._first: list[Match] | None = None
        self._first_shown: Rows | None = None
        self._begun: Iterator[tuple[MatchChunk, Placed]] | None = None  # what is left of a source that is read once

    @property
    def rows(self) -> int | None:
        """How many events the source has, where that is known before reading them."""
        return self._source.rows

    def chunks(self) -> Iterator[MatchChunk]:
        """The matches in flat arrays, some at a time."""
        if self._begun is not None:
            return (chunk for chunk, _ in self.placed())
        return self._chunks()

    def placed(self) -> Iterator[tuple[MatchChunk, Placed]]:
        """The matches in flat arrays, some at a time, each chunk together with its events."""
        begun, self._begun = self._begun, None
        return self._placed() if begun is None else begun

    def _chunks(self, most: int | None = None) -> Iterator[MatchChunk]:
        """The matches that end within about the first `most` events, or all of them."""
        run = self._run(most)
        for chunk in self._reading(run, run.find(self._read_columns().batches()), most):
            yield self._numbered(chunk)

    def _placed(self, most: int | None = None) -> Iterator[tuple[MatchChunk, Placed]]:
        """The same with their events; with all columns if the source can be read only once, in case they are wanted."""
        run = self._run(most)
        columns = (*self.shape.event_columns, *(self._source.available if self._read_once else ()))
        pairs = run.place(self._read_columns(columns).batches(), self._identity)
        for chunk, placed in self._reading(run, pairs, most):
            yield self._numbered(chunk), self._with_rows(placed)

    def _run(self, most: int | None = None) -> ThreadedRun:
        """A reading of the source; a few events are not worth several threads."""
        threads = self._threads if most is None else 1
        in_memory = threads > 1 and self._source.in_memory(self._program.read)
        return ThreadedRun(self._program, threads, self.rows, in_memory=in_memory)

    def _reading(self, run: ThreadedRun, items: Iterator[Reported | None], most: int | None) -> Iterator[Reported]:
        """What a reading finds; reports progress on the way, and warns of unknown event types at the end."""
        matches = 0
        with in_plain_words("find the matches"):
            for item in items:
                if item is not None:
                    matches += len(item[0] if isinstance(item, tuple) else item)
                    yield item
                    continue
                self._tell(run, matches)
                if most is not None and run.rows >= most:
                    return
        self._count = matches
        self._warn(run, matches)

    def _read_columns(self, more: tuple[str, ...] = ()) -> Source:
        """The source, narrowed to the columns that the engine reads and to those in `more`."""
        names = tuple(dict.fromkeys((*self._program.read, *more)))
        return self._source.narrowed(names) if names else self._source

    def _numbered(self, chunk: MatchChunk) -> MatchChunk:
        """The matches with the positions that are reported."""
        return chunk if self._order is None else chunk.renumbered(self._order)

    # ------------------------------------------------------------ events
    def _with_rows(self, placed: Placed) -> Placed:
        """The events with columns for their file and row number, if these tell them apart."""
        starts = self._source.row_starts
        if self._identity is not None or starts is None:
            return placed
        files = np.searchsorted(starts, placed.positions, side="right") - 1
        numbers = placed.positions - np.array(starts, np.int64)[files]
        rows = placed.rows.append_column(FILE, pa.array(files)).append_column(ROW, pa.array(numbers))
        return placed._replace(rows=rows)

    @property
    def _with_events(self) -> bool:
        return self._read_once or super()._with_events

    def _beside(self, chunk: MatchChunk, placed: Placed) -> Beside | None:
        return Beside(chunk, placed, list(self._source.available)) if self._read_once else None

    def _paged(self, first: int) -> Iterator[Match]:
        """From one thread: several may find the matches of an event in another order each time, and slices must agree.

        A source that is read only once is not read again for another slice.
        """
        if self._read_once or self._threads == 1:
            return super()._paged(first)
        return BatchMatches(self._query, self.prepared, self._progress, 1)._from(first)

    def exists(self) -> bool:
        """Whether there is any match; stops at the first, which a source that is read only once still gives later."""
        if self._exists is None and self._count is None:
            if self._read_once:
                placed = self.placed()
                first = next(placed, None)
                self._begun = iter(()) if first is None else chain([first], placed)
                self._exists = first is not None
            else:
                self._exists = super().exists()
        return bool(self._exists) if self._count is None else self._count > 0

    def count(self) -> int:
        """The exact number of matches, found without enumerating them unless a strategy or clause requires it."""
        if self._count is None:
            self._count = self._counted()
        return self._count

    def suppressed(self) -> int:
        """How many more matches there are that SUPPRESS left out; reads the data again to count them."""
        plan = self._program.plan
        if plan.suppress is None:
            return 0
        if self._read_once:
            raise StreamError(
                f"counting what SUPPRESS leaves out reads {self._source.name} again, which can be read only once",
                hint="run the query on a table or a file, or push the events into query.stream(…, counting=True)",
            )
        everything = replace(self.prepared, program=replace(self._program, plan=plan.everything))
        return BatchMatches(self._query, everything, None, self._threads).count() - self.count()

    def __len__(self) -> int:
        if self._count is None and self._read_once:  # list() asks for the length first, and must not lose the events
            raise UnknownLengthError(
                f"the number of matches is not known before {self._source.name} is read",
                hint="use count(), or read the matches: list(…)",
            )
        return super().__len__()

    def _counted(self) -> int:
        plan = self._program.plan
        if self._begun is not None or not (plan.counts_without_enumerating or plan.reports_one):
            return sum(len(chunk) for chunk in self.chunks())
        run = self._run()
        with in_plain_words("count the matches"):
            matches = 0
            for some in run.count(self._read_columns().batches()):
                if some is None:
                    self._tell(run, matches)
                else:
                    matches += some
        self._warn(run, matches)
        return matches

    def _warn(self, run: ThreadedRun, matches: int) -> None:
        """Warn of times that are hardly in their unit, and of event types that the data lacks.

        Of these, those that are spelt almost like one that the data has, or all if nothing matched.
        """
        odd = _odd_unit(self._program, run.first_time)
        if odd is not None:
            warn(CeriteWarning(odd))
        unseen, seen = run.types()
        for name in sorted(unseen):
            near = suggestion(name, seen)
            if near is not None or not matches:
                message = f"no event has the type `{name}`; the data has {listed(seen)}"
                warn(CeriteWarning(message + (f"; {near}" if near else "")))

    @property
    def _read_once(self) -> bool:
        return isinstance(self._source, READ_ONCE)

    def _preview(self) -> tuple[str, list[Match]]:
        if self._read_once:
            return self._unread(), []
        if self._first is None:
            if self._with_events:
                some = (each for pair in self._placed(PREVIEWED) for each in self.objects_with_events(*pair))
            else:
                some = (each for chunk in self._chunks(PREVIEWED) for each in self.objects(chunk))
            self._first = list(islice(some, FIRST + 1))
        return self._previewed(len(self._first)), self._first[:FIRST]

    def _preview_rows(self) -> tuple[str, Rows]:
        if self._read_once:
            return self._unread(), []
        if self._first_shown is None:
            self._first_shown = self._first_rows(FIRST + 1, self._placed(PREVIEWED))
        return self._previewed(len(self._first_shown)), self._first_shown[:FIRST]

    def _unread(self) -> str:
        known = "" if self._count is None else f": {how_many(0, self._count)}"
        return f"matches in {self._source.name}, which can be read only once{known}"

    def _previewed(self, seen: int) -> str:
        if self._count is None and seen <= FIRST and (self.rows or 0) > PREVIEWED:
            return f"{how_many(seen, None)} in the first {PREVIEWED:,} events (count() reads on)"
        return how_many(seen, self._count)

    def fetch(self, positions: tuple[int, ...]) -> Rows:
        """The events at these positions."""
        wanted = np.array(positions, np.int64)
        if self._program.columns.position is not None:
            wanted = np.searchsorted(self._all_positions(), wanted)
        elif self._order is not None:
            wanted = self._place_of_row[wanted]
        rows: Rows = self._source.take(wanted.tolist(), columns=self._source.available).to_pylist()
        return rows

    def between(self, first: int, last: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Columns of the events from `first` to `last`, both included; nothing if the source can be read only once."""
        if self._read_once:
            return
        if self._program.columns.position is not None:
            first, last = np.searchsorted(self._all_positions(), (first, last)).tolist()
        begin = 0
        for batch in self._source.narrowed(columns or self._source.available[:1]).batches():
            low, high = max(first - begin, 0), min(last + 1 - begin, batch.num_rows)
            if low < high:
                yield batch.slice(low, high - low)
            begin += batch.num_rows
            if begin > last:
                return

    @cached_property
    def _place_of_row(self) -> Longs:
        """Where each row of the input went when it was sorted."""
        assert self._order is not None
        places = np.empty_like(self._order)
        places[self._order] = np.arange(self._order.size)
        return places

    def _all_positions(self) -> Any:
        if not hasattr(self, "_known_positions"):
            columns = [batch.column(self._program.columns.position) for batch in self._read_columns().batches()]
            self._known_positions = np.concatenate([column.to_numpy(zero_copy_only=False) for column in columns])
        return self._known_positions

    def to_arrow(self, *, events: bool = False, long: bool = False) -> pa.Table:
        """`Matches.to_arrow`, refused if there are far too many matches to fit into memory."""
        tables: list[pa.Table] = []
        rows = 0
        with in_plain_words("hold the matches in a table"):
            for table in self.tables(events=events, long=long):
                tables.append(table)
                if rows < MANY <= rows + table.num_rows:
                    self._refuse_too_many()
                rows += table.num_rows
            return pa.concat_tables(tables) if tables else self.table_schema(events=events, long=long).empty_table()

    def _refuse_too_many(self) -> None:
        countable = self._program.plan.counts_without_enumerating and not isinstance(self._source, READ_ONCE)
        if countable and self.count() > MOST_IN_MEMORY:
            raise StreamError(
                f"there are {self.count():,} matches, too many for a table in memory",
                hint="count() them, take head(n), add LIMIT or a selection strategy, or write them with to_parquet()",
            )

    def _tell(self, run: ThreadedRun, matches: int) -> None:
        if self._progress is not None:
            self._progress(run.rows, matches, run.active)


class Beside:
    """Looks up the events of matches by reported position, among the events that came with the matches."""

    def __init__(self, chunk: MatchChunk, placed: Placed, columns: list[str]) -> None:
        self._reported = chunk.positions
        self._placed = placed
        self._columns = columns

    @cached_property
    def _places(self) -> dict[int, int]:
        return dict(zip(self._reported.tolist(), self._placed.matches.positions.tolist(), strict=True))

    def __call__(self, positions: tuple[int, ...]) -> Rows:
        """The events at these positions."""
        places = pa.array([self._places[position] for position in positions], pa.int64())
        rows: Rows = self._placed.rows.select(self._columns).take(places).to_pylist()
        return rows


def _odd_unit(program: Program, first: int | None) -> str | None:
    """That times in milliseconds look like times in another unit, if a window or a silence measures time."""
    columns, plan = program.columns, program.plan
    sizes = (plan.window, plan.tick, None if plan.suppress is None else plan.suppress.size)
    if (
        first is None
        or columns.time is None
        or columns.unit != "ms"
        or not any(each and each.is_time for each in sizes)
    ):
        return None
    if not pa.types.is_integer(program.schema.field(columns.time).type):
        return None
    unit = next((unit for unit, (low, high) in _SINCE_2001.items() if low <= first < high), None)
    if unit is None:
        return None
    return (
        f"`{columns.time}` begins at {first}, which is read as milliseconds; if it counts {_UNIT_NAMES[unit]} since "
        f"1970, pass time_unit={unit!r}"
    )


def _shape(prepared: Prepared, selection: Selection) -> Shape:
    """What a row of a result with events consists of."""
    plan, columns, source = prepared.program.plan, prepared.program.columns, prepared.source
    shown = selection.columns(plan, source.available)
    uris: tuple[str, ...] = ()
    if prepared.identity is None:
        uris = tuple(file.absolute().as_uri() for file in source.files)
    by_rows = (FILE, ROW) if prepared.identity is None else prepared.identity
    order = tuple(dict.fromkeys((*filter(None, (columns.time,)), *by_rows)))
    return Shape(
        plan.automaton.labels, plan.partition, order, columns.time, columns.position,
        tuple(_known(each, source.everything) for each in shown), uris, _folder(uris), selection.measures,
    )  # fmt: skip


def _known(shown: Shown, schema: pa.Schema) -> Shown:
    """The column with only those attributes that the data has: events given as dictionaries may lack some."""
    return replace(shown, attributes=tuple(name for name in shown.attributes if name in schema.names))


def _folder(uris: tuple[str, ...]) -> str:
    """The folder that all files are in.

    >>> _folder(("file:///a/b/c1.parquet", "file:///a/b/c2.parquet"))
    'file:///a/b/'
    """
    shared = commonprefix(uris)  # noqa: RUF071  (of characters, and then of folders)
    return shared[: shared.rfind("/") + 1]
