"""Turns the data that a caller passes into a source the engine can read: streams merged, events sorted, names checked.

Whatever is wrong with the data's columns is reported here, before anything runs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cerite.core.arrays import Longs
from cerite.core.errors import (
    CeriteError,
    CeriteWarning,
    Hint,
    SchemaError,
    Setting,
    Span,
    StreamError,
    listed,
    not_columns,
    suggestion,
    unknown_column,
    unsortable,
    warn,
)
from cerite.core.schema import Schema, arrow_kind
from cerite.data.columns import STRINGS, canonical, conform
from cerite.data.guesses import OTHER_FORM
from cerite.data.memory import TableSource
from cerite.data.open import as_declared, opened
from cerite.data.readers import ReaderSource
from cerite.data.reading import Reading
from cerite.data.rows import RowSource
from cerite.data.source import Source, described, numbers_as_text, ordered_text, remedy_of, times_as_text
from cerite.data.unify import unified
from cerite.engine.bind import Program, bind
from cerite.engine.events.order import no_time
from cerite.engine.events.rows import Columns
from cerite.engine.guessed_kinds import columns_of
from cerite.engine.plan import Plan
from cerite.pattern.check import check, check_streams, check_type_column, named_types
from cerite.pattern.check_kinds import optional_attributes, ordered_attributes, read_attributes, shown_attributes
from cerite.pattern.query import QuerySpec
from cerite.predicate.columns.read import decoded

READ_ONCE = (ReaderSource, RowSource)
LISTED = "the list of events"
PROGRAMS = 4  # programs that a query keeps
PEEKED = 1 << 12  # rows in which names of event types are looked for
_TIMES = "times are numbers or timestamps; write them as 2024-05-01T12:30:00, all with a zone or all without"


@dataclass(frozen=True)
class Prepared:
    """A source in stream order.

    If the input was sorted, `order` has the row of the input for every row of the source; `files` are those it was read
    from. `identity` names the columns that tell events apart, and also order them; None if files and rows do.
    """

    source: Source
    program: Program
    order: Longs | None
    files: tuple[Path, ...]
    identity: tuple[str, ...] | None


class Binding:
    """A query's plan and the programs bound from it; for data with the same columns it is bound only once."""

    def __init__(self, query: QuerySpec, plan: Plan) -> None:
        self.query = query
        self.plan = plan
        self._programs: deque[tuple[Columns, frozenset[str], pa.Schema, Program]] = deque(maxlen=PROGRAMS)

    def program(
        self, columns: Columns, schema: pa.Schema, *, absent: frozenset[str], sources: Sequence[Source]
    ) -> Program:
        """What `bind_query` returns, kept for further calls with the same columns; errors are raised anew each time."""
        for named, lacked, known, program in list(self._programs):
            if (named, lacked) == (columns, absent) and known.equals(schema, check_metadata=True):
                return program
        program = bind_query(self.query, self.plan, columns, schema, absent=absent, sources=sources)
        self._programs.append((columns, absent, schema, program))
        return program


def prepare(binding: Binding, data: Any, columns: Columns, order_by: str | Sequence[str], reading: Reading) -> Prepared:
    """The data as the engine reads it: in stream order, names checked."""
    query, plan = binding.query, binding.plan
    keys = _names(order_by)
    several = isinstance(data, Mapping)
    streams = _streams(query, data) if isinstance(data, Mapping) else {"": data}
    sources = {name: _opened(plan, each, columns, reading) for name, each in streams.items()}
    _refuse_guesses(query, list(sources.values()), reading, keys)
    source, order = next(iter(sources.values())), None
    if len(sources) > 1:
        source = opened(merged(sources, columns.time, keys), Reading())
    # a dictionary may simply lack an attribute
    may_lack = any(isinstance(each, RowSource) or each.name == LISTED for each in sources.values())
    absent = _absent(query, source, columns, reading) if may_lack else frozenset[str]()
    source = _without_null_types(binding, source, columns, reading, absent)
    if keys:
        by = [name for name in (columns.time, *keys, columns.position) if name is not None]
        order, table = ordered(source, by, columns.time)
        source = opened(table, Reading())
    _warn_of_absent_columns(query, plan, columns, list(sources.values()))
    if columns.type is None and "type" not in source.everything.names:  # each time: values differ, columns may not
        refuse_hidden_types(query, source.everything.names, list(sources.values()))
    program = binding.program(columns, source.everything, absent=absent, sources=list(sources.values()))
    numbered = columns.position is not None or several  # rows of several streams are numbered in their common order
    files = tuple(file for each in sources.values() for file in each.files)
    named = tuple(dict.fromkeys(name for name in (columns.time, *keys, columns.position) if name is not None))
    by_rows = source.row_starts is not None and not keys and columns.position is None  # as Spark reads Parquet
    return Prepared(source, program, None if numbered else order, files, None if by_rows else named)


