"""Running queries in process: `query.run(data)` for data at rest, `query.stream(schema)` for data that keeps coming."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from os import PathLike
from typing import TYPE_CHECKING, Any, TypedDict, Union, get_args

from cerite.api.batch import BatchMatches, Progress
from cerite.api.explain.text import Explanation
from cerite.api.inputs import Binding, bind_query, prepare
from cerite.api.shown import Selection
from cerite.api.stream import EventStream, Late, one_of, stream_ordering, stream_schema
from cerite.automaton import Automaton
from cerite.core.errors import ArgumentError, CeriteWarning, listed, warn
from cerite.core.match import Match
from cerite.core.schema import Schema
from cerite.data.columns import canonical_schema
from cerite.data.pushed import Extra
from cerite.data.reading import Reading
from cerite.engine.events.rows import Columns, TimeUnit, checked_unit
from cerite.engine.plan import Plan, Semantics, plan
from cerite.language.builder import Builder, Width
from cerite.language.queries import SchemaLike, Select, declared, make_query
from cerite.pattern.check import Note, declared_kinds, without_effect
from cerite.pattern.check import check as check_query
from cerite.pattern.never import reason
from cerite.pattern.nodes import Pattern
from cerite.pattern.query import QuerySpec, Suppress

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from cerite.api.trace import Trace
    from cerite.api.why.answer import Why, WhyNot


class DataOptions(TypedDict, total=False):
    """The keywords of `Query.run` that say how data is read, for the other calls that read data."""

    time: str | None
    type: str | None
    order_by: str | Sequence[str]
    position: str | None
    semantics: Semantics
    time_unit: TimeUnit
    schema: SchemaLike | None
    null_values: str | Sequence[str]
    delimiter: str | None
    format: str | None


class Query:
    """A checked query that can be run.

    >>> import cerite
    >>> q = cerite.query("SELECT * FROM S WHERE A AS x ; B AS y FILTER y[v > 1]")
    >>> matches = q.run([{"type": "A", "v": 0}, {"type": "B", "v": 1}, {"type": "B", "v": 2}])
    >>> matches.count()
    1
    >>> [str(match) for match in matches]
    ['[0,2] A=0, B=2, x=0, y=2']
    """

    def __init__(self, query: QuerySpec, schema: Schema | None = None) -> None:
        self.query = query
        self.schema = schema
        self._bindings: dict[Semantics, Binding] = {}

    def __str__(self) -> str:
        return str(self.query)

    def __repr__(self) -> str:
        return f"Query({str(self.query)!r})"

    def plan(self, semantics: Semantics = "valuations") -> Plan:
        """How the engine will run it."""
        return self._binding(semantics).plan

    def _binding(self, semantics: Semantics) -> Binding:
        """The plan and the programs bound from it; each is built once."""
        if semantics not in self._bindings:
            self._bindings[semantics] = Binding(self.query, plan(self.query, semantics))
        return self._bindings[semantics]

    @property
    def automaton(self) -> Automaton:
        """The automaton the engine runs."""
        return self.plan().automaton

    def draw(self, path: str | PathLike[str] | None = None) -> Automaton:
        """The automaton as a picture: a table when printed, a diagram in a notebook; `path` writes it, too.

        The path ends in .svg (which needs Graphviz), .dot, .mmd (Mermaid) or .txt.

        >>> import cerite
        >>> print(cerite.query("SELECT * FROM S WHERE A AS x : B AS y").draw())
        state         reads  marks  goes to
        ------------  -----  -----  -------
        q0     start  A      A,x    q1
        q1            B      B,y    q2
        q2     final  -      -      -
        """
        if path is not None:
            self.automaton.save(path)
        return self.automaton

    def explain(self, schema: SchemaLike | None = None) -> Explanation:
        """What the query means and how it will run: text, a tree in a terminal, or HTML in a notebook.

        >>> import cerite
        >>> text = str(cerite.query("SELECT * FROM S WHERE A AS x ; B AS y WITHIN 5 EVENTS").explain())
        >>> [line.strip(" │├└─") for line in text.splitlines() if "chosen" in line]
        ['chosen: subsets; every condition looks at one event: deterministic states are sets of automaton states']
        """
        return Explanation(self.query, self.schema if schema is None else declared(schema), self.plan)

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
        threads: int | None = None,
    ) -> BatchMatches:
        """The matches in `data`: an Arrow table or reader, a pandas or Polars frame, a path or glob, or dicts.

        `time` names the column of the event time (timestamps, or numbers that count milliseconds or the `time_unit`),
        `type` that of the event type (by default `type`, if there is such a column; a query about a single type needs
        none). The data must be in time order, unless `order_by` names columns that break ties: then it is sorted by
        time and by these. `position` names a column of rising positions to report instead of row numbers. A mapping
        from stream names to data supplies the streams that FROM names, merged by time.

        `schema` declares kinds of columns in addition to those that the query declares, as `{"zip": "string"}`,
        `{"BUY": {"price": "float"}}` or `CREATE STREAM` text: text files are read as declared, other data is checked
        against it. `null_values` are spellings of missing values in text files besides the usual ones, `delimiter`
        separates the values of CSV, and `format` is the format of files whose ending does not tell it.

        Long streams are read by as many `threads` as there are cores, or as CERITE_THREADS says; the matches and the
        order of their ends are the same as with one thread. With several threads, matches that end at the same event
        may come in another order each time they are read; indices, slices and `head` are read by one.
        """
        columns = Columns(type, time, position, checked_unit(time_unit))
        kinds = declared_kinds(self.query, self.schema, None if schema is None else declared(schema))
        reading = Reading.of(kinds, null_values, delimiter, format)
        prepared = prepare(self._binding(semantics), data, columns, order_by, reading)
        return BatchMatches(self.query, prepared, progress, threads)

    def why(self, match: Match, data: Any = None, **options: Unpack[DataOptions]) -> Why:
        """Why a match is one: for each of its events the conditions that admitted it, with the values they compared.

        A match of `run` knows its data; for any other (from a stream, Spark or a file) pass the data, with the keywords
        (`options`) that `run` would take.

        >>> import cerite
        >>> q = cerite.query("SELECT * FROM S WHERE A AS x ; B AS y FILTER y[v > x.v] WITHIN 5 EVENTS")
        >>> matches = q.run([{"type": "A", "v": 1}, {"type": "B", "v": 3}])
        >>> q.why(matches[0])
        [0,1] A=0, B=1, x=0, y=1 is a match
          row  variables  why
          0    A, x       only its type is tested
          1    B, y       `v > x.v`: 3 > 1
        and 2 events from row 0 on, window 5 EVENTS
        """
        from cerite.api.why.explain import why
        from cerite.api.why.given import scene_of

        if data is None and options:
            raise ArgumentError(
                f"{listed(options)} would say how data is read, and no data is given",
                hint="leave it out, or write query.why(match, data, …)",
            )
        prepared = None if data is None else self.run(data, **options).prepared
        return why(scene_of(self.query, match, prepared), match)

    def why_not(self, data: Any, events: Any = None, **options: Unpack[DataOptions]) -> WhyNot:
        """Why events of `data` are not a match: how far they got, and what ended it first, with the values compared.

        `events` are all the events that the match should have had: their row numbers, or the rows themselves
        (dictionaries, or a frame with some of the data's rows); by default all of `data`. The `options` are those of
        `run`.

        >>> import cerite
        >>> q = cerite.query("SELECT * FROM S WHERE A AS x ; B AS y FILTER y[v > 500] WITHIN 5 EVENTS")
        >>> q.why_not([{"type": "A", "v": 1}, {"type": "C"}, {"type": "B", "v": 480.0}], events=[0, 2])
        rows 0, 2 are no match
          row  variables  why
          0    A, x       only its type is tested
          2    B, y       ✗ `v > 500` was 480.0
        ended by condition: `v > 500` was 480.0
        """
        from cerite.api.why.explain import why_not
        from cerite.api.why.given import ranks_of
        from cerite.api.why.scene import Scene

        scene = Scene(self.query, self.run(data, **options).prepared)
        return why_not(scene, ranks_of(scene, events))

    def trace(self, data: Any, **options: Unpack[DataOptions]) -> Trace:
        """What the engine holds after every event of a small run: nodes of the tECS, union-lists, matches.

        The `options` are the keywords of `run`.

        >>> import cerite
        >>> cerite.query("SELECT * FROM S WHERE A ; B").trace([{"type": "A"}, {"type": "C"}, {"type": "B"}])
        engine: subsets
        row 0: type='A'
          new nodes
            n0 = ⊥ a run starts at row 0
            n1 = row 0 as A, then n0
          union-lists
            T[{q1}] = n1
        row 1: type='C'
          skipped: it satisfies no test that could move a state
        row 2: type='B'
          new nodes
            n2 = row 2 as B, then n1
          union-lists
            T[{q1}] = n1
            T[{q2}] = n2
          matches
            [0,2] A=0, B=2
        """
        from cerite.api.trace import traced

        return traced(self.query, self.run(data, **options).prepared)

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
        extra: Extra = "refuse",
        counting: bool = False,
    ) -> EventStream:
        """An object that takes batches of this schema as they come, and can be snapshotted between them.

        `schema` is an Arrow schema, a mapping of names to types (`"int"`, `"float"`, `"string"`, `"bool"`,
        `"timestamp"`, or Arrow's), or a table or frame that has the columns. With `counting`, the matches of every push
        are not only found but also counted, so that `push(…).count()` enumerates nothing; that takes as long again.

        Without `watermark`, events must come in the order of `time`. With one, e.g. `"10 seconds"`, they may come in
        any order: an event is read once the latest time seen is more than 10 seconds after its own, and events are read
        in the order of time, then of the columns `order_by`, then of arrival. An event that comes later than that is
        late: it is counted (`stream.metrics`), with a warning the first time; `late="side"` gives it as `matches.late`
        instead, together with events that have no time, and `late="raise"` refuses the push. Of events that are equal
        in the columns `deduplicate`, only the first counts, as long as the watermark has not passed it.

        A push with other columns than these is refused, or they are left out: `extra="ignore"`.
        """
        columns = Columns(type, time, position, checked_unit(time_unit))
        arrow = canonical_schema(stream_schema(schema))
        Reading.of(declared_kinds(self.query, self.schema)).refuse_other_kinds(arrow, "the stream")
        program = bind_query(self.query, self.plan(semantics), columns, arrow)
        return EventStream(
            program, ordering=stream_ordering(program, watermark, order_by, deduplicate),
            late=one_of("late", late, get_args(Late)), extra=one_of("extra", extra, get_args(Extra)), counting=counting,
            selection=Selection.of(self.query),
        )  # fmt: skip


AnyQuery = Union[Query, str, QuerySpec, Builder, Pattern]


def query(
    source: AnyQuery,
    *,
    schema: SchemaLike | None = None,
    select: Select | None = None,
    strategy: str | None = None,
    partition_by: Sequence[str] = (),
    within: Width | None = None,
    consume: str = "NONE",
    limit: int | None = None,
    suppress: Width | Suppress | None = None,
) -> Query:
    """A query from CEQL text, from the pattern builder or from a pattern, checked and ready to run; a query as it is.

    `schema` declares event types or columns: the query is checked against it, and data is read as it says. The other
    keywords add clauses to a pattern; text has its own. `within` is text (`"30 seconds"`, `"500 events"`), a
    timedelta, or `cerite.seconds(30)`; `select` names variables, or measures: `{"low": var.x.price}`; `suppress` is a
    time, as text also `"10 minutes per partition"`.

    >>> from cerite import attr, event
    >>> rising = query(event("A").as_("x") >> event("A", attr.v > 3).as_("y"), select=["y"])
    >>> rising.run([{"type": "A", "v": 1}, {"type": "A", "v": 5}]).head()
    [Match(start=0, end=1, positions=(1,), bindings=(('y', (1,)),))]
    """
    known = None if schema is None else declared(schema)
    spec = make_query(
        source.query if isinstance(source, Query) else source,
        schema=known, select=select, strategy=strategy, partition_by=partition_by, within=within, consume=consume,
        limit=limit, suppress=suppress,
    )  # fmt: skip
    if isinstance(source, Query) and known is None:
        return source
    for odd in (reason(spec), *without_effect(spec.where)):
        if odd is not None:
            warn(CeriteWarning(f"{odd.message}; {odd.hint}" if odd.hint else odd.message))
    return Query(spec, known)


def check(source: AnyQuery, schema: SchemaLike | None = None) -> list[Note]:
    """Raise the first error of a query, against a schema if there is one; return its warnings.

    >>> [note.message for note in check("SELECT * FROM S WHERE A AS x ; B AS x WITHIN 5 EVENTS")]
    ['`x` is bound more than once: it holds all these events']
    """
    known = source.schema if isinstance(source, Query) and schema is None else None
    spec = make_query(source.query if isinstance(source, Query) else source)
    return check_query(spec, known if schema is None else declared(schema))
