"""How the caller wants data to be read: declared kinds, spellings of missing values, the separator, the format.

Invariant: what is declared is never guessed. A declaration decides how text is read; other data must have the kind that
is declared for it (whole numbers may stand where floats are declared), or it is refused before a row is read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.types as is_

from cerite.core.errors import Hint, Setting, StreamError, a
from cerite.core.schema import Kind, arrow_kind
from cerite.data.columns import STRINGS
from cerite.data.guesses import FORMATTED, SHAPES, SIGHTS

FORMATS = ("csv", "tsv", "json", "core", "parquet", "ipc")
_SHOWN = ("csv", "tsv", "jsonl", "core", "parquet", "arrow")
_ALIASES = {"jsonl": "json", "ndjson": "json", "arrow": "ipc", "feather": "ipc", "txt": "core", "pq": "parquet"}


@dataclass(frozen=True, slots=True)
class Reading:
    """`kinds` are declared for columns by name; `null_values` are missing values in every column of a text file.

    >>> Reading.of(null_values="?", format="jsonl")
    Reading(kinds={}, null_values=('?',), delimiter=None, format='json')
    """

    kinds: Mapping[str, Kind] = field(default_factory=dict)
    null_values: tuple[str, ...] = ()
    delimiter: str | None = None
    format: str | None = None

    @staticmethod
    def of(
        kinds: Mapping[str, Kind] | None = None,
        null_values: str | Sequence[str] = (),
        delimiter: str | None = None,
        format: str | None = None,
    ) -> Reading:
        """The options, checked."""
        nulls = (null_values,) if isinstance(null_values, str) else tuple(null_values)
        for each in nulls:
            if not isinstance(each, str):
                raise StreamError(f"null_values are texts, not {each!r}", hint=f"write null_values=[{str(each)!r}]")
        if delimiter is not None and (len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n'):
            raise StreamError(f"a delimiter is one ASCII character, not {delimiter!r}", hint="such as ';' or '|'")
        form = None if format is None else _ALIASES.get(format.lower(), format.lower())
        if form is not None and form not in FORMATS:
            raise StreamError(f"there is no format {format!r}", hint="the formats are " + ", ".join(_SHOWN))
        return Reading(dict(kinds or {}), nulls, delimiter, form)

    def refuse_other_kinds(self, schema: pa.Schema, name: str) -> None:
        """Refuse typed data whose columns are of other kinds than declared."""
        for column in schema:
            wanted = self.kinds.get(column.name)
            kind = arrow_kind(column.type)
            if wanted is None or is_.is_null(column.type) or kind == wanted or (wanted, kind) == ("float", "int"):
                continue
            shown = "string" if column.type == STRINGS else str(column.type)
            raise StreamError(
                f"{name}, column `{column.name}` holds {shown}, but it is declared {wanted}",
                hint=f"convert the column, or declare it {kind}" if kind else "convert the column",
            )

    def refuse_text_options(self, name: str) -> None:
        """Refuse options that make sense only for text."""
        for option, given in (
            ("null_values", self.null_values),
            ("delimiter", self.delimiter),
            ("format", self.format),
        ):
            if given:
                raise StreamError(f"{option} is about text files, but {name} has types of its own", hint="leave it out")


def refusal(where: str, name: str, value: str, kind: str) -> StreamError:
    """The error for a value that is not of the kind declared for its column."""
    return StreamError(
        f"{where}, column `{name}`: `{value}` is not {a(kind)}, as declared",
        hint=Hint(
            "if it stands for a missing value, say so: ", Setting("null_values", value), f"; else {_else(value, kind)}"
        ),
    )


def _else(value: str, kind: str) -> str:
    """What to do about a value that is not of the declared kind, and not missing."""
    if kind == "int" and re.match(SHAPES["number"], value):
        return "declare the column float"
    if kind in ("int", "float") and re.match(SIGHTS[FORMATTED], value):
        return "write numbers without separators or units, such as 1000.5, or declare the column string"
    return "declare the column string"
