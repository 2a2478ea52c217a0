"""`cerite run`: matches on the terminal, as JSON lines, or in a file."""

from __future__ import annotations

import os
import sys
import time as clock
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from glob import glob, has_magic
from pathlib import Path, PurePath

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn

from cerite.api.result import Matches
from cerite.api.writing import refuse_unwritable
from cerite.cli.inputs import FormChoice
from cerite.core.errors import CeriteError

_WRITERS = (".parquet", ".jsonl", ".ndjson", ".json", ".csv")


class Meter:
    """Progress on standard error: events per second, matches, active states; shown if wanted, or on a terminal."""

    def __init__(self, console: Console, *, wanted: bool | None) -> None:
        self._console = console
        self.shown = wanted or (wanted is None and console.is_terminal)
        self._progress: Progress | None = None
        self._started = 0.0

    @contextmanager
    def of(self, total: int | None) -> Iterator[None]:
        """Show progress towards this many events."""
        if not self.shown:
            yield
            return
        columns = (SpinnerColumn(), BarColumn(), TaskProgressColumn(), TextColumn("{task.description}"))
        with Progress(*columns, console=self._console, transient=True) as self._progress:
            self._progress.add_task("reading", total=total)
            self._started = clock.perf_counter()
            yield

    def tell(self, rows: int, matches: int, states: int) -> None:
        """The rows read and matches so far, and how many states hold partial matches now."""
        if self._progress is not None:
            speed = rows / max(clock.perf_counter() - self._started, 1e-9)
            text = f"{rows:,} events, {speed:,.0f}/s, {matches:,} matches, {states:,} active states"
            self._progress.update(self._progress.task_ids[0], completed=rows, description=text)


def report(
    matches: Matches, *, output: str | None, count: bool, form: FormChoice, show: int, out: Console, err: Console
) -> None:
    """Show or write the matches as the options say."""
    if count:
        print(matches.count())
    elif output == "-":
        matches.to_jsonl(sys.stdout, **_form(form))
    elif output is not None:
        written = _write(matches, Path(output), form)
        what = ("event", "events") if form is FormChoice.long else ("match", "matches")
        err.print(f"{written:,} {what[written != 1]} written to {output}")
    else:
        total = matches.count()
        if show:
            out.print(matches.table(show))
        out.print(count_line(total, show))
        if suppressed := matches.suppressed():
            out.print(f"{suppressed:,} more suppressed")


def count_line(total: int, show: int) -> str:
    """The last line under a table that shows so many matches."""
    return f"{total:,} match{'' if total == 1 else 'es'}" + (f", the first {show} shown" if total > show > 0 else "")


def check_output(output: str | None, events: str, *, overwrite: bool, folder: bool) -> None:
    """Refuse, before anything is read, an output that cannot or must not be written.

    An existing file is replaced only on request, and the input is never written to: neither the files that are read,
    nor a new file where a folder or a pattern of the input would find it next time.
    """
    if output is None or output == "-" or "://" in output:
        return
    path = Path(output).expanduser()
    if not folder:
        check_format(output, _WRITERS)
    real = Path(os.path.realpath(path))
    if _is_input(real, events):
        raise CeriteError(
            f"--output `{output}` is among the events that are read", hint="write to another file or folder"
        )
    if path.exists() and not overwrite and (path.is_dir() or path.is_file()):
        raise CeriteError(f"`{output}` exists already", hint="add --overwrite to replace it, or name another")
    if not folder:
        refuse_unwritable(path)


def _is_input(real: Path, events: str) -> bool:
    """Whether a path is one of the events' files, in one of their folders, or fits their pattern."""
    given = Path(events).expanduser()
    if given.exists():
        source = Path(os.path.realpath(given))
        inside = source in real.parents or real == source or real in source.parents
        return inside or (real.exists() and os.path.samefile(real, source))
    named = glob(str(given), recursive=True) if has_magic(events) else []
    if any(real.exists() and os.path.samefile(real, each) for each in named):
        return True
    return bool(named) and _fits(real, given)


def _fits(real: Path, pattern: Path) -> bool:
    """Whether a pattern will find this path; `**` stands for any folders."""
    plain = [part for part in pattern.parts if not has_magic(part)]
    fixed = next((at for at, part in enumerate(pattern.parts) if has_magic(part)), len(plain))
    root = Path(os.path.realpath(Path(*pattern.parts[:fixed])))
    rest = "/".join(pattern.parts[fixed:])
    if root not in real.parents:
        return False
    return any(fnmatch(str(real.relative_to(root)), each) for each in (rest, rest.replace("**/", "")))


def check_format(output: str, endings: Collection[str]) -> str:
    """The ending of an output, refused if it is not one of these."""
    path = PurePath(output)
    ending = path.suffix.lower()
    if ending not in endings:
        raise CeriteError(f"unknown output format `{path.name}`", hint=f"the endings are {', '.join(endings)}, or `-`")
    return ending


def _write(matches: Matches, path: Path, form: FormChoice) -> int:
    """Write the matches in the format of the file's ending."""
    writers = {".parquet": matches.to_parquet, ".csv": matches.to_csv, ".json": matches.to_json}
    return writers.get(path.suffix.lower(), matches.to_jsonl)(path, **_form(form))


def _form(form: FormChoice) -> dict[str, bool]:
    return {"events": form is FormChoice.events, "long": form is FormChoice.long}
