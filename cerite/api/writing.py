"""Matches in files: CSV, JSON, JSON lines and Parquet, whole or not at all.

Invariant: a target holds what it held before or everything that was written, never a part: writing goes to a hidden
file next to it, which takes its place at the end and is removed if anything fails or the user interrupts. A file that
is being read is never written.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

import pyarrow as pa

from cerite.core.errors import ArgumentError, StreamError

_ENDINGS = {
    "Parquet": (".parquet", ".pq"), "CSV": (".csv",), "JSON": (".json",), "JSON lines": (".jsonl", ".ndjson", ".json"),
}  # fmt: skip
_TELLING = frozenset(ending for endings in _ENDINGS.values() for ending in endings) | {
    ".tsv", ".arrow", ".arrows", ".feather", ".ipc", ".orc", ".xlsx", ".gz", ".bz2", ".zst", ".zip",
}  # fmt: skip


def write_parquet(target: Any, schema: pa.Schema, tables: Iterable[pa.Table], sources: Sequence[Path]) -> int:
    """Write tables of this schema to a Parquet file, or to a binary stream; returns the number of rows."""
    import pyarrow.parquet as pq

    written = 0
    with replacing(target, sources) as draft:
        _refuse_other_ending(target, "Parquet")
        with pq.ParquetWriter(draft, schema) as writer:
            for table in tables:
                writer.write_table(table)
                written += table.num_rows
    return written


def write_text(target: Any, form: str, write: Callable[[IO[str]], int], sources: Sequence[Path]) -> int:
    """Open the target, a path or a stream, and call `write` with it; returns what `write` returns."""
    with replacing(target, sources) as draft:
        _refuse_other_ending(target, form)
        if not isinstance(draft, Path):
            return write(draft)
        with open(draft, "w", encoding="utf-8", newline="") as out:
            return write(out)


def write_jsonl(rows: Iterable[Mapping[str, Any]], out: IO[str]) -> int:
    """Write one line of JSON per row; returns the number of rows."""
    written = 0
    for row in rows:
        out.write(as_json(row) + "\n")
        written += 1
    return written


def write_json(rows: Iterable[Mapping[str, Any]], out: IO[str]) -> int:
    """Write one JSON array with an object per row; returns the number of rows."""
    written = 0
    for row in rows:
        out.write((",\n" if written else "[\n") + as_json(row))
        written += 1
    out.write("\n]\n" if written else "[]\n")
    return written


def write_csv(names: Sequence[str], tables: Iterable[pa.Table], out: IO[str], *, positions: bool) -> int:
    """Write one line per row, lists as `positions` separated by spaces or else as JSON; returns the number of rows."""
    writer = csv.writer(out)
    writer.writerow(names)
    written = 0
    for table in tables:
        columns = [_cells(column, positions=positions) for column in table.columns]
        writer.writerows(zip(*columns, strict=True))
        written += table.num_rows
    return written


def _refuse_other_ending(target: Any, form: str) -> None:
    """Refuse a file whose ending says another format than it would have; a caller's stream may be called anything."""
    if not isinstance(target, (str, os.PathLike)):
        return
    path = Path(target)
    ending = path.suffix.lower()
    if ending in _TELLING and ending not in _ENDINGS[form]:
        raise ArgumentError(
            f"`{path.name}` would be {form}, and its ending says something else",
            hint=f"let the name end in {_ENDINGS[form][0]}, or write the format that it says: to_parquet, to_csv, "
            "to_json, to_jsonl",
        )


def _cells(column: pa.ChunkedArray, *, positions: bool) -> Iterable[Any]:
    values = column.to_pylist()
    if not pa.types.is_nested(column.type):
        return [value.isoformat() if isinstance(value, date) else value for value in values]
    return [" ".join(map(str, value)) for value in values] if positions else map(as_json, values)


def as_json(value: Any) -> str:
    """One line of JSON."""
    return json.dumps(value, ensure_ascii=False, default=_written, separators=(",", ":"))


def _written(value: Any) -> str:
    """A value of a type that JSON lacks: times as ISO 8601, anything else as Python prints it."""
    return value.isoformat() if isinstance(value, date) else str(value)


@contextmanager
def replacing(target: Any, sources: Sequence[Path] = ()) -> Iterator[Any]:
    """A draft next to the target, to be written to; it takes the target's place if all goes well, else it is removed.

    A stream, a pipe or a device is written to directly, because it cannot be replaced.
    """
    if hasattr(target, "write"):
        yield target
        return
    path = _real(target)
    refuse_source(path, sources)
    refuse_unwritable(path)
    if path.exists() and not stat.S_ISREG(path.stat().st_mode):
        yield path
        return
    draft = path.with_name(f".{path.name}.{uuid4().hex[:8]}.part")
    try:
        try:
            draft.touch(exist_ok=False)
        except OSError as error:
            why = error.strerror or error
            raise StreamError(f"`{path}` cannot be written: {why}", hint="write to another folder") from error
        yield draft
        if path.exists():
            draft.chmod(stat.S_IMODE(path.stat().st_mode))
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _real(target: Any) -> Path:
    """The file that a path leads to: what is behind a link is replaced, not the link."""
    try:
        return Path(os.path.realpath(Path(target).expanduser()))
    except (TypeError, ValueError, RuntimeError) as error:
        raise StreamError(
            f"matches cannot be written to {target!r}: {error}", hint="name a file, or pass one that is open"
        ) from error


@contextmanager
def replacing_folder(target: str | os.PathLike[str]) -> Iterator[Path]:
    """`replacing` for a folder: an old one is moved aside, and removed once the new one is in its place."""
    path, mark = _real(target), uuid4().hex[:8]
    draft, old = (path.with_name(f".{path.name}.{mark}.{what}") for what in ("part", "old"))
    try:
        yield draft
        if path.exists():
            path.replace(old)
        try:
            draft.replace(path)
        except BaseException:
            if old.exists():
                old.replace(path)
            raise
    finally:
        for each in (draft, old):
            if each.is_dir():
                shutil.rmtree(each)
            else:
                each.unlink(missing_ok=True)


def refuse_unwritable(path: Path) -> None:
    """Refuse a folder, and a file in a folder that is not there."""
    if path.is_dir():
        raise StreamError(f"`{path}` is a folder, so no file can be written there", hint="name a file in it")
    if not path.parent.is_dir():
        raise StreamError(f"`{path}` cannot be written: there is no folder `{path.parent}`", hint="create it first")


def refuse_source(path: Path, sources: Iterable[Path]) -> None:
    """Refuse a target that is one of the files being read, whatever path leads to it."""
    for source in sources:
        if path.exists() and source.exists() and os.path.samefile(path, source):
            raise StreamError(f"`{path}` is being read, so it cannot be written", hint="write to another file")
