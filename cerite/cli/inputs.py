"""What the command line reads: queries (a file or the text itself) and schemas (text, JSON or a data file)."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import Enum
from pathlib import Path

from cerite.core.errors import CeriteError, QuerySyntaxError, SchemaError, listed
from cerite.core.schema import KINDS, Schema
from cerite.data.files.chunks import COMPRESSIONS, packed_as
from cerite.data.files.paths import FORMATS
from cerite.data.open import opened
from cerite.data.reading import Reading
from cerite.language.ceql import parse_query, parse_schema
from cerite.language.queries import declared
from cerite.language.sremo import parse_sremo
from cerite.language.wayeb import parse_wayeb
from cerite.pattern.check import declared_kinds
from cerite.pattern.query import QuerySpec

ENDINGS = {
    "csv": ".csv", "tsv": ".tsv", "json": ".jsonl", "core": ".stream", "parquet": ".parquet", "ipc": ".arrow",
}  # fmt: skip
_UNPACKED = {"gzip": "zcat", "bz2": "bzcat", "zstd": "zstdcat"}
_QUERY_FILES = (".ceql", ".sql", ".sremo", ".sre", ".txt")


class Language(str, Enum):
    """How a query is written."""

    auto = "auto"
    ceql = "ceql"
    sremo = "sremo"
    wayeb = "wayeb"


class FormChoice(str, Enum):
    """What a row of an output is: a match with its events, an event of a match, a match with positions."""

    events = "events"
    long = "long"
    positions = "positions"


class SemanticsChoice(str, Enum):
    """Which matches count as different."""

    valuations = "valuations"
    complex_events = "complex-events"


class TimeUnitChoice(str, Enum):
    """What numbers in the time column count."""

    s = "s"
    ms = "ms"
    us = "us"
    ns = "ns"


class EngineChoice(str, Enum):
    """Where a query runs."""

    auto = "auto"
    local = "local"
    spark = "spark"


def refuse_swapped(command: str, query: str, events: str) -> None:
    """Refuse data where the query belongs: people take a file of events for the first argument."""
    path = Path(query)
    ending = (Path(path.stem) if path.suffix.lower() in COMPRESSIONS else path).suffix.lower()
    if any(each.isspace() for each in query) or ending not in FORMATS or ending == ".txt":
        return
    is_query = events.lower().endswith(_QUERY_FILES[:-1]) or "select " in events.lower()
    first = shlex.quote(events) if is_query else "QUERY"
    raise CeriteError(
        f"`{query}` is a file of events, and the query comes first", hint=f"cerite {command} {first} {query}"
    )


def read_query(argument: str, language: Language = Language.auto) -> QuerySpec:
    """The query of a file, of standard input (`-`), or of the argument itself."""
    path = _file(argument)
    if path is None and _seems_a_path(argument, language):
        what = f"`{argument}` is a folder" if os.path.isdir(argument) else f"there is no file `{argument}`"
        raise CeriteError(what, hint="give a file, `-` for standard input, or the text of a query in quotes")
    text = _standard_input() if argument == "-" else argument if path is None else _read(path)
    if language is Language.auto and path is not None:
        language = {".sremo": Language.sremo, ".sre": Language.wayeb}.get(path.suffix.lower(), Language.ceql)
    if language is Language.sremo:
        return replace(QuerySpec(parse_sremo(text)), source=text)
    return parse_wayeb(text) if language is Language.wayeb else parse_query(text)


def read_schema(
    argument: str | None, query: QuerySpec | None = None, null: Sequence[str] = (), delimiter: str | None = None
) -> Schema | None:
    """The schema in a file: `CREATE STREAM …`, JSON `{"BUY": {"id": "int"}}`, or the columns of any data.

    The schema must not contradict what the query declares; data is read as the query declares it.
    """
    if argument is None:
        return None
    ending = Path(argument).suffix.lower()
    if os.path.isdir(argument) or (ending in FORMATS and ending not in (".json", ".txt")):
        kinds = {} if query is None else declared_kinds(query)
        return Schema.of_arrow(opened(argument, Reading.of(kinds, null, delimiter)).everything)
    if null or delimiter:
        raise CeriteError("--null and --delimiter are about data", hint="leave them out, or give data to --schema")
    schema = _written_schema(argument, ending)
    if query is not None:
        declared_kinds(query, schema)
    return schema


def _written_schema(argument: str, ending: str) -> Schema:
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
    """Whether the argument, which is not a file, was meant to be one: CEQL cannot do without spaces, SREMO can."""
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
        document = json.loads(_read(path))
    except json.JSONDecodeError as error:
        raise SchemaError(f"`{path}` is not JSON: {error}") from None
    if not isinstance(document, dict) or not document:
        raise SchemaError(f"`{path}` holds no JSON object", hint='write {"BUY": {"id": "int", "price": "float"}}')
    kinds = [each for value in document.values() for each in (value.values() if isinstance(value, dict) else [])]
    wrong = [kind for kind in kinds if not isinstance(kind, str)]
    if wrong:
        raise SchemaError(
            f"`{path}` has {json.dumps(wrong[0])} as an attribute's type", hint=f"the types are {listed(KINDS)}"
        )
    try:
        return declared(document)
    except SchemaError as error:
        error.message = f"`{path}`: {error.message}"
        raise


@contextmanager
def read_events(argument: str, form: str | None) -> Iterator[str]:
    """The path of the events; `-` is standard input, saved to a file because it is read more than once."""
    if argument != "-":
        yield argument
        return
    with tempfile.TemporaryDirectory(prefix="cerite-") as folder:
        path = Path(folder) / "events"
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        if not path.stat().st_size:
            raise CeriteError(
                "standard input holds no events", hint="pipe a file into it: cat trades.csv | cerite run …"
            )
        with path.open("rb") as file:
            head = file.read(1 << 16)
        if (packed := packed_as(head)) is not None:
            raise CeriteError(
                f"standard input is {packed}", hint=f"unpack it first: {_UNPACKED[packed]} events.csv… | cerite run … -"
            )
        named = path.rename(path.with_suffix(ENDINGS[form or sniffed(head)]))
        try:
            yield str(named)
        except CeriteError as error:
            error.message = error.message.replace(str(named), "standard input")
            raise


def sniffed(head: bytes) -> str:
    """The format of data that begins like this.

    >>> [sniffed(each) for each in (b"PAR1", b'{"a": 1}', b"BUY(id=8)\\n", b"a\\tb\\n", b"type,v\\nA,1\\n")]
    ['parquet', 'json', 'core', 'tsv', 'csv']
    """
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return "ipc"
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"{"):
        return "json"
    line = text.split(b"\n", 1)[0]
    if re.match(rb"[\w`][^,;|\t]*\(.*\)\s*$", line):
        return "core"
    return "tsv" if b"\t" in line and b"," not in line else "csv"
