"""What the command line reads: queries (a file or the text itself) and schemas (text, JSON or a data file)."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from enum import Enum
from pathlib import Path

from cerite.errors import CeriteError, SchemaError
from cerite.language.ceql import parse_query, parse_schema
from cerite.language.sremo import parse_sremo
from cerite.language.wayeb import parse_wayeb
from cerite.pattern.query import Query
from cerite.schema import Schema, kind_named

_QUERY_FILES = (".ceql", ".sql", ".sremo", ".sre", ".txt")


class Language(str, Enum):
    """How a query is written."""

    auto = "auto"
    ceql = "ceql"
    sremo = "sremo"
    wayeb = "wayeb"


class SemanticsChoice(str, Enum):
    """Which matches count as different."""

    valuations = "valuations"
    complex_events = "complex-events"


class EngineChoice(str, Enum):
    """Where a query runs."""

    auto = "auto"
    local = "local"
    spark = "spark"


def read_query(argument: str, language: Language = Language.auto) -> Query:
    """The query of a file, or of the argument itself."""
    path = _file(argument)
    if path is None and argument.lower().endswith(_QUERY_FILES) and not any(c.isspace() for c in argument):
        raise CeriteError(f"there is no file `{argument}`", hint="give a file, or the text of a query in quotes")
    text = argument if path is None else _read(path)
    if language is Language.auto and path is not None:
        language = {".sremo": Language.sremo, ".sre": Language.wayeb}.get(path.suffix.lower(), Language.ceql)
    if language is Language.sremo:
        return replace(Query(parse_sremo(text)), source=text)
    return parse_wayeb(text) if language is Language.wayeb else parse_query(text)


def read_schema(argument: str | None) -> Schema | None:
    """The schema in a file: `CREATE STREAM …`, JSON `{"BUY": {"id": "int"}}`, or the columns of a data file."""
    if argument is None:
        return None
    path = _file(argument)
    if path is None:
        raise CeriteError(f"there is no schema file `{argument}`")
    ending = path.suffix.lower()
    if ending == ".json":
        return _json_schema(path)
    if ending in (".parquet", ".arrow", ".feather", ".csv"):
        return _data_schema(path, ending)
    return parse_schema(_read(path))


def _file(argument: str) -> Path | None:
    """The file the argument names, if it names one; a query's text may be too long or odd to be a path."""
    try:
        return Path(argument) if os.path.isfile(argument) else None
    except (OSError, ValueError):
        return None


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CeriteError(f"`{path}` cannot be read as text: {error}") from None


def _json_schema(path: Path) -> Schema:
    try:
        found = json.loads(_read(path))
    except json.JSONDecodeError as error:
        raise SchemaError(f"`{path}` is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise SchemaError(f"`{path}` holds no JSON object", hint='write {"BUY": {"id": "int", "price": "float"}}')
    if all(isinstance(value, str) for value in found.values()):
        return Schema.of_columns(found)
    if not all(isinstance(value, dict) for value in found.values()):
        raise SchemaError(f"`{path}` mixes event types and columns", hint='write {"BUY": {"id": "int"}}')
    return Schema({event: {key: kind_named(kind) for key, kind in kinds.items()} for event, kinds in found.items()})


def _data_schema(path: Path, ending: str) -> Schema:
    import pyarrow as pa
    from pyarrow import csv, feather, parquet

    try:
        if ending == ".parquet":
            return Schema.of_arrow(parquet.read_schema(path))
        if ending == ".csv":
            with csv.open_csv(path) as reader:
                return Schema.of_arrow(reader.schema)
        return Schema.of_arrow(feather.read_table(path).schema)
    except (pa.ArrowInvalid, OSError) as error:
        raise SchemaError(f"the columns of `{path}` cannot be read: {error}") from None
