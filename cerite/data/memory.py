"""Sources that are whole in memory: Arrow tables and batches, and frames that turn into tables.

Invariant: the data is held, not copied; only the wanted columns are converted, batch by batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from cerite.data.columns import canonical_schema, conform
from cerite.data.positions import Positions, gather
from cerite.data.source import BATCH_ROWS, Source, checked_rows, chosen, refuse_repeated

Load = Callable[[Sequence[str]], pa.Table]
_SMALL = 1 << 14  # chunks smaller than this on average are joined, so that batches are worth their overhead


class TableSource(Source):
    """A table, or what `load` makes one of: asked once for the chosen columns, again for others that `take` wants.

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
        self._table = load(chosen(columns, names, name))
        self.schema = canonical_schema(self._table.schema)
        self.rows: int = self._table.num_rows

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Slices of the table, without copies unless it is in very small pieces."""
        for batch in _pieces(self._table, self._batch_rows):
            yield conform(batch, self.schema, self.name)

    def take(self, positions: Positions, columns: Sequence[str] | None = None) -> pa.Table:
        """Rows by position, from the chunks that hold them."""
        names = self.schema.names if columns is None else list(chosen(columns, self.available, self.name))
        known = set(names) <= set(self.schema.names)
        table = self._table.select(names) if known else self._load(names)
        schema = canonical_schema(table.schema)
        pieces = table.to_batches()
        counts = [piece.num_rows for piece in pieces]
        return gather(positions, counts, lambda i: [conform(pieces[i], schema, self.name)], schema, self.name)


def _pieces(table: pa.Table, batch_rows: int) -> Iterator[pa.RecordBatch]:
    pieces = table.to_batches(max_chunksize=batch_rows)
    if len(pieces) < 2 or table.num_rows >= _SMALL * len(pieces) or batch_rows < _SMALL:
        yield from (piece for piece in pieces if piece.num_rows)
        return
    for start in range(0, table.num_rows, batch_rows):
        yield from table.slice(start, batch_rows).combine_chunks().to_batches(max_chunksize=batch_rows)
