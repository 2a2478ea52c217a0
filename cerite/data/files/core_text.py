"""CORE's text form of a stream: one event a line, `BUY(id=8,name=INTC,price=12.5)`.

Invariant: every line that is not blank is one row; its event type is in column `type`, and an attribute that an event
does not have is NULL there. Unquoted words are integers, floats, booleans, times or strings, whichever holds for the
whole column; an empty word and NULL are NULL, and so are, among numbers, booleans and times, the usual spellings of a
missing value. Quoted values ('it''s', "so") are strings, whatever they look like. Declared columns are as declared.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from cerite.core.errors import Hint, Setting, Span, StreamError
from cerite.core.names import unquoted
from cerite.data.files.chunks import Chunk, lines_cut
from cerite.data.guesses import ABSENT, MisfitError, declared, guessed, typed, without
from cerite.data.reading import Reading, refusal
from cerite.data.unify import Guess

TYPE = "type"
_OTHERS = {b"{": "jsonl", b"\t": "tsv", b",": "csv", b";": "csv"}  # what lines of other formats hold
_TEXT = pa.large_string()
_SHAPES = 64  # a file with more shapes than this is irregular: the rest is parsed line by line
_VALUES = {"": r"[^,()\"'\r]*", "'": r"'[^'\r]*'", '"': r'"[^"\r]*"'}


class CoreText:
    """The events of one file."""

    guess: Guess = "all"

    def __init__(self, reading: Reading | None = None) -> None:
        self._reading = reading or Reading()
        self.spelled: set[str] = set()

    def begin(self, path: Path, head: bytes) -> int:
        """There is no header; a file that begins as another format does is refused."""
        line = head.lstrip().split(b"\n", 1)[0]
        other = next((form for sign, form in _OTHERS.items() if sign in line), None)
        if other is not None and b"(" not in line:
            raise StreamError(f"{path}: the file looks like {other}", hint=Hint("say so: ", Setting("format", other)))
        return 0

    def cut(self, data: bytes) -> int:
        """Whole lines."""
        return lines_cut(data)

    def parse(self, chunk: Chunk, schema: pa.Schema | None) -> pa.Table:
        """The events; without a schema kinds are guessed from all of them."""
        groups = _groups(chunk)
        if not groups:
            return pa.table({})
        columns: dict[str, pa.Array] = {}
        types = {TYPE: None} if schema is None else dict(zip(schema.names, schema.types, strict=True))
        if TYPE in types:
            columns[TYPE] = pa.concat_arrays(
                [pa.repeat(pa.scalar(each.head, _TEXT), len(each.rows)) for each in groups]
            )
        for name in dict.fromkeys(name for group in groups for name in group.names):
            if schema is None or name in types:
                columns[name] = self._column(chunk, groups, name, types.get(name))
        order = np.argsort(np.concatenate([group.rows for group in groups]))
        for name in types.keys() - columns.keys():
            columns[name] = pa.nulls(len(order), types[name])
        return pa.table(columns).take(pa.array(order))

    def line(self, chunk: Chunk, row: int) -> int:
        """The line of an event of the chunk."""
        written = pc.match_substring_regex(_lines(chunk.data), r"\S").to_numpy(zero_copy_only=False)
        return chunk.span.line + int(np.flatnonzero(written)[row])

    def _column(self, chunk: Chunk, groups: Sequence[_Group], name: str, wanted: pa.DataType | None) -> pa.Array:
        """The attribute's values, group after group, as the wanted type or the one they suggest."""
        text, quoted = _text_of(groups, name)
        nulls = self._reading.null_values
        kind = self._reading.kinds.get(name)
        try:
            if kind is not None:
                return declared(text, kind, nulls)
            if wanted is not None:
                return pa.nulls(len(text)) if is_.is_null(wanted) else typed(text, wanted, nulls)
        except MisfitError as misfit:
            line = chunk.span.line + int(np.concatenate([group.rows for group in groups])[misfit.row])
            raise refusal(f"{chunk.path}, line {line}", name, misfit.value, kind or str(wanted)) from None
        column = without(text, nulls) if quoted else guessed(text, nulls)
        if is_.is_null(column.type) and without(text, nulls).null_count < len(text):
            self.spelled.add(name)
        return column


@dataclass(frozen=True, slots=True)
class _Group:
    """Events of one type with the same attributes: the lines they are from, and a text column for each attribute."""

    head: str
    names: tuple[str, ...]
    quotes: tuple[str, ...]
    rows: np.ndarray
    columns: list[pa.Array]


def _groups(chunk: Chunk) -> list[_Group]:
    """The events by shape. The first line of a shape is parsed with care, the others like it by one expression."""
    lines = _lines(chunk.data)
    left = np.flatnonzero(pc.match_substring_regex(lines, r"\S").to_numpy(zero_copy_only=False))
    groups: list[_Group] = []
    for tried in count():
        if not len(left):
            return groups
        if tried == _SHAPES:
            return groups + [_alone(chunk, lines, int(row)) for row in left]
        row = int(left[0])
        head, attributes = _careful(chunk, lines, row)
        unread = lines.take(pa.array(left))
        fields = pc.extract_regex(unread, _pattern(lines[row].as_py(), attributes))
        fits = fields.is_valid().to_numpy(zero_copy_only=False)
        if not fits[0]:  # an odd line, e.g. with a doubled quote: it is its own shape
            groups.append(_alone(chunk, lines, row))
            left = left[1:]
            continue
        names, quotes = tuple(each.name for each in attributes), tuple(each.quote for each in attributes)
        columns = [
            _unquoted(column, quote) for column, quote in zip(fields.filter(fits).flatten(), quotes, strict=False)
        ]
        groups.append(_Group(head, names, quotes, left[fits], columns))
        left = left[~fits]
    return groups


