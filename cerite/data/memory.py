"""Sources that are whole in memory: Arrow tables and batches, and frames that turn into tables.

Invariant: the data is referenced, not copied; only the wanted columns are converted, batch by batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from cerite.core.errors import StreamError
from cerite.data.columns import STRINGS, canonical_schema, conform, subschema, with_leaves
from cerite.data.guesses import MisfitError, declared, has_zone, is_time, sampled
from cerite.data.positions import Positions, gather
from cerite.data.source import BATCH_ROWS, Sight, Source, checked_rows, chosen, homes, refuse_repeated

Load = Callable[[Sequence[str]], pa.Table]
_SMALL = 1 << 14  # chunks smaller than this on average are joined, so that batches are worth their overhead


class TableSource(Source):
    """A table, given by `load`, which is called once for the chosen columns and again for others that `take` needs.

    >>> table = pa.table({"a": [1, 2, 3]})
    >>> [batch.num_rows for batch in TableSource(table.select, ["a"], "a table", batch_rows=2).batches()]
    [2, 1]
    """

    def __init__(
        self,
        load: Load,
        names: Sequence[str],
        name: str,
        columns: Sequence[str] | None = None,
        batch_rows: int = BATCH_ROWS,
    ) -> None:
        refuse_repeated(names, name)
        self.name = name
        self.available = tuple(names)
        self._load = load
        self._batch_rows = checked_rows(batch_rows)
        self._table = load(homes(columns, names, name))
        self.everything = with_leaves(canonical_schema(self._table.schema), name)
        wanted = self._table.column_names if columns is None else chosen(columns, self.everything.names, name)
        self.schema = subschema(self.everything, tuple(wanted))
        self.rows: int = self._table.num_rows

    def in_memory(self, columns: Sequence[str]) -> bool:
        """Whether none of them has to be converted, and no pieces have to be joined."""
        held, wanted = self._table.schema, self.everything
        unchanged = all(name in held.names and held.field(name).type == wanted.field(name).type for name in columns)
        return unchanged and not _small(self._table.to_batches(max_chunksize=self._batch_rows), self._batch_rows)

    def is_text(self, name: str) -> bool:
        """Whether the column of this name has strings."""
        return name in self.everything.names and self.everything.field(name).type == STRINGS

    def timed(self, name: str) -> TableSource:
        """The same rows, with a column of strings read as times."""
        if name not in self.available:
            raise StreamError(
                f"{self.name}, column `{name}` holds text inside a struct, not times", hint="convert it to timestamps"
            )

        def load(names: Sequence[str]) -> pa.Table:
            table = self._load(names)
            at = table.column_names.index(name) if name in names else -1
            return table if at < 0 else table.set_column(at, name, times_of(table[name], self.name, name))

        return TableSource(load, self.available, self.name, None, self._batch_rows)

    def samples(self, name: str) -> dict[str, Sight]:
        """What the strings of a column look like."""
        column = self._table[name] if name in self._table.column_names else None
        if column is None or not self.is_text(name) or not len(column):
            return {}
        text = _as_text(column)
        return {shape: Sight(value, f"{self.name}, row {row}") for shape, (row, value) in sampled(text).items()}

    def ranked(self, name: str) -> list[str] | None:
        """The categories of an ordered column, if text is ordered otherwise."""
        column = self._table[name] if name in self._table.column_names else None
        if column is None or not pa.types.is_dictionary(column.type) or not column.type.ordered:
            return None
        categories = column.chunk(0).dictionary.to_pylist() if column.num_chunks else []
        return None if categories == sorted(categories, key=str) else [*map(str, categories)]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Slices of the table, without copies unless it is in very small pieces."""
        for batch in _pieces(self._table, self._batch_rows):
            yield conform(batch, self.schema, self.name)

    def take(self, positions: Positions, columns: Sequence[str] | None = None) -> pa.Table:
        """Rows by position, from the chunks that hold them."""
        names = tuple(self.schema.names) if columns is None else tuple(columns)
        needed = homes(names, self.available, self.name)
        loaded = set(needed) <= set(self._table.column_names)
        table = self._table.select(needed) if loaded else self._load(needed)
        whole = with_leaves(canonical_schema(table.schema), self.name)
        known = {each.name: each.type for each in self.everything}  # of a column without values, whatever `typed` said
        wanted = subschema(whole, chosen(names, whole.names, self.name))
        schema = pa.schema([(each.name, known.get(each.name, each.type)) for each in wanted])
        pieces = table.to_batches()
        counts = [piece.num_rows for piece in pieces]
        return gather(positions, counts, lambda i: [conform(pieces[i], schema, self.name)], schema, self.name)


def _pieces(table: pa.Table, batch_rows: int) -> Iterator[pa.RecordBatch]:
    pieces = table.to_batches(max_chunksize=batch_rows)
    if not _small(pieces, batch_rows):
        yield from (piece for piece in pieces if piece.num_rows)
        return
    for start in range(0, table.num_rows, batch_rows):
        yield from table.slice(start, batch_rows).combine_chunks().to_batches(max_chunksize=batch_rows)


def _small(pieces: Sequence[pa.RecordBatch], batch_rows: int) -> bool:
    """Whether batches are worth their overhead only if these pieces are joined."""
    return len(pieces) > 1 and batch_rows >= _SMALL > sum(piece.num_rows for piece in pieces) / len(pieces)


def times_of(column: pa.ChunkedArray, where: str, name: str) -> pa.ChunkedArray:
    """Strings as times; one that is not a time is refused, with its row.

    >>> times_of(pa.chunked_array([["2024-05-01T12:30:00"]]), "S", "at").type
    TimestampType(timestamp[us])
    """
    try:
        return declared(_as_text(column), "timestamp")
    except MisfitError as misfit:
        why = "is not a time" if not is_time(misfit.value) else (
            "has a zone, and others have none" if has_zone(misfit.value) else "has no zone, and others have one"
        )  # fmt: skip
        numeric = "convert the column to whole numbers, and say with `time_unit` what they count"
        raise StreamError(
            f"{where}, row {misfit.row} (from 0), column `{name}`: `{misfit.value}` {why}",
            hint=numeric if misfit.value.isdecimal() else
            "write times as 2024-05-01T12:30:00, all with a zone or all without, or convert the column",
        ) from None  # fmt: skip


def _as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of strings in any layout as plain ones."""
    if pa.types.is_run_end_encoded(column.type):
        column = pa.chunked_array([pc.run_end_decode(chunk) for chunk in column.chunks], column.type.value_type)
    return column.cast(pa.string())