def bind_query(
    query: QuerySpec,
    plan: Plan,
    columns: Columns,
    schema: pa.Schema,
    *,
    absent: frozenset[str] = frozenset(),
    sources: Sequence[Source] = (),
) -> Program:
    """The plan bound to the data's columns, including that of types, with the query checked against them."""
    kind = columns.type if columns.type is not None or "type" not in schema.names else "type"
    check_type_column(query, kind, _type_hint(schema.names))
    if kind is None:
        refuse_hidden_types(query, schema.names)
    time = columns.time
    if time in schema.names and arrow_kind(schema.field(time).type) == "string":
        raise StreamError(
            f"the time column `{time}` holds text", hint="give it the type of a timestamp, or convert it; " + _TIMES
        )
    try:
        check(query, Schema.of_arrow(schema, absent))
        return bind(plan, schema, replace(columns, type=kind))
    except CeriteError as error:
        _explain_text(error, query, schema, sources)
        raise error.at(query.source) from None


def refuse_hidden_types(query: QuerySpec, names: Sequence[str], sources: Sequence[Source] = ()) -> None:
    """Refuse to take every row for an event of the one type that a query names, if a column seems to hold the types.

    Looks at names that differ from `type` by case alone, and at the first values of columns of text.
    """
    types = named_types(query)
    if len(types) != 1:  # none is meant, or the column is missed anyway
        return
    (wanted,) = types
    named = next((name for name in names if name.strip().lower() == "type"), None)
    held = (_text_column_with(wanted, each) for each in sources if not isinstance(each, READ_ONCE))
    name = named or next(filter(None, held), None)
    if name is not None:
        there = f"there is `{name}`" if name == named else f"`{name}` holds this text"
        raise StreamError(
            f"there is no column `type`, so every row would count as `{wanted}`, but {there}",
            hint=Hint("name it: ", Setting("type", name), "; or, if every row is meant, write `_` instead of the type"),
        )


def _text_column_with(value: str, source: Source) -> str | None:
    """The first column of text that has this value among its first rows."""
    texts: list[str] = [each.name for each in source.everything if each.type == STRINGS]
    for batch in islice(source.narrowed(texts).batches() if texts else (), 1):
        for name in texts:
            if value in batch.column(name).slice(0, PEEKED).unique().to_pylist():
                return name
    return None


def _type_hint(names: Sequence[str]) -> Hint:
    """How to name the column of types, or the delimiter: a single column called `type;v;at` is really several."""
    mark = next((each for each in ";|\t" if len(names) == 1 and each in names[0]), None)
    if mark is None:
        near = next((name for name in names if "type" in name.lower()), None)
        return Hint("name it: ", Setting("type", near))
    return Hint(f"the only column is `{names[0]}`; say what separates the values: ", Setting("delimiter", mark))


def _streams(query: QuerySpec, streams: Mapping[str, Any]) -> dict[str, Any]:
    """The data of the streams that FROM names."""
    columns = any(map(_is_column, streams.values()))
    check_streams(query, streams, "for columns, pass pyarrow.table(data); for one event, [data]" if columns else None)
    return {name: streams[name] for name in query.streams}


def _is_column(value: object) -> bool:
    """Whether this holds the values of one column, or is such a value, and so is not a stream of events."""
    if isinstance(value, (list, tuple)):
        return bool(value) and not isinstance(value[0], (Mapping, str, Path))
    return value is None or isinstance(value, (int, float, np.ndarray, pa.Array, pa.ChunkedArray))