def _lines(data: bytes) -> pa.Array:
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n"))
    offsets = np.concatenate([[0], ends + 1, [len(data) + 1]]).astype(np.int64)
    # each line with its line end, which the expressions allow for; a copy of the data has an end for the last
    whole = pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data + b"\n"))
    return pc.utf8_rtrim(whole, "\r\n")


def _careful(chunk: Chunk, lines: pa.Array, row: int) -> tuple[str, list[Attribute]]:
    return parsed_line(lines[row].as_py(), f"{chunk.path}, line {chunk.span.line + row}", TYPE)


def _alone(chunk: Chunk, lines: pa.Array, row: int) -> _Group:
    head, attributes = _careful(chunk, lines, row)
    columns = [pa.array([each.value], _TEXT) for each in attributes]
    names, quotes = tuple(each.name for each in attributes), tuple(each.quote for each in attributes)
    return _Group(head, names, quotes, np.array([row]), columns)


def _pattern(line: str, attributes: Sequence[Attribute]) -> str:
    """Lines like this one but for the values, if those are simple; all others are parsed with care."""
    parts, at = [], 0
    for place, each in enumerate(attributes):
        parts += [re.escape(line[at : each.start]), f"(?P<v{place}>{_VALUES[each.quote]})"]
        at = each.end
    return "^" + "".join([*parts, re.escape(line[at:])]) + "(?P<end>)$"


def _unquoted(column: pa.Array, quote: str) -> pa.Array:
    return pc.utf8_slice_codeunits(column, 1, -1) if quote else column


def _text_of(groups: Sequence[_Group], name: str) -> tuple[pa.Array, bool]:
    """The attribute's words, group after group, NULL where there is none, and whether some are quoted."""
    texts: list[pa.Array] = []
    quoted = False
    for group in groups:
        if name not in group.names:
            texts.append(pa.nulls(len(group.rows), _TEXT))
            continue
        at = group.names.index(name)
        text = group.columns[at]
        if group.quotes[at]:
            quoted = True
        else:
            text = without(pc.utf8_trim_whitespace(text), ABSENT)
        texts.append(text)
    return pa.concat_arrays(texts), quoted


# One event of CORE's text form, parsed with care: the slow way, which knows what is wrong and where.
#
# Invariant: what is accepted is `type(name=value, …)` to the end of the line and nothing else.

_NAME = re.compile(r"[^\W\d]\w*|`(?:[^`]|``)+`")
_VALUE = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|[^,()\"']*")
_SPACE = re.compile(r"\s*")


@dataclass(frozen=True, slots=True)
class Attribute:
    """`name=value`; `quote` is the kind of quotes around the value, `start` and `end` where it is written."""

    name: str
    value: str
    quote: str
    start: int
    end: int


def parsed_line(line: str, where: str, reserved: str) -> tuple[str, list[Attribute]]:
    """The event type and the attributes; `reserved` is the column of the type, a name that no attribute may have.

    >>> head, attributes = parsed_line("BUY(id=8, name='it''s')", "S", "type")
    >>> head, [(each.name, each.value) for each in attributes]
    ('BUY', [('id', '8'), ('name', "it's")])
    """
    reader = _Reader(line, where)
    head = reader.name("an event type")
    reader.sign("(", "`(` after the event type")
    attributes: list[Attribute] = []
    while not reader.next_is(")") or attributes:
        begin = reader.at
        name = reader.name("an attribute")
        if name == reserved:
            reader.fail(f"no attribute can be called `{name}`: it is the column of the event type", begin, reader.at)
        if any(name == each.name for each in attributes):
            reader.fail(f"attribute `{name}` is given twice", begin, reader.at)
        reader.sign("=", f"`=` after `{name}`")
        attributes.append(reader.value(name))
        if reader.next_is(")"):
            break
        reader.sign(",", "`,` or `)`")
    reader.sign(")", "`)`")
    if reader.at < len(line):
        reader.fail("there is text after the event", reader.at, len(line))
    return head, attributes


class _Reader:
    def __init__(self, line: str, where: str) -> None:
        self.line, self.where, self.at = line, where, 0
        self._skip()

    def name(self, what: str) -> str:
        match = _NAME.match(self.line, self.at)
        if match is None:
            self.fail(f"expected {what}", self.at, self.at + 1)
        self._to(match.end())
        return unquoted(match[0])

    def next_is(self, sign: str) -> bool:
        return self.line.startswith(sign, self.at)

    def sign(self, sign: str, what: str) -> None:
        if not self.next_is(sign):
            self.fail(f"expected {what}", self.at, self.at + 1)
        self._to(self.at + 1)

    def value(self, name: str) -> Attribute:
        match = _VALUE.match(self.line, self.at)
        if match is None or (match[0] == "" and self.line[self.at : self.at + 1] in ("'", '"')):
            self.fail(f"the quote of `{name}` is not closed", self.at, len(self.line))
        start, end, text = match.start(), match.end(), match[0]
        quote = text[:1] if text[:1] in ("'", '"') else ""
        self._to(end)
        value = text[1:-1].replace(quote * 2, quote) if quote else text.strip()
        return Attribute(name, value, quote, start, end)

    def fail(self, message: str, start: int, end: int) -> NoReturn:
        raise StreamError(
            f"{self.where}: {message}",
            source=self.line,
            span=Span(start, end),
            hint="one event a line, such as BUY(id=8,name=INTC,price=12.5)",
        )

    def _to(self, at: int) -> None:
        self.at = at
        self._skip()

    def _skip(self) -> None:
        match = _SPACE.match(self.line, self.at)
        self.at = self.at if match is None else match.end()
