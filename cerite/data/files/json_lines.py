"""JSON lines: one object a line.

Invariant: as many rows as lines that are not blank, or an error with the line; a key that a line does not have is NULL.
Strings that are all ISO timestamps become timestamps. The usual spellings of a missing value are NULL among numbers,
booleans and times. A column that is declared string has other values as they are written; in a column that is declared
otherwise, strings are read as declared. Lines that mix kinds are parsed one by one, all others by Arrow.
"""

from __future__ import annotations

import json
import re
from io import BytesIO
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pa_json
import pyarrow.types as is_

from cerite.core.errors import Hint, Setting, Span, StreamError, a, first_line
from cerite.core.schema import Kind, arrow_kind
from cerite.data.columns import STRINGS
from cerite.data.files.chunks import Chunk, lines_cut
from cerite.data.guesses import MISSING, MisfitError, Text, declared, times_guessed, typed, without
from cerite.data.reading import Reading, refusal
from cerite.data.unify import Guess

_OBJECT = re.compile(rb"^[ \t]*\{", re.MULTILINE)
_OTHER = re.compile(rb"^[ \t\r]*[^\s{]", re.MULTILINE)


class JsonLines:
    """The objects of one file."""

    guess: Guess = "times"

    def __init__(self, reading: Reading | None = None) -> None:
        self._reading = reading or Reading()
        self._times: dict[str, pa.DataType] = {}  # columns that Arrow would take for times: read as text, judged here
        self.spelled: set[str] = set()

    def begin(self, path: Path, head: bytes) -> int:
        """There is no header; an array is refused."""
        if head.lstrip().startswith(b"["):
            raise StreamError(
                f"{path}: holds a JSON array, not JSON lines",
                hint="write one object a line, e.g. with `jq -c '.[]'`, or pass json.load(file)",
            )
        return 0

    def cut(self, data: bytes) -> int:
        """Whole lines."""
        return lines_cut(data)

    def parse(self, chunk: Chunk, schema: pa.Schema | None) -> pa.Table:
        """The objects; without a schema types are inferred from all of them."""
        objects = chunk.data.startswith(b"{") + chunk.data.count(b"\n{")
        if objects != chunk.data.count(b"\n") + (not chunk.data.endswith(b"\n")):  # perhaps blank lines or spaces
            if _OTHER.search(chunk.data):
                _explain(chunk, None)
            objects = len(_OBJECT.findall(chunk.data))
        if not objects:
            return pa.table({})
        if schema is not None:
            return self._typed(chunk, schema)
        table = self._inferred(chunk)
        times = {column.name: pa.string() for column in table.schema if is_.is_timestamp(column.type)}
        if times:
            self._times |= times
            table = self._inferred(chunk).select(table.column_names)
        if table.num_rows != objects:
            _explain(chunk, None)
        for at, column in enumerate(table.columns):
            table = table.set_column(at, table.field(at).name, self._settled(chunk, table.field(at).name, column))
        return table

    def line(self, chunk: Chunk, row: int) -> int:
        """The line of an object of the chunk."""
        numbers = (number for number, raw in enumerate(BytesIO(chunk.data), chunk.span.line) if raw.strip())
        return next(number for at, number in enumerate(numbers) if at == row)

    def _inferred(self, chunk: Chunk) -> pa.Table:
        try:
            return _read(chunk, self._times, "infer")
        except pa.ArrowInvalid as error:
            return self._careful(chunk, error)

    def _settled(self, chunk: Chunk, name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
        kind = self._reading.kinds.get(name)
        if kind is not None and not is_.is_null(column.type):
            return self._declared(chunk, name, column, kind)
        if is_.is_string(column.type):
            if without(column, (*MISSING, *self._reading.null_values)).null_count == len(column):
                if without(column, self._reading.null_values).null_count < len(column):
                    self.spelled.add(name)
                return pa.chunked_array([pa.nulls(len(column))])  # nothing says what it holds
            return times_guessed(column, self._reading.null_values)
        if is_.is_floating(column.type) and (pc.max(pc.abs(column)).as_py() or 0) >= 2.0**63:
            _refuse_huge(chunk, name)
        return column

    def _declared(self, chunk: Chunk, name: str, column: pa.ChunkedArray, kind: Kind) -> pa.ChunkedArray:
        if kind == "string" and not is_.is_string(column.type):
            column = pa.chunked_array([pa.array(_written(chunk, name), pa.string())])
        if is_.is_string(column.type):
            try:
                return declared(column, kind, self._reading.null_values)
            except MisfitError as misfit:
                where = f"{chunk.path}, line {self.line(chunk, misfit.row)}"
                raise refusal(where, name, misfit.value, kind) from None
        own = arrow_kind(column.type)
        if own == kind or (kind, own) == ("float", "int"):
            return column.cast(pa.float64()) if kind == "float" else column
        row = pc.index(pc.is_valid(column), True).as_py()
        value = json.dumps(column[row].as_py(), default=str)
        raise refusal(f"{chunk.path}, line {self.line(chunk, row)}", name, value, kind)

    def _careful(self, chunk: Chunk, error: Exception) -> pa.Table:
        """Lines whose values are of several kinds: what is missing is taken out, what is declared string is text."""
        rows = [
            _object(chunk.path, number, raw.decode("utf-8").rstrip("\r\n"))
            for number, raw in enumerate(BytesIO(chunk.data), chunk.span.line)
            if raw.strip()
        ]
        missing = frozenset((*MISSING, *self._reading.null_values))
        columns: dict[str, list[Any]] = {}
        for name in dict.fromkeys(name for row in rows for name in row):
            values = [row.get(name) for row in rows]
            kinds = {_kind(value) for value in values} - {None}
            if len(kinds) > 1 and name in self._reading.kinds:
                values = _written(chunk, name)
            elif len(kinds) > 1 and "string" in kinds:
                values = [None if isinstance(value, str) and value in missing else value for value in values]
            columns[name] = values
        try:
            return pa.table({name: pa.array(values, self._times.get(name)) for name, values in columns.items()})
        except (pa.ArrowException, OverflowError):
            _explain(chunk, error, missing)

    def _typed(self, chunk: Chunk, schema: pa.Schema) -> pa.Table:
        plain = {
            column.name: pa.string() if column.type == STRINGS or is_.is_temporal(column.type) else column.type
            for column in schema
        }
        try:
            table = _read(chunk, plain, "ignore")
        except pa.ArrowInvalid as error:
            table = self._careful(chunk, error)
        columns = {name: table[name] if name in table.column_names else pa.nulls(len(table)) for name in schema.names}
        return pa.table({column.name: self._as(chunk, columns[column.name], column) for column in schema})

    def _as(self, chunk: Chunk, column: Text, wanted: pa.Field) -> Text:
        if is_.is_string(column.type):
            return typed(column, wanted.type, self._reading.null_values)
        if wanted.type == STRINGS and not is_.is_null(column.type):
            return pa.array(_written(chunk, wanted.name), pa.string())
        return column.cast(wanted.type)


def _written(chunk: Chunk, name: str) -> list[str | None]:
    """The values as the file spells them, strings without their quotes."""
    texts: list[str | None] = []
    for raw in filter(bytes.strip, BytesIO(chunk.data)):
        value = json.loads(raw, parse_int=str, parse_float=str, parse_constant=str).get(name)
        texts.append(value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    return texts


def _read(chunk: Chunk, types: dict[str, pa.DataType], others: str) -> pa.Table:
    options = pa_json.ParseOptions(
        explicit_schema=pa.schema(types) if types else None, unexpected_field_behavior=others
    )
    # a block must hold the longest line
    longest = 1 << 20 if len(chunk.data) <= 1 << 20 else max(map(len, BytesIO(chunk.data)))
    return pa_json.read_json(BytesIO(chunk.data), pa_json.ReadOptions(block_size=max(1 << 20, 2 * longest)), options)


def _explain(chunk: Chunk, error: Exception | None, missing: frozenset[str] = frozenset()) -> NoReturn:
    """Finds the line that is broken, or whose value is of another kind than those before."""
    kinds: dict[str, tuple[str, int]] = {}
    for number, raw in enumerate(BytesIO(chunk.data), chunk.span.line):
        line = raw.decode("utf-8").rstrip("\r\n")
        if not line.strip():
            continue
        for key, value in _object(chunk.path, number, line).items():
            kind = _kind(value)
            if kind is None or (isinstance(value, str) and value in missing):
                continue
            old, before = kinds.setdefault(key, (kind, number))
            if old != kind:
                raise StreamError(
                    f"{chunk.path}, line {number}, column `{key}`: {json.dumps(value, ensure_ascii=False)[:60]} is "
                    f"{a(kind)}, but line {before} has {a(old)}",
                    hint=Hint(
                        "give the column one type, or declare it string: ",
                        Setting("schema", f"{key}:string"),
                        "; if a text stands for a missing value, name it: ",
                        Setting("null_values"),
                    ),
                ) from error
    raise StreamError(f"{chunk.where}: {first_line(error) if error else 'not JSON lines'}") from error


def _object(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        value = json.loads(line, object_pairs_hook=_pairs)
    except json.JSONDecodeError as wrong:
        at = min(wrong.pos, len(line))
        raise StreamError(
            f"{path}, line {number}: not JSON: {wrong.msg}",
            source=line,
            span=Span(at, at + 1),
            hint="each line must hold one whole object",
        ) from wrong
    except ValueError as twice:
        raise StreamError(f"{path}, line {number}: two values are called `{twice}`", hint="rename one") from twice
    if not isinstance(value, dict):
        raise StreamError(f"{path}, line {number}: a {_kind(value) or 'null'} where an object should be", source=line,
                          span=Span(0, len(line)), hint="each line must hold one object")  # fmt: skip
    return value


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(next(name for name in names if names.count(name) > 1))
    return members


def _kind(value: object) -> str | None:
    if value is None:
        return None
    names = {bool: "boolean", int: "number", float: "number", str: "string", list: "list", dict: "object"}
    return names[type(value)]


def _refuse_huge(chunk: Chunk, name: str) -> None:
    """Refuse a float column with huge values: they may be integers that lost digits."""
    for number, raw in enumerate(BytesIO(chunk.data), chunk.span.line):
        value = json.loads(raw).get(name) if raw.strip() else None
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise StreamError(
                f"{chunk.path}, line {number}, column `{name}`: {value} does not fit in 64 bits",
                hint="write it as a string, or with a decimal point if it is a measure",
            )
