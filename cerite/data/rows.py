"""Events as Python dictionaries, from a list or a generator.

Invariant: rows are consumed batch by batch. The first batch fixes the columns and their types; a later value that does
not fit, or a key that was not there, is an error that names row and column. A missing key is NULL.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

import pyarrow as pa

from cerite.core.errors import StreamError, a, suggestion
from cerite.data.columns import root, subschema, with_leaves
from cerite.data.kinds import array_of, type_of
from cerite.data.positions import Positions, gather
from cerite.data.readers import refuse_second, refuse_take
from cerite.data.source import BATCH_ROWS, Source, checked_rows, chosen

Row = Mapping[str, Any]
_TAKEN = 1 << 10  # rows of a list that are converted at a time to take some of them


class RowSource(Source):
    """Dictionaries; a list or tuple can be read again, anything else only once.

    >>> source = RowSource([{"a": 1}, {"b": "x"}])
    >>> source.table().to_pylist()
    [{'a': 1, 'b': None}, {'a': None, 'b': 'x'}]
    """

    def __init__(self, data: Iterable[Row], columns: Sequence[str] | None = None, batch_rows: int = BATCH_ROWS) -> None:
        self._batch_rows = checked_rows(batch_rows)
        self._list = data if isinstance(data, Sequence) else None
        self.name = "the stream of events" if self._list is None else "the list of events"
        self.rows = None if self._list is None else len(self._list)
        rest = iter(data)
        first = list(islice(rest, self._batch_rows))
        if not first:
            raise StreamError(f"{self.name} is empty, so its columns are unknown", hint="pass an empty table instead")
        top = self._inferred(first)
        self._known = frozenset(top.names)
        self._selective = columns is not None
        self.available = tuple(top.names)
        self.everything = with_leaves(top, self.name)
        wanted = self.available if columns is None else columns
        self.schema = subschema(self.everything, chosen(wanted, self.everything.names, self.name))
        self._unread: Iterator[Row] | None = chain(first, rest)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, converted as they come."""
        if self._list is not None:
            return self._converted(iter(self._list))
        if self._unread is None:
            refuse_second(self.name)
        unread, self._unread = self._unread, None
        return self._converted(unread)

    def narrowed(self, columns: Sequence[str]) -> Source:
        """The same rows with these columns; of rows that come once, this source cannot be read any more."""
        source = super().narrowed(columns)
        self._unread = None
        return source

    def take(self, positions: Positions, columns: Sequence[str] | None = None) -> pa.Table:
        """Rows of a list by position."""
        if self._list is None:
            refuse_take(self.name)
        rows = self._list
        names = tuple(self.schema.names) if columns is None else chosen(columns, self.everything.names, self.name)
        schema = subschema(self.everything, names)
        starts = range(0, len(rows), _TAKEN)

        def read(i: int) -> list[pa.RecordBatch]:
            return [self._batch(rows[starts[i] : starts[i] + _TAKEN], starts[i], schema)]

        return gather(positions, [min(_TAKEN, len(rows) - each) for each in starts], read, schema, self.name)

    def _converted(self, rows: Iterator[Row]) -> Iterator[pa.RecordBatch]:
        start = 0
        while batch := list(islice(rows, self._batch_rows)):
            yield self._batch(batch, start, self.schema)
            start += len(batch)

    def _batch(self, rows: Sequence[Row], start: int, schema: pa.Schema) -> pa.RecordBatch:
        for at, row in enumerate(rows, start):
            refuse_other(row, at, self.name)
            if not self._selective and not row.keys() <= self._known:
                key = next(key for key in row if key not in self._known)
                raise StreamError(
                    f"{self.name}, row {at} (from 0), column `{key}` is not in the first {self._batch_rows} rows",
                    hint=suggestion(str(key), self._known)
                    or "give the first row every key, None where it has no value",
                )
        arrays = [array_of(self._values(rows, column.name), column, start, self.name) for column in schema]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _values(self, rows: Sequence[Row], name: str) -> list[Any]:
        """A column's values, of the rows themselves or of the dictionaries in them."""
        home = root(name, self._known) or name
        values = [row.get(home) for row in rows]
        for member in name[len(home) + 1 :].split(".") if home != name else ():
            values = [None if value is None else value.get(member) for value in values]
        return values

    def _inferred(self, rows: Sequence[Row]) -> pa.Schema:
        names: dict[str, None] = {}
        for at, row in enumerate(rows):
            refuse_other(row, at, self.name)
            if not row.keys() <= names.keys():
                names.update(dict.fromkeys(row))
        for name in names:
            if not isinstance(name, str):
                raise StreamError(f"{self.name}: the key {name!r} is not a string")
        return pa.schema([(name, type_of([row.get(name) for row in rows], self.name, name)) for name in names])


def refuse_other(row: object, at: int, where: str) -> None:
    """Refuse a row that is not a dictionary."""
    if not isinstance(row, Mapping):
        raise StreamError(
            f"{where}, row {at} (from 0) is {a(type(row).__name__)}, not a dictionary",
            hint="an event is a dictionary that maps column names to values",
        )