def _opened(plan: Plan, data: Any, columns: Columns, reading: Reading) -> Source:
    """The data as a source whose time column, if one is named, really holds times."""
    if isinstance(data, (list, tuple)) and not any(isinstance(each, (str, Path)) for each in data):
        source: Source = rows_source(data, plan, columns, reading)
    else:
        source = opened(data, reading)
    time = columns.time
    if time is None or time not in source.everything.names or source.everything.field(time).type != STRINGS:
        return source
    if isinstance(source, TableSource):
        return source.timed(time)
    odd = source.sights(time)
    if "text" in odd:
        raise StreamError(
            f"{odd['text'].where}, column `{time}`: `{odd['text'].value}` is not a time",
            hint=f"if it stands for a missing value, such rows must be left out: every event has a time; {_TIMES}",
        )
    seen = " and ".join(f"`{each.value}` ({each.where})" for each in odd.values())
    raise StreamError(
        f"the time column `{time}` of {source.name} holds text" + (f": {seen}" if seen else ""), hint=_TIMES
    )


def _absent(query: QuerySpec, source: Source, columns: Columns, reading: Reading) -> frozenset[str]:
    """The attributes that the query reads and that no event has, if events may lack any; a warning names them."""
    named = (columns.type or "type", columns.time, columns.position, *query.partition, *source.everything.names)
    absent = optional_attributes(query) - set(named)
    for name in sorted(absent - reading.kinds.keys()) if source.rows != 0 else ():
        near = suggestion(name, source.everything.names) or f"they have {listed(source.everything.names)}"
        warn(CeriteWarning(f"no event has `{name}`, which is NULL everywhere; {near}"))
    return absent


def _without_null_types(
    binding: Binding, source: Source, columns: Columns, reading: Reading, absent: frozenset[str]
) -> Source:
    """The source with types for columns without any value: declared ones, or what the query compares them with.

    A column that is empty today may have values tomorrow, and the query means the same on both days. This includes
    attributes that are absent, if the result shows them.
    """
    empty = [each.name for each in source.everything if pa.types.is_null(each.type)]
    unknown = [*empty, *sorted(absent & shown_attributes(binding.query))]
    if not unknown:
        return source
    known = {each.name: held for each in source.everything if (held := arrow_kind(each.type)) is not None}
    measures = (each.expression for each in binding.query.measures)
    guessed, _ = columns_of(binding.plan, Schema.of_columns(known | dict(reading.kinds)), measures)
    types = {each: canonical(guessed.field(each).type) for each in guessed.names}
    types = dict.fromkeys(absent, pa.float64()) | types | {columns.type or "type": STRINGS}
    if columns.time is not None:
        types[columns.time] = pa.timestamp("us")
    return source.typed({name: types[name] for name in unknown if name in types})


def _warn_of_absent_columns(query: QuerySpec, plan: Plan, columns: Columns, sources: Sequence[Source]) -> None:
    """Warn of files that lack a column which others have and the query reads: it is NULL in all their rows."""
    named = (columns.type or "type", columns.position, *plan.partition, *sorted(read_attributes(query)))
    for source in sources:
        for name in dict.fromkeys(filter(None, named)):
            lacking = source.lacking(name)
            if lacking:
                more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
                text = f"{lacking[0]}{more} has no column `{name}`, which is NULL in all of its rows"
                warn(CeriteWarning(text))


def _refuse_guesses(query: QuerySpec, sources: Sequence[Source], reading: Reading, keys: Sequence[str]) -> None:
    """Refuse to order by a column of categories with another order, or by one that was only guessed to be text."""
    for name, span in (dict.fromkeys(keys) | ordered_attributes(query, constants=True)).items():
        for source in sources:
            ranked = source.ranked(name)
            if ranked is not None:
                raise _ordered_otherwise(source, name, ranked, span).at(query.source)
    for name, span in (dict.fromkeys(keys) | ordered_attributes(query)).items():
        for source in sources:
            if name in reading.kinds or not _is_text(source.everything, name):
                continue
            odd = source.sights(name)
            if odd and odd.keys() != {"text"}:
                raise ordered_text(name, odd, span, remedy_of(name, odd)).at(query.source)
            seen = source.samples(name)
            if "number" in seen:
                warn(numbers_as_text(name, seen["number"]))
            if OTHER_FORM in seen:
                warn(times_as_text(name, seen["time"], seen[OTHER_FORM]))


