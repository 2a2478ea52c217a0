"""Matches in files: CSV, JSON, JSON lines and Parquet, whole or not at all.

Invariant: a target holds what it held before or everything that was written, never a part: writing goes to a hidden
file beside it, which takes its place at the end and is removed if anything fails or the user interrupts. A file that
is being read is never written.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa

from cerite.core.errors import StreamError
from cerite.core.match import Match

if TYPE_CHECKING:
    from cerite.api.result import Matches


def write_parquet(target: Any, schema: pa.Schema, tables: Iterable[pa.Table], sources: Sequence[Path]) -> int:
    """Write tables of this schema to a Parquet file, or to a binary stream; how many rows there were."""
    import pyarrow.parquet as pq

    written = 0
    with replacing(target, sources) as draft, pq.ParquetWriter(draft, schema) as writer:
        for table in tables:
            writer.write_table(table)
            written += table.num_rows
    return written


def write_text(target: Any, write: Callable[[IO[str]], int], sources: Sequence[Path]) -> int:
    """Call `write` with the opened target, a path or a stream; what it returns."""
    with replacing(target, sources) as draft:
        if not isinstance(draft, Path):
            return write(draft)
        with open(draft, "w", encoding="utf-8", newline="") as out:
            return write(out)


def write_jsonl(matches: Matches, out: IO[str], *, events: bool) -> int:
    """One line per match; how many."""
    written = 0
    for match in matches:
        out.write(as_json(match, bindings=bool(matches.variables), events=events) + "\n")
        written += 1
    return written


def write_json(matches: Matches, out: IO[str], *, events: bool) -> int:
    """One array with an object per match; how many."""
    written = 0
    for match in matches:
        begin = ",\n" if written else "[\n"
        out.write(begin + as_json(match, bindings=bool(matches.variables), events=events))
        written += 1
    out.write("\n]\n" if written else "[]\n")
    return written


def write_csv(matches: Matches, out: IO[str]) -> int:
    """One row per match, positions separated by spaces; how many."""
    writer = csv.writer(out)
    writer.writerow(matches.columns)
    written = 0
    for match in matches:
        bound = match.variables
        cells = (match.positions, *(bound.get(name, ()) for name in matches.variables))
        writer.writerow([match.start, match.end, *(" ".join(map(str, cell)) for cell in cells)])
        written += 1
    return written


def as_json(match: Match, *, bindings: bool, events: bool) -> str:
    """One line of JSON."""
    shown: dict[str, Any] = {"start": match.start, "end": match.end, "positions": match.positions}
    if bindings:
        shown["bindings"] = match.variables
    if events:
        shown["events"] = match.events
    return json.dumps(shown, ensure_ascii=False, default=str, separators=(",", ":"))


@contextmanager
def replacing(target: Any, sources: Sequence[Path] = ()) -> Iterator[Any]:
    """A draft beside the target to write to; it takes the target's place if all goes well, else it is removed.

    A stream, a pipe or a device is written to as it is: these cannot be replaced.
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
    """`replacing` for a folder: what was there is moved aside, and removed once the new one is in its place."""
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
    """Refuse a target that is one of the files being read, by whatever path."""
    for source in sources:
        if path.exists() and source.exists() and os.path.samefile(path, source):
            raise StreamError(f"`{path}` is being read, so it cannot be written", hint="write to another file")
