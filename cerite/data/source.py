"""What every source of events can do.

Invariant: `schema` has the asked-for columns in the asked-for order, and every batch has exactly that schema. A row's
position is its rank in the order in which `batches` gives the rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from cerite.data.positions import Positions
from cerite.errors import StreamError, listed, suggestion

BATCH_ROWS = 1 << 20


class Source(ABC):
    """Events as Arrow batches, all of one schema.

    >>> from cerite.data import open_events
    >>> source = open_events(pa.table({"id": [1, 2, 3], "name": ["a", "b", "a"]}), columns=["name"])
    >>> source.rows, source.schema.names, source.available
    (3, ['name'], ('id', 'name'))
    >>> source.take([2, 0], columns=["id", "name"]).to_pylist()
    [{'id': 3, 'name': 'a'}, {'id': 1, 'name': 'a'}]
    """

    name: str
    """What messages call the source, e.g. its path."""
    schema: pa.Schema
    """The columns of every batch."""
    available: tuple[str, ...]
    """Every column of the data, also those that were not asked for."""
    rows: int | None
    """How many rows there are, where it is known before reading them."""
    files: tuple[Path, ...] = ()
    """The files that the rows are read from."""

    @abstractmethod
    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in order; no batch is empty. A source that can be read only once refuses the second time."""

    @abstractmethod
    def take(self, positions: Positions, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows at these positions, in this order; `columns` may be any of `available`, by default `schema`'s."""

    def table(self) -> pa.Table:
        """All rows in memory; each string column has one dictionary."""
        return pa.Table.from_batches(list(self.batches()), self.schema).unify_dictionaries()

    def __repr__(self) -> str:
        rows = "" if self.rows is None else f", {self.rows} rows"
        return f"<{type(self).__name__} {self.name}: {len(self.schema)} columns{rows}>"


def chosen(columns: Sequence[str] | None, available: Sequence[str], name: str) -> tuple[str, ...]:
    """The columns asked for, all of them by default; an unknown or repeated one is refused.

    >>> chosen(["price"], ["id", "price"], "S")
    ('price',)
    """
    if not available:
        raise StreamError(f"{name} has no columns")
    if columns is None:
        return tuple(available)
    if isinstance(columns, str):
        raise StreamError(f"columns must be a list of names, not the text {columns!r}", hint=f"write [{columns!r}]")
    asked = tuple(columns)
    if not asked:
        raise StreamError(f"no columns are asked for of {name}", hint="leave `columns` out for all of them")
    for column in asked:
        if column not in available:
            raise StreamError(
                f"{name} has no column `{column}`",
                hint=suggestion(str(column), available) or f"the columns are {listed(available)}",
            )
    refuse_repeated(asked, "the columns asked for")
    return asked


def refuse_repeated(names: Iterable[str], where: str) -> None:
    """Two columns of one name cannot both be meant by it."""
    seen: set[str] = set()
    for each in names:
        if each in seen:
            raise StreamError(f"{where}: two columns are called `{each}`", hint="rename one of them")
        seen.add(each)


def checked_rows(batch_rows: int) -> int:
    """The batch size, if it is one."""
    if isinstance(batch_rows, bool) or not isinstance(batch_rows, int) or batch_rows < 1:
        raise StreamError(f"batch_rows must be a whole number from 1 on, not {batch_rows!r}")
    return batch_rows