def _ordered_otherwise(source: Source, name: str, ranked: Sequence[str], span: Span | None) -> StreamError:
    """That a column of categories has an order of its own, and queries know only that of text."""
    first = " < ".join(f"`{each}`" for each in ranked[:3])
    return StreamError(
        f"`{name}` is compared by order, and {source.name} orders its categories {first}{' …' * (len(ranked) > 3)}, "
        "but a query compares them as text", span=span,
        hint=f"compare numbers instead: add a column of ranks, in pandas frame[{name!r}].cat.codes",
    )  # fmt: skip


def _explain_text(error: CeriteError, query: QuerySpec, schema: pa.Schema, sources: Sequence[Source]) -> None:
    """Say in the error why a column is text, if the query is refused because it is, and a value in a file caused it."""
    if not isinstance(error, SchemaError):
        return
    for name in sorted(read_attributes(query)):
        for source in sources:
            odd = source.sights(name) if _is_text(schema, name) else {}
            if odd and odd.keys() != {"text"}:
                error.message += f"; {described(name, odd)}"
                error.hint = remedy_of(name, odd)
                return


def _is_text(schema: pa.Schema, name: str) -> bool:
    return name in schema.names and schema.field(name).type == STRINGS


def _names(order_by: Any) -> tuple[str, ...]:
    """The columns to sort by: one name or several."""
    if order_by is None or isinstance(order_by, str):
        return () if order_by is None else (order_by,)
    names = tuple(order_by) if isinstance(order_by, Iterable) else (None,)
    if not all(isinstance(name, str) for name in names):
        raise not_columns("order_by", order_by)
    return cast("tuple[str, ...]", names)


def merged(sources: Mapping[str, Source], time: str | None, order_by: Sequence[str]) -> pa.Table:
    """The streams merged into one, in time order; ties are in the order of FROM."""
    if time is None and not order_by:
        raise StreamError(
            "several streams are merged by time, but no time column is named",
            hint=Hint("name it: ", Setting("time")),
        )
    for name, source in sources.items():
        if time is not None and time not in source.schema.names:
            raise StreamError(
                f"stream `{name}` has no column `{time}`, by which streams are merged",
                hint=suggestion(time, source.schema.names) or f"it has {listed(source.schema.names)}",
            )
    schema = unified((f"stream `{name}`", source.schema, "none") for name, source in sources.items())
    batches = [
        conform(batch, schema, f"stream `{name}`") for name, source in sources.items() for batch in source.batches()
    ]
    whole = opened(pa.Table.from_batches(batches, schema).unify_dictionaries(), Reading()).table()
    return whole if time is None else ordered(opened(whole, Reading()), [time], time)[1]


def rows_source(rows: Sequence[Mapping[str, Any]], plan: Plan, columns: Columns, reading: Reading) -> Source:
    """A list of dictionaries as a table, which can be read again; an empty list is an empty stream."""
    if rows:
        table = opened(rows, Reading()).table()
    else:
        window = plan.window
        named = (columns.time, columns.position, window.attribute if window else None, *plan.partition)
        kinds = {name: pa.int64() for name in named if name is not None} | {columns.type or "type": pa.string()}
        table = pa.table({name: pa.array([], kind) for name, kind in kinds.items()})
    return as_declared(TableSource(table.select, table.column_names, LISTED), reading)


def ordered(source: Source, keys: list[str], time: str | None) -> tuple[Longs, pa.Table]:
    """For every sorted row its row in the source, and the rows themselves, sorted stably by these columns."""
    table = source.table()
    if time is not None and time in table.column_names and table[time].null_count:
        raise no_time(time, pc.index(table[time].is_null(), True).as_py())  # rows have other numbers once sorted
    for name in keys:
        if name not in table.column_names:
            raise unknown_column(name, table.column_names, " to sort by")
    plain = {name: decoded(table[name]) for name in keys}
    try:
        order = pc.sort_indices(pa.table(plain), [(name, "ascending") for name in keys])
    except pa.ArrowException as error:
        raise unsortable({name: column.type for name, column in plain.items()}, error) from error
    return order.to_numpy().astype(np.int64), table.take(order)
