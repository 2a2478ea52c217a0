"""JSON lines: one object a line.

Invariant: as many rows as lines that are not blank, or an error with the line; a key that a line does not have is NULL.
Strings that are all ISO timestamps become timestamps.
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

from cerite.data.chunks import Chunk, lines_cut
from cerite.data.columns import STRINGS, first_line
from cerite.data.guesses import times_guessed
from cerite.data.unify import Guess
from cerite.errors import Span, StreamError

_OBJECT = re.compile(rb"^[ \t]*\{", re.MULTILINE)
_OTHER = re.compile(rb"^[ \t\r]*[^\s{]", re.MULTILINE)


class JsonLines:
    """The objects of one file."""

    guess: Guess = "times"

    def __init__(self) -> None:
        self._times: dict[str, pa.DataType] = {}  # columns that Arrow would take for times: read as text, judged here

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
        if objects != chunk.data.count(b"\n") + (not chunk.data.endswith(b"\n")):  # blank lines or spaces, it may be
            if _OTHER.search(chunk.data):
                _explain(chunk, None)
            objects = len(_OBJECT.findall(chunk.data))
        if not objects:
            return pa.table({})
        if schema is not None:
            return self._typed(chunk, schema)
        table = _read(chunk, self._times, "infer")
        found = {column.name: pa.string() for column in table.schema if is_.is_timestamp(column.type)}
        if found:
            self._times |= found
            table = _read(chunk, self._times, "infer").select(table.column_names)
        if table.num_rows != objects:
            _explain(chunk, None)
        for at, column in enumerate(table.columns):
            if is_.is_string(column.type) and column.null_count == len(column):  # asked for as text, but not there
                table = table.set_column(at, table.field(at).name, pa.nulls(len(column)))
            elif is_.is_string(column.type):
                table = table.set_column(at, table.field(at).name, times_guessed(column))
            elif is_.is_floating(column.type) and (pc.max(pc.abs(column)).as_py() or 0) >= 2.0**63:
                _refuse_huge(chunk, table.field(at).name)
        return table

    def _typed(self, chunk: Chunk, schema: pa.Schema) -> pa.Table:
        plain = {
            column.name: pa.string() if column.type == STRINGS or is_.is_temporal(column.type) else column.type
            for column in schema
        }
        table = _read(chunk, plain, "ignore")
        return pa.table({column.name: table.column(column.name).cast(column.type) for column in schema})


def _read(chunk: Chunk, types: dict[str, pa.DataType], others: str) -> pa.Table:
    options = pa_json.ParseOptions(
        explicit_schema=pa.schema(types) if types else None, unexpected_field_behavior=others
    )
    try:
        # a block must hold the longest line
        longest = 1 << 20 if len(chunk.data) <= 1 << 20 else max(map(len, BytesIO(chunk.data)))
        return pa_json.read_json(
            BytesIO(chunk.data), pa_json.ReadOptions(block_size=max(1 << 20, 2 * longest)), options
        )
    except pa.ArrowException as error:
        _explain(chunk, error)


def _explain(chunk: Chunk, error: Exception | None) -> NoReturn:
    """Finds the line that is broken, or whose value is of another kind than those before."""
    kinds: dict[str, tuple[str, int]] = {}
    for number, raw in enumerate(BytesIO(chunk.data), chunk.span.line):
        line = raw.decode("utf-8").rstrip("\r\n")
        if not line.strip():
            continue
        for key, value in _object(chunk.path, number, line).items():
            kind = _kind(value)
            if kind is None:
                continue
            old, before = kinds.setdefault(key, (kind, number))
            if old != kind:
                raise StreamError(
                    f"{chunk.path}, line {number}, column `{key}`: {json.dumps(value, ensure_ascii=False)[:60]} is a "
                    f"{kind}, but line {before} has a {old}",
                    hint="give the column one type",
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
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(next(name for name in names if names.count(name) > 1))
    return made


def _kind(value: object) -> str | None:
    if value is None:
        return None
    names = {bool: "boolean", int: "number", float: "number", str: "string", list: "list", dict: "object"}
    return names[type(value)]


def _refuse_huge(chunk: Chunk, name: str) -> None:
    """A float column with values that large may be integers that lost digits."""
    for number, raw in enumerate(BytesIO(chunk.data), chunk.span.line):
        value = json.loads(raw).get(name) if raw.strip() else None
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise StreamError(
                f"{chunk.path}, line {number}, column `{name}`: {value} does not fit in 64 bits",
                hint="write it as a string, or with a decimal point if it is a measure",
            )
