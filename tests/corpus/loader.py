"""Reads the corpus: `load()` gives the cases of every *.case file, `paper_queries()` the queries the papers print.

The format is described in README.md. A mistake in a file is a ValueError that names the file and the line.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal, NoReturn, get_args

from cerite.core.match import Match
from cerite.language.ceql import parse_query
from cerite.language.sremo import parse_sremo
from cerite.pattern.nodes import Pattern
from cerite.pattern.query import QuerySpec

HERE = Path(__file__).parent
Language = Literal["ceql", "sremo"]
Semantics = Literal["valuations", "complex-events"]
Row = Mapping[str, Any]

_KEY = re.compile(r"([a-z]+):[ \t]*(.*)")
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?")
_WORDS = {"NULL": None, "true": True, "false": False}
_KEYS = {"case", "source", "stream", "language", "semantics", "time", "query", "matches", "counts", "why", "open"}


@dataclass(frozen=True, slots=True)
class Case:
    """One query on one stream. `rows` leave an attribute out where the table's cell is empty; None is NULL.

    `open` says why the judge does not agree yet; it is empty for nearly all.
    """

    name: str
    file: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    text: str
    expected: tuple[str, ...]
    language: Language = "ceql"
    semantics: Semantics = "valuations"
    time: str | None = None
    source: str = ""
    why: str = ""
    open: str = ""
    counts: Mapping[int, int] | None = None

    def parsed(self) -> QuerySpec | Pattern:
        """What the text says in its language."""
        return parse_query(self.text) if self.language == "ceql" else parse_sremo(self.text)

    def disagreement(self, reported: Iterable[Match]) -> str:
        """What is wrong with an engine's matches, one line each; empty if nothing is. Their order is free."""
        matches = list(reported)
        shown = Counter(map(str, matches))
        if any(match.measures for match in matches):  # values, which several matches may have
            wanted = Counter(self.expected)
            more, missing = sorted((shown - wanted).elements()), sorted((wanted - shown).elements())
            return "\n".join([f"not expected: {each}" for each in more] + [f"missing: {each}" for each in missing])
        lines = [f"twice: {each}" for each, times in shown.items() if times > 1]
        lines += [f"not expected: {each}" for each in shown if each not in self.expected]
        if self.counts is None:
            lines += [f"missing: {each}" for each in self.expected if each not in shown]
        else:
            ends = Counter(match.end for match in matches)
            lines += [
                f"{ends[end]} matches end at {end}, not {self.counts.get(end, 0)}"
                for end in sorted({*ends, *self.counts})
                if ends[end] != self.counts.get(end, 0)
            ]
        return "\n".join(lines)


def load(folder: Path = HERE) -> list[Case]:
    """Every case of every file, in order of file and place."""
    shared = {path.stem: _table(_File(path), 0, _lines(path)) for path in sorted((folder / "streams").glob("*.table"))}
    cases = [case for path in sorted(folder.glob("*.case")) for case in _cases(_File(path), shared)]
    for name, times in Counter(case.name for case in cases).items():
        if times > 1:
            raise ValueError(f"{times} cases are called {name!r}: {[each.file for each in cases if each.name == name]}")
    return cases


