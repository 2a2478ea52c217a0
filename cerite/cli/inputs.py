"""What the command line reads: queries (a file or the text itself) and schemas (text, JSON or a data file)."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from enum import Enum
from pathlib import Path

from cerite.data import open_events
from cerite.data.paths import FORMATS
from cerite.errors import CeriteError, QuerySyntaxError, SchemaError, listed
from cerite.language.ceql import parse_query, parse_schema
from cerite.language.sremo import parse_sremo
from cerite.language.wayeb import parse_wayeb
from cerite.pattern.query import Query
from cerite.schema import KINDS, Schema, kind_named

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
    """The query of a file, of standard input (`-`), or of the argument itself."""
    path = _file(argument)
    if path is None and _seems_a_path(argument, language):
        what = f"`{argument}` is a folder" if os.path.isdir(argument) else f"there is no file `{argument}`"
        raise CeriteError(what, hint="give a file, `-` for standard input, or the text of a query in quotes")
    text = _standard_input() if argument == "-" else argument if path is None else _read(path)
    if language is Language.auto and path is not None:
        language = {".sremo": Language.sremo, ".sre": Language.wayeb}.get(path.suffix.lower(), Language.ceql)
    if language is Language.sremo:
        return replace(Query(parse_sremo(text)), source=text)
    return parse_wayeb(text) if language is Language.wayeb else parse_query(text)


def read_schema(argument: str | None) -> Schema | None:
    """The schema in a file: `CREATE STREAM …`, JSON `{"BUY": {"id": "int"}}`, or the columns of any data."""
    if argument is None:
        return None
    ending = Path(argument).suffix.lower()
    if os.path.isdir(argument) or (ending in FORMATS and ending not in (".json", ".txt")):
        return Schema.of_arrow(open_events(argument).schema)
    path = _file(argument)
    if path is None:
        raise CeriteError(f"there is no schema file `{argument}`")
    if ending == ".json":
        return _json_schema(path)
    try:
        return parse_schema(_read(path))
    except QuerySyntaxError as error:
        error.message = f"`{path}`: {error.message}"
        raise


def _seems_a_path(argument: str, language: Language) -> bool:
    """Whether the argument, which is no file, was meant to be one: CEQL cannot do without spaces, SREMO can."""
    if argument == "-" or not argument or any(c.isspace() for c in argument):
        return False
    return language in (Language.auto, Language.ceql) or argument.lower().endswith(_QUERY_FILES)


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
        raise CeriteError(f"`{path}` cannot be read as text: {error}", hint="queries are UTF-8 text") from None


def _standard_input() -> str:
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as error:
        raise CeriteError(f"standard input cannot be read as text: {error}") from None


def _json_schema(path: Path) -> Schema:
    try:
        found = json.loads(_read(path))
    except json.JSONDecodeError as error:
        raise SchemaError(f"`{path}` is not JSON: {error}") from None
    if not isinstance(found, dict) or not found:
        raise SchemaError(f"`{path}` holds no JSON object", hint='write {"BUY": {"id": "int", "price": "float"}}')
    if all(isinstance(value, str) for value in found.values()):
        return Schema.of_columns(found)
    if not all(isinstance(value, dict) for value in found.values()):
        raise SchemaError(f"`{path}` mixes event types and columns", hint='write {"BUY": {"id": "int"}}')
    wrong = [kind for kinds in found.values() for kind in kinds.values() if not isinstance(kind, str)]
    if wrong:
        raise SchemaError(
            f"`{path}` has {json.dumps(wrong[0])} as an attribute's type", hint=f"the types are {listed(KINDS)}"
        )
    return Schema({event: {key: kind_named(kind) for key, kind in kinds.items()} for event, kinds in found.items()})
