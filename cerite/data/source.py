"""What every source of events can do.

Invariant: `schema` has the requested columns in the requested order, and every batch has exactly that schema. A row's
position is its rank in the order in which `batches` gives the rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from cerite.core.errors import Hint, Setting, Span, StreamError, TextWarning, a, listed, repeated_column, suggestion
from cerite.data.columns import root, subschema
from cerite.data.guesses import FORMATTED, LOSING
from cerite.data.positions import Positions

BATCH_ROWS = 1 << 20


@dataclass(frozen=True, slots=True)
class Sight:
    """A value and the place where it was seen."""

    value: str
    where: str


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
    """Every column of the data, also those that were not requested."""
    everything: pa.Schema
    """Every column of the data with its type, and what structs hold under dotted names."""
    rows: int | None
    """How many rows there are, where it is known before reading them."""
    files: tuple[Path, ...] = ()
    """The files that the rows are read from."""
    row_starts: tuple[int, ...] | None = None
    """The position of each file's first row, where files know their rows by number (Parquet)."""

    @abstractmethod
    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in order; no batch is empty. A source that can be read only once refuses the second time."""

    @abstractmethod
    def take(self, positions: Positions, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows at these positions, in this order; `columns` may be any of `available`, by default `schema`'s."""

    def narrowed(self, columns: Sequence[str]) -> Source:
        """The same rows with these columns of `everything`; one that can be read only once is used up by the copy."""
        source = copy(self)
        source.schema = subschema(self.everything, chosen(columns, self.everything.names, self.name))
        return source

    def in_memory(self, columns: Sequence[str]) -> bool:
        """Whether batches with these columns are parts of what is in memory, so that to read ahead takes no room."""
        return False

    def sights(self, name: str) -> dict[str, Sight]:
        """What a column of strings looks like (number, boolean, time, text), and where each was first seen.

        Empty where values have types of their own, so that nothing had to be guessed.
        """
        return {}

    def samples(self, name: str) -> dict[str, Sight]:
        """What strings look like in data that was read elsewhere, where perhaps nobody guessed what they are."""
        return {}

    def ranked(self, name: str) -> list[str] | None:
        """The categories of a column that has an order of its own for them, which is not that of text."""
        return None

    def lacking(self, name: str) -> list[str]:
        """The parts of the data that lack a column which others have."""
        return []

    def typed(self, types: Mapping[str, pa.DataType]) -> Source:
        """The same rows, with these types for columns that have no values or are not there, which are NULL everywhere.

        The original is not to be read any more.
        """
        source = copy(self)
        for part in ("everything", "schema"):
            known = {each.name: each.type for each in getattr(self, part)}
            setattr(source, part, pa.schema(known | dict(types)))
        return source

    def table(self) -> pa.Table:
        """All rows in memory; each string column has one dictionary."""
        return pa.Table.from_batches(list(self.batches()), self.schema).unify_dictionaries()

    def __repr__(self) -> str:
        rows = "" if self.rows is None else f", {self.rows} rows"
        return f"<{type(self).__name__} {self.name}: {len(self.schema)} columns{rows}>"


def chosen(columns: Sequence[str] | None, available: Sequence[str], name: str) -> tuple[str, ...]:
    """The requested columns, all of them by default; an unknown or repeated one is refused.

    >>> chosen(["price"], ["id", "price"], "S")
    ('price',)
    """
    if not available:
        raise StreamError(f"{name} has no columns")
    if columns is None:
        return tuple(available)
    if isinstance(columns, str):
        raise StreamError(f"columns must be a list of names, not the text {columns!r}", hint=f"write [{columns!r}]")
    names = tuple(columns)
    if not names:
        raise StreamError(f"no columns are requested of {name}", hint="leave `columns` out for all of them")
    for column in names:
        if column not in available:
            raise StreamError(
                f"{name} has no column `{column}`",
                hint=suggestion(str(column), available) or f"the columns are {listed(available)}",
            )
    refuse_repeated(names, "the requested columns")
    return names


def homes(columns: Sequence[str] | None, available: Sequence[str], name: str) -> tuple[str, ...]:
    """The columns of the data that hold the requested ones, which may be members of structs.

    >>> homes(["ctx.ip", "id", "ctx.port"], ["id", "ctx"], "S")
    ('ctx', 'id')
    """
    if columns is None or isinstance(columns, str) or not columns:
        return chosen(columns, available, name)
    refuse_repeated(columns, "the requested columns")
    return chosen(tuple(dict.fromkeys(root(each, available) or each for each in columns)), available, name)


def refuse_repeated(names: Iterable[str], where: str) -> None:
    """Refuse two columns of the same name: it would be unclear which one is meant."""
    seen: set[str] = set()
    for each in names:
        if each in seen:
            raise repeated_column(each, where, StreamError)
        seen.add(each)


def checked_rows(batch_rows: int) -> int:
    """The batch size; anything but a positive whole number is refused."""
    if isinstance(batch_rows, bool) or not isinstance(batch_rows, int) or batch_rows < 1:
        raise StreamError(f"batch_rows must be a positive whole number, not {batch_rows!r}")
    return batch_rows


def described(name: str, odd: Mapping[str, Sight]) -> str:
    """What a column of text holds, and where."""
    if LOSING in odd and odd.keys() <= {LOSING, "number"}:
        first = odd[LOSING]
        return f"column `{name}` is text, and as numbers some would lose digits (`{first.value}`, {first.where})"
    if odd.keys() == {"number"}:
        return f"column `{name}` is text that holds numbers (`{odd['number'].value}`, {odd['number'].where})"
    shown = [f"{a(shape)} (`{each.value}`, {each.where})" for shape, each in odd.items() if shape != "text"]
    text = [f"other text (`{odd['text'].value}`, {odd['text'].where})"] if "text" in odd else []
    return f"column `{name}` holds " + " and ".join([*shown, *text])


def ordered_text(name: str, odd: Mapping[str, Sight], span: Span | None, hint: str) -> StreamError:
    """That a query compares a column by order whose kind nobody knows, because it was only guessed to be text."""
    return StreamError(f"`{name}` is compared by order, but {described(name, odd)}", span=span, hint=hint)


def numbers_as_text(name: str, number: Sight) -> TextWarning:
    """That a column is compared as text although it begins with numbers; others may have made it text on purpose."""
    return TextWarning(
        f"column `{name}` is text and compared as text, but holds `{number.value}` ({number.where}); "
        f"convert it to numbers, or say that it is text: schema={{{name!r}: 'string'}}"
    )


def times_as_text(name: str, time: Sight, other: Sight) -> TextWarning:
    """That a column of times is compared as text although these are written in several forms."""
    return TextWarning(
        f"column `{name}` is text and compared as text, but holds times in several forms, `{time.value}` "
        f"({time.where}) and `{other.value}` ({other.where}); convert it to timestamps, or say that it is text: "
        f"schema={{{name!r}: 'string'}}"
    )


def remedy_of(name: str, odd: Mapping[str, Sight]) -> Hint:
    """The hint on how to declare what is meant."""
    plainly = ("; numbers must be written plainly, such as 1000.5",)
    declare = (
        Setting("schema", f"{name}:string"), " if the column is text",
        *(plainly if FORMATTED in odd else (", ", Setting("schema", f"{name}:float"), " if it holds numbers")),
    )  # fmt: skip
    if "text" not in odd:
        return Hint(*declare)
    return Hint(Setting("null_values", odd["text"].value), " if that is a missing value; ", *declare)