def paper_queries(folder: Path = HERE / "papers") -> dict[str, str]:
    """The queries that CORE prints, as `figure1/Q1`, `D/S3`, `D/S3'x2`, …, `G/Q7`.

    >>> sorted(paper_queries())[0]
    'D/S12'
    """
    fields: dict[str, str] = {}
    for path in sorted(folder.glob("*.ceql")):
        _, *texts = re.split(r"^query: (.+)\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        for name, text in zip(texts[::2], texts[1::2], strict=True):
            key = f"{path.stem}/{name.strip()}"
            if key in fields:
                raise ValueError(f"{path}: two queries are called {name!r}")
            fields[key] = text.strip()
    return fields


# ---------------------------------------------------------------- reading
@dataclass(frozen=True, slots=True)
class _File:
    path: Path

    def wrong(self, line: int, message: str) -> NoReturn:
        raise ValueError(f"{self.path}:{line + 1}: {message}")


Table = tuple[tuple[str, ...], tuple[Row, ...]]


@dataclass(slots=True)
class _Entry:
    """`key: value`, with the indented lines below it."""

    line: int
    key: str
    value: str
    block: list[str] = field(default_factory=list)


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def _entries(file: _File) -> Iterator[_Entry]:
    current: _Entry | None = None
    for number, line in enumerate(_lines(file.path)):
        if not line.strip() or line.startswith("#"):
            continue
        if line[0].isspace():
            if current is None:
                file.wrong(number, "an indented line belongs to a key, and there is none yet")
            current.block.append(line)
            continue
        if current is not None:
            yield current
        key = _KEY.fullmatch(line.rstrip()) or file.wrong(number, f"expected `key: value`, not {line!r}")
        current = _Entry(number, key[1], key[2])
    if current is not None:
        yield current


def _cases(file: _File, shared: Mapping[str, Table]) -> Iterator[Case]:
    streams = dict(shared)
    current: dict[str, _Entry] = {}
    for entry in _entries(file):
        if entry.key == "define":
            streams[entry.value] = _table(file, entry.line, entry.block)
            continue
        if entry.key == "case" and current:
            yield _case(file, current, streams)
            current = {}
        if entry.key not in _KEYS or entry.key in current or ("case" not in current and entry.key != "case"):
            file.wrong(entry.line, f"`{entry.key}` is unknown, repeated or outside a case")
        current[entry.key] = entry
    if current:
        yield _case(file, current, streams)


def _case(file: _File, fields: Mapping[str, _Entry], streams: Mapping[str, Table]) -> Case:
    start = fields["case"].line
    for key in ("stream", "query", "matches"):
        if key not in fields:
            file.wrong(start, f"the case has no `{key}:`")
    stream = fields["stream"]
    if stream.value and stream.value not in streams:
        file.wrong(stream.line, f"no stream is called {stream.value!r}; there are {sorted(streams)}")
    columns, rows = streams[stream.value] if stream.value else _table(file, stream.line, stream.block)
    counts = fields.get("counts")
    return Case(
        name=fields["case"].value,
        file=file.path.name,
        columns=columns,
        rows=rows,
        text="\n".join([fields["query"].value, *fields["query"].block]).strip("\n"),
        expected=tuple(line.strip() for line in fields["matches"].block),
        language=_one_of(file, fields.get("language"), get_args(Language)),
        semantics=_one_of(file, fields.get("semantics"), get_args(Semantics)),
        time=fields["time"].value if "time" in fields else None,
        source=fields["source"].value if "source" in fields else "",
        why=fields["why"].value if "why" in fields else "",
        open=fields["open"].value if "open" in fields else "",
        counts=None if counts is None else dict(_count(file, counts.line, each) for each in counts.block),
    )


def _one_of(file: _File, entry: _Entry | None, choices: tuple[Any, ...]) -> Any:
    value = choices[0] if entry is None else entry.value
    if entry is not None and value not in choices:
        file.wrong(entry.line, f"`{entry.key}` is one of {choices}")
    return value


def _count(file: _File, line: int, text: str) -> tuple[int, int]:
    parts = re.fullmatch(r"\s*(\d+): (\d+)\s*", text) or file.wrong(line, f"expected `end: number`, not {text!r}")
    return int(parts[1]), int(parts[2])


def _table(file: _File, line: int, block: list[str]) -> Table:
    if not block:
        file.wrong(line, "a stream is a table: a line of column names, then one line per event")
    columns, *rows = (_cells(each) for each in block if each.strip())
    if "type" not in columns:
        file.wrong(line, "one column of a stream is `type`")
    table: list[Row] = []
    for cells in rows:
        if len(cells) > len(columns):
            file.wrong(line, f"{cells} has more cells than there are columns: {columns}")
        table.append({name: value_of(cell) for name, cell in zip(columns, cells, strict=False) if cell})
    return tuple(columns), tuple(table)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("|")]


def value_of(cell: str) -> object:
    """The value a cell stands for: NULL, true, false, a number, a timestamp (UTC), else a string, perhaps in quotes.

    >>> value_of("7"), value_of("7.5"), value_of("'7'"), value_of("NULL"), value_of("MSFT")
    (7, 7.5, '7', None, 'MSFT')
    """
    if cell in _WORDS:
        return _WORDS[cell]
    if len(cell) > 1 and cell[0] == cell[-1] == "'":
        return cell[1:-1]
    if _TIMESTAMP.fullmatch(cell):
        return datetime.fromisoformat(cell).replace(tzinfo=timezone.utc)
    for number in (int, float):
        try:
            return number(cell)
        except ValueError:
            pass
    return cell
