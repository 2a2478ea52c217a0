"""From paths, globs, directories and lists of these to the files to read.

Invariant: the files of a glob or directory are in sorted order; a path that leads to no file is an error, and so is a
file in a directory whose format is unknown: it might be data.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path

from cerite.core.errors import Hint, Setting, StreamError, suggestion
from cerite.data.files.chunks import COMPRESSIONS

FORMATS = {
    ".parquet": "parquet", ".pq": "parquet",
    ".csv": "csv", ".tsv": "tsv",
    ".jsonl": "json", ".ndjson": "json", ".json": "json",
    ".arrow": "ipc", ".arrows": "ipc", ".feather": "ipc", ".ipc": "ipc",
    ".txt": "core", ".stream": "core",
}  # fmt: skip
TEXTS = ("csv", "tsv", "json", "core")
AnyPath = str | os.PathLike[str]


def files_of(data: AnyPath | Sequence[AnyPath], form: str | None = None) -> list[Path]:
    """The files, each of a known format (all of `form`, if it is given) and not empty.

    >>> files_of("nowhere/events.csv")
    Traceback (most recent call last):
    cerite.core.errors.StreamError: nowhere/events.csv: there is no such file
    hint: the folder nowhere does not exist
    """
    given = [data] if isinstance(data, (str, os.PathLike)) else list(data)
    files = [file for each in given for file in _expanded(os.fspath(each), form)]
    for file in files:
        if form is None:
            format_of(file)
        if file.stat().st_size == 0:
            raise StreamError(f"{file}: the file is empty (0 bytes)", hint="was it written to the end?")
    return files


def format_of(path: Path) -> str:
    """The format by the extension; text formats may be compressed.

    >>> format_of(Path("a/events.csv.gz"))
    'csv'
    """
    packed = path.suffix.lower() in COMPRESSIONS
    extension = Path(path.stem).suffix.lower() if packed else path.suffix.lower()
    form = FORMATS.get(extension)
    if form is None:
        what = f"the extension `{extension}` is unknown" if extension else "the file name has no extension"
        raise StreamError(
            f"{path}: {what}",
            hint=Hint(
                f"use {' '.join(FORMATS)}, for text perhaps followed by {' '.join(COMPRESSIONS)}; or name the ",
                "format: ",
                Setting("format", "csv"),
            ),
        )
    if packed and form not in TEXTS:
        raise StreamError(f"{path}: only text can be compressed as a whole", hint="unpack the file first")
    return form


def _expanded(given: str, form: str | None) -> list[Path]:
    path = Path(given).expanduser()
    if path.is_dir():
        return _inside(path, form)
    if path.exists():
        return [path]
    if glob.has_magic(given):
        files = sorted(Path(each) for each in glob.glob(str(path), recursive=True))
        files = [file for file in files if file.is_file()]
        if not files:
            raise StreamError(f"{given}: no file matches this pattern", hint=f"it is looked for in {Path.cwd()}")
        return files
    raise StreamError(f"{given}: there is no such file", hint=_nearby(path))


def _inside(folder: Path, form: str | None) -> list[Path]:
    """All files below, except those that Spark and others hide (`_SUCCESS`, `.crc`)."""
    files = []
    for file in sorted(folder.rglob("*")):
        names = file.relative_to(folder).parts
        if not file.is_file() or any(name.startswith(("_", ".")) for name in names):
            continue
        if any("=" in name for name in names[:-1]):
            raise StreamError(
                f"{folder} is partitioned by {names[0].split('=')[0]}, which stands in folder names only",
                hint="pass pyarrow.dataset.dataset(folder, partitioning='hive').to_table()",
            )
        files.append(file)
    if not files:
        raise StreamError(f"{folder}: the folder has no data files", hint=f"known extensions are {' '.join(FORMATS)}")
    for file in files if form is None else ():
        try:
            format_of(file)
        except StreamError as error:
            raise StreamError(
                error.message, hint=f"to leave it out, pass a pattern such as {folder}/*.parquet"
            ) from error
    return files


def _nearby(path: Path) -> str | None:
    if "://" in str(path) or ":/" in str(path):
        return "only local files can be opened; pass a pyarrow reader for others"
    if not path.parent.is_dir():
        return f"the folder {path.parent} does not exist"
    return suggestion(path.name, os.listdir(path.parent)) or f"it is looked for in {path.parent.resolve()}"
