"""The shape of a result with events, the same everywhere: in process, in streams, on Spark at rest and live.

A row is a match: its id, times, positions if a column holds them, the partition's values, per variable its events as
structs, and the measures of SELECT. In the long form a row is an event of a match.

Invariant: names, types and values depend only on the query and on the events of a match: not on which engine reports
it, nor on where batches are cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cerite.core.arrays import Longs
from cerite.core.errors import CeriteError, StreamError
from cerite.engine.results.match_ids import FILE, ROW, Ids
from cerite.engine.results.measures import Measures
from cerite.engine.results.output import Labels, MatchChunk, lists_of
from cerite.pattern.query import Measure
from cerite.predicate.columns.read import decoded, decoded_type

MOST = 1 << 16  # events in a batch of results
LONG = ("match", "variable", "rank")


@dataclass(frozen=True)
class Shown:
    """A column of the result: its name, a variable (None: the whole match) and the attributes of its events."""

    column: str
    variable: str | None
    attributes: tuple[str, ...]


@dataclass(frozen=True)
class Shape:
    """What a row consists of.

    `keys` are the partition's columns, `order` those that tell events apart (if FILE is one, `files` and `root` are
    those of `Ids`), `time` and `position` the columns that say where a match begins and ends.
    """

    labels: Labels
    keys: tuple[str, ...]
    order: tuple[str, ...]
    time: str | None
    position: str | None
    shown: tuple[Shown, ...]
    files: tuple[str, ...] = ()
    root: str = ""
    measured: tuple[Measure, ...] = ()

    @cached_property
    def measures(self) -> Measures:
        """Computes the measures."""
        return Measures(self.measured, self.labels, self.time)

    @cached_property
    def ids(self) -> Ids:
        """Builds the ids of matches."""
        return Ids(self.labels, tuple(dict.fromkeys((*self.keys, *self.order))), self.files, self.root)

    @cached_property
    def event_columns(self) -> tuple[str, ...]:
        """The columns of events that rows are built from, besides those of files and rows."""
        named = (*self.keys, *self.order, self.time, self.position, *self.attributes, *self.measures.attributes)
        return tuple(dict.fromkeys(name for name in named if name not in (None, FILE, ROW)))

    def schema(self, events: pa.Schema) -> pa.Schema:
        """The columns of a result on events of this schema."""
        fields = [("match", pa.string())]
        if self.time is not None:
            fields += [(name, decoded_type(events.field(self.time).type)) for name in ("start_time", "end_time")]
        if self.position is not None:
            fields += [("start", pa.int64()), ("end", pa.int64())]
        fields += [(name, decoded_type(events.field(name).type)) for name in self.keys]
        for each in self.shown:
            struct = pa.struct([(name, decoded_type(events.field(name).type)) for name in each.attributes])
            fields.append((each.column, pa.list_(struct)))
        schema = pa.schema([*fields, *(self.measures.schema(events) if self.measured else ())])
        twice = next((name for name in schema.names if schema.names.count(name) > 1), None)
        if twice is not None:
            raise StreamError(
                f"the result would have two columns `{twice}`", hint="rename the column that PARTITION BY names"
            )
        return schema

    def checked(self, events: pa.Schema, source: str | None) -> Shape:
        """This shape, refused if events of this schema lack what it needs; `source` is the text of the query."""
        try:
            if self.measured:
                self.measures.schema(events)
        except CeriteError as error:
            raise error.at(source) from None
        return self

    def batches(self, chunk: MatchChunk, rows: pa.RecordBatch, marks: Longs | None = None) -> Iterator[pa.RecordBatch]:
        """The matches as rows of bounded batches; their positions are places among the events, which may have marks."""
        for piece in pieces(chunk):
            yield self.batch(piece, rows, marks)

    def batch(self, chunk: MatchChunk, rows: pa.RecordBatch, marks: Longs | None = None) -> pa.RecordBatch:
        """The matches as rows."""
        starts, ends = pa.array(chunk.starts), pa.array(chunk.ends)
        columns: dict[str, pa.Array] = {"match": self.ids.of(chunk, rows, marks)}
        if self.time is not None:
            columns["start_time"], columns["end_time"] = (taken(rows, self.time, each) for each in (starts, ends))
        if self.position is not None:
            position = pc.cast(rows.column(self.position), pa.int64())
            columns["start"], columns["end"] = position.take(starts), position.take(ends)
        columns |= {name: taken(rows, name, ends) for name in self.keys}
        structs: dict[tuple[int, tuple[str, ...]], pa.Array] = {}  # variables of the same marks share their lists
        for shown, mine in zip(self.shown, self._lists(chunk), strict=True):
            key = (id(mine), shown.attributes)
            if key not in structs:
                structs[key] = _structs(mine, rows, shown.attributes)
            columns[shown.column] = structs[key]
        if self.measured:
            columns |= self.measures.columns(chunk, rows)
        return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))

    def _lists(self, chunk: MatchChunk) -> list[pa.ListArray]:
        """For every shown column the lists of places of its events."""
        if not self.shown:
            return []
        variables = tuple(shown.variable for shown in self.shown if shown.variable is not None)
        every, *lists = lists_of(chunk, self.labels, variables)
        return lists if variables else [every] * len(self.shown)

    # ------------------------------------------------------------ a row for each event
    @cached_property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that some variable shows."""
        return tuple(dict.fromkeys(name for each in self.shown for name in each.attributes))

    def long_schema(self, events: pa.Schema) -> pa.Schema:
        """The columns of the long form: match id, variable, rank among the variable's events, and the event's own.

        If a column of the events has one of the first three names, `_` is appended to its name.
        """
        kinds = (decoded_type(events.field(name).type) for name in self.attributes)
        heads = zip(LONG, (pa.string(), pa.string(), pa.int64()), strict=True)
        return pa.schema([*heads, *zip(_apart(self.attributes), kinds, strict=True)])

    def long_batches(
        self, chunk: MatchChunk, rows: pa.RecordBatch, marks: Longs | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The events of the matches, one a row: by match, then by variable, in the order of the stream."""
        if self.shown:
            yield from (self._long(piece, rows, marks) for piece in pieces(chunk))

    def _long(self, chunk: MatchChunk, rows: pa.RecordBatch, marks: Longs | None) -> pa.RecordBatch:
        lists = self._lists(chunk)
        lengths = np.stack([_lengths(each) for each in lists], axis=1)  # by match and column
        places = _by_match(lists, lengths)
        owner = np.repeat(np.arange(lengths.size), lengths.ravel())  # match * columns + column
        column = owner % len(lists)
        rank = np.arange(places.size) - (np.cumsum(lengths) - lengths.ravel())[owner]
        ids = self.ids.of(chunk, rows, marks).take(pa.array(owner // len(lists)))
        names = pa.array([each.variable for each in self.shown], pa.string())
        arrays = [ids, names.take(pa.array(column)), pa.array(rank)]
        where = pa.array(places)
        for name in self.attributes:
            values = taken(rows, name, where)
            hidden = [k for k, each in enumerate(self.shown) if name not in each.attributes]
            if hidden:
                values = pc.if_else(pa.array(~np.isin(column, hidden)), values, pa.scalar(None, values.type))
            arrays.append(values)
        return pa.RecordBatch.from_arrays(arrays, schema=self.long_schema(rows.schema))


def pieces(chunk: MatchChunk) -> Iterator[MatchChunk]:
    """The matches in chunks of few events."""
    begin = 0
    while begin < len(chunk):
        stop = int(np.searchsorted(chunk.offsets, chunk.offsets[begin] + MOST, side="right")) - 1
        stop = min(max(stop, begin + 1), len(chunk))
        yield chunk if stop - begin == len(chunk) else chunk.slice(begin, stop)
        begin = stop


def taken(rows: pa.RecordBatch, name: str, places: pa.Array) -> pa.Array:
    """A column's values at these places."""
    return decoded(rows.column(name).take(places))


def _structs(lists: pa.ListArray, rows: pa.RecordBatch, attributes: tuple[str, ...]) -> pa.Array:
    places = lists.flatten()
    arrays = [taken(rows, name, places) for name in attributes]
    fields = [pa.field(name, array.type) for name, array in zip(attributes, arrays, strict=True)]
    structs = pa.StructArray.from_arrays(arrays, fields=fields)
    return pa.ListArray.from_arrays(lists.offsets, structs)


def _lengths(lists: pa.ListArray) -> Longs:
    lengths: Longs = np.diff(lists.offsets.to_numpy()).astype(np.int64)
    return lengths


def _by_match(lists: Sequence[pa.ListArray], lengths: Longs) -> Longs:
    """The lists' values in the order of matches, and of the columns in a match."""
    ends = np.cumsum(lengths).reshape(lengths.shape)
    merged = np.empty(int(lengths.sum()), np.int64)
    for column, values in enumerate(each.flatten().to_numpy() for each in lists):
        mine = lengths[:, column]
        before = np.cumsum(mine) - mine
        merged[np.repeat(ends[:, column] - mine - before, mine) + np.arange(values.size)] = values
    return merged


def _apart(names: Sequence[str]) -> tuple[str, ...]:
    """Names of columns next to those of `LONG`, made distinct from them.

    >>> _apart(("match", "v", "match_"))
    ('match__', 'v', 'match_')
    """
    renamed: list[str] = []
    for name in names:
        column = name
        while column in LONG or (column != name and column in (*names, *renamed)):
            column += "_"
        renamed.append(column)
    return tuple(renamed)
